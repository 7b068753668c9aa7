"""`lanewise route` as text: one route, all sensible routes, or the classes of all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.report.table import heading, text_table
from lanewise.report.text.matrices import show_classes
from lanewise.report.words import link_speed
from lanewise.routes.shared import sharers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.routes.matrix import Matrix as ClassMatrix
    from lanewise.routes.matrix import Peers
    from lanewise.routes.model import Route
    from lanewise.topology.model import System


def render_route(system: System, route: Route) -> str:
    """A route, its class, and what else uses each of its links."""
    allowed = "" if route.allowed else f"   not allowed: {route.why}"
    hops = f"{len(route.hops)} hop{'' if len(route.hops) == 1 else 's'}"
    lines = [f"{route.src} -> {route.dst}   class {route.cls}, {route.via}, {hops}{allowed}", f"  {route.show()}"]
    lines += [f"  {route.note}"] if route.note else []
    lines += [f"  stage {i}: {stage.show()} ({stage.cls})" for i, stage in enumerate(route.stages, 1)]
    others = sharers(system, route)
    rows = [(hop.start, hop.end, link_speed(hop.link), _some(others[hop.key])) for hop in route.hops]
    hop_table = text_table(("from", "to", "link", "shared with"), rows)
    return "\n".join([*lines, "", hop_table]) if rows else "\n".join(lines)


def _some(routes: Sequence[Route]) -> str:
    """The first few of many routes by their ends."""
    names = [f"{route.src}->{route.dst}" for route in routes]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more if names else "nothing else"


def render_routes(routes: Sequence[Route]) -> str:
    """One line a route."""
    rows = [
        (str(i), r.cls, str(r.via), r.show(), "yes" if r.allowed else f"no: {r.why}") for i, r in enumerate(routes, 1)
    ]
    return text_table(("", "class", "via", "way", "allowed"), rows)


def show_overview(system: System, classes: ClassMatrix, pairs: Sequence[Peers]) -> None:
    """The classes of all pairs, and which GPUs can be peers."""
    print(heading(system))
    cells = [["" if cell == "-" else cell for cell in row] for row in classes.cells]
    numa = ["-" if node is None else str(node) for node in classes.numa]
    show_classes(classes.names, cells, {"NUMA": numa})
    print("\n".join(["", *classes.notes, _peers(pairs)]))


def _peers(pairs: Sequence[Peers]) -> str:
    if not pairs:
        return "fewer than two GPUs: no peers"
    lines = [f"peers: {sum(pair.allowed for pair in pairs)} of {len(pairs)} pairs of GPUs"]
    reasons: dict[str, list[str]] = {}
    for pair in pairs:
        if not pair.allowed:
            why = pair.why.replace(f"{pair.one} and {pair.other}", "they")  # one reason for many pairs
            reasons.setdefault(why, []).append(f"{pair.one}-{pair.other}")
    for why, group in reasons.items():
        more = f" and {len(group) - 6} more" if len(group) > 6 else ""
        lines.append(f"not peers: {', '.join(group[:6])}{more}: {why}")
    return "\n".join(lines)
