"""The drift of a history's rows as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lanewise import units
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, TableCell, number_columns, render_table
from lanewise.report.words import plural, signed
from lanewise.results.drift import LEAST_RUNS, RowDrift

_MOST_STEADY = 12


def render_drift(machines: Mapping[str, Sequence[RowDrift]], screen: Screen = PLAIN) -> str:
    """Each machine's rows: those that changed, with when and by how much, and the first of those that did not."""
    parts = []
    for name, drifts in machines.items():
        changed = [drift for drift in drifts if drift.change]
        steady = [drift for drift in drifts if not drift.change]
        parts.append(render_table(_table(name, [*changed, *steady[:_MOST_STEADY]]), screen))
        if len(steady) > _MOST_STEADY:
            parts[-1] += f"\n... and {len(steady) - _MOST_STEADY} more rows without a change"
        parts.append(screen.wrap(_summary(drifts, len(changed)), indent=2))
    return "\n\n".join(parts)


def _table(name: str, drifts: Sequence[RowDrift]) -> Table:
    columns = [
        Column("changed"), Column("row", wrap=True), Column("flow", wrap=True), Column("metric", drop_order=2),
        *number_columns("before", "after"), *number_columns("change", "runs"),
        *number_columns("chance", drop_order=1),
    ]  # fmt: skip
    table = Table(columns, title=name)
    for drift in drifts:
        row, change = drift.row, drift.change
        settings = " ".join(f"{key}={value}" for key, value in row.settings.items())
        # Alone is how a path is measured without a fleet.
        phase = f" ({row.how['phase']})" if "phase" in row.how else ""
        label = f"{row.scenario}{phase} {settings}".strip()
        if change is None:
            value = units.show(drift.values[-1], row.display_unit)
            table.add(TableCell("no", "quiet"), label, row.flow, row.metric, "", value, "", str(len(drift.values)), "")
            continue
        before, after = (units.show(value, row.display_unit) for value in (change.before, change.after))
        difference = TableCell(f"{signed(change.difference_pct)} %", "far")
        chance = f"{100 * change.p_value:.1f} %"
        table.add(drift.times[change.index], label, row.flow, row.metric, before, after, difference,
                  str(len(drift.values)), chance)  # fmt: skip
    return table


def _summary(drifts: Sequence[RowDrift], changed: int) -> str:
    few = sum(len(drift.values) < LEAST_RUNS for drift in drifts)
    text = f"{plural(len(drifts), 'row')}: {changed} changed"
    return f"{text}; {few} with fewer than {LEAST_RUNS} runs, too few to tell" if few else text
