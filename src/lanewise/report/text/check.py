"""`lanewise check` as text: a table, the worst first, then one paragraph for each finding."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Sequence

from lanewise import units
from lanewise.checking.cause import Cause
from lanewise.checking.checkup import Checkup
from lanewise.checking.findings import Finding
from lanewise.checking.references.judged import COLLECTIVE
from lanewise.checking.references.side_by_side import COUNTS
from lanewise.checking.unjudged import LookFirst
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, TableCell, number_columns, render_table
from lanewise.report.words import plural
from lanewise.results.observation import Observation
from lanewise.topology.ranges import fold

# A server with 16 GPUs has 240 pairs: what is fine and not shown is counted.
MOST_FINE = 12
_MOST_FLOWS = 4
_UNDESCRIBED = (
    "Nobody described the machine. Rows are compared with what the parts named in the results can do, and with each "
    "other; --system machine.yaml, or its dumps with --from, judges all of them."
)
_LONGEST_SOURCE = 110  # sources are as long as they are; --json has them whole
_GRADES = {
    Verdict.SLOW: "bad",
    Verdict.FAST: "off",
    Verdict.FAILED: "bad",
    Verdict.UNKNOWN: "quiet",
    Verdict.OK: "good",
}


def render_checkup(checkup: Checkup, screen: Screen = PLAIN) -> str:
    """All rows that are not fine, the first of those that are, findings, notes and a summary."""
    chosen, hidden = _chosen(checkup.results)
    parts = [] if checkup.described else [screen.wrap(_UNDESCRIBED, indent=2)]
    if chosen:
        table = render_table(_verdicts(chosen), screen)
        parts.append(f"{table}\n... and {hidden} more that are fine" if hidden else table)
    elif checkup.left_aside:
        parts.append(render_table(_left_aside(checkup), screen))
    parts += [_paragraph(finding, screen) for finding in checkup.findings]
    parts += [_look_first(paths, screen) for paths in checkup.look_first]
    if checkup.notes:
        parts.append("\n".join(screen.wrap(f"note: {note}", indent=6) for note in checkup.notes))
    return "\n\n".join([*parts, screen.wrap(_summary(checkup), indent=2)])


def _chosen(results: Sequence[PathResult]) -> tuple[list[PathResult], int]:
    fine = [result for result in results if result.verdict is Verdict.OK]
    first = fine if len(fine) <= MOST_FINE + 1 else fine[:MOST_FINE]
    return [*(result for result in results if result.verdict is not Verdict.OK), *first], len(fine) - len(first)


def _verdicts(results: Sequence[PathResult]) -> Table:
    columns = [
        Column("verdict"), Column("flow", wrap=True), Column("scenario", drop_order=3, wrap=True),
        Column("metric", drop_order=4),
        *number_columns("measured", "expected"), *number_columns("share", drop_order=1), Column("fine", drop_order=2),
        Column("basis", drop_order=5),
    ]  # fmt: skip
    table = Table(columns)
    for group in _groups(results):
        result = group[0]
        row = result.row
        if len(group) > 1:
            flow, scenario = _flow(result.row), f"{row.scenario}, {len(group)} sizes"
            if row.metric != COLLECTIVE:
                flow, scenario = f"{flow} and {len(group) - 1} more flows", _scenario(row)
            verdict = TableCell(result.verdict.value, _GRADES[result.verdict])
            table.add(verdict, flow, scenario, _metric(row), _range(group), "–", "", "", "")
            continue
        fine = (
            f"{_bare(result, result.fine_low)} to {_bare(result, result.fine_high)}"
            if result.fine_low is not None
            else ""
        )
        table.add(
            TableCell(result.verdict.value, _GRADES[result.verdict]), _flow(result.row),
            _scenario(row), _metric(row), _quantity(result, result.row.value),
            _quantity(result, result.expected.value), "" if result.ratio is None else f"{100 * result.ratio:.0f} %",
            fine, result.tolerance.basis if result.tolerance else "",
        )  # fmt: skip
    return table


def _scenario(row: Observation) -> str:
    """What was run, with its settings."""
    settings = " ".join(f"{key}={value}" for key, value in row.settings.items())
    p2p = f"P2P {row.how['p2p']}" if row.how.get("p2p") and "P2P" not in row.scenario else ""
    return " ".join(filter(None, (row.scenario if row.scenario != row.flow else "", p2p, settings)))


def _groups(results: Sequence[PathResult]) -> list[list[PathResult]]:
    """Each row alone, but together those of a collective that differ in size alone, and many flows of one scenario of
    which nothing is known.
    """
    groups: dict[tuple[object, ...], list[PathResult]] = defaultdict(list)
    for number, result in enumerate(results):
        row = result.row
        same: tuple[object, ...] = (number,)
        if result.verdict is Verdict.UNKNOWN and row.metric == COLLECTIVE:
            same = (row.flow, row.scenario)
        elif result.verdict is Verdict.UNKNOWN and result.expected.value is None:
            same = (_scenario(row), row.metric, row.display_unit, row.path)
        groups[same].append(result)
    return [part for group in groups.values() for part in _few_apart(group)]


def _few_apart(group: list[PathResult]) -> list[list[PathResult]]:
    """A group, or its rows where they are few and no sizes of a collective."""
    few = len(group) <= _MOST_FLOWS and group[0].row.metric != COLLECTIVE
    return [[result] for result in group] if few else [group]


def _range(group: Sequence[PathResult]) -> str:
    """The smallest and the largest measured value of several rows."""
    ordered = sorted(group, key=lambda result: result.row.value or 0.0)
    return f"{_bare(ordered[0], ordered[0].row.value)} to {_quantity(ordered[-1], ordered[-1].row.value)}"


def _flow(row: Observation) -> str:
    """The row's flows as people write them: numbered ends as ranges, a tool's collective by the ring of its GPUs."""
    flows = [flow.split("->") for flow in row.flow.split(", ")]
    if len(flows) < 3 or any(len(ends) != 2 for ends in flows):
        return row.flow
    sources, targets = [source for source, _ in flows], [target for _, target in flows]
    is_ring = targets == [*sources[1:], sources[0]]
    if is_ring and row.path == "collective":
        numbers = ",".join(name.removeprefix("gpu") for name in sources[1:])
        return f"ring of {_folded(sources) or f'{sources[0]},{numbers}'}"
    both = _folded(sources), _folded(sources if is_ring else targets)
    return "->".join(both) if all(both) else row.flow


def _folded(ends: Sequence[str]) -> str:
    """Ends that are all the same, or of consecutive numbers, as one name: gpu[0-7]; empty for others."""
    names = [*dict.fromkeys(ends)]
    same = re.search(r"[A-Za-z]\d*$", names[0])  # nvme0n1, nvme1n1
    tail = same[0] if same and len(names) > 1 and all(name.endswith(same[0]) for name in names) else ""
    patterns = fold([name.removesuffix(tail) for name in names]) if len(names) in (1, len(ends)) else []
    return f"{patterns[0]}{tail}" if len(patterns) == 1 else ""


def _metric(row: Observation) -> str:
    """What was measured: of counts a second requests of a drive, or the throughput of a program."""
    if row.metric == COUNTS:
        return "IOPS" if row.display_unit == "IOPS" or row.path == "storage" else "throughput"
    return row.metric


def _left_aside(checkup: Checkup) -> Table:
    table = Table([Column("not judged", wrap=True), Column("scenario", wrap=True, drop_order=1), Column("metric"),
                   *number_columns("measured")])  # fmt: skip
    for row in checkup.left_aside[: 2 * MOST_FINE]:
        scenario = " ".join([row.scenario, *(f"{key}={value}" for key, value in row.settings.items())])
        table.add(_flow(row), scenario, _metric(row),
                  "–" if row.value is None else units.show(row.value, row.display_unit))  # fmt: skip
    return table


def _bare(result: PathResult, value: float | None) -> str:
    """An SI value in the row's unit, three digits, without the unit."""
    if value is None:
        return "–"
    return units.number(units.in_unit(value, result.row.display_unit), 3)


def _quantity(result: PathResult, value: float | None) -> str:
    """An SI value of a row in the unit that the row was given in; a dash for None."""
    if value is None:
        return "–"
    return units.show(value, result.row.display_unit)


def _fine(result: PathResult) -> str:
    """What the expectation is based on, and how far from the expected value a row is fine."""
    if result.tolerance is None:
        return ""
    below, above = (None if share is None else f"{100 * share:.0f}" for share in result.fine_shares)
    ends = [f"-{below}"] * (below is not None) + [f"+{above}"] * (above is not None)
    fine = f"±{below}" if below == above else " to ".join(ends)
    return f"{result.tolerance.basis} {fine} %" if ends else result.tolerance.basis


def _paragraph(finding: Finding, screen: Screen) -> str:
    """What was measured, what is expected and why, likely causes with their evidence, and the next step."""
    facts = [("rows", _flows(finding.results))] if finding.results else []
    if finding.kind in (Verdict.SLOW, Verdict.FAST):
        facts += _expected(finding.results[0])
    facts += [(f"cause {number}", _cause(cause, finding)) for number, cause in enumerate(finding.causes, 1)]
    title = screen.wrap(f"{finding.kind}: {finding.title}", indent=2)
    # The next step is a command: it stays in one piece, to be copied.
    shown = f"{screen.facts(facts, 2, 9)}\n" if facts else ""
    return f"{screen.style(title, 'bold')}\n{shown}  {'next':9} {finding.step}"


def _look_first(paths: LookFirst, screen: Screen) -> str:
    """What is commonest on such a path, for who hoped for more."""
    first, flows = paths.rows[0], list(dict.fromkeys(map(_flow, paths.rows)))
    figure = f"a rate of {flows[0]}{' and others' if len(flows) > 1 else ''}"
    if len(paths.rows) == 1:
        figure = units.show(first.value, first.display_unit)
    parts = [screen.wrap(f"if {figure} is less than it was or should be, look first at:", indent=2)]
    for number, cause in enumerate(paths.causes, 1):
        parts += [screen.facts([(str(number), cause.what)], 2, 9), f"  {'try':9} {cause.step}"]
    return "\n".join(parts)


def _summary(checkup: Checkup) -> str:
    """One line: how many rows of each verdict, how many faults."""
    parts = [f"{checkup.count(verdict)} {verdict.value}" for verdict in Verdict if checkup.count(verdict)]
    faults = sum(finding.kind == "fault" for finding in checkup.findings)
    parts += [f"{plural(faults, 'fault')} without a slow path"] if faults else []
    if checkup.results:
        return f"{plural(len(checkup.results), 'row')}: {', '.join(parts)}"
    if checkup.left_aside and not parts:
        return f"{plural(len(checkup.left_aside), 'row')}: not judged"
    return f"no row to judge; {', '.join(parts) or 'no fault in what was read of the machine'}"


def _flows(results: Sequence[PathResult]) -> str:
    names = list(dict.fromkeys(_flow(result.row) for result in results))
    more = f" and {len(names) - _MOST_FLOWS} more flows" if len(names) > _MOST_FLOWS else ""
    return f"{len(results)}: {'; '.join(names[:_MOST_FLOWS])}{more}"


def _expected(result: PathResult) -> list[tuple[str, str]]:
    expected = result.expected
    ratio = f", {100 * result.ratio:.0f} % of the expected value" if result.ratio is not None else ""
    scenario = f" ({result.row.scenario})" if result.row.scenario != result.row.flow else ""
    limit = f", limit: {expected.limit}" if expected.limit else ""
    source = "; ".join(expected.rests_on)
    return [
        ("measured", f"{_quantity(result, result.row.value)} on {_flow(result.row)}{scenario}{ratio}"),
        ("expected", f"{_quantity(result, expected.value)} ({_fine(result)}){limit}"),
        ("based on", textwrap.shorten(source, _LONGEST_SOURCE, placeholder=" ...")),
    ]


def _cause(cause: Cause, finding: Finding) -> str:
    """The cause, the evidence for it, and what the model says."""
    text = "as above" if finding.title.endswith(cause.what) else cause.what
    evidence = f"evidence: {cause.evidence}" if cause.evidence else "no direct evidence"
    if cause.key[0] == "staging":
        return f"{text}: what remains if neither the evidence nor a single change of the model explains the value"
    if not finding.results or cause.predicted is None:
        return f"{text}: {evidence}"
    result = finding.results[0]
    measured = _quantity(result, result.row.value).rpartition(" ")[0]
    value = f"{_quantity(result, cause.predicted)} (measured {measured})"
    if cause.interval is not None and not result.reached_by(cause.predicted):
        low, high = (_bare(result, end) for end in cause.interval)
        value = f"{_quantity(result, cause.predicted)}, {low} to {high} (measured {measured})"
    return f"{text}: {evidence}; {'would give' if cause.explains else 'would explain a part: gives'} {value}"
