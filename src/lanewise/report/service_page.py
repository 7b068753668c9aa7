"""The section of the HTML page for each service under load: tables, and charts from service_plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lanewise.report import service_plots, services
from lanewise.report.table import Column, Table, TableCell, number_columns
from lanewise.report.text.service import services_table
from lanewise.report.words import anchor
from lanewise.results.run import Run
from lanewise.results.service_result import ServiceResult

MOST_DRAWN = 12  # services with charts on one page, so that it stays under 1.5 MB


@dataclass(frozen=True, slots=True)
class ServiceSection:
    """One service as the template needs it; a chart is '' where nothing is known to draw it from."""

    result: ServiceResult
    anchor: str
    charts: dict[str, str] = field(default_factory=dict)

    @property
    def stages(self) -> Table:
        """Where a query's time goes, with the colours of the chart; the sum last."""
        unit = services.clock(self.result).unit
        table = Table([
            Column("stage"), Column("mean", unit, number=True), Column("share", "%", number=True),
            Column(services.slowest(self.result), unit, number=True), Column("share", "%", number=True),
        ])  # fmt: skip
        rows = services.stage_rows(self.result)
        for colour, (name, *numbers) in zip(service_plots.stage_colours(self.result.stages), rows, strict=False):
            table.add(TableCell(name, swatch=colour), *numbers)
        for total in rows[-1:]:
            table.add(*(TableCell(text, "sum") for text in total))
        return table

    @property
    def runs(self) -> Table:
        """Every run of the search."""
        unit = services.clock(self.result).unit
        columns = [*number_columns("run"), *number_columns("rate", unit="QPS"), *number_columns("latency", unit=unit),
                   *number_columns("queries"), Column("verdict"), Column("why", wrap=True)]  # fmt: skip
        return Table(columns, list(services.tried_rows(self.result)))

    @property
    def full(self) -> bool:
        """Whether anything was in use so much that its chart marks it."""
        return any(resource.mean >= service_plots.FULL for resource in self.result.utilization)


def service_sections(run: Run) -> tuple[list[ServiceSection], dict[str, list[ServiceSection]]]:
    """The services of the run itself, and those of each study by the study's name."""
    budget = iter([True] * MOST_DRAWN)
    anchors: Counter[str] = Counter()
    own = _sections("service", run.services, budget, anchors)
    return own, {study.name: _sections(study.name, study.services, budget, anchors) for study in run.studies}


def _sections(
    prefix: str, results: Sequence[ServiceResult], budget: Iterator[bool], anchors: Counter[str]
) -> list[ServiceSection]:
    sections = []
    for result in results:
        name = base = anchor(prefix, "service", result.name)
        while anchors[name]:
            anchors[base] += 1
            name = f"{base}-{anchors[base]}"
        anchors[name] += 1
        sections.append(ServiceSection(result, name, _charts(result, name) if next(budget, False) else {}))
    return sections


def _charts(result: ServiceResult, name: str) -> dict[str, str]:
    return {
        "latency": service_plots.percentile_chart(result, f"{name}-latency"),
        "stages": service_plots.stage_chart(result, f"{name}-stages"),
        "use": service_plots.use_chart(result, f"{name}-use"),
        "search": service_plots.search_chart(result, f"{name}-search"),
    }


def sections_table(sections: Sequence[ServiceSection]) -> Table:
    """A line a service, which leads to its section."""
    table = services_table([section.result for section in sections])
    rows = [[TableCell(section.result.name, href=f"#{section.anchor}"), *row[1:]]
            for section, row in zip(sections, table.rows, strict=True)]  # fmt: skip
    return Table(table.columns, list(rows))
