"""`lanewise fleet` as text: the plan of a survey; nodes, the worst first, then one paragraph for each finding."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lanewise.fleet.fleet_check import FleetCheck
from lanewise.fleet.node import PHASES, NodeFinding, NodeState, NodeVerdict
from lanewise.fleet.schedule import SurveyPhase, most_seconds
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, TableCell, number_columns, render_table
from lanewise.report.words import plural

# What is fine and not shown is counted.
MOST_FINE, MOST_SHOWN = 8, 60
_MOST_NAMES = 8
GRADES = {
    NodeState.LOST: "bad", NodeState.FAULT: "bad", NodeState.SLOW: "bad", NodeState.UNKNOWN: "quiet",
    NodeState.BUSY: "quiet", NodeState.OK: "good",
}  # fmt: skip


def render_fleet_plan(names: Sequence[str], phases: Sequence[SurveyPhase], screen: Screen = PLAIN) -> str:
    """The nodes, the phases in their order, and the longest time that each can take."""
    table = Table([
        Column("phase"), *number_columns("steps", "given up after", "at most"), Column("what", wrap=True),
    ])  # fmt: skip
    for phase in phases:
        table.add(phase.name, str(phase.steps), duration(phase.limit), duration(phase.most_seconds), phase.what)
    total = duration(most_seconds(tuple(phases)))
    shown = f"{plural(len(names), 'node')}: {_names(names)}"
    end = f"At most {total} in all; a node that does not answer within a step's limit is lost, and the others go on."
    return "\n\n".join([screen.wrap(shown, indent=2), render_table(table, screen), screen.wrap(end, indent=2)])


def render_fleet(result: FleetCheck, screen: Screen = PLAIN) -> str:
    """All nodes that are not fine, some of those that are, findings of nodes and classes, notes and a summary."""
    verdicts = result.verdicts
    fine = [verdict for verdict in verdicts.nodes if verdict.state is NodeState.OK]
    other = [verdict for verdict in verdicts.nodes if verdict.state is not NodeState.OK]
    first = fine if len(fine) <= MOST_FINE + 1 else fine[:MOST_FINE]
    parts = [render_table(node_table([*other[:MOST_SHOWN], *first]), screen)] if verdicts.nodes else []
    hidden = len(verdicts.nodes) - len(other[:MOST_SHOWN]) - len(first)
    if hidden:
        parts[-1] += f"\n... and {plural(hidden, 'more node')}, in --json and on the page"
    for verdict in other[:MOST_SHOWN]:
        parts += [_paragraph(f"{verdict.state}: {verdict.name}", finding, screen) for finding in verdict.findings]
    parts += [_paragraph("class of machine", finding, screen) for finding in verdicts.of_classes]
    lines = [f"slow path: {path}" for path in verdicts.slow_paths]
    tolerated = [f"{verdict.name}: {text}" for verdict in [*other[:MOST_SHOWN], *first] for text in remarks(verdict)]
    lines += [f"no finding: {text}" for text in tolerated[:MOST_FINE]]
    if len(tolerated) > MOST_FINE:
        lines.append(f"... and {len(tolerated) - MOST_FINE} more such values, in --json and on the page")
    lines += [f"note: {note}" for note in verdicts.notes]
    if lines:
        parts.append("\n".join(screen.wrap(line, indent=6) for line in lines))
    return "\n\n".join([*parts, screen.wrap(fleet_summary(result), indent=2)])


def node_table(verdicts: Sequence[NodeVerdict]) -> Table:
    """A row a node: its state, its cause, and by phase the worst value as a share of its siblings' median."""
    phases = [phase for phase in PHASES if any(phase in verdict.shares for verdict in verdicts)]
    table = Table([
        Column("verdict"), Column("node"), Column("cause", wrap=True),
        *(Column(phase, "% of class", number=True, drop_order=1 + i) for i, phase in enumerate(phases)),
        Column("class", drop_order=9, wrap=True),
    ])  # fmt: skip
    for verdict in verdicts:
        cause = verdict.cause
        note = verdict.note if verdict.state in (NodeState.UNKNOWN, NodeState.BUSY) else ""
        text = note if cause is None else f"{cause.cause} {cause.about}".strip()
        table.add(
            TableCell(verdict.state.value, GRADES[verdict.state]), verdict.name, text,
            *(_share(verdict.shares.get(phase), phase in verdict.tolerated) for phase in phases),
            verdict.machine_class,
        )  # fmt: skip
    return table


def remarks(verdict: NodeVerdict) -> list[str]:
    """Why low values of a node are no finding, by phase: 'alone 62 %: in copy host0->host0 its siblings ...'."""
    return [f"{phase} {100 * verdict.shares[phase]:.0f} %: {why}" for phase, why in verdict.tolerated.items()]


def fleet_summary(result: FleetCheck) -> str:
    """One line: how many nodes of each state, how long it took, what was not reached."""
    verdicts = result.verdicts
    counts = [f"{verdicts.count(state)} {state.value}" for state in NodeState if verdicts.count(state)]
    text = f"{plural(len(verdicts.nodes), 'node')}: {', '.join(counts) or 'none'}; {duration(result.seconds)}"
    text += f", {plural(result.rounds, 'network round')}" if result.rounds else ""
    return f"{text}; interrupted" if result.interrupted else text


def duration(seconds: float) -> str:
    """'45 s', '12 min' (no less than it is: it is a bound too), '3.5 h'."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _share(share: float | None, tolerated: bool) -> str | TableCell:
    if share is None:
        return ""
    return TableCell(f"{100 * share:.0f}", "" if tolerated else "far" if share < 0.8 else "off" if share < 0.9 else "")


def _paragraph(head: str, finding: NodeFinding, screen: Screen) -> str:
    """What is wrong, where it was observed, compared with what, and the next step."""
    facts = [("seen", finding.evidence)] if finding.evidence else []
    facts.append(("compared", f"with {finding.basis}" + (f", {plural(finding.rows, 'row')}" if finding.rows else "")))
    title = screen.style(screen.wrap(f"{head}: {finding.title}", indent=2), "bold")
    # The next step is a command: it stays in one piece, to be copied.
    return f"{title}\n{screen.facts(facts, 2, 9)}\n  {'next':9} {finding.step}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"
