"""Where routes meet: the links that more than one of them crosses in the same direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lanewise.errors import Unreachable
from lanewise.routes.find import route as find_route
from lanewise.routes.model import Route
from lanewise.topology.model import Kind, System


def shared_links(routes: Iterable[Route]) -> dict[tuple[str, str, str], tuple[Route, ...]]:
    """For every link direction (`Hop.key`) that two or more routes cross, those routes; busiest first."""
    users: dict[tuple[str, str, str], list[Route]] = {}
    for route in routes:
        for key in dict.fromkeys(hop.key for hop in route.hops):
            users.setdefault(key, []).append(route)
    meeting = {key: tuple(crossing) for key, crossing in users.items() if len(crossing) > 1}
    return dict(sorted(meeting.items(), key=lambda item: -len(item[1])))


def sharers(system: System, route: Route) -> dict[tuple[str, str, str], tuple[Route, ...]]:
    """For each link direction of `route`: the default routes of other pairs of GPUs, cards and memory that cross it."""
    candidates = [
        candidate for candidate in _default_routes(system) if (candidate.src, candidate.dst) != (route.src, route.dst)
    ]
    return {
        key: tuple(candidate for candidate in candidates if any(hop.key == key for hop in candidate.hops))
        for key in dict.fromkeys(hop.key for hop in route.hops)
    }


def _default_routes(system: System) -> Iterator[Route]:
    """Between all GPUs, cards and host memories that reach each other, both ways."""
    devices = system.of_kind(Kind.GPU, Kind.NIC)
    memories = [host for host in system.hosts if system.of_kind(Kind.CPU, host=host)]
    pairs = [(a, b) for a in devices for b in devices if a != b]
    pairs += [pair for memory in memories for device in devices for pair in ((memory, device), (device, memory))]
    for a, b in pairs:
        try:
            yield find_route(system, a, b)
        except Unreachable:
            continue
