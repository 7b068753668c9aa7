"""References of a collective within a host: copies between its own GPUs, of which a ring asks the same links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lanewise.checking.expectation import too_short
from lanewise.checking.named.abilities import GpuAbility, raw_rate
from lanewise.checking.references.parts import LEAST_MESSAGE, RING_COLLECTIVES, Reference, is_card, of_another_row
from lanewise.checking.references.siblings import flows_of
from lanewise.checking.symptom import row_devices
from lanewise.results.observation import Observation

# Rings of peers have 0.70 of the slowest pair and more on eleven machines of data/evidence (pro6000-trx40 and
# rtx5060ti-13600kf the least, nine of rtx3090 and rtx4090 0.83 to 0.97), rings through host memory in place of peers
# 0.16 and 0.63 to 0.74 (rtx4090-48g-7302, rtx4090-48g-4416).
_OF_PAIRS = 0.6
# Where only near pairs were measured, others of the ring may cross sockets or a link of half the lanes: rings of peers
# of eight machines have 0.51 of a near pair and more (four with a lesser link 0.51 and 0.52, across sockets 0.83 to
# 0.96). Through host memory in place of peers five had 0.05 to 0.17 (rtx3090-7402, rtx4090-7402 and rtx4090-48g-7302
# without peers), three 0.40 to 0.63. NCCL does so with more than two GPUs at root ports of their own
# (src/graph/paths.cc, ncclTopoCheckP2p).
_OF_NEAR_PAIRS = 0.33
PEER_COPIES = "peer copies between"


def of_peer_copies(row: Observation, rows: Sequence[Observation], part: GpuAbility | None) -> Iterator[Reference]:
    """A long ring over PCIe compared with the slowest pair of its GPUs, whose peer copies take the same links."""
    long = row.settings.get("bytes", LEAST_MESSAGE) >= LEAST_MESSAGE and row.scenario.startswith(RING_COLLECTIVES)
    if part is None or not is_card(part) or not long or row.how.get("p2p") == "off" or row.settings.get("hosts", 1) > 1:
        return
    gpus = {flow.src for flow in flows_of(row)}
    pairs = _pairs(rows, gpus, raw_rate(part.gen, part.lanes))
    if pairs:
        slowest = min(pairs, key=lambda pair: pairs[pair])
        of_several = f", the slowest of {len(pairs)} pairs" if len(pairs) > 1 else ""
        limit = f"{PEER_COPIES} {' and '.join(sorted(slowest))}{of_several}"
        share = _OF_PAIRS if _reach_across(pairs, gpus) else _OF_NEAR_PAIRS
        yield of_another_row(pairs[slowest], share, limit)


def _pairs(rows: Sequence[Observation], gpus: set[str], wires: float) -> Mapping[frozenset[str], float]:
    """What each pair of peers among GPUs has at best one way in B/s, half of both ways where that is less.

    Pairs above the `wires` have a bridge of NVLinks.
    """
    best: dict[tuple[frozenset[str], str], float] = {}
    for row in rows:
        peers = row.path.startswith("peer") and row.how.get("p2p") == "on" and row.metric in ("goodput", "total")
        if peers and row.value and len(ends := row_devices(row)) == 2 and ends <= gpus and not too_short(row):
            rate = row.value / (2 if row.metric == "total" else 1)
            best[ends, row.metric] = max(rate, best.get((ends, row.metric), 0.0))
    pairs: dict[frozenset[str], float] = {}
    for (ends, _), rate in best.items():
        pairs[ends] = min(rate, pairs.get(ends, rate))
    return {ends: rate for ends, rate in pairs.items() if rate <= wires}


def _reach_across(pairs: Mapping[frozenset[str], float], gpus: set[str]) -> bool:
    """Whether some pair is of both halves of the GPUs: their numbers follow the bus, so that these are far apart."""
    ordered = sorted(gpus, key=lambda gpu: (len(gpu), gpu))
    near = set(ordered[: len(ordered) // 2])
    return any(len(pair & near) == 1 for pair in pairs)
