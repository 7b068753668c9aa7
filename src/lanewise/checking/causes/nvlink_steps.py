"""NVLinks that are down, by the steps of rates on a board that joins each pair of its GPUs: one link less is one step.

The links between a GPU and the NVSwitches share its traffic evenly, so that a GPU with k of n links down reaches
(n - k) / n of the others' rate with every peer, and nobody else is slower. Pairs of one board agree within 1 %
(nvbandwidth and p2pBandwidthLatencyTest on A100, H100 and H200 boards of the evidence).
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from lanewise.checking.cause import Cause
from lanewise.checking.named.abilities import GpuAbility
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.observation import Observation

_PAIR = re.compile(r"(gpu\d+)->(gpu\d+)")
# With fewer GPUs too few pairs are left to say what is usual.
_LEAST_GPUS = 4
_AGREE = 0.015


def lost_links(
    results: Sequence[PathResult], ability_of: Callable[[Observation], GpuAbility | None]
) -> Iterator[Cause]:
    """GPUs whose copies to and from every peer are whole NVLinks below those of all other pairs, which agree."""
    tests: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    links: dict[str, int] = {}
    for row in (result.row for result in results if result.verdict is Verdict.OK):
        pair, ability = _PAIR.fullmatch(row.flow), ability_of(row)
        if not pair or row.metric != "goodput" or row.how.get("p2p") != "on" or not row.value:
            continue
        if ability is not None and ability.part is not None and ability.all_linked:
            tests[row.scenario][pair[1], pair[2]] = row.value
            links[row.scenario] = int(ability.part.number("nvlink.links") or 0)
    for scenario, rates in tests.items():
        yield from _lost(rates, links[scenario])


def _lost(rates: dict[tuple[str, str], float], links: int) -> Iterator[Cause]:
    gpus = list(dict.fromkeys(gpu for pair in rates for gpu in pair))
    # All pairs of such a GPU are slower than all others, so that it has the slowest.
    slowest = min(rates, key=lambda pair: rates[pair])
    for gpu in [gpu for gpu in gpus if gpu in slowest] if len(gpus) >= _LEAST_GPUS and links else ():
        own = [rate for pair, rate in rates.items() if gpu in pair]
        others = [rate for pair, rate in rates.items() if gpu not in pair]
        if not others:
            continue  # copies of one GPU alone: nothing says what is usual
        usual = statistics.median(others)
        down = round((1 - statistics.median(own) / usual) * links)
        if down < 1 or not (_alike(others, usual) and _alike(own, usual * (links - down) / links)):
            continue
        what = f"{down} of the {links} NVLinks of {gpu} may be down: its pairs reach {links - down}/{links} of others"
        evidence = f"{statistics.median(own) / 1e9:.4g} GB/s in {len(own)} rows, {usual / 1e9:.4g} GB/s without it"
        step = "nvidia-smi nvlink -s; nvidia-smi nvlink -e; dmesg | grep -i xid"
        yield Cause(("nvlink", gpu), what, step, evidence=evidence, fault=True, devices=frozenset({gpu}))


def _alike(rates: Sequence[float], nominal: float) -> bool:
    return all(abs(rate / nominal - 1) <= _AGREE for rate in rates)
