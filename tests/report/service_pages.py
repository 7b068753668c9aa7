"""Pages of services, whose charts are drawn once: a picture takes as long as all of the text around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lanewise.report import service_plots as plots
from lanewise.report.html import report_html
from lanewise.results.run import Run
from lanewise.results.service_result import ServiceResult

# Each chart with the part of a service that it draws.
PARTS = {
    plots.percentile_chart: "percentiles", plots.stage_chart: "stages", plots.use_chart: "utilization",
    plots.search_chart: "search_runs",
}  # fmt: skip
CHARTS = tuple(PARTS)
BESIDE = {"advice": (), "assumptions": (), "rests_on": ()}  # said beside charts, drawn in none
DRAWN: list[tuple[str, ServiceResult, str]] = []


def served(*found: ServiceResult) -> str:
    """The page of services; pages that differ in what they say beside a chart share its picture."""
    with pytest.MonkeyPatch.context() as patch:
        for chart in CHARTS:
            patch.setattr(plots, chart.__name__, partial(drawn_once, chart))
        return report_html(Run((), "now", "1", services=found))


def drawn_once(chart: Callable[[ServiceResult, str], str], result: ServiceResult, salt: str) -> str:
    """A chart of a page, drawn once for all results that differ only in what it does not draw."""
    unseen: dict[str, Any] = BESIDE | {part: () for other, part in PARTS.items() if other is not chart}
    key = (f"{chart.__name__} {salt}", replace(result, **unseen))
    for *known, picture in DRAWN:
        if known == [*key]:
            return picture
    DRAWN.append((*key, chart(result, salt)))
    return DRAWN[-1][-1]
