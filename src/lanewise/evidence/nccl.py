"""A rival to compare with: what NCCL's planning constants say of the same flows.

NCCL ranks paths by them and promises nothing. Source: NCCL 2.28, src/graph/topo.h (links between sockets, NVLinks, the
price of peer traffic on Intel) and src/graph/topo.cc (PCIe: lanes x 12 GB/s / 16 at Gen3).
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise.perf.sharing import SolverFlow, share
from lanewise.routes.model import Hop, LinkDirection, Route, Via
from lanewise.topology.model import Kind, Link, LinkKind, System

NAME = "NCCL's constants"
_PCIE_LANE = {1: 0.1875e9, 2: 0.375e9, 3: 0.75e9, 4: 1.5e9, 5: 3e9, 6: 6e9}
_QPI, _AMD = 6e9, 16e9
# UPI by the raw rate of a link: Skylake to Ice Lake, Sapphire Rapids, Emerald Rapids.
_UPI = ((24e9, 10e9), (36e9, 22e9), (float("inf"), 40e9))
_PEER_ON_INTEL = 6 / 5  # peer packets of 64 B


def nccl_rates(system: System, routes: Sequence[Route]) -> list[float] | None:
    """The rate in B/s of a flow over each route, all at once; None where a link has no constant."""
    capacities: dict[LinkDirection, float] = {}
    flows: list[dict[LinkDirection, float]] = []
    for route in routes:
        price = _PEER_ON_INTEL if _is_peer_on_intel(system, route) else 1.0
        amounts: dict[LinkDirection, float] = {}
        for hop in route.hops:
            rate = _constant(system, hop)
            if rate is None:
                return None
            capacities[hop.direction] = rate
            is_pcie = hop.link.kind in (LinkKind.PCIE, LinkKind.FABRIC)
            # Both copies of a staged one count on a link that they share: they are under way at once.
            amounts[hop.direction] = amounts.get(hop.direction, 0.0) + (price if is_pcie else 1.0)
        flows.append(amounts)
    index = {direction: number for number, direction in enumerate(capacities)}
    solved = share(
        list(capacities.values()),
        [SolverFlow(tuple((index[direction], amount) for direction, amount in flow.items())) for flow in flows],
    )
    return list(solved.rates)


def _constant(system: System, hop: Hop) -> float | None:
    link = hop.link
    if link.kind in (LinkKind.PCIE, LinkKind.FABRIC):
        return link.rate or _PCIE_LANE[min(link.gen or 3, 6)] * (link.lanes or 16)
    if link.kind is LinkKind.SOCKET:
        return _between_sockets(system, hop.start)
    if link.kind is LinkKind.NVLINK:
        return _nvlink(system, link)
    nics = [part for end in (hop.start, hop.end) if (part := system.part(end)) is not None and part.kind == "nic"]
    return link.rate or (nics[0].number("net.rate") if nics else None)


def _between_sockets(system: System, cpu: str) -> float | None:
    part = system.part(cpu)
    kind = part.text("intersocket.kind") if part is not None else None
    if part is None or kind not in ("qpi", "upi", "xgmi"):
        return None
    if kind == "upi":
        raw = part.number("intersocket.raw") or 0.0
        return next(rate for most, rate in _UPI if raw < most)
    return _QPI if kind == "qpi" else _AMD


def _nvlink(system: System, link: Link) -> float | None:
    for end in (link.a, link.b):
        part = system.part(end)
        name = part.text("nvlink.part") if part is not None and part.kind == "gpu" else None
        if name is not None:
            rate = system.catalog.get(name).number("nvlink.practical")
            return None if rate is None else rate * link.count
    return None


def _is_peer_on_intel(system: System, route: Route) -> bool:
    if route.via is not Via.PCIE:
        return False
    ends_are_gpus = all(system.device(end).kind is Kind.GPU for end in (route.src, route.dst))
    cpus = [part for name in route.nodes if (part := system.part(name)) is not None and part.kind == "cpu"]
    return ends_are_gpus and any(part.text("intersocket.kind") in ("qpi", "upi") for part in cpus)
