"""Which algorithm and protocol NCCL chooses: the least of its own planned times (src/graph/tuning.cc).

Time = latency + bytes / algorithm bandwidth, of each algorithm and protocol. These times decide what runs; how long it
takes is predicted in `curve`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lanewise.collectives.constants import Library, plugin_latency
from lanewise.collectives.fabric import FabricKind, LocalFabric
from lanewise.collectives.model import Algorithm, Collective, Protocol
from lanewise.collectives.ranks import RankSet
from lanewise.collectives.search import ChannelPlan

_EFA = "efa"
_PLATEAU_FROM = 64  # B a channel and rank
_LL128_LEAST = 70  # compute capability x 10


@dataclass(frozen=True, slots=True)
class PlannedChoice:
    """One algorithm and protocol as the library plans it: `latency` in s, `bandwidth` (bytes of the call) in B/s.

    `crossings` are its steps between nodes.
    """

    algorithm: Algorithm
    protocol: Protocol
    latency: float
    bandwidth: float
    channels: int
    crossings: int = 0


@dataclass(frozen=True, slots=True)
class ChoiceModel:
    """The time model of one library for one collective over one set of ranks."""

    library: Library
    collective: Collective
    ranks: RankSet
    choices: tuple[PlannedChoice, ...]
    net_latency: float = 0.0
    plugin: str = ""

    def time(self, choice: PlannedChoice, size: float) -> float:
        """The planned time in s for `size` bytes."""
        correction = self.library.tree_correction(choice.protocol, size) if choice.algorithm is Algorithm.TREE else 1.0
        return self.latency(choice, size) + size / (choice.bandwidth * correction)

    def latency(self, choice: PlannedChoice, size: float) -> float:
        """The planned latency in s at `size` bytes: longer for a Simple ring over several nodes."""
        ring = choice.algorithm is Algorithm.RING and choice.protocol is Protocol.SIMPLE and len(self.ranks.nodes) > 1
        piece = size / (choice.channels * len(self.ranks.ranks))
        if not ring or self.collective is not Collective.ALL_REDUCE or piece < _PLATEAU_FROM:
            return choice.latency
        return choice.latency * self.library.plateau(self.ranks.capability)

    def planned_latency(self, algorithm: Algorithm, protocol: Protocol) -> float:
        """The planned latency of a pair in s; 0 where it is not offered."""
        pairs = (c for c in self.choices if (c.algorithm, c.protocol) == (algorithm, protocol))
        return next((choice.latency - self.plugin_latency(choice) for choice in pairs), 0.0)

    def plugin_latency(self, choice: PlannedChoice) -> float:
        """What of a planned latency the network's plug-in claimed, in s."""
        return choice.crossings * self.net_latency * (2 if choice.protocol is Protocol.SIMPLE else 1)

    def at(self, size: float, algorithm: Algorithm | None = None) -> PlannedChoice:
        """The choice of least planned time at `size` bytes, of one algorithm where that is forced and offered."""
        offered = [choice for choice in self.choices if choice.algorithm is algorithm] or list(self.choices)
        if algorithm is None and self.tuner:
            offered = [choice for choice in offered if choice.algorithm is Algorithm.RING] or offered
        return min(offered, key=lambda choice: self.time(choice, size))

    @property
    def tuner(self) -> str:
        """What decides in place of the planned times: AWS' plug-in, where NCCL alone would take NVLSTree; or ''."""
        several = self.plugin == _EFA and len(self.ranks.nodes) > 2
        return "the tuner of AWS' plug-in takes Ring from three nodes on" if several else ""

    def algorithms(self) -> tuple[Algorithm, ...]:
        """The algorithms that are offered."""
        return tuple(dict.fromkeys(choice.algorithm for choice in self.choices))


def choice_model(
    library: Library, collective: Collective, ranks: RankSet, fabric: LocalFabric,
    plans: Mapping[Algorithm, ChannelPlan], plugin: str = "",
) -> ChoiceModel:  # fmt: skip
    """The model for these ranks; `plugin` is the kind of network where NCCL has a plug-in ("efa")."""
    net_latency = plugin_latency(plugin)
    choices = tuple(
        choice
        for algorithm, plan in plans.items()
        if _offered(algorithm, collective, ranks)
        for choice in _choices(library, collective, ranks, fabric, algorithm, plan, plugin)
    )
    return ChoiceModel(library, collective, ranks, choices, net_latency, plugin)


def _offered(algorithm: Algorithm, collective: Collective, ranks: RankSet) -> bool:
    one = len(ranks.nodes) == 1
    if algorithm is Algorithm.RING:
        return True
    if algorithm is Algorithm.NVLS:  # one that registers buffers may also gather and scatter; NCCL prefers rings
        return one and collective is Collective.ALL_REDUCE
    return collective is Collective.ALL_REDUCE and (algorithm is Algorithm.TREE or not one)


def _choices(
    library: Library, collective: Collective, ranks: RankSet, fabric: LocalFabric,
    algorithm: Algorithm, plan: ChannelPlan, plugin: str,
) -> Iterator[PlannedChoice]:  # fmt: skip
    switched = algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE)
    for protocol in (Protocol.SIMPLE,) if switched else tuple(Protocol):
        if not library.has(algorithm, protocol) or not _usable(protocol, ranks, fabric, plugin):
            continue
        bandwidth = _bandwidth(library, collective, ranks, algorithm, protocol, plan)
        if bandwidth > 0:
            latency = _latency(library, collective, ranks, fabric, algorithm, protocol, plugin_latency(plugin))
            channels = plan.channels if switched else plan.connected
            crossings = _crossings(collective, ranks, algorithm)
            yield PlannedChoice(algorithm, protocol, latency, bandwidth, channels, crossings)


def _usable(protocol: Protocol, ranks: RankSet, fabric: LocalFabric, plugin: str) -> bool:
    """Whether the links carry a protocol: LL128 needs NVLink; EFA may reorder stores, so it carries Simple only."""
    if protocol is Protocol.SIMPLE:
        return True
    if plugin == _EFA:
        return False
    nvlink = fabric.kind is not FabricKind.PCIE
    return protocol is Protocol.LL or (ranks.maker == "NVIDIA" and ranks.capability >= _LL128_LEAST and nvlink)


def steps_of(collective: Collective, ranks: int) -> int:
    """The steps of a ring."""
    if collective is Collective.ALL_REDUCE:
        return 2 * (ranks - 1)
    return ranks - 1 if collective in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER) else ranks


def _bandwidth(
    library: Library, collective: Collective, ranks: RankSet, algorithm: Algorithm, protocol: Protocol,
    plan: ChannelPlan,
) -> float:  # fmt: skip
    """Planned bytes of the call a second."""
    count, nodes = len(ranks.ranks), len(ranks.nodes)
    rate = plan.channels * (plan.within if nodes <= 2 else plan.between)
    if algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        return _switch_bandwidth(library, collective, ranks, algorithm, plan)
    if algorithm is Algorithm.TREE:
        return 0.5 * _tree_bandwidth(library, ranks, protocol, plan, rate)
    if protocol is Protocol.LL:
        rate = min(rate * (library.share("ll_share") or 0.5), _ll_most(library, ranks))
    elif protocol is Protocol.LL128:
        cap = library.rate("ring_ll128_channel", ranks.generation, ranks.column) or math.inf
        rate = min(rate * (library.share("ll128_share") or 1.0), plan.channels * cap)
    return rate * count / steps_of(collective, count)


def _tree_bandwidth(library: Library, ranks: RankSet, protocol: Protocol, plan: ChannelPlan, rate: float) -> float:
    cap = library.rate("tree_channel", ranks.generation, ranks.column) or math.inf
    rate = min(rate * (library.share("tree_share") or 1.0), plan.channels * cap)
    if protocol is Protocol.LL:
        return min(rate / (library.share("tree_ll_divisor") or 1.0), _ll_most(library, ranks))
    if protocol is Protocol.LL128:
        channel = library.rate("tree_ll128_channel", ranks.generation, ranks.column) or math.inf
        return min(rate * (7 / 9 if len(ranks.nodes) == 1 else 120 / 128), plan.channels * channel)
    return rate


def _ll_most(library: Library, ranks: RankSet) -> float:
    if len(ranks.nodes) == 1:
        return library.rate("ll_most", ranks.generation) or math.inf
    return library.rate("ll_most_nodes", ranks.vendor, ranks.column - 1) or math.inf


def _switch_bandwidth(
    library: Library, collective: Collective, ranks: RankSet, algorithm: Algorithm, plan: ChannelPlan
) -> float:
    count, nodes = len(ranks.ranks), len(ranks.nodes)
    share = library.share("nvls_share")
    if share is not None:
        between = plan.between if nodes <= 2 else plan.between / 2
        rate = min(plan.within, between) if algorithm is Algorithm.NVLS_TREE else plan.within
        return plan.channels * rate * share
    efficiency = library.nvls_efficiency(ranks.generation)
    within = 2 * plan.within * efficiency * (plan.channels - 1) / plan.channels
    rate = within
    if algorithm is Algorithm.NVLS_TREE:
        cap = library.rate("nvls_tree_channel", ranks.generation, ranks.column) or math.inf
        rate = min(within, plan.between * (2 if nodes <= 2 else 1), cap)
    return plan.channels * rate * count / steps_of(collective, count)


def _crossings(collective: Collective, ranks: RankSet, algorithm: Algorithm) -> int:
    """The steps between nodes, one after the other."""
    nodes = len(ranks.nodes)
    if algorithm in (Algorithm.TREE, Algorithm.NVLS_TREE):
        return 2 * math.floor(math.log2(nodes))
    return (nodes - 1) * (2 if collective is Collective.ALL_REDUCE else 1)


def _latency(
    library: Library, collective: Collective, ranks: RankSet, fabric: LocalFabric,
    algorithm: Algorithm, protocol: Protocol, net_latency: float,
) -> float:  # fmt: skip
    """Planned seconds beside those of the bytes."""
    count, nodes = len(ranks.ranks), len(ranks.nodes)
    medium = "pcie" if fabric.kind in (FabricKind.PCIE, FabricKind.NONE) else "nvlink"
    within = library.hop_latency(medium, algorithm, protocol)
    between = library.hop_latency("network", Algorithm.TREE if ranks.most == 1 else algorithm, protocol)
    between += net_latency * (2 if protocol is Protocol.SIMPLE else 1)
    base = library.base_latency(algorithm, protocol)
    crossings = _crossings(collective, ranks, algorithm)
    if algorithm is Algorithm.NVLS:
        return within
    if algorithm is Algorithm.NVLS_TREE:
        return base + within + crossings * between
    if algorithm is Algorithm.TREE:
        return base + 2 * (count // nodes - 1) * within + crossings * between
    if nodes > 1:
        within = max(within, library.post_overhead(ranks.vendor) * (3 if protocol is Protocol.SIMPLE else 1))
    steps = steps_of(collective, count)
    if collective in (Collective.BROADCAST, Collective.SENDRECV, Collective.ALL_TO_ALL):
        # Channels alike: one step's latency (tuning.cc, sameChannels).
        return base + (within if nodes == 1 else between)
    return base + (steps - crossings) * within + crossings * between
