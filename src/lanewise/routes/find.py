"""Finds routes: the way data takes by default, and every sensible way between two ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise.errors import Unreachable
from lanewise.routes import paths, policy
from lanewise.routes.classify import classify
from lanewise.routes.endpoints import endpoint
from lanewise.routes.model import Hop, Route, Via
from lanewise.routes.network import card_pairs
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lanewise.topology.model import System

__all__ = ["endpoint", "route", "routes"]


def route(system: System, src: str, dst: str, p2p: bool = True) -> Route:
    """The route that data takes from `src` to `dst` by default; Unreachable or UnknownName if there is none.

    GPUs use NVLink, else PCIe where peers are allowed, else a copy staged in the memory of the source's socket.
    """
    a, b = endpoint(system, src, dst), endpoint(system, dst, src)
    key = (a, b, p2p, policy.scopes(system))
    found = system.route_memo.get(key)
    if found is None:
        found = system.route_memo[key] = _default(system, a, b, p2p)
    return found


def routes(system: System, src: str, dst: str) -> tuple[Route, ...]:
    """Every sensible route, the default one first, each with its class and, if forbidden, the reason."""
    a, b = endpoint(system, src, dst), endpoint(system, dst, src)
    default = route(system, a, b)
    found = {(default.via, default.nodes): default}
    for other in _alternatives(system, a, b):
        found.setdefault((other.via, other.nodes), other)
    rest = sorted(list(found.values())[1:], key=lambda r: (not r.allowed, r.via is Via.STAGED, len(r.hops)))
    return (default, *rest)


def _default(system: System, a: str, b: str, p2p: bool) -> Route:
    if a == b:
        return Route(a, b, Via.LOCAL, "LOC", ())
    _check_bound(system, a, b)
    hosts = (system.device(a).host, system.device(b).host)
    if hosts[0] != hosts[1]:
        return _over_cards(system, a, b, *card_pairs(system, a, b)[0])
    if not _is_gpu(system, a) or not _is_gpu(system, b):
        return _not_between_gpus(system, a, b)
    links = paths.over_nvlink(system, a, b)
    if links is not None and p2p:
        return Route(a, b, Via.NVLINK, classify(system, links), links)
    direct = _pcie(system, a, b)
    if p2p and direct.allowed:
        return direct
    why = direct.why or "peer access is switched off"
    return replace(staged(system, a, b, paths.root_of(system, a)), why=f"staged because {why}")


def _not_between_gpus(system: System, a: str, b: str) -> Route:
    found = _pcie(system, a, b)
    if found.allowed:
        return found
    return replace(staged(system, a, b, paths.root_of(system, a)), why=f"bounced through host memory because {found.why}")


def _pcie(system: System, a: str, b: str) -> Route:
    """The PCIe route between two devices of a host, allowed or not; memory is a CPU."""
    if _is_cpu(system, a) or _is_cpu(system, b):
        hops = paths.through_root(system, a, b)
        return Route(a, b, Via.PCIE, classify(system, hops), hops)
    direct = paths.through_switches(system, a, b) if not policy.why_not_in_fabric(system, a, b) else None
    why = policy.redirected(system, direct) if direct is not None else ""
    hops = direct if direct is not None and not why else paths.through_root(system, a, b)
    refused = _refused(system, a, b, hops)
    return Route(a, b, Via.PCIE, classify(system, hops), hops, allowed=not refused, why=refused or why)


def _refused(system: System, a: str, b: str, hops: Sequence[Hop]) -> str:
    """GPUs are peers only as far as the CPU says; a drive or card that writes to a GPU is stopped by scope none alone."""
    refused = policy.why_not_peers(system, hops)
    both = _is_gpu(system, a) and _is_gpu(system, b)
    return refused if both or "forwards no peer" in refused else ""


def staged(system: System, a: str, b: str, memory: str) -> Route:
    """The route by way of host memory at CPU `memory`: two copies, one after the other; it keeps the direct class."""
    stages = tuple(
        Route(x, y, Via.PCIE, classify(system, hops), hops)
        for x, y in ((a, memory), (memory, b))
        if (hops := paths.through_root(system, x, y)) is not None
    )
    direct = _pcie(system, a, b)
    return Route(a, b, Via.STAGED, direct.cls, (*stages[0].hops, *stages[1].hops), stages=stages)


def _over_cards(system: System, a: str, b: str, near: str, far: str) -> Route:
    """Between hosts: to the near card, over the network, from the far card, by GPUDirect RDMA where an end is a GPU."""
    wires = paths.over_network(system, near, far)
    if wires is None:
        raise Unreachable(f"no network joins {near} and {far}", hint="link both cards to a network switch")
    hops = (*_pcie(system, a, near).hops, *wires, *_pcie(system, far, b).hops)
    return Route(a, b, Via.NETWORK, "NET", hops)


def _alternatives(system: System, a: str, b: str) -> Iterator[Route]:
    if a == b:
        return
    if system.device(a).host != system.device(b).host:
        for pair in card_pairs(system, a, b):
            yield _over_cards(system, a, b, *pair)
        return
    links = paths.over_nvlink(system, a, b)
    if links is not None:
        yield Route(a, b, Via.NVLINK, classify(system, links), links)
    yield _pcie(system, a, b)
    if _is_cpu(system, a) or _is_cpu(system, b):
        return
    yield from _forbidden_in_fabric(system, a, b)
    yield _rooted(system, a, b)
    for memory in dict.fromkeys((paths.root_of(system, a), paths.root_of(system, b))):
        yield staged(system, a, b, memory)


def _forbidden_in_fabric(system: System, a: str, b: str) -> Iterator[Route]:
    """The short way through switches that policy keeps traffic off."""
    direct = paths.through_switches(system, a, b)
    if direct is None:
        return
    why = policy.why_not_in_fabric(system, a, b) or policy.redirected(system, direct)
    yield Route(a, b, Via.PCIE, classify(system, direct), direct, allowed=not why, why=why)


def _rooted(system: System, a: str, b: str) -> Route:
    """The long way through the root ports, which packets take only if something redirects them."""
    hops = paths.through_root(system, a, b)
    refused = _refused(system, a, b, hops)
    direct = paths.through_switches(system, a, b)
    shorter = direct is not None and not policy.why_not_in_fabric(system, a, b) and not policy.redirected(system, direct)
    why = refused or ("the switches forward peer traffic on a shorter way" if shorter else "")
    return Route(a, b, Via.PCIE, classify(system, hops), hops, allowed=not why, why=why)


def _check_bound(system: System, a: str, b: str) -> None:
    for name in (a, b):
        device = system.device(name)
        if device.kind in (Kind.SWITCH, Kind.NVSWITCH, Kind.NETSWITCH):
            raise Unreachable(f"{name} is a switch: nothing starts or ends there", hint="name a device or host memory")
        if device.host is None:
            paths.to_root(system, name)


def _is_gpu(system: System, name: str) -> bool:
    return system.device(name).kind is Kind.GPU


def _is_cpu(system: System, name: str) -> bool:
    return system.device(name).kind is Kind.CPU


