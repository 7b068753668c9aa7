"""One offline HTML page of a run: no script, no request, readable in the dark and on paper."""

from __future__ import annotations

from importlib import resources

from lanewise.report import page as prepared
from lanewise.report import services
from lanewise.report.draw import draw, style
from lanewise.report.measured_page import measured_page
from lanewise.report.plots import plot
from lanewise.report.service_page import sections_table, service_sections
from lanewise.report.surfaces import is_wide
from lanewise.results.run import Run, StudyRun


def report_html(run: Run, title: str = "") -> str:
    """The page as text, titled by what the run holds unless `title` is given.

    Charts need matplotlib, and MissingDependency says so if it is not there.
    """
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    folder = resources.files("lanewise.report") / "templates"
    texts = {
        name: (folder / name).read_text(encoding="utf-8")
        for name in ("report.html.j2", "service.html.j2", "measured.html.j2", "table.html.j2")
    }
    environment = Environment(autoescape=True, trim_blocks=True, undefined=StrictUndefined, loader=DictLoader(texts))
    environment.globals.update(services=services, sections_table=sections_table)
    own, by_study = service_sections(run)
    return environment.get_template("report.html.j2").render(
        run=run,
        title=title or _title(run),
        # Our own package data, not user text: escaping would break the quotes of font names.
        css=Markup((folder / "page.css").read_text(encoding="utf-8") + style()),
        pages=[_illustrated(study) for study in run.studies],
        own_services=own,
        measured=measured_page(run) if run.rows else None,
        study_services=by_study,
        headline=prepared.headline(run),
        overview=prepared.overview(run),
        far=prepared.far_rows(run.studies),
    )


def _illustrated(study: StudyRun) -> prepared.StudyPage:
    page = prepared.study_page(study)
    for index, chart in enumerate(study.charts):
        page.charts.append((chart.title, plot(chart, salt=f"{page.anchor}-{index}"), chart.note, is_wide(chart)))
    for drawing in study.drawings:
        page.drawings.append((drawing.title, draw(drawing.outline, alone=False), drawing.caption))
    return page


def _title(run: Run) -> str:
    if run.studies:
        measured = any(row.measured is not None for study in run.studies for row in study.rows)
        return "Predicted against published" + " and measured" * measured
    return "Services under load" if run.services else "Measured data paths"
