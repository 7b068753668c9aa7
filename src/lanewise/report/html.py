"""One offline HTML page of a run: no script, no request, readable in the dark and on paper."""

from __future__ import annotations

from importlib import resources

from lanewise import units
from lanewise.report import page as prepared
from lanewise.report.draw import draw, style
from lanewise.report.measured_page import measured_page
from lanewise.report.plots import plot
from lanewise.report.service_page import service_parts
from lanewise.report.surfaces import is_wide
from lanewise.results import statistics
from lanewise.results.run import Run


def report_html(run: Run, title: str = "") -> str:
    """The page as text, titled by what the run holds unless `title` is given.

    Charts need matplotlib, and MissingDependency says so if it is not there.
    """
    from jinja2 import DictLoader, Environment, StrictUndefined

    folder = resources.files("lanewise.report") / "templates"
    names = ("report.html.j2", "service.html.j2", "measured.html.j2")
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    environment = Environment(autoescape=True, trim_blocks=True, undefined=StrictUndefined, loader=DictLoader(texts))
    template = environment.get_template("report.html.j2")
    own, by_study = service_parts(run)
    pages = [_illustrated(page) for page in prepared.study_pages(run)]
    rows = [row for study in run.studies for row in study.rows]
    return template.render(
        run=run,
        title=title or _title(run),
        css=_safe_css((folder / "page.css").read_text(encoding="utf-8") + style()),
        pages=pages,
        services=own,
        measured=measured_page(run) if run.rows else None,
        study_services=by_study,
        headline=prepared.headline(run),
        bases=prepared.basis_names(pages),
        total=statistics.overall(run),
        total_bases=statistics.by_basis(rows),
        verdict_all=prepared.verdict_text(run.studies),
        percent=prepared.percent,
        signed=prepared.signed,
        grade=prepared.grade,
        number=_number,
        readable=units.readable,
    )


def _illustrated(page: prepared.StudyPage) -> prepared.StudyPage:
    for index, chart in enumerate(page.study.charts):
        page.charts.append((chart.title, plot(chart, salt=f"{page.anchor}-{index}"), chart.note, is_wide(chart)))
    for drawing in page.study.drawings:
        page.drawings.append((drawing.title, draw(drawing.outline, alone=False), drawing.caption))
    return page


def _title(run: Run) -> str:
    if run.studies:
        rows = [row for study in run.studies for row in study.rows]
        return "Predicted against " + " and ".join(
            ["published"] + ["measured"] * any(row.measured is not None for row in rows)
        )
    return "Services under load" if run.services else "Measured data paths"


def _number(value: float | None) -> str:
    return prepared.NONE if value is None else units.number(value, 4)


def _safe_css(text: str) -> object:
    from markupsafe import Markup

    # Our own package data, not user text: escaping would break the quotes of font names.
    return Markup(text)
