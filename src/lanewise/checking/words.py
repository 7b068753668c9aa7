"""A check-up in words: the cells of its table, and one paragraph for each finding."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.checking.verdict import Judged, Verdict
from lanewise.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.checking.causes import Cause
    from lanewise.checking.checkup import Checkup, Finding

HEADS = ("verdict", "flow", "scenario", "metric", "measured", "expected", "share", "fine", "basis")
RIGHT = ("measured", "expected", "share")
_SHOWN_FLOWS = 4
# Sources are as long as they are; --json has them whole.
_RESTS = 110


def cells(judged: Judged) -> tuple[str, ...]:
    """One row of the table, in the order of HEADS."""
    row = judged.row
    settings = " ".join(f"{key}={value}" for key, value in row.settings.items())
    p2p = f"P2P {row.how['p2p']}" if row.how.get("p2p") and "P2P" not in row.scenario else ""
    scenario = row.scenario if row.scenario != row.flow else ""
    fine = f"{_bare(judged, judged.low)} to {_bare(judged, judged.high)}" if judged.low is not None else ""
    return (
        judged.verdict.value, row.flow, " ".join(filter(None, (scenario, p2p, settings))), row.metric,
        quantity(judged, judged.value), quantity(judged, judged.expected.value),
        "" if judged.share is None else f"{100 * judged.share:.0f} %", fine, basis(judged),
    )  # fmt: skip


def _bare(judged: Judged, value: float | None) -> str:
    """An SI value in the row's unit, three digits, without the unit."""
    if value is None:
        return "–"
    try:
        return units.number(units.from_si(value, judged.row.unit), 3)
    except FormatError:
        return units.number(value, 3)


def quantity(judged: Judged, value: float | None) -> str:
    """An SI value of a row in the unit that the row was given in; a dash for None."""
    if value is None:
        return "–"
    try:
        return units.show(value, judged.row.unit)
    except FormatError:
        return f"{units.number(value)} {judged.row.unit}"


def basis(judged: Judged) -> str:
    """What the expectation rests on, with its tolerance."""
    if judged.tolerance is None:
        return ""
    return f"{judged.tolerance.basis} ±{100 * judged.tolerance.share:.0f} %"


def paragraph(finding: Finding) -> str:
    """What was seen, what is expected and why, likely causes with their evidence, and the next step."""
    lines = [f"{finding.kind}: {finding.title}"]
    if finding.rows:
        lines.append(f"  rows      {_rows(finding.rows)}")
    if finding.kind in (Verdict.SLOW, Verdict.FAST):
        lines += _expected(finding.rows[0])
    for number, cause in enumerate(finding.causes, 1):
        lines.append(f"  {f'cause {number}':8}  {_cause(cause, finding)}")
    lines.append(f"  next      {finding.step}")
    return "\n".join(lines)


def summary(checkup: Checkup) -> str:
    """One line: how many rows of each verdict, how many faults."""
    parts = [f"{checkup.count(verdict)} {verdict.value}" for verdict in Verdict if checkup.count(verdict)]
    faults = sum(finding.kind == "fault" for finding in checkup.findings)
    parts += [f"{faults} fault{'s' if faults > 1 else ''} without a slow path"] if faults else []
    many = len(checkup.rows)
    if many:
        return f"{many} row{'s' if many != 1 else ''}: {', '.join(parts)}"
    return f"no row to judge; {', '.join(parts) or 'nothing is wrong with what was read of the machine'}"


def aside(checkup: Checkup) -> list[tuple[str, ...]]:
    """Rows that were left aside as cells: flow, scenario, metric, value."""
    return [
        (row.flow, " ".join([row.scenario, *(f"{key}={value}" for key, value in row.settings.items())]), row.metric,
         "–" if row.value is None else f"{units.number(row.value)} {row.unit}")
        for row in checkup.aside
    ]  # fmt: skip


def _rows(rows: Sequence[Judged]) -> str:
    names = list(dict.fromkeys(each.row.flow for each in rows))
    shown = "; ".join(names[:_SHOWN_FLOWS])
    more = f" and {len(names) - _SHOWN_FLOWS} more flows" if len(names) > _SHOWN_FLOWS else ""
    return f"{len(rows)}: {shown}{more}"


def _expected(judged: Judged) -> list[str]:
    expected = judged.expected
    share = f", {100 * judged.share:.0f} % of what is expected" if judged.share is not None else ""
    where = f" ({judged.row.scenario})" if judged.row.scenario != judged.row.flow else ""
    lines = [f"  measured  {quantity(judged, judged.value)} on {judged.row.flow}{where}{share}"]
    limit = f", limit: {expected.limit}" if expected.limit else ""
    lines.append(f"  expected  {quantity(judged, expected.value)} ({basis(judged)}){limit}")
    rests = expected.rests_on[0] if expected.rests_on else ""
    lines += [f"  rests on  {textwrap.shorten(rests, _RESTS, placeholder=' ...')}"] if rests else []
    return lines


def _cause(cause: Cause, finding: Finding) -> str:
    """The suspect, what speaks for it, and what the model says."""
    text = "this" if finding.title.endswith(cause.suspect.what) else cause.suspect.what
    seen = f"seen in {cause.suspect.seen}" if cause.suspect.seen else "not seen, only supposed"
    if not cause.suspect.seen and cause.predicted is None:
        return f"{text}: what is left when nothing seen and no single change of the model explains it"
    if not finding.rows or cause.predicted is None:
        return f"{text}: {seen}"
    first = finding.rows[0]
    said = f"{quantity(first, cause.predicted)} predicted with it, {quantity(first, first.value)} measured"
    return f"{text}: {seen}; {'explains it' if cause.explains else 'accounts for part of it'}: {said}"


__all__ = ["HEADS", "RIGHT", "aside", "basis", "cells", "paragraph", "quantity", "summary"]
