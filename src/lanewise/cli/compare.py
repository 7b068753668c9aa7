"""`lanewise compare`: two runs, two sources of one run, or two systems of one run, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli import terminal
from lanewise.cli.options import Json
from lanewise.errors import InputError

if TYPE_CHECKING:
    from lanewise.results.compare import Comparison, RowPair
    from lanewise.results.run import Run


def compare(
    left: Annotated[Path, typer.Argument(metavar="RUN.json", help="Written by study run --json or measure -o.")],
    right: Annotated[Path | None, typer.Argument(metavar="[OTHER.json]", help="A second run.")] = None,
    sources: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="ONE OTHER", help="published, predicted, measured, extrapolated."),
    ] = None,
    systems: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="ONE OTHER", help="Two systems that answer the same rows."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Lay two runs, two sources, or two systems side by side and say how far they lie apart."""
    from lanewise import api

    if sum(x is not None for x in (right, sources, systems)) != 1:
        raise InputError(
            "nothing to compare with" if not (right or sources or systems) else "too much to compare at once",
            hint="give a second RUN.json, or --sources published predicted, or --systems ONE OTHER",
        )
    run = api.load_run(left)
    if right is not None:
        found = api.compare(run, right, (str(left), str(right)))
    elif sources is not None:
        found = api.compare_sources(run, *sources)
    else:
        assert systems is not None
        found = api.compare_systems(run, *systems)
    if not found.pairs:
        raise InputError(f"no row of {found.left_name} has its like in {found.right_name}", hint=_offer(run))
    terminal.out_json(_data(found)) if as_json else terminal.out(_text(found))


def _text(found: Comparison) -> str:
    names = (found.left_name, found.right_name)
    heads = ("table", "row", "flow", "metric", "unit", *names, "difference", "verdict", "limits", "measured otherwise")
    lines = [terminal.table(heads, [_row(pair) for pair in found.pairs], right=(*names, "difference"))]
    known = [pair.difference_pct for pair in found.pairs if pair.difference_pct is not None]
    if known:
        rms = (sum(value * value for value in known) / len(known)) ** 0.5
        worst = max(known, key=abs)
        lines.append(f"\n{len(known)} pairs: rms difference {rms:.1f} %, largest {worst:+.1f} %")
    lines += _machine(found)
    for name, rows in zip(names, (found.only_left, found.only_right), strict=True):
        if rows:
            lines.append(f"{len(rows)} rows of {name} have no like on the other side")
    return "\n".join(lines)


def _machine(found: Comparison) -> list[str]:
    """What measured pairs say together, and under which other conditions the right side was measured."""
    lines = []
    if found.verdicts and found.speed is not None:
        counts = ", ".join(f"{count} {word}" for word, count in found.verdicts.items())
        share = 100 * found.speed
        lines.append(f"as a whole {found.right_name} runs at {share:.1f} % of the speed of {found.left_name}; {counts}")
        lines.append("(a difference counts where the 95 % intervals of the medians do not overlap)")
    if any(pair.measured for pair in found.pairs):
        lines += [f"{name}: {one or 'not stated'} / {other or 'not stated'}" for name, one, other in found.conditions]
    return lines


def _row(pair: RowPair) -> tuple[str, ...]:
    from lanewise import units

    one, other = pair.left, pair.right
    settings = " ".join(f"{key}={value}" for key, value in one.settings.items() if key not in one.scenario)
    label = one.scenario if one.scenario == other.scenario else f"{one.scenario} / {other.scenario}"
    values = [units.number(v) if v is not None else "unknown" for v in (pair.left_value, pair.right_value)]
    difference = pair.note if pair.difference_pct is None else f"{pair.difference_pct:+.1f} %"
    limits = " / ".join(dict.fromkeys(row.limit for row in (one, other) if row.limit))
    flow = one.flow if pair.measured and one.flow != one.scenario else ""
    otherwise = "; ".join(f"{name}: {a or 'not stated'} / {b or 'not stated'}" for name, (a, b) in pair.differs.items())
    name = f"{label} {settings}".strip()
    return (one.table, name, flow, one.metric, pair.unit, *values, difference, pair.verdict, limits, otherwise)


def _data(found: Comparison) -> dict[str, Any]:
    from lanewise.results.codec import encode

    pairs = [
        {
            "source": p.left.source,
            "study": p.left.study,
            "table": p.left.table,
            "row": p.left.scenario,
            "flow": p.left.flow,
            "settings": dict(p.left.settings),
            "metric": p.left.metric,
            "unit": p.unit,
            "left": p.left_value,
            "right": p.right_value,
            "difference_pct": p.difference_pct,
            **(_measured(p) if p.measured else {}),
            "left_limit": p.left.limit,
            "right_limit": p.right.limit,
            "note": p.note,
        }
        for p in found.pairs
    ]
    alone = {
        side: [encode(row, side) for row in rows]
        for side, rows in (("only_left", found.only_left), ("only_right", found.only_right))
    }
    names = {"left": found.left_name, "right": found.right_name}
    conditions = {name: sides for name, *sides in found.conditions}
    whole = {"speed": found.speed, "verdicts": found.verdicts, "conditions": conditions}
    return {**names, "pairs": pairs, **alone, **(whole if found.verdicts else {})}


def _measured(pair: RowPair) -> dict[str, Any]:
    """What is said of measured pairs only; intervals in each side's own unit."""
    from lanewise.results.compare import interval

    return {
        "verdict": pair.verdict or None,
        "left_interval": interval(pair.left),
        "right_interval": interval(pair.right),
        "measured_otherwise": {name: list(sides) for name, sides in pair.differs.items()},
    }


def _offer(run: Run) -> str:
    rows = [*run.rows, *(row for study in run.studies for row in study.rows)]
    systems = ", ".join(sorted({row.system for row in rows if row.system}))
    if not systems:
        return "give two runs of the same measurement, with the same sizes and numbers of threads"
    return f"systems of the run: {systems}; sources: {', '.join(sorted({row.source for row in rows}))}"
