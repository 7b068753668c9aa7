"""`lanewise predict` as text: flows, transfers, pairs, a service in steady state, and sweeps of a parameter."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import units
from lanewise.perf.matrix import RateMatrix
from lanewise.perf.predict import FlowRate, Prediction
from lanewise.perf.transfers import FinishedTransfer
from lanewise.report import services
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Footnotes, Table, number_columns, render_matrix, render_table
from lanewise.report.words import (
    basis_note,
    clock,
    heading,
    plural,
    rate_interval,
    rate_text,
    readings,
    total_interval,
    total_text,
)
from lanewise.routes.rules import ASSUMED_SCOPE
from lanewise.serving.steady import ServiceRate
from lanewise.topology.model import System

_MOST_TIES = 4
_WIDEST_BARS = 160  # columns of a time line where the screen has no width


def render_flow_rates(prediction: Prediction, screen: Screen = PLAIN) -> str:
    """Concurrent flows: goodput, interval, limit and basis."""
    notes = Footnotes()
    columns = [
        Column("flow", wrap=True), Column("route", drop_order=3, wrap=True), Column("GB/s", number=True),
        Column("interval", drop_order=2), Column("limit", wrap=True), Column("basis", drop_order=1), Column("source"),
    ]  # fmt: skip
    table = Table(columns, [_flow_row(rate, notes) for rate in prediction.rates])
    if len(table.rows) > 1:
        table.add("all together", "", total_text(prediction), total_interval(prediction), "", "", "")
    accuracy = basis_note(rate.basis for rate in prediction.rates)
    schedule = prediction.schedule
    title = heading(prediction.system) + (f", {schedule.name}: {schedule.what}" if schedule.source else "")
    return "\n".join(
        [
            screen.wrap(title, indent=2),
            render_table(table, screen),
            "",
            *_wrapped(_ties(prediction), screen),
            *(screen.wrap(line, indent=2) for line in _assumed_staging(prediction)),
            *readings(prediction.system, screen),
            *_wrapped(accuracy, screen),
            notes.render(screen),
        ]
    )


def _ties(prediction: Prediction) -> str:
    """Which flows the model cannot rank."""
    pairs = [f"{a.flow.name} and {b.flow.name}" for a, b in prediction.ties[:_MOST_TIES]]
    more = len(prediction.ties) - len(pairs)
    return f"cannot be told apart: {', '.join(pairs)}{f' and {more} pairs more' if more else ''}" if pairs else ""


def _assumed_staging(prediction: Prediction) -> list[str]:
    """Why copies between GPUs pass through host memory where that follows from no description and no part."""
    notes = {route.note for rate in prediction.rates for route in rate.routes if ASSUMED_SCOPE in route.note}
    return [f"staged: {note}" for note in sorted(notes)]


def _wrapped(text: str, screen: Screen) -> list[str]:
    return [screen.wrap(text, indent=2)] if text else []


def _flow_row(rate: FlowRate, notes: Footnotes) -> tuple[str, ...]:
    sources = notes.mark([rate.why_unknown, *rate.rests_on, rate.doubt])
    first, *others = rate.routes
    route = f"{first.cls} {first.via}{f' and {len(others)} more' if others else ''}"
    return rate.flow.name, route, rate_text(rate), rate_interval(rate), rate.limit, rate.basis, sources


def render_transfers(system: System, transfers: Sequence[FinishedTransfer], screen: Screen = PLAIN) -> str:
    """Finite transfers: when each ends, its mean rate, and what limits it while all run."""
    columns = [
        Column("flow", wrap=True), *number_columns("size"), *number_columns("start", drop_order=2),
        *number_columns("latency", drop_order=3), *number_columns("end"), Column("mean", "GB/s", number=True),
        Column("limit while all run", wrap=True, drop_order=1), Column("basis", drop_order=2),
    ]  # fmt: skip
    table = Table(columns)
    for transfer in transfers:
        delay = clock(transfer.delay) if transfer.delay else "?"
        times = (clock(transfer.start), delay, clock(transfer.finish))
        rate = units.number(transfer.rate / 1e9)
        table.add(transfer.flow.name, _size(transfer.flow.size or 0.0), *times, rate, transfer.limit, transfer.basis)
    note = "latency: that of a small copy, as far as it is known (the wire alone where the API's time is unknown)"
    if not all(transfer.delay for transfer in transfers):
        note += "; where it is ?, no figure is known, and a small copy takes longer than this table says"
    unknown = dict.fromkeys(transfer.why_unknown for transfer in transfers if transfer.why_unknown)
    facts = [screen.wrap(f"{why}; times are those of typical ones", indent=2) for why in unknown]
    facts += [screen.wrap(note, indent=2), *_wrapped(basis_note(transfer.basis for transfer in transfers), screen)]
    return "\n".join([heading(system), render_table(table, screen), "", *facts, "", render_timeline(transfers, screen)])


def render_timeline(transfers: Sequence[FinishedTransfer], screen: Screen = PLAIN) -> str:
    """One bar a transfer on a common time axis."""
    first, last = min(t.start for t in transfers), max(t.finish for t in transfers)
    span = max(last - first, 1e-30)
    label = max(len(transfer.flow.name) for transfer in transfers)
    length = max(10, min(screen.width or _WIDEST_BARS // 2, _WIDEST_BARS) - label - 2)
    lines = []
    for transfer in transfers:
        bar = max(1, round((transfer.finish - transfer.start) / span * length))
        left = min(round((transfer.start - first) / span * length), length - bar)
        lines.append(f"{transfer.flow.name:<{label}}  {' ' * left}{screen.style('█' * bar, 'cyan')}")
    ends = clock(first), clock(last)
    axis = " " * (label + 2) + ends[0] + " " * max(1, length - len(ends[0]) - len(ends[1])) + ends[1]
    return "\n".join([*lines, screen.style(axis, "dim")])


def _size(size: float) -> str:
    """In the unit that gives few digits: powers of two where they fit, else powers of ten."""
    for binary, decimal in (("GiB", "GB"), ("MiB", "MB"), ("KiB", "kB")):
        if size >= units.to_si(1, binary):
            short = units.from_si(size, binary) == round(units.from_si(size, binary), 2)
            return units.show(size, binary if short else decimal)
    return units.show(size, "B")


def render_pairs(system: System, matrix: RateMatrix, screen: Screen = PLAIN) -> str:
    """Goodput or latency of each pair of devices, every pair alone."""
    unit = "GB/s" if matrix.unit == "B/s" else "us"
    cells = [[None if cell is None else units.from_si(cell, unit) for cell in row] for row in matrix.cells]
    title = f"{heading(system)}: {matrix.title}, {unit}, from row to column"
    reasons = {
        matrix.limits[i][j]
        for i, row in enumerate(matrix.cells)
        for j, cell in enumerate(row)
        if cell is None and i != j
    }
    lines = [screen.wrap(f"--: {why}", indent=4) for why in sorted(reasons) if why]
    return "\n".join([render_matrix(matrix.names, matrix.names, cells, title, screen), *lines])


def render_steady_service(system: System, rate: ServiceRate, mode: str, division: str, screen: Screen = PLAIN) -> str:
    """A service in steady state: queries a second, goodput, limit."""
    gpus = plural(len(rate.prediction.rates), "GPU")
    facts = [
        ("queries", units.show(rate.qps, "QPS", 6)),
        ("goodput", units.show(rate.goodput, "GB/s")),
        *services.network_facts(rate.network),
        ("limit", rate.limit),
        ("basis", basis_note([rate.basis]) or rate.basis),
        *(("source", text) for text in rate.rests_on),
        *([("note", rate.note)] if rate.note else []),
        ("note", "steady state: the ceiling; a latency bound lowers it (--peak finds by how much)"),
    ]
    title = f"{heading(system)}: {rate.workload.name}, {mode}, {division} division, {gpus}"
    return f"{screen.wrap(title, indent=2)}\n{screen.facts(facts, 2)}"
