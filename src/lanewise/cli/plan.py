"""`lanewise plan`: rank systems, place devices on hosts and ports, pin network cards, each with its bottleneck."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli import interrupts, options, terminal
from lanewise.errors import InputError

if TYPE_CHECKING:
    from lanewise.planning.ask import Ask
    from lanewise.topology.model import System

WORK = ("--service", "--flows", "--pattern", "--by", "--pin", "--move", "--to", "--at", "--no-p2p")

Systems = Annotated[
    list[str],
    typer.Argument(
        metavar="SYSTEM...", help="Ready systems or files, also with settings: NAME,path=4; several are ranked."
    ),
]
Service = Annotated[
    list[str] | None,
    typer.Option(metavar="'WORKLOAD QPS'", help="'resnet50 170000 QPS [on HOST] [from HOST] [each QPS] [as NAME]'."),
]
Pattern = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="scatter, gather, ring, all-to-all, pairs, halves, off-box, into-box; ring-4: in fours; repeat.",
    ),
]


def plan(
    systems: Systems,
    service: Service = None,
    flows: Annotated[str | None, typer.Option(help="Flows at once: 'host->gpu[0-3]'.")] = None,
    pattern: Pattern = None,
    by: Annotated[
        str | None, typer.Option(metavar="slowest|total", help="What counts of flows; a pattern knows its own.")
    ] = None,
    pin: Annotated[str | None, typer.Option(metavar="nic", help="The network card that each GPU should use.")] = None,
    move: Annotated[
        str | None, typer.Option(metavar="gpu[0-3]", help="What may move; else the GPUs that another host can hold.")
    ] = None,
    to: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="Where it may go; any host unless given.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="sw[0-3]", help="Switches and CPUs that its cable may go to.")
    ] = None,
    file: Annotated[Path | None, typer.Option(metavar="FILE", help="A plan file instead of these options.")] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Show the best plan even if it misses a demand.")] = False,
    candidates: Annotated[int, typer.Option(metavar="NUMBER", help="Placements to judge at most.")] = 120,
    no_p2p: options.NoP2p = False,
    settings: options.Settings = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Rank systems for a workload, say what to attach where, or which card each GPU should use, and why."""
    from dataclasses import replace

    given = (service, flows, pattern, by, pin, move, to, at, no_p2p)
    if file is not None:
        _alone([name for name, value in zip(WORK, given, strict=True) if value])
        asked = [replace(_read(file), candidates=candidates)]
    else:
        from lanewise import api
        from lanewise.planning.ask import Ask
        from lanewise.planning.work import parse_service

        tenants = tuple(parse_service(each, api.load_workload) for each in service or ())
        patterns: list[str | None] = [*pattern] if pattern else [None]
        asked = [Ask(tenants, flows, each, by, move, to, at, {}, pin, not no_p2p, candidates) for each in patterns]
    loaded = [_load(name, settings, parts) for name in systems]
    _answer(loaded, systems, asked, [str(each) for each in parts or ()], anyway, as_json)


def _answer(
    systems: list[System], names: list[str], asked: list[Ask], parts: list[str], anyway: bool, as_json: bool
) -> None:
    """Each question answered in turn; what Ctrl-C cut short is shown as far as it went."""
    from lanewise import api
    from lanewise.planning.bounds import late_error
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.place import Placement, unserved_error
    from lanewise.report import json
    from lanewise.report.text.plan import render_plan

    data: list[dict[str, Any]] = []
    ref = _split(names[0])[0]
    interrupted = False
    for number, ask in enumerate(asked):
        found = api.plan(systems, ask)
        cut = not isinstance(found, Ranking) and found.interrupted
        if isinstance(found, Placement) and not (anyway or cut):
            if not found.served:
                raise unserved_error(found)
            if found.late:
                raise late_error(found)
        if as_json:
            data.append(json.plan(found, ask, ref, parts))
        else:
            if number:
                terminal.out()
            terminal.print_text(render_plan, found, ask, ref, parts)
        interrupted = interrupted or cut
    if as_json:
        terminal.out_json(data[0] if len(data) == 1 else json.document("plan", data, "answers"))
    if interrupted:
        terminal.note("interrupted")
        raise typer.Exit(interrupts.exit_code())


def _alone(given: list[str]) -> None:
    if given:
        hint = f"write {given[0].removeprefix('--')} into the file, or leave out --file"
        raise InputError(f"--file says already what {given[0]} would", hint=hint)


def _read(file: Path) -> Ask:
    from lanewise import api
    from lanewise.files import read_file
    from lanewise.planning.planfile import read_plan

    return read_plan(read_file(file), str(file), api.load_workload)


def _load(name: str, settings: list[str] | None, parts: list[Path] | None) -> System:
    """A system, its own settings after commas: 'composable-server-gen4,path=4'."""
    ref, own = _split(name)
    return options.load(ref, [*(settings or ()), *own], parts)


def _split(name: str) -> tuple[str, list[str]]:
    """A system's name and the settings after its commas."""
    ref, *own = name.split(",")
    return (ref, own) if all("=" in each for each in own) else (name, [])
