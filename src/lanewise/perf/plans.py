"""From a flow to what it takes: its routes, the uses of one byte, and the step that staging adds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lanewise.errors import Unreachable
from lanewise.perf import moves
from lanewise.perf.flow import Flow
from lanewise.perf.resources import Resource, Use, cite, weakest
from lanewise.perf.volumes import expand
from lanewise.routes.find import route as find_route
from lanewise.routes.model import Route, Via
from lanewise.topology.model import Kind, LinkKind, System

ENGINE_DOUBT = "no copy-engine figure known: a ceiling, CUDA copies reach 84 to 87 % of it"
DRIVE_DOUBT = "no figure for a drive's rate known: a ceiling of the links"


@dataclass(frozen=True, slots=True)
class Staging:
    """A copy through host memory: seconds a byte takes alone, with its stages in turn, and fully overlapped."""

    name: str
    basis: str
    rests_on: str
    lone: float
    in_turn: float
    overlapped: float

    def rate(self, how: str) -> float:
        """B/s of a copy staged `how`: lone, in_turn or overlapped."""
        return 1.0 / {"lone": self.lone, "in_turn": self.in_turn, "overlapped": self.overlapped}[how]


@dataclass(frozen=True, slots=True)
class Planned:
    """A flow with its routes (and the share of each byte that takes each) and what one byte of it uses."""

    flow: Flow
    routes: tuple[Route, ...]
    shares: tuple[float, ...]
    uses: tuple[Use, ...]
    staging: Staging | None = None
    doubt: str = ""

    def cap(self, how: str) -> float:
        """The most this flow can do by itself in B/s: its own cap, or its staging done `how`."""
        return min(self.flow.cap, self.staging.rate(how)) if self.staging is not None else self.flow.cap


def plan_all(system: System, flows: Sequence[Flow]) -> list[Planned]:
    """Every flow planned, and bound by what a GPU's engines do when both directions of its host copies run."""
    planned = [plan(system, flow) for flow in flows]
    return [replace(item, uses=(*item.uses, *_duplex(system, item, planned))) for item in planned]


def plan(system: System, flow: Flow) -> Planned:
    """One flow by itself: a volume spreads it over its drives, a staged copy takes its stages."""
    pieces = expand(system, flow)
    routes = tuple(find_route(system, a, b, flow.p2p) for a, b, _ in pieces.parts)
    shares = tuple(share for _, _, share in pieces.parts)
    uses = moves.merged(
        (use, share)
        for route, share in zip(routes, shares, strict=True)
        for use in _route_uses(system, route, flow.read)
    )
    keys = {use.resource.key for use in uses}
    uses += [use for use in pieces.extra if use.resource.key not in keys]
    return Planned(
        flow, routes, shares, tuple(uses), _staging(system, flow, routes, shares), _doubt(system, routes, uses)
    )


def staging_mode(item: Planned, planned: Sequence[Planned]) -> str:
    """How a flow's staging runs among the others: in turn if the opposite copy runs too, else as a lone copy."""
    ends = (item.flow.dst, item.flow.src)
    opposite = any(another.staging and (another.flow.src, another.flow.dst) == ends for another in planned)
    return "in_turn" if opposite else "lone"


def _route_uses(system: System, route: Route, read: bool) -> Iterator[Use]:
    if not route.stages:
        yield from moves.uses(system, route, read)
    for stage in route.stages:
        yield from moves.uses(system, stage)


def _staging(system: System, flow: Flow, routes: Sequence[Route], shares: Sequence[float]) -> Staging | None:
    """The stages' times, all drives of a volume together; None where nothing is staged.

    A lone copy is pipelined in chunks, 1/x = max(1/B1, 1/B2) + 1/S with S the gaps between chunks (staging.rate);
    without a figure for S its stages are taken in turn. Two opposite copies between the same GPUs run in lockstep, so
    each takes its stages in turn: 1/x = 1/B1 + 1/B2.
    """
    stages: dict[int, list[tuple[Use, float]]] = defaultdict(list)
    for route, share in zip(routes, shares, strict=True):
        for index, stage in enumerate(route.stages):
            stages[index] += [(use, share) for use in moves.uses(system, stage)]
    if not stages:
        return None
    if not all(stages.values()):
        raise Unreachable(
            f"nothing is known that would limit {flow.name}",
            hint="name the parts of its devices, or the speed of its links, in the description",
        )
    slowest = [max(moves.merged(uses), key=lambda use: use.amount / use.resource.capacity) for uses in stages.values()]
    times = [use.amount / use.resource.capacity for use in slowest]
    bases = [use.resource.basis for use in slowest]
    rests = [f"stage {n}: {use.resource.name}, {use.resource.rests_on}" for n, use in enumerate(slowest, 1)]
    lone = sum(times)
    part = system.part(routes[0].src)
    gaps = part.figure("staging.rate") if part is not None and part.kind == "gpu" else None
    if part is not None and gaps is not None and isinstance(gaps.value, float):
        lone = min(lone, max(times) + 1.0 / gaps.value)
        bases.append(gaps.basis)
        rests.append(cite(part, "staging.rate", gaps))
    name = f"staging of {flow.name} through host memory"
    return Staging(name, weakest(bases), "; ".join(rests), lone=lone, in_turn=sum(times), overlapped=max(times))


def _duplex(system: System, item: Planned, planned: Sequence[Planned]) -> Iterator[Use]:
    """The rate of each direction of a GPU's host copies while the other one runs, if it was measured."""
    both = {"h2d": "d2h", "d2h": "h2d"}
    running = {use.resource.key for another in planned for use in another.uses if use.resource.key[0] == "engine"}
    for use in item.uses:
        what, *where = use.resource.key
        if what != "engine" or where[1] not in both or ("engine", where[0], both[where[1]]) not in running:
            continue
        resource = _duplex_figure(system, where[0], where[1])
        if resource is not None:
            yield Use(resource, use.amount)


def _duplex_figure(system: System, device: str, kind: str) -> Resource | None:
    part = system.part(device)
    keys = [f"engine.duplex_{kind}.gen{gen}" for gen in range(6, 0, -1)] if part is not None else []
    for key in keys:
        figure = part.figure(key) if part is not None else None
        if part is not None and figure is not None and isinstance(figure.value, float):
            name = f"copy engine ({kind}, beside the other direction) of {device}"
            return Resource(("beside", device, kind), name, figure.value, figure.basis, cite(part, key, figure))
    return None


def _doubt(system: System, routes: Sequence[Route], uses: Sequence[Use]) -> str:
    """Which missing figure makes the links' rate only a ceiling for this flow."""
    keys = {use.resource.key[0] for use in uses}
    ends = {system.device(name).kind for route in routes for name in (route.src, route.dst)}
    if ends & {Kind.SSD, Kind.RAID} and not keys & {"drive reads", "drive writes"}:
        return DRIVE_DOUBT
    copies = ends <= {Kind.GPU, Kind.CPU} and Kind.GPU in ends
    over_pcie = any(hop.link.kind is LinkKind.PCIE for route in routes for hop in route.hops)
    return ENGINE_DOUBT if copies and over_pcie and routes[0].via is not Via.NETWORK and "engine" not in keys else ""
