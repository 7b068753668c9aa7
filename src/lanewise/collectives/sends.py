"""How fast each rank sends to the next: NCCL gives sends fewer channels than rings, over PCIe two."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.collectives.fabric import FabricKind, LocalFabric
from lanewise.collectives.learned import learned
from lanewise.collectives.model import AlgorithmPeak, CollectiveSettings
from lanewise.collectives.ranks import RankSet

# NCCL 2.30.7, src/enqueue.cc, addP2pToPlan, with NCCL_P2P_NVL_CHUNKSIZE of 512 KiB: a part of a message a channel is of
# at least an eighth of a chunk, and channels are doubled while it is above 32.
_LEAST_PART, _MOST_PART = 2**16, 2**24
# Channels and links near each other's rate reach less than either: 1/rate^5 = 1/channels^5 + 1/links^5 is within 3 % of
# what 1, 4, 8, 16 and 32 channels of two H200 and 8, 16 and 32 of four H100 carried.
_POWER = 5


@dataclass(frozen=True, slots=True)
class SendRate:
    """What a rank sends in B/s over its `channels` and links, what limits it and what it rests on.

    `doubt` is how many times as much it may be where the rate of a channel was not measured.
    """

    rate: float
    channels: int
    limit: str
    rests_on: str
    doubt: float


def send_channels(size: float, ranks: int, links: int, connected: int) -> int:
    """The channels of a message of `size` B between two of `ranks` with `links` NVLinks each, of those `connected`.

    Both counts are powers of two (src/graph/paths.cc): of a peer two channels for each link, over PCIe two, and at
    first no more than give each rank channels of its own.
    """
    every = _power_of_two(connected)
    most = min(every, _power_of_two(2 * links))
    channels = most
    while channels * ranks > every and channels > 1:
        channels //= 2
    channels = min(channels, math.ceil(size / _LEAST_PART))
    while size / channels > _MOST_PART and channels <= most // 2:
        channels *= 2
    return channels


def send_rate(
    size: float, ranks: RankSet, fabric: LocalFabric, connected: int, peak: AlgorithmPeak, settings: CollectiveSettings
) -> SendRate | None:
    """The rate of a message of `size` B within one node, through switches or shared memory; None elsewhere."""
    if len(ranks.nodes) > 1 or ranks.maker != "NVIDIA":
        return None
    through_memory = fabric.kind is FabricKind.PCIE and fabric.staged
    if fabric.kind is not FabricKind.NVSWITCH and not through_memory:
        return None
    links = 1 if through_memory else round(fabric.raw / fabric.link)
    channels = send_channels(size, len(ranks.ranks), links, connected)
    key = "shared_memory_channel" if through_memory else "send_channel"
    figure = learned(key, [ranks.generation], settings.without)
    if through_memory and not figure.measured:
        return None
    rate = both_limit(channels * figure.value * 1e9, peak.bus_bandwidth)
    by_links = peak.bus_bandwidth < channels * figure.value * 1e9
    limit = peak.limit if by_links else f"{channels} channel{'s' * (channels > 1)} of NCCL's sends"
    doubt = 1.0 if figure.measured else peak.bus_bandwidth / rate
    return SendRate(rate, channels, limit, figure.rests_on, doubt)


def both_limit(channels: float, links: float) -> float:
    """What channels and links of these rates carry together, in their unit."""
    return float((channels**-_POWER + links**-_POWER) ** (-1 / _POWER))


def _power_of_two(count: int) -> int:
    """The least power of two that is no smaller."""
    return 1 << (count - 1).bit_length()
