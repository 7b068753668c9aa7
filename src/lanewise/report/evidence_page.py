"""The part of docs/accuracy.md about measured machines: scores, what each mechanism changed, every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lanewise.evidence.prediction import BOTH_WAYS, SEVERAL
from lanewise.evidence.score import AccuracyScore, quantile
from lanewise.report.table import Column, Table, markdown_table, number_columns
from lanewise.report.text.accuracy import heading_of, percent_of, rows_table, score_groups, score_table, target_table
from lanewise.results.run import Run


def score_sections(score: AccuracyScore, history: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """Scores by kind of path, basis and machine, and of the kept states of the model in `history`."""
    return [
        "## Measured machines",
        f"{heading_of(score)}. The machines are in `src/lanewise/data/evidence/`, with the source of their wiring and "
        "values. No figure of the catalogue rests on a machine that is held out. The interval is the predicted one. "
        "Paths are in order if of two that were measured more than 10 % apart, in ranges that do not overlap, the "
        "faster one is predicted faster; they are tied if the predictions lie within 5 %, and less apart than their "
        "intervals together allow (decision 45). "
        "NCCL's planning constants are scored on the same rows. Left out are figures of parts; constants of the "
        "mechanisms (shares of host memory, links between sockets, staged copies, ranges of each basis) were chosen "
        "with these machines in view, so expect larger errors on others.",
        *(markdown_table(score_table(title, groups)) for title, groups in score_groups(score).items()),
        *_targets(score),
        *_history(history),
    ]


def _targets(score: AccuracyScore) -> list[str]:
    if not (score.collectives or score.blocks_and_loads):
        return []
    return [
        "### Data paths of LLM serving and training: what was to reach",
        "Of collectives no figure comes from the machine that is predicted, and of a machine that is held out none at "
        "all. Of KV blocks and model loads a row is learned from where a figure of its software or its drive, or the "
        "bound of an interval, comes from that very row; the others of the same source are held out, though the "
        "equations were written with them in view.",
        markdown_table(target_table(score)),
    ]


def row_sections(score: AccuracyScore) -> list[str]:
    """Every row, machine by machine, with its source."""
    sections = ["## Every row of the measured machines"]
    for machine in score.machines:
        facts = [f"Source: {machine.source}", machine.tool and f"tool: {machine.tool}",
                 machine.wiring and f"wiring: {machine.wiring}", "held out" if machine.held_out else ""]  # fmt: skip
        rows = [row for row in score.rows if row.machine == machine.name]
        table = markdown_table(rows_table(rows))
        sections += [f"### {machine.name}: {machine.title}", "; ".join(filter(None, facts)), table]
    return sections


def other_studies(run: Run, score: AccuracyScore | None) -> Run:
    """The run without studies whose rows are those of the measured machines, which the score counts already."""
    machines = {machine.name for machine in score.machines} if score is not None else set()
    studies = [study for study in run.studies if not study.rows or not {row.system for row in study.rows} <= machines]
    return replace(run, studies=tuple(studies))


def basis_errors(score: AccuracyScore, run: Run | None = None) -> dict[str, Any]:
    """The error in % of rates of machines and studies, by basis: median, 90th percentile and rows."""
    errors: dict[str, list[float]] = {}
    for row in score.rates:
        if row.error is not None and row.observation.basis is not None:
            errors.setdefault(str(row.observation.basis), []).append(100 * abs(row.error))
    studies = other_studies(run, score).studies if run is not None else ()
    for observation in (row for study in studies for row in study.rows if row.role == "prediction" and row.unit != "s"):
        if observation.residual_pct is not None and observation.basis:
            errors.setdefault(str(observation.basis), []).append(abs(observation.residual_pct))
    return {
        basis: {"median_pct": round(quantile(values, 0.5), 1), "p90_pct": round(quantile(values, 0.9), 1),
                "rows": len(values)}
        for basis, values in sorted(errors.items())
    }  # fmt: skip


def _history(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    if not runs:
        return []
    ordered = sorted(runs, key=lambda run: str(run["time"]))
    rates = [_rates(run) for run in ordered]
    common = set.intersection(*(set(rows) for rows in rates))
    figures = ("median", "p90", "within 10 %", "interval holds it")
    heads = [f"{name}: {head}" for name in ("one flow", "sets of flows") for head in figures]
    table = Table([Column("state"), Column("what changed"), *number_columns(*heads, "all rates")])
    for run, rows in zip(ordered, rates, strict=True):
        groups: dict[bool, list[Mapping[str, Any]]] = {False: [], True: []}
        for key in common:
            groups[rows[key]["kind"].endswith((BOTH_WAYS, SEVERAL))].append(rows[key])
        cells = [cell for group in groups.values() for cell in _figures(group)]
        table.add(run["time"], run["change"], *cells, str(len(rows)))
    return [
        "### What each mechanism changed",
        "Each state is scored after the change that it names and all before it, on the "
        f"{len(common)} rates that all states predict; `benchmarks/accuracy_run.py` kept every row, see "
        "`benchmarks/runs/2026-11-23-accuracy`.",
        markdown_table(table),
    ]


def _rates(run: Mapping[str, Any]) -> dict[tuple[str, ...], Mapping[str, Any]]:
    """The predicted rates of a kept run by what was measured."""
    rows = [dict(zip(run["columns"], row, strict=True)) for row in run["rows"]]
    return {
        (row["machine"], row["path"], row["flows"], row["metric"], f"{row['measured']:.4g}"): row
        for row in rows
        if row["predicted"] is not None and row["metric"] not in ("latency", "busbw", "time", "goodput")
    }


def _figures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Median, 90th percentile, share within 10 % and coverage."""
    if not rows:
        return [percent_of(None)] * 4
    errors = [abs(row["predicted"] / row["measured"] - 1) for row in rows]
    low = [row["predicted"] if row["low"] is None else row["low"] for row in rows]
    high = [row["predicted"] if row["high"] is None else row["high"] for row in rows]
    covered = [a <= row["measured"] <= b for row, a, b in zip(rows, low, high, strict=True)]
    shares = [sum(error <= 0.10 for error in errors) / len(rows), sum(covered) / len(rows)]
    return [percent_of(share) for share in (quantile(errors, 0.5), quantile(errors, 0.9), *shares)]
