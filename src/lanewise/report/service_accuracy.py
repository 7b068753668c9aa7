"""How far predictions of published services are off: a summary, every service, and the section of docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise import units
from lanewise.evidence.services import PredictedService, summary
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, markdown_table, number_columns, render_table
from lanewise.report.text.accuracy import percent_of
from lanewise.serving.host_stalls import STALLING

SCORE_LIMIT, P99_LIMIT = 0.10, 0.25  # errors that count as small
SHARE_ROUNDS = ("v1.1", "v2.0", "v2.1")  # whose pairs of Server and Offline are in serving/server_share.py


def service_sections(rows: Sequence[PredictedService]) -> list[str]:
    """The section of the page; empty without services."""
    if not rows:
        return []
    changes = sorted(row.service.lower[0].p99 / row.service.server.p99 - 1 for row in rows if row.service.lower)
    change = ""
    if changes:
        median = changes[len(changes) // 2]
        change = (
            " A score only tells that the rate holds, not by how much, and near the peak the p99 depends on just that: "
            f"in audit runs of the same systems at 96 % of the rate it changes by {100 * median:.0f} % (median; "
            f"{100 * changes[0]:.0f} to {100 * changes[-1]:.0f} %)."
        )
    return [
        "## Published services",
        "Results of MLPerf Inference whose batch size and time-out are public (`src/lanewise/data/services/`). The "
        "Server score is predicted from the published Offline score alone, by what systems of earlier rounds kept.",
        markdown_table(scores_table(rows)),
        "The p99 is simulated at the published rate. Batches, streams, batches in flight and padded CUDA graphs are as "
        "the harness's settings and source say, and the GPU is as fast as its Offline score, at the power limit of "
        "Server. Those with a time-out (NVIDIA's LWIS) of v2.0 and v2.1 were first read after the simulation of v3.0 "
        "was written, those of other submitters (SUBMITTER/SYSTEM) after all of it but what streams leave of a batch's "
        "fixed time, what copies within a GPU cost, both measured on another GPU, and stalls of hosts. BERT's harness "
        "has none: it takes what is queued, "
        "so that the p99 is proportional to the fixed time of a batch, which is known from runs with CUDA graphs only; "
        "v3.0 worked without. What its unsorted batches cost is learned from machines of other submitters. That a "
        "worker has two batches under way, whatever its copy streams, is learned from v2.1. The "
        "interval is that of GPUs 5 % slower and faster, and of BERT's fixed time on all GPUs of the catalogue. It "
        f"ends at the bound, which a VALID score keeps. From {STALLING:,.0f} queries/s on hosts stall: how much is "
        "learned from ResNet-50 of other submitters in v2.0. Equal settings on equal GPUs differ there by up to two "
        f"times from host to host, so that the interval reaches from no stalls to the bound.{change}",
        markdown_table(tails_table(rows)),
        markdown_table(services_table(rows)),
    ]


def render_services_score(rows: Sequence[PredictedService], screen: Screen = PLAIN) -> str:
    """Summary and rows as text."""
    return "\n\n".join(
        render_table(table, screen) for table in (scores_table(rows), tails_table(rows), services_table(rows))
    )


def services_json(rows: Sequence[PredictedService]) -> list[dict[str, Any]]:
    """Every service in SI units."""
    return [
        {
            "system": row.service.system, "workload": row.service.workload, "offline": row.service.offline,
            "published": row.service.server.qps, "predicted": row.score, "low": row.interval[0],
            "high": row.interval[1], "error": row.score_error, "published_p99": row.service.server.p99,
            "predicted_p99": row.p99, "p99_error": row.p99_error, "p99_low": row.p99_interval[0],
            "p99_high": row.p99_interval[1], "round": row.service.round, "timeout": row.service.timeout,
            "held_out": row.service.held_out,
        }
        for row in rows
    ]  # fmt: skip


def scores_table(rows: Sequence[PredictedService]) -> Table:
    """Errors of Server scores by workload and of all, of the round from which no share was learned."""
    table = Table([
        Column("Server scores"), *number_columns("rows", "median error", "p90", "within 10 %", "interval holds it"),
    ])  # fmt: skip
    rows = [row for row in rows if row.service.round not in SHARE_ROUNDS]
    for name, group in (_by_workload(rows) | {"all": list(rows)}).items():
        if group:
            scores = summary((row.score_error for row in group), SCORE_LIMIT)
            covered = sum(row.covered for row in group) / len(group)
            table.add(name, str(len(group)), *map(percent_of, (scores.median, scores.p90, scores.within, covered)))
    return table


def tails_table(rows: Sequence[PredictedService]) -> Table:
    """Errors of p99: of services with a time-out by round and workload, and of those without."""
    table = Table([
        Column("p99", wrap=True), *number_columns("rows", "median error", "p90", "within 25 %", "interval holds it"),
    ])  # fmt: skip
    timed, rest = ([row for row in rows if bool(row.service.timeout) == waits] for waits in (True, False))
    groups: dict[str, list[PredictedService]] = {}
    for series in sorted({row.service.round for row in rows}, reverse=True):
        part = [row for row in rows if row.service.round == series]
        groups |= {f"{series} {name}": group for name, group in _by_workload(part).items()} | {f"{series}, all": part}
    groups |= {"with a time-out": timed, "without a time-out": rest}
    groups["with a time-out, held out"] = [row for row in timed if row.service.held_out]
    groups["with a time-out, NVIDIA"] = [row for row in timed if not row.service.held_out]
    groups[f"with a time-out, below {STALLING:,.0f} QPS"] = [row for row in timed if row.service.server.qps < STALLING]
    groups["all"] = list(rows)
    for name, group in groups.items():
        if group:
            tails = summary((row.p99_error for row in group), P99_LIMIT)
            covered = sum(row.p99_covered for row in group) / len(group)
            table.add(name, str(len(group)), *map(percent_of, (tails.median, tails.p90, tails.within, covered)))
    return table


def services_table(rows: Sequence[PredictedService]) -> Table:
    """One line a service."""
    table = Table([
        Column("round"), Column("system", wrap=True), Column("workload"),
        *number_columns("Offline", "Server", "predicted", unit="QPS"),
        *number_columns("interval", unit="QPS", drop_order=1), *number_columns("p99", "predicted p99", unit="ms"),
        *number_columns("interval", unit="ms"),
    ])  # fmt: skip
    for row in rows:
        service = row.service
        rates = [f"{rate:,.0f}" for rate in (service.offline, service.server.qps, row.score)]
        tails = [_ms(value) for value in (service.server.p99, row.p99)]
        tails.append(" to ".join(map(_ms, row.p99_interval)))
        interval = f"{row.interval[0]:,.0f} to {row.interval[1]:,.0f}"
        table.add(service.round, service.system, service.workload, *rates, interval, *tails)
    return table


def _ms(value: float) -> str:
    return units.show(value, "ms", 3).removesuffix(" ms")


def _by_workload(rows: Sequence[PredictedService]) -> dict[str, list[PredictedService]]:
    names = sorted({row.service.workload for row in rows})
    return {name: [row for row in rows if row.service.workload == name] for name in names}
