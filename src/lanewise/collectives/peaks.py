"""The bus bandwidth that long messages reach with each algorithm, from the rates of links, switches and cards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from lanewise.collectives.constants import has_small_pages
from lanewise.collectives.fabric import FabricKind, LocalFabric, NodeNetwork, RingRate
from lanewise.collectives.learned import LearnedFigure, learned
from lanewise.collectives.model import Algorithm, AlgorithmPeak, Collective, CollectiveSettings
from lanewise.collectives.ranks import RankSet
from lanewise.collectives.rccl import ring_of_channels
from lanewise.collectives.ring_loops import has_loops
from lanewise.collectives.search import ChannelPlan
from lanewise.collectives.trees import busiest_node
from lanewise.perf.uncertainty import RANGES, UNKNOWN

# A ring of two Ampere reaches less than longer ones where its links carry more.
_PAIR_LEAST = 200e9
# Of shared memory, a channel and rank (NCCL 2.30.7, src/init.cc). Slices are halves of a chunk, and each of the four
# slots of a buffer holds one, so that short messages touch twice their size.
_BUFFER = 2**22
_GATHER_SHARE = 0.985  # all_gather and reduce_scatter of all_reduce, both rings (eight H200, ml-engineering network)
_RANGE = (0.90, 1.06)
_UNMEASURED = (0.75, 1.15)
# Of measured rings over PCIe / predicted from the other machines: 0.87 to 1.39. Half of it is a slower slot (check).
_PCIE_RANGE = (0.85, 1.2)
# Compute capability x 10 from which a warp has 6 loads in flight, not 8 (NCCL 2.30.7, src/include/device.h,
# ncclCollUnroll).
_FEWER_LOADS = 120
# A tree passes each byte up and down, over the links of a rank in the middle twice.
_TREE_SHARE = 0.92


def algorithm_peaks(
    collective: Collective, ranks: RankSet, fabric: LocalFabric, network: NodeNetwork | None,
    plans: Mapping[Algorithm, ChannelPlan], settings: CollectiveSettings, size: float = math.inf,
) -> dict[Algorithm, AlgorithmPeak]:  # fmt: skip
    """The peak of each algorithm that has a plan, by algorithm; P2P for direct sends.

    `size` (B) decides how much of NCCL's buffers in host memory a call uses. Of NVLinks that nobody counted perhaps one
    is there.
    """
    peaks = _peaks_of_all_links(collective, ranks, fabric, network, plans, settings, size)
    return {algorithm: replace(peak, low=peak.low * fabric.certain) for algorithm, peak in peaks.items()}


def _peaks_of_all_links(
    collective: Collective, ranks: RankSet, fabric: LocalFabric, network: NodeNetwork | None,
    plans: Mapping[Algorithm, ChannelPlan], settings: CollectiveSettings, size: float,
) -> dict[Algorithm, AlgorithmPeak]:  # fmt: skip
    direct = collective in (Collective.ALL_TO_ALL, Collective.SENDRECV)
    buffers = 0.0 if direct else min(2 * size, plans[Algorithm.RING].connected * fabric.receivers * _BUFFER)
    ring = _ring(ranks, fabric, settings, buffers)
    if not direct and _is_board_of_amd(ranks, fabric):
        ring = ring_of_channels(ring, len(ranks.ranks), settings)
    if network is None and collective in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER):
        ring = _scaled(ring, _gather_share(ranks, fabric, settings))
    if direct:
        meet = collective is Collective.ALL_TO_ALL and fabric.kind is FabricKind.NVSWITCH and ranks.most > 2
        within = _where_sends_meet(ring, settings) if meet else ring
        return {Algorithm.P2P: _direct(collective, ranks, network, within, settings)}
    peaks = {Algorithm.RING: _ring_of_nodes(ranks, fabric, network, ring, settings)}
    if collective is Collective.ALL_REDUCE:
        if Algorithm.TREE in plans:
            peaks[Algorithm.TREE] = _tree(ranks, fabric, network, ring, settings)
        if Algorithm.NVLS in plans or Algorithm.NVLS_TREE in plans:
            one = _switch(ranks, fabric, settings)
            if network is None:
                peaks[Algorithm.NVLS] = one
            else:
                peaks[Algorithm.NVLS_TREE] = _switch_tree(ranks, network, one, settings)
    return peaks


def _is_board_of_amd(ranks: RankSet, fabric: LocalFabric) -> bool:
    """Whether the ranks are AMD's GPUs of one node, with a link between each two."""
    one = len(ranks.nodes) == 1 and ranks.maker == "AMD" and fabric.kind is FabricKind.MESH
    return one and fabric.rings == len(ranks.ranks) - 1


def _gather_share(ranks: RankSet, fabric: LocalFabric, settings: CollectiveSettings) -> float:
    """What rings that gather or scatter reach of one that reduces to all; over NVLink `ring_loops` says it."""
    if has_loops(ranks, fabric):
        return 1.0
    of_two = fabric.staged and ranks.most == 2
    return learned("shared_memory_gather", ["two ranks"], settings.without).value if of_two else _GATHER_SHARE


def _ring(ranks: RankSet, fabric: LocalFabric, settings: CollectiveSettings, buffers: float) -> AlgorithmPeak:
    """The ring within a node; `buffers` (B) are what it uses of one CPU's memory."""
    if fabric.kind is FabricKind.NONE:
        return AlgorithmPeak(Algorithm.RING, math.inf, math.inf, math.inf, "", "")
    if fabric.kind is FabricKind.PCIE:
        return _pcie_ring(ranks, fabric, settings, buffers)
    if fabric.kind is FabricKind.MESH and ranks.maker == "AMD":
        figure = learned("mesh_share", [ranks.generation], settings.without)
        return _peak(Algorithm.RING, fabric.rings * fabric.link, figure, fabric.limit)
    of_pair = ranks.most == 2 and fabric.planning >= _PAIR_LEAST
    classes = [f"{ranks.generation} pair"] * of_pair + [ranks.generation]
    figure = learned("ring_share", classes, settings.without)
    links = fabric.rings * fabric.link if fabric.kind is FabricKind.MESH and not of_pair else fabric.planning
    return _peak(Algorithm.RING, links, figure, fabric.limit)


def _memory(fabric: LocalFabric, buffers: float) -> RingRate | None:
    """What the CPUs' memory allows; of `buffers` (B) the part beyond what devices fill of a cache is read from it."""
    if fabric.memory is None or fabric.uncached is None or buffers <= fabric.cache:
        return fabric.memory
    return fabric.memory.where_a_share_is(fabric.uncached, 1 - fabric.cache / buffers)


def _pcie_ring(ranks: RankSet, fabric: LocalFabric, settings: CollectiveSettings, buffers: float) -> AlgorithmPeak:
    """Over PCIe: a share of what the links carry, and through shared memory no more than the memory does.

    Ports that carry both directions of shared memory reach less than those that carry one. Links between sockets keep
    what peers reach of them, as each direction has its own. Kernels copy, which on GPUs of compute capability 12 have
    fewer loads in flight than on others. Where an IOMMU translates, pages of 4 KiB cost walks
    (collectives/translation.py), and those of cuMem allocations perhaps nothing: a range, if either may be. So it is
    where nobody says whether it translates: of 14 such hosts that name no CPU or one of AMD's three have the walks
    (docs/decisions/0077).
    """
    few_loads = ranks.capability >= _FEWER_LOADS
    as_peers = learned("peer_share", ["sm120" if few_loads else "sm80"], settings.without)
    through_ports = fabric.duplex or (fabric.staged and few_loads)
    of_ports = learned("shared_memory_share", [ranks.generation, "pcie"], settings.without)
    figure = of_ports if through_ports else as_peers
    links = RingRate(fabric.low, fabric.ring, fabric.high, fabric.limit).scaled(figure.value)
    sockets = fabric.sockets and fabric.sockets.scaled(as_peers.value)
    rates = [rate for rate in (links, sockets, _memory(fabric, buffers)) if rate is not None]
    slowest = min(rates, key=lambda rate: rate.rate)
    low, high = min(rate.low for rate in rates) * _PCIE_RANGE[0], min(rate.high for rate in rates) * _PCIE_RANGE[1]
    walks = fabric.walks
    if fabric.translated and walks is not None and walks.rate < slowest.rate and has_small_pages(settings):
        limit = f"{walks.limit} (through shared memory)"
        return AlgorithmPeak(
            Algorithm.RING, walks.rate, walks.low, min(walks.high, high), limit, walks.rests_on, "typical"
        )
    if walks is not None:
        low = min(low, walks.low)
    elif fabric.translated:
        low = min(low, RANGES[UNKNOWN][0] * slowest.rate)
    cache_source = fabric.cache_source if buffers > fabric.cache else ""
    rests_on = "; ".join(text for text in (figure.rests_on, fabric.far_share, cache_source) if text)
    return AlgorithmPeak(Algorithm.RING, slowest.rate, low, high, slowest.limit, rests_on, "typical")


def _peak(algorithm: Algorithm, rate: float, figure: LearnedFigure, limit: str) -> AlgorithmPeak:
    low, high = _RANGE if figure.low < figure.high else (0.88, 1.08) if figure.measured else _UNMEASURED
    return AlgorithmPeak(
        algorithm, figure.value * rate, figure.low * rate * low, figure.high * rate * high, limit, figure.rests_on
    )


def _ring_of_nodes(
    ranks: RankSet, fabric: LocalFabric, network: NodeNetwork | None, ring: AlgorithmPeak, settings: CollectiveSettings
) -> AlgorithmPeak:
    """A ring through all nodes: the cards of a node pass what its links pass within."""
    if network is None:
        return ring
    if fabric.kind is FabricKind.MESH and ring.bus_bandwidth < math.inf:
        # Within a node the chain has a link less than a ring, so that more of them fit.
        ring = _scaled(ring, ranks.least / (ranks.least - 1))
    cards = _network_peak(Algorithm.RING, network, settings)
    return min(ring, cards, key=lambda peak: peak.bus_bandwidth)


def _network_peak(
    algorithm: Algorithm, network: NodeNetwork, settings: CollectiveSettings, factor: float = 1.0
) -> AlgorithmPeak:
    figure = learned("network_share", ["network"], settings.without)
    share = figure.value * factor
    return AlgorithmPeak(
        algorithm, share * network.rate, share * network.low * 0.93, share * network.high * 1.02, network.limit,
        figure.rests_on,
    )  # fmt: skip


def _tree(
    ranks: RankSet, fabric: LocalFabric, network: NodeNetwork | None, ring: AlgorithmPeak, settings: CollectiveSettings
) -> AlgorithmPeak:
    factor = Collective.ALL_REDUCE.bus_factor(len(ranks.ranks))
    within = _scaled(ring, _TREE_SHARE * factor / 2, Algorithm.TREE)
    if network is None:
        return within
    cards = _network_peak(Algorithm.TREE, network, settings, factor / busiest_node(len(ranks.nodes)))
    return min(within, cards, key=lambda peak: peak.bus_bandwidth)


def _switch(ranks: RankSet, fabric: LocalFabric, settings: CollectiveSettings) -> AlgorithmPeak:
    """NVLS within a node: of each byte a rank sends the whole and a share 1/n, so that links carry (n + 1) / n."""
    figure = learned("nvls_share", [ranks.generation], settings.without)
    count = ranks.least
    return _peak(Algorithm.NVLS, fabric.raw * 2 * (count - 1) / (count + 1), figure, fabric.limit)


def _switch_tree(
    ranks: RankSet, network: NodeNetwork, one: AlgorithmPeak, settings: CollectiveSettings
) -> AlgorithmPeak:
    """NVLSTree: the switches' rate at the share that two nodes keep of it, or the cards' load in the tree of nodes."""
    figure = learned("nvls_tree_share", [ranks.generation], settings.without)
    factor = Collective.ALL_REDUCE.bus_factor(len(ranks.ranks))
    share = figure.value * factor / Collective.ALL_REDUCE.bus_factor(ranks.least)
    within = _scaled(one, share, Algorithm.NVLS_TREE)
    cards = _network_peak(Algorithm.NVLS_TREE, network, settings, factor / busiest_node(len(ranks.nodes)))
    return min(within, cards, key=lambda peak: peak.bus_bandwidth)


def _direct(
    collective: Collective, ranks: RankSet, network: NodeNetwork | None, ring: AlgorithmPeak,
    settings: CollectiveSettings,
) -> AlgorithmPeak:  # fmt: skip
    """Direct sends: to the next rank, or of every rank to every other."""
    within = _scaled(ring, 1.0, Algorithm.P2P)
    if network is None:
        return within
    count, local = len(ranks.ranks), ranks.least
    leaving = (count - 1) / (count - local) if collective is Collective.ALL_TO_ALL else 1.0
    cards = _network_peak(Algorithm.P2P, network, settings, leaving / local)
    return min(within, cards, key=lambda peak: peak.bus_bandwidth)


def _where_sends_meet(ring: AlgorithmPeak, settings: CollectiveSettings) -> AlgorithmPeak:
    """What three or more ranks send to all others over NVSwitches: several of them send to one at once."""
    figure = learned("all_to_all_share", ["nvswitch"], settings.without)
    peak = _peak(Algorithm.P2P, ring.bus_bandwidth, figure, ring.limit)
    return replace(peak, rests_on=f"{ring.rests_on}; {figure.rests_on}")


def _scaled(peak: AlgorithmPeak, factor: float, algorithm: Algorithm | None = None) -> AlgorithmPeak:
    return AlgorithmPeak(
        algorithm or peak.algorithm, peak.bus_bandwidth * factor, peak.low * factor, peak.high * factor, peak.limit,
        peak.rests_on, peak.basis,
    )  # fmt: skip
