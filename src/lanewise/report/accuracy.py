"""docs/accuracy.md from a run: residuals by study, by what a prediction rests on, by limit, and every row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lanewise import units
from lanewise.report import page
from lanewise.results import statistics
from lanewise.results.observation import Observation
from lanewise.results.run import Run, StudyRun
from lanewise.results.statistics import Residuals


def accuracy_page(run: Run) -> str:
    """The Markdown text; every number in it comes from the run. Studies that lie beside nothing are left out."""
    told = [study for study in run.studies if any(row.published or row.measured for row in study.rows)]
    run = replace(run, studies=tuple(told))
    rows = [row for study in run.studies for row in study.rows]
    total = statistics.overall(run)
    parts = [
        "# Accuracy",
        "How far predictions lie from published values. Made by `make accuracy`; do not edit it.",
        f"lanewise {run.version}, {len(run.studies)} studies, {total.rows} rows; "
        f"{total.compared} are predictions beside a published value. A residual is (predicted - "
        "published) / published. Every row is listed; summaries count predictions only, not rows whose published value "
        "went in (input) nor rows that say again what others say (repeat).",
        "## By study",
        _residuals("study", statistics.by_study(run)),
        *_against_measured(run),
        "## By what the prediction rests on",
        "`physics`: specifications alone. `calibrated`: a figure measured elsewhere. `fitted`: a figure "
        "fitted to the very table it stands in; the residual says how well the mechanism fits, no more.",
        _residuals("basis", statistics.by_basis(rows)),
        "## By kind of path",
        _residuals("path", statistics.by_path(rows)),
        *(line for study in run.studies for line in _study(study)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def basis_summary(run: Run) -> dict[str, Any]:
    """The rms residual in % and the number of compared rows, by basis, of rates: what data/accuracy.json holds."""
    rows = [row for study in run.studies for row in study.rows if units.dimension(row.unit) != "s"]
    groups = statistics.by_basis(rows)
    return {
        name: {"rms_pct": round(group.rms_pct, 2), "rows": group.compared}
        for name, group in groups.items()
        if group.rms_pct is not None
    }


def _study(study: StudyRun) -> list[str]:
    lines = [
        f"## {study.title}",
        f"Source: {study.source}",
        study.finding,
        *page.against_measured(study.rows),
        _residuals("table", statistics.by_table(study.rows)),
        *_methods(study),
    ]
    if study.fitted:
        fitted = [
            (v.key, units.readable(v.value, v.unit), _spread(v.spread), str(v.used), v.note) for v in study.fitted
        ]
        lines += ["Fitted:", _table(("figure", "value", "spread", "rows used", "note"), fitted)]
    if study.left_out:
        left_out = [(g.group, str(g.rows), f"{g.rms_pct:.1f}", _signed(g.worst_pct)) for g in study.left_out]
        lines += [
            "Left out, fitted to the rest, then predicted:",
            _table(("left out", "rows", "rms %", "worst %"), left_out),
        ]
    if study.hypotheses:
        hypotheses = [
            (h.name, h.says, _number(h.rms_pct), _signed(h.worst_pct), str(h.fitted)) for h in study.hypotheses
        ]
        columns = ("explanation", "which says", "rms %", "worst %", "values fitted")
        lines += ["Explanations tried on the same rows:", _table(columns, hypotheses)]
    names = statistics.further_methods(study.rows)
    method_heads = (f"{names[0]} (residual %)",) if len(names) == 1 else ("other methods (residual %)",) * bool(names)
    measured_heads = ("measured", "off measured %") if any(row.measured for row in study.rows) else ()
    rows = [_row(row, names, bool(measured_heads)) for row in study.rows]
    heads = (
        "table",
        "row",
        "unit",
        "published",
        "predicted",
        "residual %",
        *measured_heads,
        *method_heads,
        "basis",
        "limit",
        "role",
    )
    return [*lines, "Every row:", _table(heads, rows)]


def _against_measured(run: Run) -> list[str]:
    """By study as well, what was measured in place of what was published; nothing where nothing was."""
    residuals = {study.name: statistics.against_measured(study.rows) for study in run.studies}
    compared = {name: group for name, group in residuals.items() if group.rows}
    return ["## Against measured values, by study", _residuals("study", compared)] if compared else []


def _residuals(head: str, groups: Mapping[str, Residuals]) -> str:
    rows = [
        (
            name,
            str(r.rows),
            str(r.compared),
            _number(r.rms_pct),
            _signed(r.worst_pct),
            _signed(r.mean_pct),
            str(r.close),
            str(r.far),
        )
        for name, r in groups.items()
    ]
    heads = (head, "rows", "compared", "rms %", "worst %", "mean %", "within 5 %", "beyond 10 %")
    return _table(heads, rows)


def _methods(study: StudyRun) -> list[str]:
    """Other methods on the rows they answered, each under the rows' own values."""
    compared = statistics.by_method(study.rows)
    if not compared:
        return []
    groups = {}
    for method in compared:
        groups[method.own_name if len(compared) == 1 else f"{method.own_name}, on the rows of {method.name}"] = (
            method.own
        )
        groups[method.name] = method.residuals
    return ["The same rows by another method:", _residuals("method", groups)]


def _beside(row: Observation, others: Sequence[str]) -> str:
    parts = []
    for name, residual in row.comparison_residuals_pct.items():
        text = _shown(row, row.comparisons[name]) + (f" ({_signed(residual)})" if residual is not None else "")
        parts.append(text if len(others) == 1 else f"{name} {text}")
    return "; ".join(parts)


def _measured(row: Observation) -> tuple[str, str]:
    return (_shown(row, row.measured.value), _signed(row.measured_residual_pct)) if row.measured else ("", "")


def _shown(row: Observation, value: float | None) -> str:
    return "" if value is None else units.number(units.in_unit(value, row.display_unit))


def _row(row: Observation, others: Sequence[str], measured: bool) -> tuple[str, ...]:
    settings = " ".join(f"{key}={value}" for key, value in row.settings.items() if key not in row.scenario)
    published = _shown(row, row.published)
    value = _shown(row, row.value) or "unknown"
    marked = " (extrapolated)" if row.extrapolated else ""
    residual = _signed(row.residual_pct)
    basis = str(row.basis) if row.basis else str(row.source)
    return (
        row.table,
        f"{row.scenario} {settings}".strip(),
        row.display_unit,
        published + marked,
        value,
        residual,
        *(_measured(row) if measured else ()),
        *([_beside(row, others)] if others else []),
        basis,
        row.limit,
        "" if row.role == "prediction" else row.role,
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _spread(spread: float | None) -> str:
    return "unknown" if spread is None else f"±{100 * spread:.1f} %"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{round(value, 1) + 0.0:+.1f}"
