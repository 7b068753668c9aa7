"""The section of the HTML page for measured rows: texts from measured, charts from measured_plots and surfaces."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.report import measured, measured_plots
from lanewise.report.plots import plot
from lanewise.report.surfaces import is_wide
from lanewise.report.table import Table
from lanewise.report.text.run import measured_table
from lanewise.results.run import Run

MOST_DRAWN = 500_000  # characters of charts on one page, so that it stays under 1.5 MB


@dataclass(frozen=True, slots=True)
class MeasuredSection:
    """One scenario as the template needs it; a chart is title, SVG, note, and whether it takes the whole width."""

    part: measured.MeasuredScenario
    charts: list[tuple[str, str, str, bool]]

    @property
    def tables(self) -> list[tuple[Table, int, bool]]:
        """Each table, how many rows it leaves out, and whether it waits behind a line as a chart shows what it says."""
        return [
            (measured_table(table), table.left_out,
             bool(self.charts) and len(table.cells) > measured.SHORT and not table.heads)
            for table in self.part.tables
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeasuredPage:
    """All measured rows: the sentence about them, a section for each scenario, and the samples that scatter most."""

    overview: str
    sections: list[MeasuredSection]
    scatter: str
    scattered: int


def measured_page(run: Run) -> MeasuredPage:
    """What a page shows of the rows that a run measured outside any study."""
    sections: list[MeasuredSection] = []
    drawn = 0
    for part in measured.parts(run.rows):
        charts = _charts(part) if drawn < MOST_DRAWN else []
        drawn += sum(len(picture) for _, picture, _, _ in charts)
        sections.append(MeasuredSection(part, charts))
    widest = measured_plots.widest(run.rows)
    picture = measured_plots.scatter(widest) if widest else ""
    return MeasuredPage(measured.overview(run.rows), sections, picture, len(widest))


def _charts(part: measured.MeasuredScenario) -> list[tuple[str, str, str, bool]]:
    charts = [
        (f"{matrix.title}: from the row to the column", plot(matrix, f"{part.anchor}-m{index}"), matrix.note,
         is_wide(matrix))
        for index, matrix in enumerate(part.matrices)
    ]  # fmt: skip
    for index, sweep in enumerate(measured_plots.sweeps(part.rows)):
        picture = measured_plots.by_size(sweep, f"{part.anchor}-s{index}")
        charts.append((f"{sweep.metric} by size", picture, measured_plots.below(sweep), False))
    return charts
