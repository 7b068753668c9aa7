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
        columns += number_columns(row.flow if _of_flows(example) else row.metric, unit=row.display_unit)
    heads = [_headline(rows) for _, rows in shown]
    said = list(dict.fromkeys(head.note for head in heads if head.note and head.value is not None))
    differ = [Column("note", wrap=True, drop_order=2)] if len(said) > 1 else []
    table = Table([*columns, Column("limit", wrap=True), *differ, Column("basis", drop_order=1)])
    for (settings, rows), head in zip(shown, heads, strict=True):
        cells = [_number(row) for row in rows] if head.value is not None else [NONE] * len(example)
        note = head.note if head.value is not None else ""
        table.add(*map(str, settings.values()), *cells, head.limit or head.note, *[note] * len(differ),
                  head.basis or NONE)  # fmt: skip
    notes = [basis_note(row.basis for _, rows in scenarios for row in rows if row.basis)]
    notes += said if not differ else []
    if len(shown) < len(scenarios):
        notes.append(f"the best {_BEST} of {plural(len(scenarios), 'scenario')}")
    refused = sum(rows[0].value is None for _, rows in scenarios)
    if refused:
        notes.append(f"{plural(refused, 'scenario')} cannot be predicted")
    title = next((row.system for _, rows in scenarios for row in rows if row.system), "")
    title += "" if _of_flows(example) else f": {example[0].flow}"
    lines = [title, render_table(table, screen), *(screen.wrap(note, indent=2) for note in notes if note)]
    return "\n".join(lines)


def _headline(rows: Sequence[Observation]) -> Observation:
    """The row that a scenario is judged by: the sum of its flows, or the queries of its service."""
    return rows[-1] if _of_flows(rows) else rows[0]


def _of_flows(rows: Sequence[Observation]) -> bool:
    return all(row.metric == "goodput" for row in rows)


def _headline_value(scenario: tuple[Mapping[str, int], Sequence[Observation]]) -> float:
    value = _headline(scenario[1]).value
    return -1.0 if value is None else value


def _number(row: Observation) -> str:
    value = row.display(row.value)
    if value is None:
        return NONE
    return f"{value:,.0f}" if row.display_unit == "QPS" else units.number(value)
