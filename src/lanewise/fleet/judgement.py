"""One verdict a node, from three comparisons: with the model, with its siblings, with its own past."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lanewise.checking.checkup import EXIT_FINE, EXIT_OPEN, EXIT_WRONG
from lanewise.checking.earlier_runs import LEAST_MACHINES, expect_earlier
from lanewise.checking.verdict import Verdict, judge
from lanewise.fleet.causes import row_findings
from lanewise.fleet.classes import equipment_findings, machine_classes
from lanewise.fleet.losses import lost_finding
from lanewise.fleet.node import BOOT, MODEL, PAST, NodeFinding, NodeReport, NodeState, NodeVerdict
from lanewise.fleet.siblings import ClassComparison, SlowRow, compare_siblings, half_width, least_loss
from lanewise.results.observation import Observation

# The rows of a node's earlier runs, oldest first, by the node's name.
Past = Mapping[str, Sequence[tuple[str, Sequence[Observation]]]]
_KINDS = ("lost", "fault", "slow")


@dataclass(frozen=True, slots=True)
class FleetVerdicts:
    """The verdicts on all nodes, the worst first; what holds for most nodes of a class is said of the class alone.

    `classes` has the names of each class's nodes, `of_classes` findings that most nodes of a class share, `slow_paths`
    pairs of nodes that are slow though both ends are fine, `notes` what could not be judged.
    """

    nodes: tuple[NodeVerdict, ...]
    classes: Mapping[str, tuple[str, ...]]
    of_classes: tuple[NodeFinding, ...] = ()
    notes: tuple[str, ...] = ()
    slow_paths: tuple[str, ...] = ()

    def count(self, state: NodeState) -> int:
        """How many nodes are in that state."""
        return sum(verdict.state is state for verdict in self.nodes)

    @property
    def exit_code(self) -> int:
        """1 for a node that is lost, at fault or slow, or a finding of a class; else 3 where one was not judged, or
        there is none; else 0."""
        wrong = (NodeState.LOST, NodeState.FAULT, NodeState.SLOW)
        if self.of_classes or any(map(self.count, wrong)):
            return EXIT_WRONG
        is_open = not self.nodes or self.count(NodeState.UNKNOWN) or self.count(NodeState.BUSY)
        return EXIT_OPEN if is_open else EXIT_FINE


def judge_fleet(
    reports: Sequence[NodeReport], past: Past | None = None, notes: Iterable[str] = (), slow_paths: Iterable[str] = ()
) -> FleetVerdicts:
    """The verdict on each node of a survey; `past` are the rows of its earlier runs.

    A note that all nodes give is said once, of the fleet.
    """
    of_all = _notes_of_all(reports)
    reports = [replace(report, notes=tuple(note for note in report.notes if note not in of_all)) for report in reports]
    classes = machine_classes(reports)
    verdicts, of_classes = [], []
    every_note = [*notes, *_one_machine(reports), *(f"all nodes: {note}" for note in of_all)]
    for name, members in classes.items():
        comparison = compare_siblings(members)
        common = _common_findings(members)
        of_classes += [replace(finding, evidence=f"{name}: {count} of {len(members)} nodes; {finding.evidence}")
                       for finding, count in common.values()]  # fmt: skip
        every_note += [f"{name}: {text}; these rows accuse no node" for text in comparison.divided]
        if len(members) < LEAST_MACHINES:
            every_note.append(f"{name}: {', '.join(report.name for report in members)} alone in this class of machine; "
                              f"siblings are compared from {LEAST_MACHINES} on")  # fmt: skip
        equipment = equipment_findings(members)
        for report in members:
            own = [entry for entry in report.findings if (entry.cause, entry.about) not in common]
            findings = [*equipment[report.name], *own]
            findings += row_findings(comparison.slow.get(report.name, ()), "siblings", len(report.gpus))
            earlier = (past or {}).get(report.name, ())
            findings += row_findings(slower_than_before(report, earlier), PAST, len(report.gpus))
            verdicts.append(_verdict(report, name, findings, comparison, len(earlier) >= LEAST_MACHINES))
    verdicts += [_lost(report) for report in reports if report.failure]
    order = list(NodeState)
    verdicts.sort(key=lambda verdict: (order.index(verdict.state), _worst(verdict), verdict.name))
    names = {name: tuple(report.name for report in members) for name, members in classes.items()}
    return FleetVerdicts(tuple(verdicts), names, tuple(of_classes), tuple(every_note), tuple(slow_paths))


def _one_machine(reports: Sequence[NodeReport]) -> Iterator[str]:
    boots = Counter(boot for report in reports if (boot := report.facts.get(BOOT)))
    for boot, count in boots.items():
        if count > 1:
            names = ", ".join(report.name for report in reports if report.facts.get(BOOT) == boot)
            yield f"{names} are one machine: they share its memory, and their network is loopback: no part is to blame"


def _notes_of_all(reports: Sequence[NodeReport]) -> list[str]:
    """The notes that every one of several nodes gives."""
    notes = [report.notes for report in reports if not report.failure and not report.busy]
    return [note for note in dict.fromkeys(notes[0]) if all(note in others for others in notes)] if notes[1:] else []


def _common_findings(members: Sequence[NodeReport]) -> dict[tuple[str, str], tuple[NodeFinding, int]]:
    """What the model says against more than half of a class: that is no fault of one node."""
    # Of a node one finding a cause, though several phases show it.
    counts = Counter(key for report in members for key in {(entry.cause, entry.about) for entry in report.findings})
    first: dict[tuple[str, str], NodeFinding] = {}
    for report in members:
        for entry in report.findings:
            first.setdefault((entry.cause, entry.about), entry)
    least = max(LEAST_MACHINES, len(members) // 2 + 1)
    return {key: (first[key], count) for key, count in counts.items() if count >= least}


def slower_than_before(report: NodeReport, earlier: Sequence[tuple[str, Sequence[Observation]]]) -> list[SlowRow]:
    """The rows that are slower than in the node's earlier runs by more than is worth a look; fewer than LEAST_MACHINES
    runs do not say what is usual."""
    if len(earlier) < LEAST_MACHINES:
        return []
    expect = expect_earlier(earlier)
    slow = []
    for row in report.rows:
        result = judge(row, expect(row))
        if result.verdict is not Verdict.SLOW or not result.expected.value:
            continue
        entry = SlowRow(row, result.expected.value, len(earlier))
        if 1 - entry.share > max(least_loss(row), half_width(row) or 0.0):
            slow.append(entry)
    return slow


def _verdict(
    report: NodeReport, machine_class: str, findings: Sequence[NodeFinding], comparison: ClassComparison, past: bool
) -> NodeVerdict:
    merged = _merged(findings)
    worst = _worst_rows(comparison.shares.get(report.name, ()))
    state, note = NodeState.OK, "; ".join(report.notes)
    if merged:
        state = NodeState.FAULT if merged[0].kind == "fault" else NodeState.SLOW
    elif report.busy:
        state, note = NodeState.BUSY, report.busy
    elif not (report.judged or comparison.compared.get(report.name) or past):
        state = NodeState.UNKNOWN
        note = "; ".join(filter(None, ["nothing to compare it with: no model, no siblings, no past", note]))
    slow = {id(entry.row) for entry in comparison.slow.get(report.name, ())}
    tolerated = {phase: _why_tolerated(entry) for phase, entry in worst.items()
                 if id(entry.row) not in slow and round(1 - entry.share, 2) > least_loss(entry.row)}  # fmt: skip
    shares = {phase: entry.share for phase, entry in worst.items()}
    return NodeVerdict(report.name, state, machine_class, merged, shares, note, tolerated)


def _merged(findings: Sequence[NodeFinding]) -> tuple[NodeFinding, ...]:
    """One finding a cause, faults first, then those with the most rows; what several comparisons say is joined."""
    by_cause: dict[tuple[str, str], list[NodeFinding]] = defaultdict(list)
    for finding in findings:
        by_cause[finding.cause, finding.about].append(finding)
    merged = [
        replace(group[0], evidence="; ".join(filter(None, dict.fromkeys(entry.evidence for entry in group))),
                basis=", ".join(dict.fromkeys(entry.basis for entry in group)),
                rows=max(entry.rows for entry in group))
        for group in by_cause.values()
    ]  # fmt: skip
    return tuple(sorted(merged, key=lambda entry: (_KINDS.index(entry.kind), MODEL not in entry.basis, -entry.rows)))


def _worst_rows(rows: Sequence[SlowRow]) -> dict[str, SlowRow]:
    """The row with the lowest share of the siblings' median, by phase."""
    worst: dict[str, SlowRow] = {}
    for entry in sorted(rows, key=lambda entry: entry.share, reverse=True):
        worst[entry.row.table] = entry
    return worst


def _why_tolerated(entry: SlowRow) -> str:
    """Why a row that is worse than the median of its class is no finding."""
    what = f"in {entry.row.scenario} {entry.row.flow}"
    if entry.share < entry.least_share:
        return f"{what} more than a quarter of the class is slow"
    if not entry.least_share:
        return f"{what} its siblings differ too much to call any of them slow"
    return f"{what} its siblings differ as much; slow is below {100 * entry.least_share:.0f} %"


def _lost(report: NodeReport) -> NodeVerdict:
    finding = lost_finding(report.name, report.failure)
    return NodeVerdict(report.name, NodeState.LOST, "", (finding,))


def _worst(verdict: NodeVerdict) -> float:
    """The worst share that a node's cause or rows state."""
    shares = [*verdict.shares.values(), *(entry.share for entry in verdict.findings if entry.share is not None)]
    return min(shares, default=1.0)
