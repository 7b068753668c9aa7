"""What rings over NVLink lose as if to their last step, which passes nothing on.

The law describes NCCL's default buffers; why it holds is open, since with other buffers rates change at most half as
much as it says (docs/decisions/0069-what-the-last-step-of-a-ring-costs.md). A channel handles a message in loops:
a chunk of each rank goes around, in n - 1 steps that send (2 (n - 1) of all_reduce) and one that only receives (NCCL
2.30.7, src/device/all_reduce.h, all_gather.h, reduce_scatter.h). Channels begin a call together, so that the links wait
during the last step of the first loop. As no two channels keep the same pace, they drift apart with each loop, and
others send while one receives: of loop j the links wait 1 / (1 + j / drift).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.collectives.constants import Library
from lanewise.collectives.fabric import FabricKind, LocalFabric
from lanewise.collectives.learned import learned
from lanewise.collectives.model import Algorithm, Collective, CollectiveSettings, Protocol
from lanewise.collectives.ranks import RankSet

# Of Simple: half of a buffer of 4 MiB (NCCL 2.30.7, src/include/collectives.h, src/init.cc).
CHUNK = 2**21
IN_LOOPS = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER)


@dataclass(frozen=True, slots=True)
class IdleTime:
    """How long the links of a ring wait during a call, in s, and what that rests on."""

    seconds: float
    rests_on: tuple[str, ...] = ()


def has_loops(ranks: RankSet, fabric: LocalFabric) -> bool:
    """Whether rings of these ranks run as NCCL's loops over NVLink within one node."""
    by_nvlink = fabric.kind in (FabricKind.NVSWITCH, FabricKind.MESH)
    return by_nvlink and ranks.maker == "NVIDIA" and len(ranks.nodes) == 1


def idle_time(
    collective: Collective, size: float, ranks: RankSet, fabric: LocalFabric, channels: int,
    settings: CollectiveSettings,
) -> IdleTime:  # fmt: skip
    """What the links wait for during a call of `size` B on `channels`."""
    if collective not in IN_LOOPS or not has_loops(ranks, fabric):
        return IdleTime(0.0)
    drift = learned("ring_drift", ["nvlink"], settings.without)
    channel = learned("send_channel", [ranks.generation], settings.without)
    step = CHUNK / (channel.value * 1e9)
    loops = size / (len(ranks.ranks) * channels * CHUNK)
    return IdleTime(step * waited_loops(loops, drift.value), (drift.rests_on, channel.rests_on))


def later_hops(ranks: RankSet, fabric: LocalFabric, library: Library) -> float:
    """Seconds until a broadcast reaches the last rank, beside those of the first hop, the only one that NCCL plans."""
    if not has_loops(ranks, fabric):
        return 0.0
    return (len(ranks.ranks) - 2) * library.hop_latency("nvlink", Algorithm.RING, Protocol.SIMPLE)


def waited_loops(loops: float, drift: float) -> float:
    """The integral of 1 / (1 + j / drift) over `loops`: how many last steps the links wait for."""
    return drift * math.log1p(loops / drift)
