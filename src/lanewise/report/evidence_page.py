"""The part of docs/accuracy.md about measured machines: scores, what each mechanism changed, every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lanewise.evidence.score import AccuracyScore, quantile
from lanewise.report.table import Column, Table, markdown_table, number_columns
from lanewise.report.text.accuracy import heading_of, percent_of, rows_table, score_groups, score_table
from lanewise.results.run import Run

_SETS = {"one flow": "one flow", "all sets of flows": "sets of flows"}


def score_sections(score: AccuracyScore, history: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """Scores by kind of path, basis and machine, and of the kept states of the model in `history`."""
    return [
        "## Measured machines",
        f"{heading_of(score)}. The machines are in `src/lanewise/data/evidence/`, with the source of their wiring and "
        "values. No figure of the catalogue rests on a machine that is held out. The interval is the predicted one. "
        "Paths are in order if of two that were measured more than 10 % apart the faster one is predicted faster. "
        "NCCL's planning constants are scored on the same rows.",
        *(markdown_table(score_table(title, groups)) for title, groups in score_groups(score).items()),
        *_history(history),
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


def basis_errors(score: AccuracyScore, run: Run | None = None) -> dict[str, Any]:
    """The error in % of rates of machines and studies, by basis: median, 90th percentile and rows."""
    errors: dict[str, list[float]] = {}
    for row in score.rates:
        if row.error is not None and row.observation.basis is not None:
            errors.setdefault(str(row.observation.basis), []).append(100 * abs(row.error))
    studies = run.studies if run is not None else ()
    for seen in (row for study in studies for row in study.rows if row.role == "prediction" and row.unit != "s"):
        if seen.residual_pct is not None and seen.basis:
            errors.setdefault(str(seen.basis), []).append(abs(seen.residual_pct))
    return {
        basis: {"median_pct": round(quantile(values, 0.5), 1), "p90_pct": round(quantile(values, 0.9), 1),
                "rows": len(values)}
        for basis, values in sorted(errors.items())
    }  # fmt: skip


def _history(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    if not runs:
        return []
    figures_of_set = ("median", "p90", "within 10 %", "interval holds it")
    heads = [f"{name}: {head}" for name in _SETS.values() for head in figures_of_set]
    table = Table([Column("state"), Column("what changed"), *number_columns("rates", *heads, "paths in order")])
    for run in sorted(runs, key=lambda run: str(run["time"])):
        groups = [run["by_flow_set"][name] for name in _SETS]
        figures = [percent_of(group[key]) for group in groups for key in ("median", "p90", "within_10", "covered")]
        total = run["total"]
        table.add(run["time"], run["change"], str(total["rows"]), *figures, f"{total['ordered']} of {total['pairs']}")
    return [
        "### What each mechanism changed",
        "Scores as kept in `benchmarks/runs/` by `benchmarks/accuracy_run.py`, each after the change that it names and "
        "all before it. Machines and parts were added and described better meanwhile, so rows differ a little.",
        markdown_table(table),
    ]
