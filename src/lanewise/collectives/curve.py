"""Predicts time and bus bandwidth of a collective against size, with what the library chooses at each size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lanewise.collectives.choice import ChoiceModel, PlannedChoice, choice_model
from lanewise.collectives.constants import Library
from lanewise.collectives.fabric import FabricKind, LocalFabric, NodeNetwork, local_fabric, node_network
from lanewise.collectives.learned import LearnedFigure, learned
from lanewise.collectives.model import (
    Algorithm,
    AlgorithmPeak,
    Collective,
    CollectiveCurve,
    CollectivePoint,
    CollectiveSettings,
    ComparedAlgorithm,
    Launch,
    Protocol,
    TransportPeak,
)
from lanewise.collectives.peaks import algorithm_peaks
from lanewise.collectives.ranks import RankSet, rank_set
from lanewise.collectives.rccl import send_over_network
from lanewise.collectives.ring_loops import IN_LOOPS, IdleTime, idle_time, later_hops
from lanewise.collectives.search import ChannelPlan, channel_plan
from lanewise.collectives.sends import SendRate, send_rate
from lanewise.topology.model import System

# Added to a call by who issues it (s): eight H100 of a p5 above NCCL's latency; torch eagerly above a CUDA graph.
_ADDED = {Launch.GRAPH: 0.0, Launch.NCCL_TESTS: 1.5e-6, Launch.ONE_PROCESS: 1.5e-6, Launch.TORCH: 25e-6}
# One process issues the kernels of its GPUs one after the other: 3.7 to 5.5 us each.
_ISSUE = 4.5e-6
# How long a group of few kernels may take to issue: of two 22 to 42 us on two virtual machines (Python perhaps 9 of
# them), of four 47 to 54 us on another (benchmarks/runs/2026-11-27-four-gpus-last), of eight 30 to 44 us.
_SLOW_ISSUE = 55e-6
_EXPONENT = 0.25
_LONGEST_RAMP = 1000.0  # us of wire time, from which on the time beyond it grows no more
# Where no machine of the class was measured: a share of the library's latency.
_SWITCH_SHARE, _RING_SHARE = 0.8, 0.6
_PCIE_LATENCY = 0.5  # of what NCCL plans for PCIe
# The interval's factors of the bandwidth, by size: latency, ramp, peak.
_SMALL, _MIDDLE, _LONG = (0.55, 1.4), (0.6, 1.45), (0.88, 1.08)
_MIDDLE_FROM, _LONG_FROM = 2.0**20, 2.0**28
_WALKED = "SHM of 4 KiB pages behind a translating IOMMU"


@dataclass(frozen=True, slots=True)
class CollectiveModel:
    """A collective of some ranks before its size is known; `peaks` are those of each algorithm."""

    system: System
    collective: Collective
    members: RankSet
    settings: CollectiveSettings
    fabric: LocalFabric
    network: NodeNetwork | None
    peaks: Mapping[Algorithm, AlgorithmPeak]
    choice: ChoiceModel
    library: Library

    def peaks_of(self, size: float) -> Mapping[Algorithm, AlgorithmPeak]:
        """The peaks of messages of `size` B, whose buffers in host memory may fit into a cache or exceed it by less."""
        if self.network is not None or self.fabric.cache == math.inf:
            return self.peaks
        plans = _plans(self.members, self.fabric, self.network)
        peaks = algorithm_peaks(self.collective, self.members, self.fabric, None, plans, self.settings, size)
        if not self.fabric.perhaps_staged:
            return peaks
        return {name: replace(peak, low=min(peak.low, self.peaks[name].low)) for name, peak in peaks.items()}

    def point(self, size: float) -> CollectivePoint:
        """A message of `size` B (as nccl-tests counts them)."""
        return _point(self, size)

    def curve(self, sizes: Sequence[float]) -> CollectiveCurve:
        """Messages of each of `sizes` (B)."""
        points = tuple(self.point(size) for size in sizes)
        return CollectiveCurve(
            self.system, self.collective, self.members.ranks, self.settings, self.library.title, points,
            self.fabric.order, tuple(self.peaks.values()), _sources(points), self.compared(max(sizes)),
            self.choice.tuner, self.transports(),
        )  # fmt: skip

    def transports(self) -> tuple[TransportPeak, ...]:
        """What long messages reach over PCIe by each transport that the GPUs and the IOMMU of one node may allow."""
        if self.fabric.kind is not FabricKind.PCIE or self.network is not None:
            return ()
        through_memory = replace(self.settings, p2p=False)
        translating = self.system.with_iommu("translate")
        ways = (
            ("P2P", self.system, replace(self.settings, p2p=True)),
            ("SHM", self.system, through_memory),
            (_WALKED, translating, replace(through_memory, small_pages=True)),
        )
        peaks = []
        for name, system, settings in ways:
            model = collective_model(system, self.collective, self.members.ranks, settings)
            if model.fabric.staged == (name != "P2P") and (name != _WALKED or model.fabric.walks is not None):
                peak = next(iter(model.peaks.values()))
                peaks.append(TransportPeak(name, peak.bus_bandwidth, peak.low, peak.high))
        return tuple(peaks)

    def compared(self, size: float) -> tuple[ComparedAlgorithm, ...]:
        """What could run at `size` B: the algorithm that does, then the others from the least planned time on."""
        offered = [algorithm for algorithm in self.choice.algorithms() if algorithm in self.peaks]
        if self.settings.algorithm is not None or len(offered) < 2:
            return ()
        chosen = self.choice.at(size).algorithm
        compared = []
        for algorithm in offered:
            choice = self.choice.at(size, algorithm)
            forced = replace(self, settings=replace(self.settings, algorithm=algorithm)).point(size)
            planned = self.choice.time(choice, size)
            compared.append(ComparedAlgorithm(algorithm, choice.protocol, planned, forced.bus_bandwidth))
        return tuple(sorted(compared, key=lambda each: (each.algorithm is not chosen, each.planned)))


def predict_collective(
    system: System,
    collective: Collective,
    ranks: str | Sequence[str],
    sizes: Sequence[float],
    settings: CollectiveSettings | None = None,
) -> CollectiveCurve:
    """The curve over `sizes` (B, as nccl-tests counts them); errors are those of `collective_model`."""
    return collective_model(system, collective, ranks, settings or CollectiveSettings()).curve(sizes)


def collective_model(
    system: System, collective: Collective, ranks: str | Sequence[str], settings: CollectiveSettings
) -> CollectiveModel:
    """What is predicted of any size.

    UnknownName for a rank that does not exist, InputError for ranks that make no collective, Unreachable where nothing
    joins them.
    """
    members = rank_set(system, ranks)
    smallest = min(members.nodes, key=len)
    fabric = local_fabric(system, members, smallest, settings, collective)
    network = node_network(system, members, settings.gdr) if len(members.nodes) > 1 else None
    plans = _plans(members, fabric, network)
    peaks = algorithm_peaks(collective, members, fabric, network, plans, settings)
    if fabric.perhaps_staged and network is None:
        staged = collective_model(system, collective, members.ranks, replace(settings, p2p=False)).peaks
        peaks = {name: replace(peak, low=min(peak.low, staged[name].low)) for name, peak in peaks.items()}
    library = members.library(settings.version)
    choice = choice_model(library, collective, members, fabric, plans, network.kind if network is not None else "")
    return CollectiveModel(system, collective, members, settings, fabric, network, peaks, choice, library)


def _plans(ranks: RankSet, fabric: LocalFabric, network: NodeNetwork | None) -> dict[Algorithm, ChannelPlan]:
    algorithms = (Algorithm.TREE, Algorithm.RING, Algorithm.NVLS, Algorithm.NVLS_TREE)
    plans = {algorithm: channel_plan(algorithm, ranks, fabric, network) for algorithm in algorithms}
    return {algorithm: plan for algorithm, plan in plans.items() if plan is not None}


def _point(model: CollectiveModel, size: float) -> CollectivePoint:
    choice = model.choice.at(size, model.settings.algorithm)
    algorithm = _algorithm(model.peaks, choice.algorithm)
    peak = model.peaks_of(size)[algorithm]
    factor = model.collective.bus_factor(len(model.members.ranks))
    sends = _sends(model, size, choice, peak)
    wire = size * factor / (sends.rate if sends else peak.bus_bandwidth)
    idle = _idle_time(model, size, choice)
    kernel = _kernel_time(model.choice, choice, wire, size, model.settings, model.fabric) + idle.seconds
    time = _issued(kernel, model.settings.launch, model.members)
    bandwidth = size * factor / time
    low, high = _interval(bandwidth, peak, size)
    if sends:
        high *= sends.doubt
    low = min(low, size * factor / _slowly_issued(time, model.settings.launch))
    on_wire = wire > 0.5 * time
    reached = sends.limit if sends else peak.limit
    limit = reached if on_wire else _latency_limit(choice, model.network)
    rests_on = (
        *_rests_on(model, choice, peak, on_wire),
        *((sends.rests_on,) if sends and on_wire else ()),
        *idle.rests_on,
    )
    channels = sends.channels if sends else _channels(choice, size)
    return CollectivePoint(size, time, bandwidth, low, high, algorithm, choice.protocol, channels, limit, rests_on)


def _sends(model: CollectiveModel, size: float, choice: PlannedChoice, peak: AlgorithmPeak) -> SendRate | None:
    """What sends to the next rank reach where their channels may limit."""
    if model.collective is not Collective.SENDRECV:
        return None
    ranks, network = model.members, model.network
    if network is not None and ranks.maker == "AMD":
        return send_over_network(len(ranks.ranks), network.cards // ranks.least, peak, model.settings)
    return send_rate(size, ranks, model.fabric, choice.channels, peak, model.settings)


def _idle_time(model: CollectiveModel, size: float, choice: PlannedChoice) -> IdleTime:
    """What the last steps of a ring of Simple cost; in lines of LL and LL128 they are short."""
    if choice.algorithm is not Algorithm.RING or choice.protocol is not Protocol.SIMPLE:
        return IdleTime(0.0)
    if model.collective is Collective.BROADCAST:
        return IdleTime(later_hops(model.members, model.fabric, model.library))
    return idle_time(model.collective, size, model.members, model.fabric, choice.channels, model.settings)


def _rests_on(model: CollectiveModel, choice: PlannedChoice, peak: AlgorithmPeak, on_wire: bool) -> tuple[str, ...]:
    """The library's time model; beside LL, whose time it is, what the peak rests on, and of short messages the ramp."""
    if choice.protocol is Protocol.LL and not on_wire:
        return (model.library.source,)
    ramp = () if on_wire else (_learned_ramp(model.choice, choice, model.settings, model.fabric).rests_on,)
    return (model.library.source, peak.rests_on, *ramp)


def _sources(points: Sequence[CollectivePoint]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for point in points for text in point.rests_on))


def _algorithm(peaks: Mapping[Algorithm, AlgorithmPeak], chosen: Algorithm) -> Algorithm:
    return chosen if chosen in peaks else next(iter(peaks))


def _kernel_time(
    model: ChoiceModel, choice: PlannedChoice, wire: float, size: float, settings: CollectiveSettings,
    fabric: LocalFabric,
) -> float:  # fmt: skip
    """Seconds on the GPUs: what NCCL plans for LL; for LL128 and Simple the wire and what is beyond it."""
    if choice.protocol is Protocol.LL:
        return max(model.time(choice, size), wire)
    if choice.protocol is Protocol.LL128:
        wire *= 128 / 120  # 8 B of each line of 128 are a flag
    planned = model.latency(choice, size)
    latency = planned * (1 - model.plugin_latency(choice) / choice.latency) if planned else 0.0
    length = min(wire / 1e-6, _LONGEST_RAMP)
    beyond = _ramp(model, choice, settings, fabric) * math.pow(length, _EXPONENT)
    return wire + max(beyond, latency * (_PCIE_LATENCY if fabric.kind is FabricKind.PCIE else 1.0))


def _ramp(model: ChoiceModel, choice: PlannedChoice, settings: CollectiveSettings, fabric: LocalFabric) -> float:
    """Seconds beyond the wire of a call of 1 us: learned for the class, else a share of the library's latency."""
    latency = choice.latency - model.plugin_latency(choice)
    figure = _learned_ramp(model, choice, settings, fabric)
    if figure.measured:
        # Learned of Simple; LL128 in proportion to its latency.
        simple = model.planned_latency(choice.algorithm, Protocol.SIMPLE)
        return figure.value * 1e-6 * (latency / simple if choice.protocol is Protocol.LL128 and simple else 1.0)
    if choice.algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        return _SWITCH_SHARE * latency
    return _RING_SHARE * latency if len(model.ranks.nodes) == 1 and fabric.kind is not FabricKind.PCIE else 0.0


def _learned_ramp(
    model: ChoiceModel, choice: PlannedChoice, settings: CollectiveSettings, fabric: LocalFabric
) -> LearnedFigure:
    medium = "pcie" if fabric.kind is FabricKind.PCIE else model.ranks.generation
    one = len(model.ranks.nodes) == 1
    if medium != "pcie" and one and choice.algorithm is Algorithm.RING and model.collective not in IN_LOOPS:
        return learned("ramp", [], settings.without)  # no class: chains and sends were not learned
    return learned("ramp", [f"{choice.algorithm} {medium} {min(len(model.ranks.nodes), 4)}"], settings.without)


def _issued(kernel: float, launch: Launch, ranks: RankSet) -> float:
    time = kernel + _ADDED[launch]
    return max(time, _ISSUE * ranks.most) if launch is Launch.ONE_PROCESS else time


def _slowly_issued(time: float, launch: Launch) -> float:
    return max(time, _SLOW_ISSUE) if launch is Launch.ONE_PROCESS else time


def _interval(bandwidth: float, peak: AlgorithmPeak, size: float) -> tuple[float, float]:
    low, high = _LONG if size >= _LONG_FROM else _MIDDLE if size >= _MIDDLE_FROM else _SMALL
    low, high = min(low, peak.low / peak.bus_bandwidth), max(high, peak.high / peak.bus_bandwidth)
    return bandwidth * low, bandwidth * high


def _channels(choice: PlannedChoice, size: float) -> int:
    """The channels that a call of this size runs on: fewer where each would have too little (src/enqueue.cc)."""
    if choice.algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        return choice.channels
    threads, threshold = {Protocol.LL: (512, 8), Protocol.LL128: (640, 8), Protocol.SIMPLE: (512, 64)}[choice.protocol]
    return max(1, min(choice.channels, math.floor(size / (threads * threshold))))


def _latency_limit(choice: PlannedChoice, network: NodeNetwork | None) -> str:
    return f"latency of {choice.algorithm} {choice.protocol}" + (" over the network" if network is not None else "")
