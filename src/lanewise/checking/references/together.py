"""References of several copies of GPUs at once: one of them alone, and as many others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from lanewise.checking.references.parts import Reference, best_of, of_another_row, of_other_rows
from lanewise.results.figure_words import TABLE
from lanewise.results.observation import Observation

# Several copies at once carry together at least what one of them carries alone, whatever they share. Half leaves room
# for both ways of one path: of 521 kept questions none that is healthy has less. Writes of one switch to several root
# complexes of an EPYC have a quarter (voipmonitor/rtx6kpro, hardware/collapse-report.md).
_OF_ONE = 0.5
# What each of several copies at once must reach of one alone: two may share a link, and no more is known of three.
_OF_EACH = 0.4
# Pairs of GPUs that share no link add up: eight over two uplinks have 2.0 times one pair, two over one uplink 1.0 of it
# and 0.5 of two that share none (RTX PRO 6000 on three boards, Visual-Synthesizer/rtx6kpro).
_OF_ELSEWHERE, _OF_PAIRS = 0.6, 1.1
# Four GPUs and more over two uplinks have twice one GPU alone; eight below one root complex have 1.3 times
# (wrx90-cpayne-8gpu-root-topology-comparison.md of the same pages), those of the other two 2.1 times.
_HOST_COPIES, _MANY, _OF_MANY = ("host to device", "device to host"), 4, 1.5
# Sets of which three and more agree within a tenth have links alike; one that has 0.6 of them lacks some.
_ENOUGH, _AGREE, _OF_ALIKE = 3, 1.1, 0.6


def of_several_gpus(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """All that rows say of several copies of GPUs at once: one of them alone, as many others."""
    yield from of_one_alone(row, rows)
    yield from of_each_at_once(row, rows)
    yield from of_sets_alike(row, rows)
    yield from of_pairs_elsewhere(row, rows)
    yield from of_pairs_alone(row, rows)
    yield from of_gpus_alone(row, rows)


def of_one_alone(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Several copies of GPUs at once, as their sum, compared with the best of them alone."""
    if (best := fastest_alone(row, rows)) is not None:
        yield of_another_row(best.value or 0.0, _OF_ONE, f"{best.flow} alone, of those that ran at once")


def of_pairs_elsewhere(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Several pairs of GPUs at once, none of which shares a GPU, compared with as many pairs of other GPUs."""
    if (best := as_many_pairs(row, rows)) is not None:
        yield of_other_rows(best.value or 0.0, _OF_ELSEWHERE, f"as many pairs at once in '{best.scenario}'")


def of_pairs_alone(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Several pairs of GPUs at once, none of which shares a GPU, that bring no more than one of them alone."""
    if _typed(row) and len(pairs_apart(row)) > 1 and (best := fastest_alone(row, rows)) is not None:
        yield of_another_row(best.value or 0.0, _OF_PAIRS, f"{best.flow} alone")


def of_gpus_alone(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Copies of four GPUs and more from or to host memory at once that bring little more than one of them alone."""
    many = row.path in _HOST_COPIES and len(copies(row)) >= _MANY
    if many and _typed(row) and (best := fastest_alone(row, rows)) is not None:
        yield of_another_row(best.value or 0.0, _OF_MANY, f"{best.flow} alone")


def of_each_at_once(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Each of several copies at once, as somebody typed in both, compared with one of them alone."""
    if (best := alone_of_each(row, rows)) is not None:
        yield of_another_row(best.value or 0.0, _OF_EACH, f"{best.flow} alone")


def of_sets_alike(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Copies of several GPUs into or out of one, compared with those of each other GPU with as many: three agree."""
    shape = _star(row)
    if shape is None:
        return
    like = [
        each.value for each in rows
        if each.value and _star(each) == shape and copies(each) != copies(row) and each.settings == row.settings
        and all(each.how.get(key) == row.how.get(key) for key in ("p2p", "engine", "tool"))
    ]  # fmt: skip
    if len(like) >= _ENOUGH and max(like) <= _AGREE * min(like):
        yield of_other_rows(min(like), _OF_ALIKE, f"the same of {len(like)} other GPUs")


def _star(row: Observation) -> tuple[object, ...] | None:
    """What sets of copies into or out of one GPU share if they differ in that GPU alone; None for others."""
    ends = [flow.split("->") for flow in copies(row)]
    if not row.path.startswith("peer") or len(ends) < 2 or row.metric not in ("goodput", "total"):
        return None
    sources, targets = ({pair[i] for pair in ends} for i in (0, -1))
    return (row.metric, row.path, len(sources), len(targets)) if 1 in (len(sources), len(targets)) else None


def alone_of_each(row: Observation, rows: Sequence[Observation]) -> Observation | None:
    """The lone copy of a GPU that ran in a set of several as well; None for other rows."""
    flows = copies(row)
    typed = _typed(row) and row.metric == "goodput" and "gpu" in row.flow
    if not typed or len(flows) < 2 or row.path in ("network", "storage"):
        return None
    alone = [
        each for each in rows
        if each.metric == "goodput" and each.value and len(copies(each)) == 1 and copies(each)[0] in flows
        and each.path == row.path and each.settings == row.settings
        and all(each.how.get(key) == row.how.get(key) for key in ("p2p", "engine", "host memory", "tool"))
    ]  # fmt: skip
    return best_of(alone)


def pairs_apart(row: Observation) -> tuple[str, ...]:
    """The pairs of GPUs of a row's sum of copies if each GPU is in one of them alone; none of other rows."""
    flows = copies(row)
    ends = [end for flow in flows for end in flow.split("->")]
    apart = row.metric == "total" and row.path.startswith("peer") and len(set(ends)) == len(ends)
    return flows if apart and all(end.startswith("gpu") for end in ends) else ()


def as_many_pairs(row: Observation, rows: Sequence[Observation]) -> Observation | None:
    """The best of as many pairs of other GPUs at once, by the same method; None for other rows."""
    own = pairs_apart(row)
    like = [
        each for each in rows
        if len(own) > 1 and len(pairs_apart(each)) == len(own) and copies(each) != own
        and each.settings == row.settings and each.path == row.path
        and all(each.how.get(key) == row.how.get(key) for key in ("p2p", "engine", "tool"))
    ]  # fmt: skip
    return best_of(like)


def fastest_alone(row: Observation, rows: Sequence[Observation]) -> Observation | None:
    """The best lone copy of those that a row sums up, by the same method; None for other rows."""
    flows = copies(row)
    if row.metric != "total" or len(flows) < 2 or "gpu" not in row.flow or row.path in ("network", "storage"):
        return None
    alone = [
        each for each in rows
        if each.metric == "goodput" and each.value and copies(each) == (each.flow.replace(" ", ""),)
        and copies(each)[0] in flows and each.settings == row.settings
        and all(each.how.get(key) == row.how.get(key) for key in ("p2p", "engine", "host memory", "tool"))
    ]  # fmt: skip
    return best_of(alone)


def _typed(row: Observation) -> bool:
    """Whether somebody laid the figure beside others: typed in, or in a table."""
    return row.how.get("tool") in ("typed in", TABLE)


def copies(row: Observation) -> tuple[str, ...]:
    """The flows that ran together, without the words on how."""
    return _without_words(row.how.get("flows") or row.flow)


@lru_cache(maxsize=4096)
def _without_words(flows: str) -> tuple[str, ...]:
    """The flows of a text, read once: each of many rows of one set compares itself with all others."""
    return tuple(flow.strip().split(" ")[0] for flow in flows.split(","))
