"""Why a collective is slow: the model of collectives with one setting or one part of the machine changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from lanewise.checking.cause import Cause, speed
from lanewise.checking.collective_rows import collective_point, is_collective
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.collectives.model import Algorithm, CollectivePoint, CollectiveSettings
from lanewise.errors import LanewiseError
from lanewise.perf.flow import parse_flows
from lanewise.topology.model import Kind, LinkKind, System

_DEFAULT = CollectiveSettings()


def collective_causes(
    result: PathResult, system: System, device: Callable[[str], str], results: Sequence[PathResult] = ()
) -> tuple[Cause, ...]:
    """What would make a slow collective as slow as it is, the nearest first: a change of settings or of the machine.

    Before them a rank that every slow one of `results` has, and none that is fine.
    """
    causes = [cause for cause in _supposed(result, system, device) if cause.explains]
    return (*_slow_rank(result, results, device), *sorted(causes, key=lambda cause: cause.distance(result)))


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


def _supposed(result: PathResult, system: System, device: Callable[[str], str]) -> Iterator[Cause]:
    for key, what, step, changed, settings in _changes(system):
        try:
            point = collective_point(changed, result.row, device, settings)
        except LanewiseError:
            continue
        if isinstance(point, CollectivePoint):
            value = point.bus_bandwidth
            yield Cause(key, what, step, predicted=value, explains=result.reached_by(value))


def _changes(system: System) -> Iterator[tuple[tuple[str, ...], str, str, System, CollectiveSettings]]:
    log = "run again with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING and look for"
    yield (
        ("collective", "p2p"), "peer copies are off: data goes through host memory",
        f"{log} 'via SHM'; unset NCCL_P2P_DISABLE, and look at nvidia-smi topo -p2p r", system,
        CollectiveSettings(p2p=False),
    )  # fmt: skip
    yield (
        ("collective", "algorithm", "Ring"), "NCCL runs a ring where NVLink switches could reduce (NVLS is off)",
        f"{log} 'NVLS'; unset NCCL_ALGO and NCCL_NVLS_ENABLE=0, and look whether the fabric manager runs", system,
        CollectiveSettings(algorithm=Algorithm.RING),
    )  # fmt: skip
    yield (
        ("collective", "algorithm", "Tree"), "NCCL runs a tree where a ring is faster",
        f"{log} 'Tree'; unset NCCL_ALGO", system, CollectiveSettings(algorithm=Algorithm.TREE),
    )  # fmt: skip
    yield (
        ("collective", "gdr"), "GPUDirect RDMA is off: data for the network goes through host memory",
        f"{log} 'GDRDMA'; load nvidia-peermem, and look at NCCL_NET_GDR_LEVEL", system, CollectiveSettings(gdr=False),
    )  # fmt: skip
    for changed, what in _slow_ports(system):
        step = "lanewise check --from a capture under load, or sudo lspci -vv | grep LnkSta: while copies run"
        yield ("collective", "port", what), what, step, changed, _DEFAULT
    for lost, what in _lost_cards(system):
        step = f"{log} 'NET/IB : Using'; look at NCCL_IB_HCA and at ibstat of each host"
        yield ("collective", "cards", what), what, step, lost, _DEFAULT
    for lost, what in _lost_links(system):
        yield ("collective", "nvlink", what), what, "nvidia-smi nvlink -s; dmesg | grep -i xid", lost, _DEFAULT


def _lost_cards(system: System) -> Iterator[tuple[System, str]]:
    """The system with one card of each host less, and with half of them."""
    hosts = [system.of_kind(Kind.NIC, host=host) for host in system.hosts]
    most = max((len(cards) for cards in hosts), default=0)
    for lost in sorted({1, most // 2} if most > 1 else set()):
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
