"""`lanewise route` as text: one route, all sensible routes, or the classes of all pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, matrix_lines, render_table
from lanewise.report.words import heading, link_speed, plural
from lanewise.routes.endpoints import memory_node
from lanewise.routes.find import sharers
from lanewise.routes.matrix import ClassMatrix as ClassMatrix
from lanewise.routes.matrix import Peers
from lanewise.routes.model import Route
from lanewise.topology.model import System

_MOST_NOTES = 6
LEGEND = {
    "X": "self",
    "NV#": "that many bonded NVLinks",
    "PIX": "at most one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "through the CPU's host bridge",
    "NODE": "between host bridges of one NUMA node",
    "SYS": "between NUMA nodes, over the inter-socket link",
    "NET": "over the network",
    "LOC": "within one device",
    "--": "no route, or none allowed",
}


def render_route(system: System, route: Route, screen: Screen = PLAIN) -> str:
    """A route, its class, and what else uses each of its links."""
    allowed = "" if route.allowed else f"   not allowed: {route.reason}"
    lines = [f"{route.src} -> {route.dst}   class {route.cls}, {route.via}, {plural(len(route.hops), 'hop')}{allowed}"]
    lines += [f"  {route.show()}", *([f"  {route.note}"] if route.note else []), *_memory(system, route)]
    lines += [f"  stage {i}: {stage.show()} ({stage.cls})" for i, stage in enumerate(route.stages, 1)]
    hops = Table([Column("from"), Column("to"), Column("link"), Column("shared with", wrap=True)])
    others, complete = sharers(system, route)
    for hop in route.hops:
        hops.add(hop.start, hop.end, link_speed(hop.link), _first(others[hop.direction], complete))
    text = "\n".join(screen.wrap(line, indent=4) for line in lines)
    return f"{text}\n\n{render_table(hops, screen)}" if hops.rows else text


def _memory(system: System, route: Route) -> list[str]:
    """Which NUMA node's memory the route starts or ends in, where the socket has several."""
    for cpu, other in ((route.src, route.dst), (route.dst, route.src)):
        if len(system.numa_nodes(cpu)) > 1:
            node = memory_node(system, cpu, other, route.memory_node)
            return [f"  memory of {f'NUMA node {node}' if node is not None else 'an unknown NUMA node'} of {cpu}"]
    return []


def _first(routes: Sequence[Route], complete: bool) -> str:
    """The first few of many routes by their ends; others may exist unless the list is complete."""
    names = [f"{route.src}->{route.dst}" for route in routes]
    more = f" and {'' if complete else 'at least '}{len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more if names else "nothing else" if complete else ""


def render_routes(routes: Sequence[Route], screen: Screen = PLAIN) -> str:
    """One line a route."""
    table = Table([Column("", number=True), Column("class"), Column("via", drop_order=1), Column("route", wrap=True),
                   Column("allowed", wrap=True)])  # fmt: skip
    for number, route in enumerate(routes, 1):
        allowed = "yes" if route.allowed else f"no: {route.reason}"
        table.add(str(number), route.cls, str(route.via), route.show(), allowed)
    return render_table(table, screen)


def render_overview(system: System, classes: ClassMatrix, pairs: Sequence[Peers], screen: Screen = PLAIN) -> str:
    """The classes of all pairs, and which GPUs can be peers."""
    cells = [["" if cell == "-" else cell for cell in row] for row in classes.cells]
    numa = ["-" if node is None else str(node) for node in classes.numa]
    matrix = render_classes(classes.names, cells, {"NUMA": numa}, screen)
    more = [f"{len(classes.notes) - _MOST_NOTES} more such pairs"] if len(classes.notes) > _MOST_NOTES else []
    notes = [screen.wrap(text, indent=2) for text in (*classes.notes[:_MOST_NOTES], *more, *_peers(pairs))]
    return "\n".join([heading(system), matrix, "", *notes])


def _peers(pairs: Sequence[Peers]) -> list[str]:
    if not pairs:
        return ["fewer than two GPUs: no peers"]
    reasons: dict[str, list[str]] = {}
    for pair in pairs:
        if not pair.allowed:
            why = pair.reason.replace(f"{pair.a} and {pair.b}", "they")  # one reason for many pairs
            reasons.setdefault(why, []).append(f"{pair.a}-{pair.b}")
    lines = [f"peers: {sum(pair.allowed for pair in pairs)} of {len(pairs)} pairs of GPUs"]
    for why, names in reasons.items():
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        lines.append(f"not peers: {', '.join(names[:6])}{more}: {why}")
    return lines


def render_classes(
    names: Sequence[str],
    classes: Sequence[Sequence[str]],
    extra: Mapping[str, Sequence[str]] | None = None,
    screen: Screen = PLAIN,
) -> str:
    """The class of the route between each two names as nvidia-smi topo -m prints it; '' means no route.

    `extra` adds columns at the right, such as the NUMA node of each name.
    """
    cells = [["X" if i == j else text or "--" for j, text in enumerate(row)] for i, row in enumerate(classes)]
    used = {("NV#" if text.startswith("NV") else text) for row in cells for text in row}
    legend = [screen.style(f"{key:<5}{text}", "dim") for key, text in LEGEND.items() if key in used]
    return "\n".join([*matrix_lines(names, names, cells, extra or {}, screen), "", *legend])
