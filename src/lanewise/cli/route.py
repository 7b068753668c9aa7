"""`lanewise route`: the way data takes between two devices, or the class of every pair and who can be peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli import options, terminal

if TYPE_CHECKING:
    from lanewise.routes.model import Route
    from lanewise.topology.model import Link, System

Pair = dict[str, Any]


def route(
    system: options.SystemName,
    src: Annotated[
        str | None, typer.Argument(metavar="FROM", help="Device, host, or host:NUMA; none for all pairs.")
    ] = None,
    dst: Annotated[str | None, typer.Argument(metavar="TO", help="Device, host, or host:NUMA.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every sensible route, also those that policy forbids.")
    ] = False,
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
    terminal.out(_list(found) if every else _one(found[0]))
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


def _one(found: Route) -> str:
    allowed = "" if found.allowed else f"   not allowed: {found.why}"
    lines = [f"{found.src} -> {found.dst}   class {found.cls}, {found.via}{allowed}", f"  {found.show()}"]
    for i, stage in enumerate(found.stages, 1):
        lines.append(f"  stage {i}: {stage.show()} ({stage.cls})")
    rows = [(hop.start, hop.end, speed(hop.link)) for hop in found.hops]
    return "\n".join([*lines, "", terminal.table(("from", "to", "link"), rows)]) if rows else "\n".join(lines)


def _list(found: tuple[Route, ...]) -> str:
    rows = [
        (str(i), r.cls, str(r.via), "yes" if r.allowed else f"no: {r.why}", r.show())
        for i, r in enumerate(found, 1)
    ]
    return terminal.table(("", "class", "via", "allowed", "way"), rows)


def _overview(system: System, as_json: bool) -> None:
    from lanewise import api

    classes = api.class_matrix(system)
    pairs = _peer_pairs(system)
    if as_json:
        return terminal.out_json(
            {
                "system": system.name,
                "settings": dict(system.settings),
                "names": list(classes.names),
                "classes": [list(row) for row in classes.cells],
                "gpu_pairs": pairs,
            }
        )
    rows = [(name, *cells) for name, cells in zip(classes.names, classes.cells, strict=True)]
    terminal.out(f"{system.title or system.name}")
    terminal.out(terminal.table(("", *classes.names), rows))
    terminal.out()
    terminal.out(_peers(pairs))
    return None


def _peer_pairs(system: System) -> list[Pair]:
    """Every pair of GPUs: whether they can be peers, over which class, and if not, why."""
    from itertools import combinations

    from lanewise import api
    from lanewise.topology.model import Kind

    found: list[Pair] = []
    for a, b in combinations(system.of_kind(Kind.GPU), 2):
        ways = [r for r in api.all_routes(system, a, b) if not r.stages]
        best = next((r for r in ways if r.allowed), ways[0] if ways else None)
        peers = best is not None and best.allowed
        why = None if peers else (best.why if best else "no path joins them")
        found.append({"pair": [a, b], "peers": peers, "class": best.cls if best else None, "why_not": why})
    return found


def _peers(pairs: list[Pair]) -> str:
    if not pairs:
        return "fewer than two GPUs: no peers"
    can = sum(pair["peers"] for pair in pairs)
    lines = [f"peers: {can} of {len(pairs)} pairs of GPUs"]
    reasons: dict[str, list[Pair]] = {}
    for pair in pairs:
        if not pair["peers"]:
            reasons.setdefault(pair["why_not"], []).append(pair)
    for why, group in reasons.items():
        shown = ", ".join("-".join(pair["pair"]) for pair in group[:6])
        more = f" and {len(group) - 6} more" if len(group) > 6 else ""
        lines.append(f"not peers, {why}: {shown}{more}")
    return "\n".join(lines)
