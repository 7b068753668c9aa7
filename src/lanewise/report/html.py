"""One offline HTML page of a run: no script, no request, readable in the dark and on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lanewise.errors import printable
from lanewise.report import measured, measured_plots, service_plots, services
from lanewise.report import page as prepared
from lanewise.report.draw import draw, style
from lanewise.report.plots import plot
from lanewise.report.surfaces import is_wide
from lanewise.report.template import page_environment, page_styles
from lanewise.report.words import anchor
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Chart, Run, StudyRun
from lanewise.results.service_result import ServiceResult

# So that a page stays under 1.5 MB: services with charts, and characters of charts of measured rows.
MOST_SERVICES, MOST_DRAWN = 12, 500_000
_TEMPLATES = ("report.html.j2", "service.html.j2", "measured.html.j2", "table.html.j2")


@dataclass(frozen=True, slots=True)
class ServiceSection:
    """One service as the template needs it; a chart is '' where nothing is known to draw it from."""

    result: ServiceResult
    anchor: str
    charts: dict[str, str]


def report_html(run: Run, title: str = "") -> str:
    """The page as text, titled by what the run holds unless `title` is given.

    Charts need matplotlib, and MissingDependency says so if it is not there.
    """
    from markupsafe import Markup

    environment = page_environment(*_TEMPLATES)
    environment.globals.update(services=services, stage_colours=service_plots.stage_colours)
    budget, anchors = iter([True] * MOST_SERVICES), Counter[str]()
    widest = measured_plots.widest(run.rows)
    page = environment.get_template(_TEMPLATES[0]).render(
        run=run,
        title=title or _title(run),
        # Our own package data, not user text: escaping would break the quotes of font names.
        css=Markup(page_styles() + style()),
        pages=[_illustrated(study) for study in run.studies],
        own_services=_sections("service", run.services, budget, anchors),
        measured=_scenarios(run.rows),
        obtained=_obtained(run),
        scatter=measured_plots.scatter(widest) if widest else "",
        scattered=len(widest),
        study_services={s.name: _sections(s.name, s.services, budget, anchors) for s in run.studies},
        headline=prepared.headline(run),
        overview=prepared.overview(run),
        far=prepared.far_rows(run.studies),
    )
    return printable(page)


def _title(run: Run) -> str:
    if run.studies:
        compared = any(row.measured is not None for study in run.studies for row in study.rows)
        return "Predicted against published" + " and measured" * compared
    return "Services under load" if run.services else f"{_obtained(run)} data paths"


def _obtained(run: Run) -> str:
    """Whether the rows of a run outside its studies were measured, or are predictions alone."""
    return "Predicted" if run.rows and all(row.source is Source.PREDICTED for row in run.rows) else "Measured"


def _illustrated(study: StudyRun) -> prepared.StudyPage:
    page = prepared.study_page(study)
    page.charts += [_chart(chart, f"{page.anchor}-{index}") for index, chart in enumerate(study.charts)]
    for drawing in study.drawings:
        page.drawings.append((drawing.title, draw(drawing.outline, alone=False), drawing.caption))
    return page


def _chart(chart: Chart, salt: str) -> tuple[str, str, str, bool]:
    return chart.title, plot(chart, salt), chart.note, is_wide(chart)


def _scenarios(rows: Iterable[Observation]) -> list[measured.MeasuredScenario]:
    """The rows that a run measured outside any study, with charts as long as the page has room for them."""
    scenarios = measured.parts(rows)
    drawn = 0
    for part in scenarios:
        if drawn >= MOST_DRAWN:
            break
        for index, matrix in enumerate(part.matrices):
            title, picture, note, wide = _chart(matrix, f"{part.anchor}-m{index}")
            part.charts.append((f"{title}: from the row to the column", picture, note, wide))
        for index, sweep in enumerate(measured_plots.sweeps(part.rows)):
            picture = measured_plots.by_size(sweep, f"{part.anchor}-s{index}")
            part.charts.append((f"{sweep.metric} by size", picture, measured_plots.below(sweep), False))
        drawn += sum(len(picture) for _, picture, _, _ in part.charts)
    return scenarios


def _sections(
    prefix: str, results: Sequence[ServiceResult], budget: Iterator[bool], anchors: Counter[str]
) -> list[ServiceSection]:
    """A section a service, under an anchor of its own, with charts as long as the budget of the page lasts."""
    sections = []
    for result in results:
        name = base = anchor(prefix, "service", result.name)
        while anchors[name]:
            anchors[base] += 1
            name = f"{base}-{anchors[base]}"
        anchors[name] += 1
        charts = service_plots.charts(result, name) if next(budget, False) else {}
        sections.append(ServiceSection(result, name, charts))
    return sections
