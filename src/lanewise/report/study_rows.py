"""Every row of a study as tables: published, predicted and measured values, residuals, limits and sources."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lanewise import units
from lanewise.report.table import Column, Table, TableCell, number_columns
from lanewise.report.words import MINUS, anchor, errors, grade, residual_cell, signed
from lanewise.results import statistics
from lanewise.results.match import identity
from lanewise.results.observation import Observation, Source
from lanewise.results.run import StudyRun

EXTRAPOLATED = "*"  # its mark, next to the value
LONG = 12  # rows of a table that a page shows unfolded
_IGNORED = ("study", "path", "method")  # a publication does not state them


@dataclass(frozen=True, slots=True)
class StudyTable:
    """Rows of one table of the source in one unit; `summary` is what all rows share, and their residuals."""

    anchor: str
    title: str
    summary: str
    table: Table

    @property
    def extrapolated(self) -> bool:
        """Whether any of the values is marked as extrapolated."""
        return any(cell == EXTRAPOLATED for row in self.table.rows for cell in row)

    @property
    def folded(self) -> bool:
        """Whether the page shows a line in place of the rows until a reader opens it."""
        return len(self.table.rows) > LONG


def settings_text(row: Observation) -> str:
    """'gpus 4, path 3'; bytes as people write sizes: '64 KiB'."""
    return ", ".join(
        units.size(value) if key == "bytes" else f"{key} {value}" for key, value in row.settings.items()
    )  # fmt: skip


def places(values: Iterable[float]) -> int:
    """How many decimals a column needs so that its published figures keep theirs, at most 3."""
    most = 0
    for value in values:
        text = repr(float(value))
        if "e" not in text and not text.endswith(".0"):
            most = max(most, len(text.split(".")[1]))
    return min(most, 3)


def plain(value: float | None, decimals: int) -> str:
    """A number with thousands separated and a fixed count of decimals; 'unknown' for None."""
    if value is None:
        return "unknown"
    if value and (abs(value) >= 1e12 or abs(value) < 0.5 * 10.0**-decimals):
        return units.number(value, 3)
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def study_tables(study: StudyRun, sources: Sequence[str] = ()) -> list[StudyTable]:
    """A table for each table and unit of a study; rows name their sources by their place in `sources`, if given."""
    groups: dict[tuple[str, str], list[Observation]] = {}
    for row in _without_repeats(study.rows):
        groups.setdefault((row.table, row.display_unit), []).append(row)
    names = Counter(name for name, _ in groups)
    anchors: Counter[str] = Counter()
    tables = []
    for (name, unit), rows in groups.items():
        title = (name or "Rows") + (f", {unit}" if names[name] > 1 else "")
        base = anchor(study.name, "table", title)
        anchors[base] += 1
        unique = base if anchors[base] == 1 else f"{base}-{anchors[base]}"
        tables.append(_study_table(unique, title, rows, sources))
    return tables


def _without_repeats(rows: Sequence[Observation]) -> list[Observation]:
    # A published row says nothing new where a prediction already has the same published value.
    compared = [row for row in rows if row.source is not Source.PUBLISHED and row.published is not None]
    keys = {identity(row, _IGNORED) for row in compared}
    return [row for row in rows if row.source is not Source.PUBLISHED or identity(row, _IGNORED) not in keys]


def _study_table(name: str, title: str, rows: Sequence[Observation], sources: Sequence[str]) -> StudyTable:
    figures = [value for row in rows if (value := row.display(row.published)) is not None]
    values = [value for row in rows if (value := row.display(row.value)) is not None]
    decimals = places(figures) if figures else _by_size(values)
    # A prediction keeps one more digit than whole published figures below 1,000, so that 94.7 is not shown as 95.
    finer = 1 if decimals == 0 and figures and max(map(abs, figures)) < 1000 else decimals
    labels = [
        {"system": row.system, "scenario": row.scenario, "flow": row.flow, "metric": row.metric,
         "settings": settings_text(row), "source": "" if row.source is Source.PUBLISHED else row.source.value}
        for row in rows
    ]  # fmt: skip
    common = _common(labels)
    further = statistics.further_methods(rows)
    unit = "" if rows[0].display_unit == "1" else rows[0].display_unit
    values_of = {label["source"] for label in labels} - {""}
    head = values_of.pop() if len(values_of) == 1 else "value"
    table = Table([
        Column("system", drop_order=2, wrap=True), Column("scenario", wrap=True),
        Column("flow", drop_order=3, wrap=True),
        Column("metric", wrap=True), Column("settings", drop_order=1, wrap=True), Column("source", drop_order=2),
        *number_columns("published", unit=unit), Column(""), Column(head, unit, number=True),
        Column("interval", unit, number=True, drop_order=5), Column("residual", "%", number=True),
        Column("measured", unit, number=True), Column("off measured", "%", number=True),
        *(Column(method, f"{unit} (residual %)", number=True, drop_order=4) for method in further),
        Column("limit", drop_order=4, wrap=True), Column("basis", drop_order=5), Column("based on", drop_order=7),
        Column("note", drop_order=6, wrap=True),
    ])  # fmt: skip
    for row, label in zip(rows, labels, strict=True):
        texts = ["" if key in common else text for key, text in label.items()]
        numbers = [*_numbers(row, decimals, finer), *(_further(row, method, finer) for method in further)]
        basis = row.basis.value if row.basis else ""
        table.add(*texts, *numbers, row.limit, basis, _numbered(row, sources, name), _note(row))
    metric = f": {common.pop('metric')}" if common.get("metric") else ""
    summary = [text for key, text in common.items() if text and key not in ("source", "system")]
    return StudyTable(name, title + metric, " · ".join(filter(None, [", ".join(summary), _summary(rows)])), table)


def _common(labels: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What is the same in every row, said once above the table if something else tells rows apart."""
    common = {key: text for key, text in labels[0].items() if len({label[key] for label in labels} - {""}) < 2}
    always = {key: common[key] for key in ("metric", "source", "system") if key in common}
    if len(labels) == 1 or not any(label[key] for label in labels for key in label if key not in common):
        return {key: text for key, text in always.items() if key != "system" or not text}
    return common


def _by_size(values: Sequence[float]) -> int:
    if all(value == int(value) for value in values if math.isfinite(value)):
        return 0  # counts, as of hops
    largest = max((abs(value) for value in values), default=0.0)
    return 0 if largest >= 1000 else 1 if largest >= 100 else 2 if largest >= 1 else 3


def _summary(rows: Sequence[Observation]) -> str:
    total = statistics.residuals(rows)
    return "" if total.rms_pct is None else f"{errors(total)}, {total.compared} of {total.rows} compared"


def _numbers(row: Observation, decimals: int, finer: int) -> list[str | TableCell]:
    """Published, whether extrapolated, value, interval, residual, measured, residual against that."""
    own = row.source is Source.PUBLISHED
    published = row.display(row.value if own else row.published)
    low, high = row.display(row.low), row.display(row.high)
    measured = ("", TableCell("")) if row.measured is None else (
        plain(row.display(row.measured.value), finer), residual_cell(row.measured_residual_pct)
    )  # fmt: skip
    return [
        "" if published is None else plain(published, decimals),
        EXTRAPOLATED if row.extrapolated or row.source is Source.EXTRAPOLATED else "",
        "" if own else plain(row.display(row.value), finer),
        "" if low is None or high is None else f"{plain(low, decimals)} to {plain(high, decimals)}",
        TableCell("") if row.residual_pct is None else residual_cell(row.residual_pct),
        *measured,
    ]


def _further(row: Observation, method: str, decimals: int) -> TableCell:
    """The value of a further method, and its residual."""
    if method not in row.comparisons:
        return TableCell("")
    residual = row.comparison_residuals_pct[method]
    text = plain(row.display(row.comparisons[method]), decimals)
    return TableCell(text if residual is None else f"{text} ({signed(residual)})", grade(residual))


def _numbered(row: Observation, sources: Sequence[str], name: str) -> TableCell:
    """The numbers of a row's sources in the list of the study's."""
    numbers = ", ".join(str(sources.index(text) + 1) for text in row.rests_on if text in sources)
    return TableCell(numbers, href=f"#{name.partition('-table-')[0]}-sources" if numbers else "")


def _note(row: Observation) -> str:
    return "; ".join(filter(None, [
        "" if row.role == "prediction" else row.role,
        row.note or ("no reason given" if row.value is None else ""),
        f"measured: {row.measured.note}" if row.measured else "",
    ]))  # fmt: skip
