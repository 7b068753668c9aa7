"""The scenarios of a sweep as text: a line each, of many only the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lanewise import units
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, number_columns, render_table
from lanewise.report.words import NONE, basis_note, plural
from lanewise.results.observation import Observation

_MOST = 40  # lines that a reader still takes in
_BEST = 20

SweepRows = Sequence[tuple[Mapping[str, int], Sequence[Observation]]]


def render_scenarios(scenarios: SweepRows, screen: Screen = PLAIN) -> str:
    """Every combination of parameters with its rates, limit and basis; the best ones where there are many."""
    shown = scenarios if len(scenarios) <= _MOST else sorted(scenarios, key=_headline_value, reverse=True)[:_BEST]
    example = next((rows for _, rows in scenarios if rows[0].value is not None), scenarios[0][1])
    columns = [Column(name, number=True) for name in scenarios[0][0]]
    for row in example:
        columns += number_columns(row.flow if row.metric == "goodput" else row.metric, unit=row.display_unit)
    table = Table([*columns, Column("limit", wrap=True), Column("basis", drop_order=1)])
    for settings, rows in shown:
        head = _headline(rows)
        cells = [_number(row) for row in rows] if head.value is not None else [NONE] * len(example)
        table.add(*map(str, settings.values()), *cells, head.limit or head.note, head.basis or NONE)
    notes = [basis_note(row.basis for _, rows in scenarios for row in rows if row.basis)]
    if len(shown) < len(scenarios):
        notes.append(f"the best {_BEST} of {plural(len(scenarios), 'scenario')}")
    refused = sum(rows[0].value is None for _, rows in scenarios)
    if refused:
        notes.append(f"{plural(refused, 'scenario')} cannot be predicted")
    title = next((row.system for _, rows in scenarios for row in rows if row.system), "")
    lines = [title, render_table(table, screen), *(screen.wrap(note, indent=2) for note in notes if note)]
    return "\n".join(lines)


def _headline(rows: Sequence[Observation]) -> Observation:
    """The row that a scenario is judged by: the sum of its flows, or the queries of its service."""
    return rows[-1] if rows[-1].metric == "goodput" and rows[0].metric == "goodput" else rows[0]


def _headline_value(scenario: tuple[Mapping[str, int], Sequence[Observation]]) -> float:
    value = _headline(scenario[1]).value
    return -1.0 if value is None else value


def _number(row: Observation) -> str:
    value = row.display(row.value)
    if value is None:
        return NONE
    return f"{value:,.0f}" if row.display_unit == "QPS" else units.number(value)
