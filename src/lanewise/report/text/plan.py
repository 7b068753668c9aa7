"""What `lanewise plan` answers, as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lanewise import units
from lanewise.options.plan import PlanOptions
from lanewise.planning.layouts import Ranking
from lanewise.planning.patterns import pattern
from lanewise.planning.pins import Pinning
from lanewise.planning.pins import lines as environment
from lanewise.planning.place import Candidate, Placement
from lanewise.planning.positions import commands, show_moves
from lanewise.planning.score import Allocation
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Footnotes, Table, TableCell, number_columns, render_table
from lanewise.report.words import heading
from lanewise.topology.model import Kind

STEADY = "note: rates are those of steady state, not simulated"


def render_plan(
    answer: Placement | Ranking | Pinning, options: PlanOptions, ref: str, parts: Sequence[str], screen: Screen = PLAIN
) -> str:
    """What to do and why; `ref` and `parts` are the system and part files to name in commands to run next."""
    if isinstance(answer, Ranking):
        return _ranking(answer, options, screen)
    return _pinning(answer, screen) if isinstance(answer, Pinning) else _placement(answer, ref, parts, screen)


def _ranking(ranking: Ranking, options: PlanOptions, screen: Screen) -> str:
    title = f"{options.pattern} ({pattern(options.pattern)[0].title})" if options.pattern else "these flows"
    service = bool(ranking.ranks[0].work.services)
    table = Table([
        Column("rank", number=True), Column("system", wrap=True),
        *(number_columns("worst served", "QPS") if service else number_columns("total", "slowest", unit="GB/s")),
        Column("held", drop_order=1), Column("limit", wrap=True),
    ])  # fmt: skip
    for place in ranking.ranks:
        score = place.score
        if service:
            numbers = (f"{100 * score.goals[0]:.1f} %", " ".join(_qps(line.rate) for line in score.lines), "")
        else:
            numbers = (units.number(score.total / 1e9), _gb(score.slowest), f"{score.limited} of {len(score.lines)}")
        table.add(str(place.rank), place.label, *numbers, score.limit)
    lines = [f"{place.rank}  {place.label}: {place.reason}" for place in ranking.ranks if place.reason]
    lines += [f"-  {system.name} cannot run it: {error.cause}" for system, error in ranking.errors]
    head = f"{'these services' if service else title}, ranked by {'served' if service else ranking.by}"
    notes = [screen.wrap(line, indent=3) for line in [*lines, STEADY]]
    return "\n".join([head, render_table(table, screen), "", *notes])


def _placement(placement: Placement, ref: str, parts: Sequence[str], screen: Screen) -> str:
    notes = Footnotes()
    services = bool(placement.question.tenants)
    rows = _rows("as it stands", placement.current, services, notes)
    for candidate in (*placement.steps, placement.best):
        if candidate.moves or placement.current is None or candidate.serving != placement.current.serving:
            same = "as it stands" if placement.current is None else "as it stands, other GPUs"
            rows += _rows(show_moves(candidate.moves) or same, candidate, services, notes)
    if services:
        columns = [Column("plan", wrap=True), Column("service"), *number_columns("wanted QPS", drop_order=3),
                   *number_columns("QPS", "GPUs"), Column("latency", wrap=True)]  # fmt: skip
    else:
        columns = [Column("plan", wrap=True), Column("flow", wrap=True), *number_columns("total GB/s", "GB/s")]
    columns += [Column("limit", wrap=True), Column("basis", drop_order=1), Column("source")]
    facts = [*_do(placement, ref, parts), "", *_ending(placement)]
    # Commands stay in one piece, to be copied.
    text = "\n".join(line if line.startswith("  ") else screen.wrap(line, indent=2) for line in facts)
    parts_of_text = [f"{heading(placement.question.system)}\n{render_table(Table(columns, rows), screen)}", text]
    return "\n\n".join([*parts_of_text, *([notes.render(screen)] if notes.texts else [])])


def _rows(plan: str, candidate: Candidate | None, services: bool, notes: Footnotes) -> list[Sequence[str | TableCell]]:
    """One row a tenant or a limit, the plan's name in the first."""
    if candidate is None:
        return [(plan, "cannot run", *[""] * (7 if services else 5))]
    rows: list[Sequence[str | TableCell]] = []
    for lines in _alike(candidate.score.lines):
        line = lines[0]
        mark = notes.mark([line.rests_on] if line.rests_on != "the plan" else [])
        basis = line.basis if mark else ""
        name = "" if rows else plan
        if line.demand is not None:
            answer = candidate.confirmed.latency_of(line.name) if candidate.confirmed is not None else None
            latency = answer.show() if answer is not None else ""
            limit = answer.limit if answer is not None and answer.late and line.served else line.limit
            numbers = [_qps(line.demand), _qps(line.rate), str(len(line.gpus)), latency]
            rows.append((name, line.name, *numbers, limit, basis, mark))
        else:
            total = "" if rows or services else units.number(candidate.score.total / 1e9)
            flow, limit = _first([each.name for each in lines]), _first([each.limit for each in lines])
            numbers = ["", _gb(line.rate), "", ""] if services else [total, _gb(line.rate)]
            rows.append((name, flow, *numbers, limit, basis, mark))
    return rows


def _first(texts: Sequence[str]) -> str:
    """The first of several texts, and how many others there are."""
    others = len(set(texts)) - 1
    return f"{texts[0]} and {others} more" if others else texts[0]


def _alike(lines: Sequence[Allocation]) -> list[list[Allocation]]:
    """Flows of one rate and one kind of limit together; tenants each alone."""
    groups: dict[object, list[Allocation]] = {}
    for line in lines:
        key = line.name if line.demand is not None else (_gb(line.rate), re.sub(r"\w*\d\w*", "", line.limit))
        groups.setdefault(key, []).append(line)
    return list(groups.values())


def _do(placement: Placement, ref: str, parts: Sequence[str]) -> list[str]:
    """What to run, or that nothing is to be done."""
    best = placement.best
    if not best.moves:
        lines = [
            "nothing to move: " + ("no placement found holds either" if placement.late else "no placement is better")
        ]
    else:
        count = f"{len(best.moves)} move{'' if len(best.moves) == 1 else 's'}"
        lines = [f"do this ({count}):"]
        lines += [f"  {line}" for line in commands(placement.question.system, ref, best.moves, parts)]
    for tenant, gpus in best.serving.items():
        hosts: dict[str, list[str]] = {}
        for gpu in gpus:
            hosts.setdefault(best.system.device(gpu).host or "", []).append(gpu)
        where = "; ".join(f"{' '.join(names)} at {host}" for host, names in hosts.items())
        lines.append(f"{tenant}: {where or 'no GPU'}")
    if best.serving:
        total = len(best.system.of_kind(Kind.GPU))
        lines.append(f"{best.used} of {total} GPUs {'used' if placement.doubt or placement.late else 'needed'}")
    return [*lines, *(f"equally good: {_equal(candidate)}" for candidate in placement.equal)]


def _equal(candidate: Candidate) -> str:
    """Another placement: its moves, and which GPUs serve."""
    gpus = [f"{tenant} on {' '.join(names)}" for tenant, names in candidate.serving.items()]
    return "; ".join(filter(None, [show_moves(candidate.moves), *gpus]))


def _ending(placement: Placement) -> list[str]:
    name, use = placement.best.score.busiest
    lines = [f"busiest then: {name}, {100 * use:.0f} %"] if name else []
    if placement.doubt:
        lines.append(f"best found, not proven: {placement.doubt} ({placement.judged} placements judged)")
    else:
        count = f"{placement.judged} placement{'' if placement.judged == 1 else 's'}"
        where = "in steady state " if placement.question.tenants else ""
        where += f"for {_percent(placement.margin)} more " if placement.margin else ""
        lines.append(
            f"proven: {where}no other placement is better ({count} judged, the rest ruled out by the solver's bound)"
        )
    return [*lines, *_confirmation(placement)]


def _confirmation(placement: Placement) -> list[str]:
    """The margin or the broken bound, and what was simulated and what was not."""
    lines = []
    steady = placement.steady.confirmed if placement.steady is not None else None
    if steady is not None:
        late = "; ".join(f"{tenant.tenant}: {tenant.show()}" for tenant in steady.late)
        lines = [f"planned for {_percent(placement.margin)} more than asked, as steady state alone is late ({late})"]
    for tenant in placement.late:
        lines.append(f"{tenant.tenant}: the bound is not kept: {tenant.show()}, limited by {tenant.limit}")
    return [*lines, _note(placement)]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _note(placement: Placement) -> str:
    confirmed = placement.best.confirmed
    if confirmed is None:
        return STEADY
    if confirmed.reason:
        return f"{STEADY}: {confirmed.reason}"
    if not confirmed.seconds:
        return f"{STEADY}: no tenant has a latency bound"
    traffic = ", with the other flows running all the time" if placement.question.flows else ""
    return (
        f"note: latencies are simulated ({confirmed.seconds:.3g} s of queries{traffic}); "
        "QPS, limits and what is busiest are those of steady state"
    )


def _pinning(pinning: Pinning, screen: Screen) -> str:
    table = Table([
        Column("GPU"), Column("card"), Column("class"), *number_columns("sends", "receives", unit="GB/s"),
        Column("limit of sending", wrap=True),
    ])  # fmt: skip
    for pin in pinning.pins:
        table.add(pin.gpu, pin.card, pin.route_class, _gb(pin.sends.rate), _gb(pin.receives.rate), pin.sends.limit)
    lines = [f"{heading(pinning.system)}: a card for each GPU, all GPUs at once and both ways"]
    lines += [render_table(table, screen), ""]
    lines += [f"{line}  # {p.gpu} on {p.host}" for line, p in zip(environment(pinning), pinning.pins, strict=True)]
    facts = ["names and numbers are those of the description; replace them by those of ibv_devices and nvidia-smi"]
    if pinning.further is not None:
        slowest = _gb(pinning.further.slowest)
        facts.append(f"cards of a further class would balance the load better: {slowest} GB/s for the slowest GPU")
    facts += [f"best found, not proven: {pinning.doubt}"] if pinning.doubt else []
    return "\n".join([*lines, "", *(screen.wrap(fact, indent=2) for fact in [*facts, STEADY])])


def _qps(rate: float) -> str:
    return units.number(rate, max(4, len(str(round(rate)))))  # whole queries from 1,000 on


def _gb(rate: float) -> str:
    return units.number(rate / 1e9)
