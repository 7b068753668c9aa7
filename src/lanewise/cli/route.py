"""`lanewise route`: the way data takes between two devices, or all classes and who can be peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli import options, terminal
from lanewise.cli.terminal import heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.routes.matrix import Peers
    from lanewise.routes.model import Route
    from lanewise.topology.model import Link, System


def route(
    system: options.SystemName,
    src: Annotated[
        str | None, typer.Argument(metavar="FROM", help="Device, host, or host:NUMA; none for all pairs.")
    ] = None,
    dst: Annotated[str | None, typer.Argument(metavar="TO", help="Device, host, or host:NUMA.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every sensible route, also those that policy forbids.")] = False,
    no_p2p: options.NoP2p = False,
    settings: options.Settings = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Show the route between two devices and its class, or the classes of all pairs and who can be peers."""
    from lanewise import api

    loaded = options.load(system, settings, parts)
    if src is None:
        return _overview(loaded, as_json)
    if dst is None:
        from lanewise.errors import InputError

        raise InputError(f"a route from {src} needs an end", hint=f"lanewise route {system} {src} TO")
    found = api.all_routes(loaded, src, dst) if every else (api.route(loaded, src, dst, not no_p2p),)
    if as_json:
        return terminal.out_json(
            {"system": loaded.name, "settings": dict(loaded.settings), "routes": [plain(r) for r in found]}
        )
    terminal.out(_list(found) if every else _one(loaded, found[0]))
    return None


def plain(found: Route) -> dict[str, Any]:
    """A route as data."""
    return {
        "from": found.src,
        "to": found.dst,
        "class": found.cls,
        "via": str(found.via),
        "way": list(found.nodes),
        "allowed": found.allowed,
        "why_not": found.why or None,
        "stages": [plain(stage) for stage in found.stages],
        "hops": [{"from": hop.start, "to": hop.end, "link": speed(hop.link)} for hop in found.hops],
    }


def speed(link: Link) -> str:
    """'Gen4 x16', 'NVLink x12', 'socket x3' or the stated rate."""
    from lanewise import units

    if link.gen and link.lanes:
        label = f"Gen{link.gen} x{link.lanes}"
    elif link.kind.value == "nvlink":
        label = f"NVLink x{link.count}"
    else:
        label = f"{link.kind} x{link.count}" if link.count > 1 else str(link.kind)
    return label if link.rate is None else f"{label}, {units.show(link.rate, 'GB/s', 3)}"


def _one(system: System, found: Route) -> str:
    from lanewise.routes.shared import sharers

    allowed = "" if found.allowed else f"   not allowed: {found.why}"
    hops = f"{len(found.hops)} hop{'' if len(found.hops) == 1 else 's'}"
    lines = [f"{found.src} -> {found.dst}   class {found.cls}, {found.via}, {hops}{allowed}", f"  {found.show()}"]
    lines += [f"  {found.note}"] if found.note else []
    lines += [f"  stage {i}: {stage.show()} ({stage.cls})" for i, stage in enumerate(found.stages, 1)]
    others = sharers(system, found)
    rows = [(hop.start, hop.end, speed(hop.link), _some(others[hop.key])) for hop in found.hops]
    table = terminal.table(("from", "to", "link", "shared with"), rows)
    return "\n".join([*lines, "", table]) if rows else "\n".join(lines)


def _some(routes: Sequence[Route]) -> str:
    """The first few of many routes by their ends."""
    names = [f"{route.src}->{route.dst}" for route in routes]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more if names else "nothing else"


def _list(found: tuple[Route, ...]) -> str:
    rows = [
        (str(i), r.cls, str(r.via), r.show(), "yes" if r.allowed else f"no: {r.why}") for i, r in enumerate(found, 1)
    ]
    return terminal.table(("", "class", "via", "way", "allowed"), rows)


def _overview(system: System, as_json: bool) -> None:
    from lanewise import api

    classes, pairs = api.class_matrix(system), api.peers(system)
    if as_json:
        return terminal.out_json(
            {
                "system": system.name,
                "settings": dict(system.settings),
                "names": list(classes.names),
                "numa": list(classes.numa),
                "classes": [list(row) for row in classes.cells],
                "notes": list(classes.notes),
                "peers": [{"pair": [p.one, p.other], "allowed": p.allowed, "why_not": p.why or None} for p in pairs],
            }
        )
    from lanewise.report.matrices import show_classes

    terminal.out(heading(system))
    cells = [["" if cell == "-" else cell for cell in row] for row in classes.cells]
    numa = ["-" if node is None else str(node) for node in classes.numa]
    show_classes(classes.names, cells, {"NUMA": numa})
    terminal.out("\n".join(["", *classes.notes, _peers(pairs)]))
    return None


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
