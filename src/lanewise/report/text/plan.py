"""What `lanewise plan` answers, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.report.table import Footnotes, heading, text_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.planning.ask import Ask
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.pins import Pinning
    from lanewise.planning.place import Candidate, Placement
    from lanewise.planning.score import Line

STEADY = "note: rates are those of steady state, not simulated"


def render_plan(found: Placement | Ranking | Pinning, ask: Ask, ref: str, parts: list[str]) -> str:
    """The answer for people; `ref` and `parts` are the system and part files to name in commands to run next."""
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.pins import Pinning

    if isinstance(found, Ranking):
        return _ranking(found, ask)
    return _pinning(found) if isinstance(found, Pinning) else _placement(found, ref, parts)


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
    lines += [text_table(heads, rows, right=(*heads[2:4], "rank")), ""]
    lines += [f"{each.rank}  {each.label}: {each.why}" for each in found.places if each.why]
    lines += [f"-  {system.name} cannot run it: {error.cause}" for system, error in found.cannot]
    return "\n".join([*lines, STEADY]).rstrip()


def _placement(found: Placement, ref: str, parts: list[str]) -> str:
    from lanewise.planning.spots import show_moves

    notes = Footnotes()
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
    rows_table = text_table(heads, rows, right=("wanted QPS", "QPS", "GPUs", *heads[2:4]))
    lines = [heading(found.question.system), rows_table]
    lines += ["", *_do(found, ref, parts), "", *_ending(found), "", notes.render()]
    return "\n".join(lines).rstrip()


def _rows(what: str, found: Candidate | None, services: bool, notes: Footnotes) -> list[tuple[str, ...]]:
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


def _do(found: Placement, ref: str, parts: list[str]) -> list[str]:
    """What to run, or that nothing is to be done."""
    from lanewise.planning.spots import commands

    best = found.best
    if not best.moves:
        lines = ["nothing to move: " + ("no placement found holds either" if found.late else "no placement is better")]
    else:
        count = f"{len(best.moves)} move{'' if len(best.moves) == 1 else 's'}"
        lines = [f"do this ({count}):"]
        lines += [f"  {line}" for line in commands(found.question.system, ref, best.moves, parts)]
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
    text += [text_table(heads, rows, right=heads[3:5]), ""]
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
