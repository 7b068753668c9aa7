"""`lanewise compare` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise import units
from lanewise.report.table import text_table

if TYPE_CHECKING:
    from lanewise.results.compare import Comparison, RowPair


def render_comparison(found: Comparison) -> str:
    """Pairs with their difference, and what they say together."""
    names = (found.left_name, found.right_name)
    heads = ("table", "row", "flow", "metric", "unit", *names, "difference", "verdict", "limits", "measured otherwise")
    lines = [text_table(heads, [_row(pair) for pair in found.pairs], right=(*names, "difference"))]
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
