"""The score of machines after one and after two measurements of each, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise.evidence.after_measurement import AfterMeasurement
from lanewise.evidence.prediction import SINGLE, PredictedRow
from lanewise.evidence.score import score_of
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, markdown_table, number_columns, render_table
from lanewise.report.text.accuracy import percent_of

_COUNTS = {1: "one measurement", 2: "two measurements"}
_ABOUT = (
    "After one measurement of a machine, and after two (`predict --measured`). Measured is the row with the widest "
    "interval; it does not count afterwards. Before and after are of the same rows."
)


def render_after(scores: Sequence[AfterMeasurement], screen: Screen = PLAIN) -> str:
    """The table with what it counts."""
    return f"{screen.wrap(_ABOUT)}\n\n{render_table(after_table(scores), screen)}"


def after_sections(scores: Sequence[AfterMeasurement]) -> list[str]:
    """The same as a part of the page."""
    return ["### After a measurement of the machine", _ABOUT, markdown_table(after_table(scores))] if scores else []


def after_table(scores: Sequence[AfterMeasurement]) -> Table:
    """Median error, share within 10 % and share in the interval, each before and after."""
    table = Table([
        Column("after"), Column("flows"), *number_columns("rows"),
        *number_columns("median error before", "after", "within 10 % before", "after"),
        *number_columns("interval holds it before", "after", drop_order=1),
    ])  # fmt: skip
    for score in scores:
        for name, before, after in _groups(score):
            one, other = score_of(before), score_of(after)
            cells = [
                percent_of(getattr(group, figure))
                for figure in ("median", "within_10", "covered") for group in (one, other)
            ]  # fmt: skip
            table.add(_COUNTS[score.measurements], name, str(one.rows), *cells)
    return table


def _groups(score: AfterMeasurement) -> Iterator[tuple[str, list[PredictedRow], list[PredictedRow]]]:
    for name, single in ((SINGLE, True), ("sets of flows", False)):
        chosen = [(row.flow_set == SINGLE) is single for row in score.before]
        before, after = ([row for row, take in zip(rows, chosen, strict=True) if take]
                         for rows in (score.before, score.after))  # fmt: skip
        if before:
            yield name, before, after
