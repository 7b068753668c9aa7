"""How far predictions of published services are off: a summary, every service, and the section of docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise import units
from lanewise.evidence.services import PredictedService, summary
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, markdown_table, number_columns, render_table
from lanewise.report.text.accuracy import percent_of

SCORE_LIMIT, P99_LIMIT = 0.10, 0.25  # errors that count as small


def service_sections(rows: Sequence[PredictedService]) -> list[str]:
    """The section of the page; empty without services."""
    if not rows:
        return []
    changes = sorted(row.service.lower[0].p99 / row.service.server.p99 - 1 for row in rows if row.service.lower)
    median = changes[len(changes) // 2]
    return [
        "## Published services",
        f"{len(rows)} results of MLPerf Inference v3.0 whose batch size and time-out are public "
        "(`src/lanewise/data/services/`). The Server score is predicted from the published Offline score alone, by "
        "what systems of earlier rounds kept of it; the p99 by simulation at the published rate, with batch and "
        "time-out as published and GPUs as fast as the published Server score tells. A score only tells that the rate "
        "holds, not by how much, and the p99 depends on just that: in audit runs of the same systems at 96 % of the "
        f"rate it changes by {100 * median:.0f} % (median; {100 * changes[0]:.0f} to {100 * changes[-1]:.0f} %).",
        markdown_table(summary_table(rows)),
        markdown_table(services_table(rows)),
    ]


def render_services_score(rows: Sequence[PredictedService], screen: Screen = PLAIN) -> str:
    """Summary and rows as text."""
    return "\n\n".join(render_table(table, screen) for table in (summary_table(rows), services_table(rows)))


def services_json(rows: Sequence[PredictedService]) -> list[dict[str, Any]]:
    """Every service in SI units."""
    return [
        {
            "system": row.service.system, "workload": row.service.workload, "offline": row.service.offline,
            "published": row.service.server.qps, "predicted": row.score, "low": row.interval[0],
            "high": row.interval[1], "error": row.score_error, "published_p99": row.service.server.p99,
            "predicted_p99": row.p99, "p99_error": row.p99_error,
        }
        for row in rows
    ]  # fmt: skip


def summary_table(rows: Sequence[PredictedService]) -> Table:
    """Errors of Server scores by workload and of all, and of p99."""
    table = Table([
        Column("services"), *number_columns("rows", "Server score: median error", "p90", "within 10 %"),
        *number_columns("interval holds it", "p99: median error", "p90", "within 25 %"),
    ])  # fmt: skip
    groups = {name: [row for row in rows if row.service.workload == name] for name in _workloads(rows)}
    for name, group in (groups | {"all": list(rows)}).items():
        scores = summary((row.score_error for row in group), SCORE_LIMIT)
        tails = summary((row.p99_error for row in group), P99_LIMIT)
        covered = sum(row.covered for row in group) / len(group)
        shares = (scores.median, scores.p90, scores.within, covered, tails.median, tails.p90, tails.within)
        table.add(name, str(len(group)), *map(percent_of, shares))
    return table


def services_table(rows: Sequence[PredictedService]) -> Table:
    """One line a service."""
    table = Table([
        Column("system", wrap=True), Column("workload"), *number_columns("Offline", "Server", "predicted", unit="QPS"),
        *number_columns("interval", unit="QPS", drop_order=1), *number_columns("p99", "predicted p99", unit="ms"),
    ])  # fmt: skip
    for row in rows:
        service = row.service
        rates = [f"{rate:,.0f}" for rate in (service.offline, service.server.qps, row.score)]
        tails = [units.show(value, "ms", 3).removesuffix(" ms") for value in (service.server.p99, row.p99)]
        interval = f"{row.interval[0]:,.0f} to {row.interval[1]:,.0f}"
        table.add(service.system, service.workload, *rates, interval, *tails)
    return table


def _workloads(rows: Sequence[PredictedService]) -> list[str]:
    return sorted({row.service.workload for row in rows})
