"""`lanewise accuracy` as text: scores by group, and every row."""

from __future__ import annotations

from collections.abc import Mapping

from lanewise import units
from lanewise.evidence.prediction import PredictedRow
from lanewise.evidence.score import AccuracyScore, GroupScore
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, TableCell, number_columns, render_table
from lanewise.report.words import NONE, plural, residual_cell


def render_accuracy(score: AccuracyScore, screen: Screen = PLAIN) -> str:
    """Scores by kind of path, set of flows, basis and machine."""
    tables = [score_table(title, groups) for title, groups in score_groups(score).items()]
    tables += [target_table(score)] if score.collectives or score.blocks_and_loads else []
    return "\n\n".join([screen.wrap(heading_of(score), indent=2), *(render_table(table, screen) for table in tables)])


def heading_of(score: AccuracyScore) -> str:
    """How many machines and rows, and what a score counts."""
    skipped = sum(bool(row.row.skip) for row in score.rows)
    return (
        f"{plural(len(score.machines), 'machine')}, {plural(len(score.rates), 'rate')} "
        f"({score.total.predicted} predicted), {skipped} rows that no model of paths predicts; an error is "
        "(predicted - measured) / measured; "
        + (
            "figures measured on the machine itself count"
            if score.fitted
            else "no figure counts on the machine that it was measured on"
        )
        + _collectives(score)
    )


def _collectives(score: AccuracyScore) -> str:
    """How many collectives there are, and whether the algorithm is right."""
    if not score.collectives:
        return ""
    right, stated = score.algorithms()
    return (
        f"; of {plural(len(score.collectives), 'collective')} the algorithm is right in {right} of the {stated} whose "
        "source states it, errors are of bus bandwidth, below 1 MiB of time"
    )


def score_groups(score: AccuracyScore) -> dict[str, Mapping[str, GroupScore]]:
    """The tables of a score: by what, and the groups."""
    latencies = score.latencies()
    groups: dict[str, Mapping[str, GroupScore]] = {
        "flows": score.by_flow_set() | {"all": score.total},
        "kind of path": score.by_path() | ({"small copies (latency)": latencies} if latencies.rows else {}),
        "basis": score.by_basis(),
        "use": score.by_use(),
        "machine": score.by_machine(),
    }
    if score.collectives:
        groups["collective"] = score.by_collective() | score.collectives_by_use()
    if score.blocks_and_loads:
        groups["KV blocks and model loads"] = score.by_blocks_and_loads()
    return groups


def target_table(score: AccuracyScore) -> Table:
    """What was to reach for collectives, KV blocks and model loads, and what is reached."""
    table = Table([
        Column("data path"), Column("rows of"), *number_columns("rows", "median error", "to reach", "within"),
        Column("to reach", drop_order=1),
    ])  # fmt: skip
    for target, uses in score.by_target().items():
        for use, (group, within) in uses.items():
            median = "" if target.median is None else percent_of(target.median)
            share, reach = "", ""
            if target.within is not None:
                share = f"{within} of {group.rows}"
                reach = f"{percent_of(target.share)} within {percent_of(target.within)}"
            table.add(target.kind, use, str(group.rows), percent_of(group.median), median, share, reach)
    return table


def score_table(title: str, groups: Mapping[str, GroupScore]) -> Table:
    """One line a group."""
    columns = [
        Column(title), *number_columns("rows", "median error", "p90", "within 5 %", "within 10 %"),
        *number_columns("interval holds it", drop_order=1), *number_columns("paths in order", drop_order=2),
        *number_columns("NCCL's median error", "NCCL's within 10 %", drop_order=3),
    ]  # fmt: skip
    table = Table(columns)
    for name, group in groups.items():
        shares = (group.median, group.p90, group.within_5, group.within_10, group.covered)
        rival = (group.rival_median, group.rival_within_10)
        rows = str(group.rows) if group.rows == group.predicted else f"{group.predicted} of {group.rows}"
        order = f"{group.ordered} of {group.pairs}" if group.pairs else ""
        order += f", {group.tied} tied" if group.tied else ""
        table.add(name, rows, *map(percent_of, shares), order, *map(percent_of, rival))
    return table


def percent_of(share: float | None) -> str:
    """A share in %, with a decimal where it is small; a dash for None."""
    return NONE if share is None else f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def render_machine_rows(score: AccuracyScore, screen: Screen = PLAIN) -> str:
    """Every row, machine by machine."""
    return "\n\n".join(
        f"{screen.wrap(f'{machine.name}: {machine.title}', indent=2)}\n"
        + render_table(rows_table([row for row in score.rows if row.machine == machine.name]), screen)
        for machine in score.machines
    )


def rows_table(rows: list[PredictedRow]) -> Table:
    """Predicted, interval, measured, error and basis of each row."""
    columns = [
        Column("path", wrap=True), Column("flows", drop_order=3, wrap=True),
        *number_columns("predicted"), Column("interval", drop_order=1), *number_columns("measured"), Column("unit"),
        *number_columns("error", unit="%"), Column("basis", drop_order=2),
        Column("limit or note", drop_order=4, wrap=True),
    ]  # fmt: skip
    table = Table(columns)
    for row in rows:
        prediction = row.observation
        value, low, high, measured = (
            None if number is None else units.from_si(number, prediction.display_unit)
            for number in (prediction.value, prediction.low, prediction.high, row.row.value)
        )
        interval = "" if low is None or high is None else f"{units.number(low)} to {units.number(high)}"
        holds = TableCell(interval, "" if row.covered else "bad")
        error = residual_cell(None if row.error is None else 100 * row.error)
        of = {"each": ", mean", "first": ", first"}.get(row.row.of, "")
        table.add(row.row.path + of, row.row.text, NONE if value is None else units.number(value), holds,
                  units.number(measured or 0.0), prediction.display_unit, error, str(prediction.basis or ""),
                  prediction.note or prediction.limit)  # fmt: skip
    return table
