"""Why a collective is slow: the model of collectives with one setting or one part of the machine changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from lanewise.checking.cause import Cause
from lanewise.checking.collective_rows import collective_point
from lanewise.checking.verdict import PathResult
from lanewise.collectives.model import Algorithm, CollectivePoint, CollectiveSettings
from lanewise.errors import LanewiseError
from lanewise.topology.model import Kind, LinkKind, System

_DEFAULT = CollectiveSettings()


def collective_causes(result: PathResult, system: System, device: Callable[[str], str]) -> tuple[Cause, ...]:
    """What would make a slow collective as slow as it is, the nearest first: a change of settings or of the machine."""
    causes = [cause for cause in _supposed(result, system, device) if cause.explains]
    return tuple(sorted(causes, key=lambda cause: cause.distance(result)))


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


def _lost_links(system: System) -> Iterator[tuple[System, str]]:
    """The system with some NVLinks of one GPU down: every rank of a ring is as slow as it."""
    gpus = system.of_kind(Kind.GPU)
    bonded = [link for link in system.links if link.kind is LinkKind.NVLINK and gpus and gpus[0] in (link.a, link.b)]
    if len(bonded) == 1:
        for down in (1, bonded[0].count // 2):
            if 0 < down < bonded[0].count:
                links = tuple(replace(x, count=x.count - down) if x is bonded[0] else x for x in system.links)
                yield replace(system, links=links), f"{down} of the {bonded[0].count} NVLinks of a GPU are down"
