"""References of a row in rows of its kind on other devices: they show that one is worse, not that all are fine."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import copy
from functools import lru_cache

from lanewise.checking.references.by_design import less_by_design
from lanewise.checking.references.detours import flows_together
from lanewise.checking.references.host_nodes import STATED_NODE
from lanewise.checking.references.many_rows import evenly
from lanewise.checking.references.parts import Reference, of_other_rows
from lanewise.checking.references.side_by_side import kinds_of_ends, unlike
from lanewise.checking.symptom import line_of, row_devices
from lanewise.errors import LanewiseError
from lanewise.perf.flow import Flow, parse_flows
from lanewise.results.match import CONTEXT, METHOD, Identity, identity
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts
from lanewise.results.sample import Sample

LEAST_PAIRS = 2
# So many other GPUs that copy from the same node, and what a far one of them keeps at least: 0.66 of 56 GB/s between
# two EPYC 9575F, 0.7 and more between Xeons.
_LEAST_OF_NODE, _OF_NODE = 3, 0.6
# Of so many rows of one kind some, evenly over their values, have the same median.
_MOST_OF_KIND = 240
# Both ways of pairs that share no link bring 1.5 to 2 times one way (RTX PRO 6000 1.69 to 1.83 below other switches and
# 0.89 where ACS sent the pair up to the root port, Visual-Synthesizer/rtx6kpro); more than 2.3 times is not PCIe.
_DUPLEX, _ONE_WAY, _NO_NVLINK = 1.5, 1.1, 2.3
# Host memory of a stated NUMA node.
_NODE = re.compile(r"\bhost\d*:\d|\bcpu\d")
_METHOD = ("flows", "engine", "p2p", "mode", "host memory", "phase")
_IGNORED = (*CONTEXT, "scenario", *(key for key in METHOD if key not in _METHOD))
_KindOfPair = tuple[str | None, ...]


class Siblings:
    """The rates of one check by kind of path, and those of pairs of peers by kind and pair."""

    def __init__(self, rates: Sequence[Observation], posted: PostedFacts | None = None) -> None:
        self._posted = posted or PostedFacts()
        self._models_of: dict[str, frozenset[str]] = {}
        kinds: dict[Identity, list[Observation]] = defaultdict(list)
        self._pairs: dict[_KindOfPair, dict[frozenset[str], list[float]]] = defaultdict(lambda: defaultdict(list))
        self._with_and_without: dict[tuple[_KindOfPair, str], tuple[list[float], list[float]]] = {}
        for row in rates:
            kinds[kind_of_path(row)].append(row)
            if row.path.startswith("peer") and row.value and one_pair(row):
                self._pairs[_kind_of_pair(row)][row_devices(row)].append(row.value)
        self._kinds = {kind: evenly(rows, _MOST_OF_KIND) for kind, rows in kinds.items()}
        self._sampled = {kind for kind, rows in kinds.items() if len(self._kinds[kind]) < len(rows)}

    def with_posted(self, posted: PostedFacts) -> Siblings:
        """The same rates, whose devices are named by other posted facts."""
        others = copy(self)
        others._posted, others._models_of = posted, {}
        return others

    def of_other_pairs(self, row: Observation, pcie: float | None) -> Iterator[Reference]:
        """A GPU all of whose pairs are far below the pairs of the others, compared with those.

        `pcie`: what PCIe carries of one copy in B/s; faster ones go over NVLinks, which not all pairs have (None: not
        known).
        """
        if not row.path.startswith("peer") or not one_pair(row):
            return
        for gpu in sorted(row_devices(row)):
            own, others = self._of_gpu(_kind_of_pair(row), gpu)
            perhaps_nvlink = pcie is None or max(others, default=0.0) > 1.05 * pcie * (1 + (row.metric == "total"))
            enough = len(others) >= (LEAST_PAIRS if perhaps_nvlink else 1)
            if enough and len(own) >= LEAST_PAIRS and max(own) < 0.6 * (middle := statistics.median(others)):
                yield of_other_rows(middle, 0.6, f"the {len(others)} pairs without {gpu}")

    def of_both_ways(self, row: Observation, pcie: float | None) -> Iterator[Reference]:
        """Both ways of a pair that bring together what PCIe carries one way, beside two and more pairs that do not.

        Traffic that goes up to a root port and down again has both ways in each direction of the uplink.
        """
        if not row.path.startswith("peer") or row.metric != "total" or not one_pair(row) or pcie is None:
            return
        pairs = self._pairs[_kind_of_pair(row)]
        others = [max(rates) for pair, rates in pairs.items() if pair != row_devices(row)]
        alike = len(others) >= LEAST_PAIRS and _DUPLEX * pcie < min(others) and max(others) < _NO_NVLINK * pcie
        if alike and (row.value or 0.0) < _ONE_WAY * pcie:
            yield of_other_rows(min(others), _ONE_WAY / _DUPLEX, f"the slowest of {len(others)} other pairs")

    def _of_gpu(self, kind: _KindOfPair, gpu: str) -> tuple[list[float], list[float]]:
        """The rates, in order, of the pairs with a GPU and of those without it, looked for once."""
        if (known := self._with_and_without.get((kind, gpu))) is None:
            pairs = self._pairs[kind].items()
            own = sorted(rate for pair, rates in pairs if gpu in pair for rate in rates)
            others = sorted(rate for pair, rates in pairs if gpu not in pair for rate in rates)
            known = self._with_and_without[kind, gpu] = own, others
        return known

    def of_kind(self, row: Observation) -> Iterator[Reference]:
        """Rows of the same kind on other devices."""
        # What several paths at once share differs from set to set.
        if row.path == "peer" or not one_pair(row):
            return
        kind = kind_of_path(row)
        like = [
            each for each in self._kinds.get(kind, ())
            if each.value and each.flow != row.flow and line_of(each) == line_of(row) and not unlike(each, row)
            and not less_by_design(row, each) and not self._other_models(row, each)
            and row.how.get("slot") == each.how.get("slot")
        ]  # fmt: skip
        if not like:
            return
        values = [each.value or 0.0 for each in like]
        middle = statistics.median([*values, row.value or 0.0]) if len(values) > 1 else values[0]
        # Which switches and sockets lie between decides what a staged copy loses, and one to a stated NUMA node.
        slow = 0.45 if row.path.startswith("peer") or _NODE.search(row.flow) else 0.75
        node = STATED_NODE.findall(row.flow)
        near = [each.value or 0.0 for each in like if node and STATED_NODE.findall(each.flow) == node]
        if len(near) >= _LEAST_OF_NODE:  # the memory is the same: this GPU is far, or its link is a lesser one
            values, slow, middle = near, _OF_NODE, statistics.median(near)
        others = f"{len(values)} others" if kind in self._sampled else f"the other {len(values)}"
        limit = f"{others} of its kind" if len(values) > 1 else f"its like on {like[0].flow}"
        yield of_other_rows(middle, slow, limit)

    def _other_models(self, row: Observation, other: Observation) -> bool:
        """Whether the devices of two rows are named and are of different models."""
        mine, theirs = self._models(row), self._models(other)
        return bool(mine and theirs) and not mine & theirs

    def _models(self, row: Observation) -> frozenset[str]:
        """The names of a row's devices, looked up once for all rows of the same flows."""
        text = row.how.get("flows") or row.flow
        if (known := self._models_of.get(text)) is None:
            titles = {self._posted.title(end) for flow in flows_of(row) for end in (flow.src, flow.dst)}
            known = self._models_of[text] = frozenset(titles - {""})
        return known


def kind_of_path(row: Observation | Sample) -> Identity:
    """What rows must share to be siblings: the kind of path, direction, metric, settings and method."""
    return identity(row, _IGNORED, {"flow": kinds_of_ends, "flows": flows_together})


def flows_of(row: Observation) -> tuple[Flow, ...]:
    """The flows that ran together; none if they cannot be read."""
    return _parsed(row.how.get("flows") or row.flow)


@lru_cache(maxsize=4096)
def _parsed(flows: str) -> tuple[Flow, ...]:
    """The flows of a text, read once for all rows that compare themselves with it."""
    try:
        return parse_flows(flows)
    except LanewiseError:
        return ()


def _kind_of_pair(row: Observation) -> _KindOfPair:
    """What pairs of peers must share to be compared: path, metric, and P2P on or off."""
    return row.path, row.metric, row.how.get("p2p")


def one_pair(row: Observation) -> bool:
    """Whether all flows that ran together are between the same two ends, one way or both."""
    return len({frozenset((flow.src, flow.dst)) for flow in flows_of(row)}) <= 1
