"""`lanewise plan`: rank systems, place devices on hosts and ports, pin network cards, each with its bottleneck."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli import options, terminal
from lanewise.cli.main import EXIT_INTERRUPTED
from lanewise.cli.terminal import heading
from lanewise.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.planning.ask import Ask
    from lanewise.planning.confirm import Confirmation
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.pins import Pinning
    from lanewise.planning.place import Candidate, Placement
    from lanewise.planning.score import Line, Score
    from lanewise.topology.model import System

STEADY = "note: rates are those of steady state, not simulated"
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
    from lanewise.planning.hold import unkept
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.place import Placement, unserved

    data: list[dict[str, Any]] = []
    interrupted = False
    for number, ask in enumerate(asked):
        found = api.plan(systems, ask)
        cut = not isinstance(found, Ranking) and found.interrupted
        if isinstance(found, Placement) and not (anyway or cut):
            if not found.served:
                raise unserved(found)
            if found.late:
                raise unkept(found)
        if as_json:
            data.append(_data(found, ask, names[0], parts))
        else:
            terminal.out(("\n" if number else "") + _text(found, ask, names[0], parts))
        interrupted = interrupted or cut
    if as_json:
        terminal.out_json(data[0] if len(data) == 1 else data)
    if interrupted:
        terminal.note("interrupted")
        raise typer.Exit(EXIT_INTERRUPTED)


def _text(found: Placement | Ranking | Pinning, ask: Ask, name: str, parts: list[str]) -> str:
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.pins import Pinning

    if isinstance(found, Ranking):
        return _ranking(found, ask)
    return _pinning(found) if isinstance(found, Pinning) else _placement(found, name, parts)


def _data(found: Placement | Ranking | Pinning, ask: Ask, name: str, parts: list[str]) -> dict[str, Any]:
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.pins import Pinning

    if isinstance(found, Ranking):
        return _ranking_data(found, ask)
    return _pinning_data(found) if isinstance(found, Pinning) else _placement_data(found, name, parts)


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
    ref, *own = name.split(",")
    return (ref, own) if all("=" in each for each in own) else (name, [])


def _ranking(found: Ranking, ask: Ask) -> str:
    from lanewise import units
    from lanewise.planning.patterns import pattern

    title = f"{ask.pattern} ({pattern(ask.pattern)[0].title})" if ask.pattern else "these flows"
    service = bool(found.places[0].work.services)
    what = "served" if service else found.by
    lines = [f"{'these services' if service else title}, ranked by {what}"]
    rows = []
    for each in found.places:
        score = each.score
        held = "" if service else f"{score.held} of {len(score.lines)}"
        first = f"{100 * score.goals[0]:.1f} %" if service else units.number(score.total / 1e9)
        second = " ".join(_qps(line.rate) for line in score.lines) if service else _gb(score.slowest)
        rows.append((str(each.rank), each.label, first, second, held, score.limit))
    heads = ("rank", "system", "worst served", "QPS", "held", "limit")
    if not service:
        heads = ("rank", "system", "total GB/s", "slowest GB/s", "held", "limit")
    lines += [terminal.table(heads, rows, right=(*heads[2:4], "rank")), ""]
    lines += [f"{each.rank}  {each.label}: {each.why}" for each in found.places if each.why]
    lines += [f"-  {system.name} cannot run it: {error.cause}" for system, error in found.cannot]
    return "\n".join([*lines, STEADY]).rstrip()


def _placement(found: Placement, name: str, parts: list[str]) -> str:
    from lanewise.planning.spots import show_moves

    notes = terminal.Footnotes()
    services = bool(found.question.tenants)
    rows = _rows("as it stands", found.today, services, notes)
    for each in (*found.between, found.best):
        if each.moves or found.today is None or each.serving != found.today.serving:
            what = show_moves(each.moves) or ("as it stands" if found.today is None else "as it stands, other GPUs")
            rows += _rows(what, each, services, notes)
    if services:
        heads = ("plan", "service", "wanted QPS", "QPS", "GPUs", "latency", "limit", "basis", "rests on")
    else:
        heads = ("plan", "flow", "total GB/s", "GB/s", "", "", "limit", "basis", "rests on")
    table = terminal.table(heads, rows, right=("wanted QPS", "QPS", "GPUs", *heads[2:4]))
    lines = [heading(found.question.system), table]
    lines += ["", *_do(found, name, parts), "", *_ending(found), "", notes.show()]
    return "\n".join(lines).rstrip()


def _rows(what: str, found: Candidate | None, services: bool, notes: terminal.Footnotes) -> list[tuple[str, ...]]:
    """One row a tenant or a limit, the plan's name in the first."""
    from lanewise import units

    if found is None:
        return [(what, "cannot run", *[""] * 7)]
    rows: list[tuple[str, ...]] = []
    for lines in _alike(found.score.lines):
        line = lines[0]
        mark = notes.mark([line.rests_on] if line.rests_on != "the plan" else [])
        basis = line.basis if mark else ""
        if line.wanted is not None:
            rate, wanted = _qps(line.rate), _qps(line.wanted)
            told = found.confirmed.of(line.name) if found.confirmed is not None else None
            latency = told.show() if told is not None else ""
            limit = told.limit if told is not None and told.late and line.served else line.limit
            rows.append(("", line.name, wanted, rate, str(len(line.gpus)), latency, limit, basis, mark))
        else:
            name = _first([each.name for each in lines])
            rows.append(("", name, "", _gb(line.rate), "", "", _first([each.limit for each in lines]), basis, mark))
    total = "" if services else units.number(found.score.total / 1e9)
    rows[0] = (what, rows[0][1], rows[0][2] or total, *rows[0][3:])
    return rows


def _first(texts: Sequence[str]) -> str:
    """The first of several texts, and how many others there are."""
    others = len(set(texts)) - 1
    return f"{texts[0]} and {others} more" if others else texts[0]


def _alike(lines: Sequence[Line]) -> list[list[Line]]:
    """Flows of one rate and one kind of limit together; tenants each alone."""
    import re

    groups: dict[object, list[Line]] = {}
    for line in lines:
        key = line.name if line.wanted is not None else (_gb(line.rate), re.sub(r"\w*\d\w*", "", line.limit))
        groups.setdefault(key, []).append(line)
    return list(groups.values())


def _do(found: Placement, name: str, parts: list[str]) -> list[str]:
    """What to run, or that nothing is to be done."""
    from lanewise.planning.spots import commands

    best = found.best
    if not best.moves:
        lines = ["nothing to move: " + ("no placement found holds either" if found.late else "no placement is better")]
    else:
        count = f"{len(best.moves)} move{'' if len(best.moves) == 1 else 's'}"
        lines = [f"do this ({count}):"]
        lines += [f"  {line}" for line in commands(found.question.system, _split(name)[0], best.moves, parts)]
    for tenant, gpus in best.serving.items():
        hosts: dict[str, list[str]] = {}
        for gpu in gpus:
            hosts.setdefault(best.system.device(gpu).host or "", []).append(gpu)
        where = "; ".join(f"{' '.join(names)} at {host}" for host, names in hosts.items())
        lines.append(f"{tenant}: {where or 'no GPU'}")
    return lines


def _ending(found: Placement) -> list[str]:
    name, use = found.best.score.busiest
    lines = [f"busiest then: {name}, {100 * use:.0f} %"] if name else []
    if found.doubt:
        lines.append(f"best found, not proven: {found.doubt} ({found.tried} placements judged)")
    else:
        count = f"{found.tried} placement{'' if found.tried == 1 else 's'}"
        where = "in steady state " if found.question.tenants else ""
        where += f"for {_percent(found.margin)} more " if found.margin else ""
        lines.append(
            f"proven: {where}no other placement is better ({count} judged, the rest ruled out by the solver's bound)"
        )
    return [*lines, *_confirmation(found)]


def _confirmation(found: Placement) -> list[str]:
    """The margin or the broken bound, and what was simulated and what was not."""
    lines = []
    steady = found.steady.confirmed if found.steady is not None else None
    if steady is not None:
        late = "; ".join(f"{each.tenant}: {each.show()}" for each in steady.late)
        lines = [f"planned for {_percent(found.margin)} more than asked, as steady state alone is late ({late})"]
    for each in found.late:
        lines.append(f"{each.tenant}: the bound is not kept: {each.show()}, limited by {each.limit}")
    return [*lines, _note(found)]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _note(found: Placement) -> str:
    confirmed = found.best.confirmed
    if confirmed is None:
        return STEADY
    if confirmed.why:
        return f"{STEADY}: {confirmed.why}"
    if not confirmed.seconds:
        return f"{STEADY}: no tenant has a latency bound"
    beside = ", the flows beside them without a pause" if found.question.flows else ""
    return (
        f"note: latencies are simulated ({confirmed.seconds:.3g} s of queries{beside}); "
        "QPS, limits and what is busiest are those of steady state"
    )


def _pinning(found: Pinning) -> str:
    from lanewise.planning.pins import lines as environment

    rows = [(p.gpu, p.card, p.cls, _gb(p.out.rate), _gb(p.into.rate), p.out.limit) for p in found.pins]
    heads = ("GPU", "card", "class", "sends GB/s", "receives GB/s", "limit of sending")
    text = [f"{heading(found.system)}: a card for each GPU, all GPUs at once and both ways"]
    text += [terminal.table(heads, rows, right=heads[3:5]), ""]
    text += [f"{line}  # {p.gpu} on {p.host}" for line, p in zip(environment(found), found.pins, strict=True)]
    text += ["", "names and numbers are those of the description; put in those of ibv_devices and nvidia-smi"]
    if found.further is not None:
        slow = _gb(found.further.slowest)
        text.append(f"cards of a further class would spread the load better: {slow} GB/s for the slowest GPU")
    if found.doubt:
        text.append(f"best found, not proven: {found.doubt}")
    text.append(STEADY)
    return "\n".join(text)


def _qps(rate: float) -> str:
    from lanewise import units

    return units.number(rate, max(4, len(str(round(rate)))))  # whole queries from 1,000 on


def _gb(rate: float) -> str:
    from lanewise import units

    return units.number(rate / 1e9)


def _score_data(score: Score) -> dict[str, Any]:
    name, use = score.busiest
    return {
        "limit": score.limit,
        "busiest": {"resource": name, "use": use} if name else None,
        "lines": [_line_data(line) for line in score.lines],
    }


def _line_data(line: Line) -> dict[str, Any]:
    return {
        "name": line.name, "rate": line.rate, "unit": line.unit, "wanted": line.wanted, "served": line.served,
        "limit": line.limit, "basis": line.basis, "rests_on": line.rests_on, "gpus": list(line.gpus),
    }  # fmt: skip


def _ranking_data(found: Ranking, ask: Ask) -> dict[str, Any]:
    return {
        "answer": "ranking",
        "pattern": ask.pattern,
        "by": found.by,
        "ranks": [
            {
                "rank": each.rank, "system": each.system.name, "settings": dict(each.system.settings),
                "total": each.score.total, "slowest": each.score.slowest, "why": each.why or None,
                **_score_data(each.score),
            }
            for each in found.places
        ],
        "cannot": [{"system": system.name, "why": error.cause} for system, error in found.cannot],
    }  # fmt: skip


def _candidate_data(found: Candidate | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "moves": [
            {"device": move.device, "from": move.was.host, "to": move.to.host, "at": move.to.at} for move in found.moves
        ],
        "serving": {name: list(gpus) for name, gpus in found.serving.items()},
        "simulated": _confirmation_data(found.confirmed),
        **_score_data(found.score),
    }


def _confirmation_data(found: Confirmation | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "kept": found.kept,
        "seconds": found.seconds,
        "why_not": found.why or None,
        "tenants": [
            {
                "name": each.tenant, "qps": each.qps, "percentile": each.percentile, "bound": each.bound,
                "latency": None if each.bound is None else each.latency,
                "valid": None if each.bound is None else each.valid,
                "reason": each.reason or None, "limit": each.limit or None, "queue_grows": each.grows,
            }
            for each in found.tenants
        ],
    }  # fmt: skip


def _placement_data(found: Placement, name: str, parts: Sequence[str]) -> dict[str, Any]:
    from lanewise.planning.spots import commands

    system = found.question.system
    return {
        "answer": "placement",
        "system": system.name,
        "settings": dict(system.settings),
        "today": _candidate_data(found.today),
        "between": [_candidate_data(each) for each in found.between],
        "best": _candidate_data(found.best),
        "commands": commands(system, _split(name)[0], found.best.moves, parts),
        "served": found.served,
        "kept": found.kept,
        "margin": found.margin,
        "proven": not found.doubt,
        "doubt": found.doubt or None,
        "judged": found.tried,
    }


def _pinning_data(found: Pinning) -> dict[str, Any]:
    from lanewise.planning.pins import lines

    return {
        "answer": "pins",
        "system": found.system.name,
        "settings": dict(found.system.settings),
        "pins": [
            {
                "gpu": p.gpu, "host": p.host, "card": p.card, "class": p.cls, "index": p.index, "numa": p.numa,
                "sends": p.out.rate, "receives": p.into.rate, "limit": p.out.limit, "environment": line,
            }
            for p, line in zip(found.pins, lines(found), strict=True)
        ],
        "proven": not found.doubt,
        "doubt": found.doubt or None,
        "slowest_over_further_classes": found.further.slowest if found.further else None,
    }  # fmt: skip
