"""How fast: the rates of concurrent flows over a described system, each with its limit and what it rests on."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lanewise.errors import Unreachable
from lanewise.perf import moves
from lanewise.perf.resources import Resource, Use, cite, weakest
from lanewise.perf.sharing import FlowClass, share
from lanewise.perf.volumes import expand
from lanewise.routes.find import route as find_route
from lanewise.routes.model import Via
from lanewise.topology.model import Kind, LinkKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lanewise.perf.flow import Flow
    from lanewise.perf.sharing import Shares
    from lanewise.routes.model import Route
    from lanewise.topology.model import System

ENGINE_DOUBT = "no copy-engine figure known: a ceiling, CUDA copies reach 84 to 87 % of it"


@dataclass(frozen=True, slots=True)
class FlowRate:
    """One flow's predicted goodput in B/s, with what holds it down and what that rests on.

    `low` and `high` bound it where the prediction is an interval; `raw` is the largest rate in B/s that it puts
    on any wire it crosses; `lone` is what it would get alone.
    """

    flow: Flow
    routes: tuple[Route, ...]
    rate: float
    limit: str
    basis: str
    rests_on: tuple[str, ...]
    low: float
    high: float
    raw: float
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """All flows together: rates, the use (0..1) of each shared resource, and goodput and raw B/s by link direction."""

    system: System
    flows: tuple[FlowRate, ...]
    use: Mapping[str, float]
    loads: Mapping[tuple[str, str], float]
    raw: Mapping[tuple[str, str], float]
    link_use: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Sum of all flows' goodput in B/s."""
        return sum(flow.rate for flow in self.flows)


@dataclass(frozen=True, slots=True)
class Staging:
    """Seconds a byte of a staged copy takes: alone, with its stages in turn, and with its stages fully overlapped."""

    resource: Resource
    lone: float
    in_turn: float
    overlapped: float

    def use(self, how: str) -> Use:
        """The use for 'lone', 'in_turn' or 'overlapped'."""
        return Use(self.resource, {"lone": self.lone, "in_turn": self.in_turn}.get(how, self.overlapped))


@dataclass(frozen=True, slots=True)
class Planned:
    """A flow with its routes, what one byte of it uses, and the step that staging adds."""

    flow: Flow
    routes: tuple[Route, ...]
    uses: tuple[Use, ...]
    staging: Staging | None = None
    doubt: str = ""

    def all_uses(self, how: str) -> tuple[Use, ...]:
        """The uses with the staging step taken `how`: lone, in_turn or overlapped."""
        return (*self.uses, self.staging.use(how)) if self.staging is not None else self.uses


def predict(system: System, flows: Sequence[Flow]) -> Prediction:
    """The rates that `flows` reach together; Unreachable or UnknownName if one of them cannot run."""
    planned = [plan(system, flow) for flow in flows]
    steady, shares = _solve(planned, [staging_mode(item, planned) for item in planned])
    bounds = [shares]
    if any(item.staging for item in planned):
        bounds += [_solve(planned, [how] * len(planned))[1] for how in ("in_turn", "overlapped")]
    rates = [_flow_rate(item, i, bounds, steady) for i, item in enumerate(planned)]
    return Prediction(
        system=system,
        flows=tuple(rates),
        use={resource.name: use for resource, use in zip(steady, shares.use, strict=True)},
        **_on_links(planned, rates, steady, shares),
    )


def plan(system: System, flow: Flow) -> Planned:
    """The routes and uses of one flow: a volume spreads it over its drives, a staged copy takes its stages in turn."""
    pieces = expand(system, flow)
    uses: dict[tuple[str, ...], Use] = {}
    routes: list[Route] = []
    staging: Staging | None = None
    for source, target, part in pieces.parts:
        found = find_route(system, source, target, flow.p2p)
        routes.append(found)
        for use in _route_uses(system, found, flow.read):
            known = uses.get(use.resource.key)
            uses[use.resource.key] = Use(use.resource, use.amount * part + (known.amount if known else 0.0))
        if found.via is Via.STAGED:
            staging = _staging(system, flow, found)
    for use in pieces.extra:
        uses[use.resource.key] = use
    return Planned(flow, tuple(routes), tuple(uses.values()), staging, _doubt(system, routes, uses))


def _route_uses(system: System, route: Route, read: bool) -> list[Use]:
    if not route.stages:
        return moves.uses(system, route, read)
    merged: dict[tuple[str, ...], Use] = {}
    for stage in route.stages:
        for use in moves.uses(system, stage):
            known = merged.get(use.resource.key)
            merged[use.resource.key] = Use(use.resource, use.amount + (known.amount if known else 0.0))
    return list(merged.values())


def _staging(system: System, flow: Flow, route: Route) -> Staging:
    """How long the stages of a copy through host memory take for each byte, overlapped and one after the other.

    A lone copy is pipelined in chunks, 1/x = max(1/B1, 1/B2) + 1/S with S the gaps between chunks (staging.rate);
    without a figure for S its stages are taken in turn. Two opposite copies between the same GPUs run in lockstep, so
    each takes its stages in turn: 1/x = 1/B1 + 1/B2. Written as a resource of capacity 1 that each byte takes time of.
    """
    times, bases, rests = [], [], []
    for stage in route.stages:
        slowest = max(moves.uses(system, stage), key=lambda use: use.amount / use.resource.capacity)
        times.append(slowest.amount / slowest.resource.capacity)
        bases.append(slowest.resource.basis)
        rests.append(f"{stage.show()}: {slowest.resource.name}, {slowest.resource.rests_on}")
    part = system.part(route.src)
    gaps = part.figure("staging.rate") if part is not None and part.kind == "gpu" else None
    lone = sum(times)
    if part is not None and gaps is not None and isinstance(gaps.value, float):
        lone = min(lone, max(times) + 1.0 / gaps.value)
        bases.append(gaps.basis)
        rests.append(cite(part, "staging.rate", gaps))
    made = Resource(
        ("staging", flow.name), f"staging of {flow.name} through host memory", 1.0, weakest(bases), "; ".join(rests)
    )
    return Staging(made, lone=lone, in_turn=sum(times), overlapped=max(times))


def staging_mode(item: Planned, planned: Sequence[Planned]) -> str:
    """How a flow's staging runs beside the others: in turn if the opposite copy runs too, else as a lone copy."""
    ends = (item.flow.dst, item.flow.src)
    opposite = any(other.staging and (other.flow.src, other.flow.dst) == ends for other in planned)
    return "in_turn" if opposite else "lone"


def _solve(planned: Sequence[Planned], modes: Sequence[str]) -> tuple[list[Resource], Shares]:
    index: dict[tuple[str, ...], int] = {}
    resources: list[Resource] = []
    classes: list[FlowClass] = []
    for item, how in zip(planned, modes, strict=True):
        pairs: list[tuple[int, float]] = []
        for use in item.all_uses(how):
            if use.resource.key not in index:
                index[use.resource.key] = len(resources)
                resources.append(use.resource)
            pairs.append((index[use.resource.key], use.amount))
        if not pairs and math.isinf(item.flow.cap):
            raise Unreachable(
                f"nothing is known that would limit {item.flow.name}",
                hint="name the parts of its devices, or the speed of its links, in the description",
            )
        classes.append(FlowClass(tuple(pairs), item.flow.weight, item.flow.cap))
    return resources, share([resource.capacity for resource in resources], classes)


def _flow_rate(item: Planned, i: int, bounds: Sequence[Shares], resources: Sequence[Resource]) -> FlowRate:
    shares = bounds[0]
    limit = shares.limits[i]
    possible = [each.rates[i] for each in bounds]
    wires = [use.amount for use in item.uses if use.resource.key[0] == "link"]
    rate = shares.rates[i]
    common = {
        "flow": item.flow, "routes": item.routes, "rate": rate,
        "low": min(possible), "high": max(possible), "raw": rate * max(wires, default=1.0),
    }  # fmt: skip
    if limit is None:
        cap = item.flow.cap_name or "its own cap"
        return FlowRate(limit=cap, basis=item.flow.cap_basis, rests_on=(item.flow.cap_rests_on,), **common)  # type: ignore[arg-type]
    resource = resources[limit]
    on_wire = resource.key[0] == "link" and resource.basis == "physics"
    doubt = resource.doubt or (item.doubt if on_wire else "")
    return FlowRate(limit=resource.name, basis=resource.basis, rests_on=(resource.rests_on,), doubt=doubt, **common)  # type: ignore[arg-type]


def _on_links(
    planned: Sequence[Planned], rates: Sequence[FlowRate], resources: Sequence[Resource], shares: Shares
) -> dict[str, dict[tuple[str, str], float]]:
    loads: dict[tuple[str, str], float] = defaultdict(float)
    raw: dict[tuple[str, str], float] = defaultdict(float)
    for item, flow in zip(planned, rates, strict=True):
        part = 1.0 / len(item.routes)
        for route in item.routes:
            for hop in route.hops:
                loads[hop.start, hop.end] += flow.rate * part
        for use in item.uses:
            if use.resource.key[0] == "link":
                raw[use.resource.key[1], use.resource.key[2]] += flow.rate * use.amount
    used = {
        (resource.key[1], resource.key[2]): use
        for resource, use in zip(resources, shares.use, strict=True)
        if resource.key[0] == "link"
    }
    return {"loads": dict(loads), "raw": dict(raw), "link_use": used}


def _doubt(system: System, routes: Sequence[Route], uses: Mapping[tuple[str, ...], Use]) -> str:
    """A copy that a GPU drives over PCIe without a known engine figure is only a ceiling."""
    ends = {name for route in routes for name in (route.src, route.dst)}
    gpu = any(system.device(name).kind is Kind.GPU for name in ends)
    pcie = any(hop.link.kind is LinkKind.PCIE for route in routes for hop in route.hops)
    storage = any(system.device(name).kind in (Kind.SSD, Kind.RAID, Kind.NIC) for name in ends)
    return ENGINE_DOUBT if gpu and pcie and not storage and not any(key[0] == "engine" for key in uses) else ""
