"""`lanewise compare` as text."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import units
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, TableCell, render_table
from lanewise.report.words import grade
from lanewise.results.compare import Comparison, RowPair
from lanewise.results.match import SERVICE
from lanewise.results.observation import Source

_IN_INTERVAL = {True: "in interval", False: "outside interval", None: ""}  # of the prediction, the measured value


def render_comparison(comparison: Comparison, screen: Screen = PLAIN) -> str:
    """Pairs with their difference, and what they say together."""
    names = (comparison.left_name, comparison.right_name)
    rows: list[Sequence[str | TableCell]] = [_row(pair) for pair in comparison.pairs]
    alike = len(rows) > 1 and len({row[1] for row in rows}) == 1  # then tables tell rows apart
    columns = [
        Column("table", drop_order=0 if alike else 6, wrap=True),
        Column("row", drop_order=8 if alike else 0, wrap=True),
        Column("flow", drop_order=5, wrap=True),
        Column("metric", drop_order=4), Column("unit"), *(Column(name, number=True) for name in names),
        Column("difference", number=True), Column("verdict"), Column("limits", drop_order=7, wrap=True),
        Column("measured differently", drop_order=3, wrap=True),
    ]  # fmt: skip
    table = Table(columns, rows)
    lines = [render_table(table, screen), ""]
    known = [pair.difference_pct for pair in comparison.pairs if pair.difference_pct is not None]
    if known:
        rms = (sum(value * value for value in known) / len(known)) ** 0.5
        lines.append(f"{len(known)} pairs: rms difference {rms:.1f} %, largest {max(known, key=abs):+.1f} %")
    lines += [*_share(comparison), *_measured(comparison)]
    for name, unmatched in zip(names, (comparison.only_left, comparison.only_right), strict=True):
        if unmatched:
            lines.append(f"{len(unmatched)} rows of {name} have no counterpart on the other side")
    return "\n".join(screen.wrap(line, indent=2) if number else line for number, line in enumerate(lines))


def _share(comparison: Comparison) -> list[str]:
    """Network as a share of Closed, with its interval."""
    if comparison.share is None or comparison.share.share is None:
        return []
    ends = " to ".join(f"{100 * end:.1f}" for end in comparison.share.interval or ())
    known = f"{ends} %, from the 90 % intervals of both peaks" if ends else "its interval is unknown"
    note = f"; {comparison.share.note}" if comparison.share.note else ""
    return [f"Network is {100 * comparison.share.share:.1f} % of Closed ({known}){note}"]


def _measured(comparison: Comparison) -> list[str]:
    """What measured pairs say together, and under which other conditions the right side was measured."""
    lines = []
    if comparison.verdicts and comparison.speed is not None:
        counts = ", ".join(f"{count} {word}" for word, count in comparison.verdicts.items())
        lines = [
            f"{comparison.right_name} runs at {100 * comparison.speed:.1f} % of the speed of {comparison.left_name} "
            f"over all pairs; {counts}",
            "(a difference counts if the 95 % intervals of the medians do not overlap)",
        ]
    if any(pair.measured for pair in comparison.pairs):
        lines += [f"{name}: {_sides(left, right)}" for name, left, right in comparison.conditions]
    return lines


def _sides(left: str | None, right: str | None) -> str:
    return f"{left or 'not stated'} / {right or 'not stated'}"


def _row(pair: RowPair) -> tuple[str | TableCell, ...]:
    left, right = pair.left, pair.right
    settings = " ".join(f"{key}={value}" for key, value in left.settings.items() if key not in left.scenario)
    label = left.scenario if left.scenario == right.scenario else f"{left.scenario} / {right.scenario}"
    sides = map(left.display, (pair.left.value, pair.right_value))
    values = ["unknown" if value is None else units.number(value) for value in sides]
    difference = TableCell(
        pair.note if pair.difference_pct is None else f"{pair.difference_pct:+.1f} %", grade(pair.difference_pct)
    )
    divisions = dict.fromkeys("Network" if "network" in row.path else "Closed" for row in (left, right)
                              if row.path.startswith(SERVICE))  # fmt: skip
    label = f"{label} {' / '.join(divisions)}".strip()
    if left.source is Source.PREDICTED and divisions:
        label = f"{label}, predicted"
    limits = " / ".join(dict.fromkeys(row.limit for row in (left, right) if row.limit))
    flow = left.flow if pair.measured and left.flow != left.scenario else ""
    conditions = "; ".join(f"{name}: {_sides(*sides)}" for name, sides in pair.differs.items())
    what = (left.table, f"{label} {settings}".strip(), flow, left.metric, left.display_unit)
    verdict = pair.verdict or _IN_INTERVAL[pair.in_predicted_interval]
    return (*what, *values, difference, verdict, limits, conditions)
