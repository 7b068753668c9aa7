"""The section of the HTML page for each service under load: texts from services, charts from service_plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lanewise.report import page, service_plots, services
from lanewise.results.run import Run
from lanewise.results.service_result import ServiceResult

MOST_DRAWN = 12  # services with charts on one page, so that it stays under 1.5 MB


@dataclass(frozen=True, slots=True)
class ServicePart:
    """One service as the template needs it; a chart is '' where nothing is known to draw it from."""

    loaded: ServiceResult
    anchor: str
    verdict: str
    lead: str
    after: str
    latency: str
    peak: str
    system: str
    peak_text: str
    slowest: str
    unit: str
    facts: list[tuple[str, str]]
    percentiles: list[tuple[str, str]]
    stages: list[tuple[str, tuple[str, str, str, str, str]]]
    advice: list[tuple[str, str]]
    rests: list[str]
    tried: list[tuple[str, str, str, str, str, str]]
    left_over: str
    full: bool
    grouped: str
    drawn: bool
    latency_chart: str = ""
    stage_chart: str = ""
    use_chart: str = ""
    search_chart: str = ""


def service_parts(run: Run) -> tuple[list[ServicePart], dict[str, list[ServicePart]]]:
    """The services of the run itself, and those of each study by the study's name."""
    budget = iter([True] * MOST_DRAWN)
    taken: set[str] = set()
    own = _parts("service", run.services, budget, taken)
    return own, {study.name: _parts(study.name, study.services, budget, taken) for study in run.studies}


def _parts(prefix: str, found: Sequence[ServiceResult], budget: Iterator[bool], taken: set[str]) -> list[ServicePart]:
    parts = []
    for loaded in found:
        base = name = page.anchor(prefix, "service", loaded.name)
        count = 1
        while name in taken:
            count += 1
            name = f"{base}-{count}"
        taken.add(name)
        parts.append(_part(loaded, name, next(budget, False)))
    return parts


def _part(loaded: ServiceResult, anchor: str, drawn: bool) -> ServicePart:
    colours = [*service_plots.stage_colours(loaded.stages), ""]
    part = ServicePart(
        loaded=loaded,
        anchor=anchor,
        verdict=services.verdict(loaded),
        lead=services.rate(loaded.qps),
        after=services.after_verdict(loaded),
        latency=services.latency_of_bound(loaded),
        peak=services.peak_interval(loaded),
        system=services.system(loaded),
        peak_text=services.peak_text(loaded),
        slowest=services.slowest(loaded),
        unit=services.clock(loaded).unit,
        facts=services.facts(loaded),
        percentiles=services.chosen_percentiles(loaded),
        stages=list(zip(colours, services.stage_rows(loaded), strict=False)),
        advice=services.advice(loaded),
        rests=services.rests(loaded),
        tried=services.tried_rows(loaded),
        left_over=services.left_over(loaded),
        grouped=services.grouped(loaded),
        full=any(one.mean >= service_plots.FULL for one in loaded.utilization),
        drawn=drawn,
    )
    return _illustrated(part) if drawn else part


def _illustrated(part: ServicePart) -> ServicePart:
    return replace(
        part,
        latency_chart=service_plots.percentile_chart(part.loaded, f"{part.anchor}-latency"),
        stage_chart=service_plots.stage_chart(part.loaded, f"{part.anchor}-stages"),
        use_chart=service_plots.use_chart(part.loaded, f"{part.anchor}-use"),
        search_chart=service_plots.search_chart(part.loaded, f"{part.anchor}-search"),
    )
