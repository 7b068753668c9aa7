"""Why a collective is slow: the model of collectives with one setting or one part of the machine changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import TypeAlias

from lanewise.checking.cause import Cause, speed
from lanewise.checking.causes.contention import calls_of_one_length, unexplained_calls
from lanewise.checking.collective_rows import CollectiveModels, collective_point, is_collective
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.collectives.model import Algorithm, CollectivePoint, CollectiveSettings
from lanewise.errors import LanewiseError
from lanewise.perf.flow import parse_flows
from lanewise.topology.model import Kind, LinkKind, System

_DEFAULT = CollectiveSettings()
MOST_COUNTED = 8
# Ends of an interval are no sharper than this: rates between what two changes explain are of one of them.
_EDGE = 0.10
_LOG = "run again with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING and look for"
_CARDS_STEP = f"{_LOG} 'NET/IB : Using'; look at NCCL_IB_HCA and at ibstat of each host"
# Key, what, step, and the system and settings to predict with.
_Change: TypeAlias = tuple[tuple[str, ...], str, str, System, CollectiveSettings]


@dataclass
class CollectiveChanges:
    """Changes of settings or of the machine that may slow its collectives down, each with what the model predicts."""

    system: System
    device: Callable[[str], str]
    models: CollectiveModels

    def causes(
        self, result: PathResult, results: Sequence[PathResult], stated: Sequence[Cause] = ()
    ) -> tuple[Cause, ...]:
        """What would make a slow collective as slow as it is: what is `stated` with the results, then one change of the
        model, two if no single one, else the nearest.

        Close predictions come before intervals that the rate lies in, usual changes before unusual ones, near before
        far, and between hosts the network before NVLinks; before them a rank that every slow one of `results` has, and
        none that is fine.
        """
        possible = [change for change in self._changes if not self._contradicted(change, result, results)]
        supposed = self._supposed(result, possible)
        causes = [cause for cause in supposed if cause.explains]
        sockets = tuple(self._sockets(result))
        if not causes and not sockets:
            rings = self._supposed(result, self._rings)
            causes = [cause for cause in rings if cause.explains] or _nearest([*supposed, *rings], result)
        between_hosts = len(self.system.hosts) > 1

        def order(cause: Cause) -> tuple[bool, bool, float]:
            far = cause.predicted is None or not result.reached_by(cause.predicted)
            return between_hosts and cause.key[1] == "nvlink", far, cause.distance(result)

        ranked = _each_kind_first(sorted(causes, key=order))
        stated = [cause for cause in stated if cause.key[0] != "virtual machine" or not self._over_nvlinks]
        settings = [cause for cause in stated if not cause.inconclusive]
        begun = calls_of_one_length(result, results)
        found = (*_slow_rank(result, results, self.device), *settings, *begun, *ranked, *sockets)
        return found or tuple(cause for cause in stated if cause.inconclusive) or tuple(unexplained_calls(result))

    @cached_property
    def _changes(self) -> tuple[_Change, ...]:
        return tuple(_changes(self.system))

    @cached_property
    def _over_nvlinks(self) -> bool:
        """Whether NVLinks join all GPUs, so that neither a root complex nor ACS is on the way."""
        linked = {end for link in self.system.links if link.kind is LinkKind.NVLINK for end in (link.a, link.b)}
        return len(self.system.hosts) == 1 and set(self.system.of_kind(Kind.GPU)) <= linked

    def _contradicted(self, change: _Change, result: PathResult, results: Sequence[PathResult]) -> bool:
        """Whether a size of the same run is fine and better than it could be with that change."""
        row = result.row
        for other in results:
            same = other.row.scenario == row.scenario and other.row.flow == row.flow and other.row.metric == row.metric
            if same and other.verdict is Verdict.OK and (cause := self._cause(other, change)) is not None:
                high = cause.interval[1] if cause.interval else cause.predicted or 0.0
                if (other.row.value or 0.0) > (1 + _EDGE) * high:
                    return True
        return False

    @cached_property
    def _rings(self) -> tuple[_Change, ...]:
        return tuple(_lost_cards_in_a_ring(self.system))

    @cached_property
    def _one_card(self) -> tuple[_Change, ...]:
        """A ring over the fewest cards; none on one host."""
        ring = CollectiveSettings(algorithm=Algorithm.RING)
        *_, fewest = [self.system, *(lost for lost, _ in _lost_cards(self.system))]
        return ((("collective", "cards"), "", "", fewest, ring),) if len(self.system.hosts) > 1 else ()

    def _supposed(self, result: PathResult, changes: Sequence[_Change]) -> list[Cause]:
        causes = (self._cause(result, change) for change in changes)
        return [cause for cause in causes if cause is not None]

    def _cause(self, result: PathResult, change: _Change) -> Cause | None:
        """A change as the cause of a row; None where nothing is predicted with it."""
        key, what, step, changed, settings = change
        try:
            point = collective_point(changed, result.row, self.device, self.models, settings)
        except LanewiseError:
            return None
        if not isinstance(point, CollectivePoint):
            return None
        value, measured, expected = point.bus_bandwidth, result.row.value or 0.0, result.expected.value or 0.0
        # A rate within the interval of a machine that should be slower is as good as it can be told.
        slower = result.verdict is Verdict.SLOW and value < expected
        explains = result.reached_by(value) or (slower and point.low <= measured <= point.high)
        return Cause(key, what, step, predicted=value, interval=(point.low, point.high), explains=explains)

    def _sockets(self, result: PathResult) -> Iterator[Cause]:
        """Less than one network card of each host carries: the network has no RDMA, of which there is no model."""
        one_card = self._supposed(result, self._one_card)
        low = min((cause.interval[0] for cause in one_card if cause.interval), default=0.0)
        if result.verdict is Verdict.SLOW and (result.row.value or 0.0) < low:
            yield Cause(
                ("collective", "sockets"), "NCCL sends over sockets: no card is used by RDMA",
                f"{_LOG} 'NET/Socket'; look at NCCL_IB_DISABLE, NCCL_NET and NCCL_IB_HCA, and at ibv_devinfo of each "
                "host",
            )  # fmt: skip


def _nearest(causes: Sequence[Cause], result: PathResult) -> list[Cause]:
    """Of changes that make a slow collective slower those whose interval ends nearest to its rate, within `_EDGE`."""
    if result.verdict is not Verdict.SLOW or not result.row.value:
        return []
    measured, expected = result.row.value, result.expected.value or 0.0
    beyond = [
        (max(low / measured, measured / high), cause)
        for cause in causes
        if cause.interval and cause.predicted is not None and cause.predicted < expected
        for low, high in [cause.interval]
    ]
    return [replace(cause, explains=True) for ratio, cause in sorted(beyond, key=itemgetter(0)) if ratio <= 1 + _EDGE]


def next_steps(causes: Sequence[Cause]) -> str:
    """What to do next for all of these causes: runs of NCCL with its log are one run."""
    first, *others = dict.fromkeys(cause.step for cause in causes)
    return "; or ".join([first, *(step.removeprefix(f"{_LOG} ") for step in others)])


def _each_kind_first(ranked: Sequence[Cause]) -> list[Cause]:
    """The likeliest cause of each kind, then the others, which would explain the same rate by another number."""
    first = {cause.key[:2]: cause for cause in reversed(ranked)}
    return sorted(ranked, key=lambda cause: first[cause.key[:2]] is not cause)


def _slow_rank(
    result: PathResult, results: Sequence[PathResult], device: Callable[[str], str]
) -> Iterator[Cause]:  # fmt: skip
    """The one GPU that is a rank of every slow collective and of none that is fine, where sets of ranks differ."""
    sets: dict[Verdict, set[frozenset[str]]] = {Verdict.SLOW: set(), Verdict.OK: set()}
    for other in results:
        one_host = other.row.settings.get("hosts") == 1
        if is_collective(other.row) and one_host and other.row.flow and other.verdict in sets:
            sets[other.verdict].add(frozenset(device(flow.src) for flow in parse_flows(other.row.flow)))
    slow, fine = sets[Verdict.SLOW], sets[Verdict.OK]
    if result.verdict is not Verdict.SLOW or not slow or not fine or slow & fine:
        return
    common = frozenset.intersection(*slow) - frozenset().union(*fine)
    if len(common) == 1:
        (gpu,) = common
        number = gpu.removeprefix("gpu")
        evidence = f"in all {len(slow)} slow sets of ranks, in none of {len(fine)} that are fine"
        yield Cause(
            ("collective", "rank", gpu), f"{gpu} is a slow rank: its link, its clocks or its process",
            f"lanewise measure gpu --devices {gpu}; nvidia-smi -q -d PERFORMANCE,PCIE -i {number}", evidence=evidence,
            devices=frozenset({gpu}),
        )  # fmt: skip


def _changes(system: System) -> Iterator[_Change]:
    yield (
        ("collective", "p2p"), "peer copies are off: data goes through host memory",
        f"{_LOG} 'via SHM'; unset NCCL_P2P_DISABLE, and look at nvidia-smi topo -p2p r", system,
        CollectiveSettings(p2p=False),
    )  # fmt: skip
    yield (
        ("collective", "iommu"), "the IOMMU translates, and pages of shared memory are of 4 KiB",
        f"{_LOG} 'via SHM'; cat /sys/kernel/iommu_groups/*/type (DMA translates), boot with iommu=pt",
        system.with_iommu("translate"),
        CollectiveSettings(small_pages=True),
    )  # fmt: skip
    yield (
        ("collective", "algorithm", "Ring"), "NCCL runs a ring where NVLink switches could reduce (NVLS is off)",
        f"{_LOG} 'NVLS'; unset NCCL_ALGO and NCCL_NVLS_ENABLE=0, and look whether the fabric manager runs", system,
        CollectiveSettings(algorithm=Algorithm.RING),
    )  # fmt: skip
    yield (
        ("collective", "algorithm", "Tree"), "NCCL runs a tree where a ring is faster",
        f"{_LOG} 'Tree'; unset NCCL_ALGO", system, CollectiveSettings(algorithm=Algorithm.TREE),
    )  # fmt: skip
    yield (
        ("collective", "gdr"), "GPUDirect RDMA is off: data for the network goes through host memory",
        f"{_LOG} 'GDRDMA'; load nvidia-peermem, and look at NCCL_NET_GDR_LEVEL", system, CollectiveSettings(gdr=False),
    )  # fmt: skip
    for changed, what in _slow_ports(system):
        step = "lanewise check --from a capture under load, or sudo lspci -vv | grep LnkSta: while copies run"
        yield ("collective", "port", what), what, step, changed, _DEFAULT
    for lost, what in _lost_cards(system):
        yield ("collective", "cards", what), what, _CARDS_STEP, lost, _DEFAULT
    for lost, what in _lost_links(system):
        yield ("collective", "nvlink", what), what, "nvidia-smi nvlink -s; dmesg | grep -i xid", lost, _DEFAULT


def _lost_cards_in_a_ring(system: System) -> Iterator[_Change]:
    """Cards that carry nothing while NCCL runs a ring, the fewest cards last."""
    for lost, what in _lost_cards(system):
        ring = f"{what}, and NCCL runs a ring"
        yield ("collective", "cards", ring), ring, _CARDS_STEP, lost, CollectiveSettings(algorithm=Algorithm.RING)


def _lost_cards(system: System) -> Iterator[tuple[System, str]]:
    """The system with fewer cards of each host, down to one: each number of eight, and quarters of more."""
    hosts = [system.of_kind(Kind.NIC, host=host) for host in system.hosts]
    most = max((len(cards) for cards in hosts), default=0) if len(hosts) > 1 else 0
    counts = range(1, most) if most <= MOST_COUNTED else (1, most // 4, most // 2, 3 * most // 4, most - 1)
    for lost in counts:
        gone = {card for cards in hosts for card in cards[len(cards) - lost :]}
        links = tuple(link for link in system.links if link.kind is not LinkKind.NETWORK or not gone & {link.a, link.b})
        cards = "one network card" if lost == 1 else f"{lost} network cards"
        yield (
            replace(system, links=links),
            f"{cards} of each host carries nothing" if lost == 1 else (f"{cards} of each host carry nothing"),
        )


def _slow_ports(system: System) -> Iterator[tuple[System, str]]:
    """The system with the PCIe link of one GPU slower: a ring is as slow as its slowest rank."""
    gpus = set(system.of_kind(Kind.GPU))
    link = next((x for x in system.links if x.kind is LinkKind.PCIE and x.b in gpus and x.gen and x.lanes), None)
    if link is None or not link.gen or not link.lanes:
        return
    for gen, lanes in ((link.gen, link.lanes // 2), (link.gen - 1, link.lanes), (link.gen, link.lanes // 4)):
        if gen and lanes:
            slower = tuple(replace(x, gen=gen, lanes=lanes) if x is link else x for x in system.links)
            what = f"the PCIe link of one rank runs at {speed(gen, lanes)} ({speed(link.gen, link.lanes)} is described)"
            yield replace(system, links=slower), what


def _lost_links(system: System) -> Iterator[tuple[System, str]]:
    """The system with some NVLinks of one GPU down: every rank of a ring is as slow as it."""
    gpus = system.of_kind(Kind.GPU)
    bonded = [link for link in system.links if link.kind is LinkKind.NVLINK and gpus and gpus[0] in (link.a, link.b)]
    if len(bonded) == 1:
        for down in (1, bonded[0].count // 2):
            if 0 < down < bonded[0].count:
                links = tuple(replace(x, count=x.count - down) if x is bonded[0] else x for x in system.links)
                yield replace(system, links=links), f"{down} of the {bonded[0].count} NVLinks of a GPU are down"
