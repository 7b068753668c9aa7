"""How many channels RCCL runs on, and what they carry together with the links.

Boards of eight MI300 or newer have a link between each two GPUs. RCCL has tables of rings for all eight, and of
channels for two and four (README: 32 and 24). For other numbers NCCL's search makes the rings, and on a board with more
than four ranks it may find no more than two (ROCm/rccl, src/graph/rome_models.cc, parseRome4P2H: what fits no table
counts as a Rome host; src/graph/search.cc, ncclTopoCompute: two channels at most there). The channels that it finds are
connected twice; three ranks' rings are doubled before. Such rings wait for their channels, not for their links.

A send to another node has two channels, one from more than 128 ranks on, or as many as a GPU has cards
(src/graph/paths.cc, ncclTopoGetNchannels, with the 64 channels of several nodes).
"""

from __future__ import annotations

from lanewise.collectives.learned import learned
from lanewise.collectives.model import AlgorithmPeak, CollectiveSettings
from lanewise.collectives.sends import SendRate, both_limit

_IN_TABLES = (2, 4, 8)  # ranks of a board
_SEARCHED_FREELY, _FOUND_AT_MOST = 4, 2
_CONNECTED = 2
_SEND_CHANNELS, _MOST_RANKS = 2, 128
# Of a channel on two machines: 9.4 to 14.3 GB/s in rings and sends, where the figures are 9.45 and 11.05.
CHANNEL_RANGE = (0.75, 1.5)


def ring_channels(ranks: int) -> int | None:
    """The channels of a ring of `ranks` GPUs of one board; None for those that RCCL has a table for."""
    if ranks in _IN_TABLES:
        return None
    found = _FOUND_AT_MOST if ranks > _SEARCHED_FREELY else 2 * (ranks - 1)
    return _CONNECTED * found


def ring_of_channels(ring: AlgorithmPeak, ranks: int, settings: CollectiveSettings) -> AlgorithmPeak:
    """The ring of `ranks` GPUs of a board, where its channels carry less than its links."""
    channels = ring_channels(ranks)
    if channels is None:
        return ring
    figure = learned("rccl_channel", ["cdna"], settings.without)
    low, rate, high = (channels * factor * figure.value * 1e9 for factor in (CHANNEL_RANGE[0], 1.0, CHANNEL_RANGE[1]))
    return AlgorithmPeak(
        ring.algorithm, both_limit(rate, ring.bus_bandwidth), both_limit(low, ring.low), both_limit(high, ring.high),
        f"{channels} channels of RCCL's ring" if rate < ring.bus_bandwidth else ring.limit,
        f"{ring.rests_on}; {figure.rests_on}",
    )  # fmt: skip


def send_over_network(ranks: int, cards_of_each: int, peak: AlgorithmPeak, settings: CollectiveSettings) -> SendRate:
    """What each of `ranks` sends to the next one of another node, with `cards_of_each` network cards a GPU."""
    channels = max(_SEND_CHANNELS if ranks <= _MOST_RANKS else 1, cards_of_each)
    figure = learned("rccl_channel", ["cdna"], settings.without)
    rate = both_limit(channels * figure.value * 1e9, peak.bus_bandwidth)
    by_links = peak.bus_bandwidth < channels * figure.value * 1e9
    limit = peak.limit if by_links else f"{channels} channel{'s' * (channels > 1)} of RCCL's sends to another node"
    return SendRate(rate, channels, limit, figure.rests_on, min(CHANNEL_RANGE[1], peak.bus_bandwidth / rate))
