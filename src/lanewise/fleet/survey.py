"""A survey of many nodes: the phases in their order, one step at a time, and what each node answers.

A node that does not answer within its limit, or whose connection ends, is lost: a finding, and the others go on.
Everything that has been answered is in `reports` and `tests` at any time, so that an interrupted survey can be judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lanewise.checking.verdict import lower_is_better
from lanewise.fleet.classes import machine_classes
from lanewise.fleet.judgement import FleetVerdicts, Past, judge_fleet, slower_than_before
from lanewise.fleet.node import (
    ALONE,
    DRIVE,
    FACTS,
    NETWORK,
    SHARED_ALONE,
    SHARED_TOGETHER,
    TOGETHER,
    NodeReport,
    in_phase,
    row_key,
)
from lanewise.fleet.pair_tests import PairTest, network_rows, pairs_again, shared_paths, slow_pairs, suspects
from lanewise.fleet.rounds import MOST_ALL_PAIRS, Round, bisection_rounds, network_rounds, rounds_again
from lanewise.fleet.schedule import LIMITS, MOST_SHARED_ALONE
from lanewise.fleet.siblings import compare_siblings
from lanewise.options.fleet import RANDOM_ROUNDS
from lanewise.results.observation import Observation

LISTEN = "listen"
_MOST_LINES = 8


@dataclass(frozen=True, slots=True)
class NodeJob:
    """What a node is to do: a phase or LISTEN, with its `values` (address, path, secret) by name."""

    do: str
    values: Mapping[str, str] = field(default_factory=dict)


class NodeConnections(Protocol):
    """How the nodes of a fleet are reached: local processes, ssh, Ray."""

    @property
    def addresses(self) -> Mapping[str, str]:
        """The nodes' names, and the address at which the others reach each."""

    def do(self, jobs: Mapping[str, NodeJob], limit: float) -> Iterator[NodeReport]:
        """What each of these nodes answers, as it comes: one report a node, with `failure` where none came within
        `limit` seconds."""


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """What a survey measures: `drive` and `shared` are paths on the nodes, read only; '' leaves the phase out.

    `system` is the name or the text of the description that nodes are compared with ('' is what each node shows);
    `secret` is what nodes prove to each other over `transport`. `busy`: nodes with a busy GPU are measured too. Limits
    are multiplied by `patience`.
    """

    drive: str = ""
    shared: str = ""
    network: bool = True
    transport: str = "tcp"
    rounds: int = RANDOM_ROUNDS
    seed: int = 0
    busy: bool = False
    system: str = ""
    secret: str = ""
    patience: float = 1.0


class Survey:
    """The state of a survey; `run` goes on step by step."""

    def __init__(self, connections: NodeConnections, request: SurveyRequest, past: Past | None = None) -> None:
        self._connections, self._request, self._past = connections, request, past or {}
        self.reports = {name: NodeReport(name) for name in connections.addresses}
        self.tests: list[PairTest] = []
        self.bisection: int | None = None
        self.rounds = 0
        self.phases: list[str] = []

    def run(self) -> Iterator[str]:
        """Does the survey, and yields a line about each step once it is done."""
        request = self._request
        common = {"system": request.system, "secret": request.secret}
        yield from self._step(FACTS, common)
        yield from self._twice(ALONE, common)
        yield from self._twice(TOGETHER, common)
        if request.network:
            yield from self._network()
        if request.drive:
            yield from self._twice(DRIVE, {"path": request.drive})
        if request.shared:
            for name in self._able()[:MOST_SHARED_ALONE]:
                yield from self._step(SHARED_ALONE, {"path": request.shared}, [name])
            yield from self._twice(SHARED_TOGETHER, {"path": request.shared})

    def verdicts(self, notes: Sequence[str] = ()) -> FleetVerdicts:
        """One verdict a node, of what has been answered by now."""
        reports = list(self.reports_with_network().values())
        return judge_fleet(reports, self._past, [*notes, *self._network_notes()], self._slow_paths())

    def reports_with_network(self) -> dict[str, NodeReport]:
        """The report of each node, with its rows of the network tests."""
        rows = network_rows(self.tests)
        return {name: report.with_rows(*rows.get(name, ())) for name, report in self.reports.items()}

    def _able(self) -> list[str]:
        """The nodes that are neither lost nor left alone."""
        return [name for name, report in self.reports.items() if not report.failure and not report.busy]

    def _twice(self, phase: str, values: Mapping[str, str]) -> Iterator[str]:
        """A step, and again for the nodes that were slow in it: other work may have disturbed them, faults stay.

        What many nodes load together is loaded by all of them again.
        """
        yield from self._step(phase, values)
        slow = slow_nodes([report for report in self.reports.values() if not report.failure], phase, self._past)
        if not slow:
            return
        first = {name: self.reports[name] for name in slow}
        for name in slow:
            self.reports[name] = without_phase(first[name], phase)
        again = self._able() if phase in (TOGETHER, SHARED_TOGETHER) else slow
        others = {name: self.reports[name] for name in again if name not in first}
        for line in self._step(phase, {**values, "attempt": "2"}, again):
            yield f"again, {line}"
        for name, report in others.items():
            failure = self.reports[name].failure
            self.reports[name] = replace(report, failure=failure)
        for name, report in first.items():
            self.reports[name] = better_of(report, self.reports[name], phase)

    def _step(self, phase: str, values: Mapping[str, str], names: Sequence[str] | None = None) -> Iterator[str]:
        names = self._able() if names is None else names
        answers = {answer.name: answer for answer in self._do(dict.fromkeys(names, NodeJob(phase, values)), phase)}
        for name, answer in answers.items():
            report = _joined(self.reports[name], answer, phase)
            self.reports[name] = replace(report, busy="") if self._request.busy else report
        if phase not in self.phases:
            self.phases.append(phase)
        of_one = f" {names[0]}" if phase == SHARED_ALONE else ""
        yield f"{phase}{of_one}: {len(answers)} of {len(names)} nodes answered"

    def _do(self, jobs: Mapping[str, NodeJob], phase: str) -> list[NodeReport]:
        """The answers of the nodes that gave one; the others are lost from now on."""
        answers = []
        if jobs:
            for answer in self._connections.do(jobs, LIMITS[phase] * self._request.patience):
                if answer.failure:
                    self.reports[answer.name] = replace(
                        self.reports[answer.name], failure=f"lost in phase {phase}: {answer.failure}"
                    )
                else:
                    answers.append(answer)
        return answers

    def _network(self) -> Iterator[str]:
        """Rounds of pairs; above MOST_ALL_PAIRS nodes the suspects are then measured with trusted partners."""
        able = self._able()
        if len(able) < 2:
            return
        listen = {
            name: NodeJob(LISTEN, {"address": self._connections.addresses[name], **self._pair()}) for name in able
        }
        answers = self._do(listen, NETWORK)
        ports = {answer.name: answer.facts["port"] for answer in answers if "port" in answer.facts}
        self.phases.append(NETWORK)
        yield f"network: {len(ports)} of {len(able)} nodes listen"
        names = [name for name in able if name in ports]
        for pairs in network_rounds(names, self._request.rounds, self._request.seed):
            yield self._round(pairs, ports)
        for _ in range(rounds_again(len(names))):
            if pairs := pairs_again(self.tests):
                yield f"again, {self._round(pairs, ports)}"
        slow = suspects(self.tests)
        if len(names) <= MOST_ALL_PAIRS or not slow:
            return
        self.bisection = self.rounds
        trusted = [name for name in names if name not in slow and not self.reports[name].failure]
        for pairs in bisection_rounds([name for name in slow if not self.reports[name].failure], trusted):
            yield self._round(pairs, ports)

    def _round(self, pairs: Round, ports: Mapping[str, str]) -> str:
        """One round: the first node of each pair measures both directions to the second."""
        partner = {a: b for a, b in pairs if not (self.reports[a].failure or self.reports[b].failure)}
        addresses = self._connections.addresses
        jobs = {
            a: NodeJob(NETWORK, {"address": _endpoint(addresses[b], ports[b]), **self._pair()})
            for a, b in partner.items()
        }
        answers = self._do(jobs, NETWORK)
        for answer in answers:
            other = partner[answer.name]
            rates = {row.flow: row.value for row in answer.rows if row.metric == "goodput"}
            for flow, a, b in (("host0->host1", answer.name, other), ("host1->host0", other, answer.name)):
                self.tests.append(PairTest(a, b, rates.get(flow), self.rounds, "; ".join(answer.notes)))
        self.rounds += 1
        return f"network round {self.rounds}: {len(answers)} of {len(jobs)} pairs measured"

    def _pair(self) -> dict[str, str]:
        """What both ends of a network test have to know."""
        return {"secret": self._request.secret, "transport": self._request.transport}

    def _slow_paths(self) -> list[str]:
        pairs = slow_pairs(self.tests)
        more = [f"... and {len(pairs) - _MOST_LINES} more"] if len(pairs) > _MOST_LINES else []
        return [*map(str, pairs[:_MOST_LINES]), *more]

    def _network_notes(self) -> list[str]:
        notes = []
        if self.bisection is not None and (shared := shared_paths(self.tests, self.bisection)):
            notes.append(f"slow only while others of them send as well, so they share an uplink: {', '.join(shared)}")
        failed = {test.source: test.note for test in self.tests if test.rate is None}
        notes += [f"network not measured from {name}: {note}" for name, note in list(failed.items())[:_MOST_LINES]]
        return notes


def _endpoint(address: str, port: str) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def slow_nodes(reports: Sequence[NodeReport], phase: str, past: Past) -> list[str]:
    """The nodes that the model, their siblings or their own `past` call slow in a phase."""
    own = [replace(report, rows=tuple(row for row in report.rows if row.table == phase)) for report in reports]
    by_siblings = {name for members in machine_classes(own).values() for name in compare_siblings(members).slow}
    by_past = {report.name for report in own if slower_than_before(report, past.get(report.name, ()))}
    by_model = {report.name for report in own if any(entry.phase == phase for entry in report.findings)}
    return [report.name for report in reports if report.name in by_siblings | by_past | by_model]


def without_phase(report: NodeReport, phase: str) -> NodeReport:
    """The report without what a phase added to it."""
    rows = tuple(row for row in report.rows if row.table != phase)
    return replace(report, rows=rows, findings=tuple(entry for entry in report.findings if entry.phase != phase))


def better_of(first: NodeReport, second: NodeReport, phase: str) -> NodeReport:
    """The second report, with the first one's rows of the phase where they are better; only findings that came twice.

    A node that did not answer the second time keeps what it said at first.
    """
    again = {row_key(row): row for row in second.rows if row.table == phase}
    if not again:
        return replace(first, failure=second.failure)
    rows = [row for row in second.rows if row.table != phase]
    rows += [_better(row, again.get(row_key(row), row)) for row in first.rows if row.table == phase]
    causes = {(entry.cause, entry.about) for entry in first.findings if entry.phase == phase}
    findings = [entry for entry in second.findings if entry.phase != phase or (entry.cause, entry.about) in causes]
    return replace(second, rows=tuple(rows), findings=tuple(findings), judged=first.judged)


def _better(a: Observation, b: Observation) -> Observation:
    if a.value is None or b.value is None:
        return b if a.value is None else a
    return min(a, b, key=lambda row: row.value or 0.0) if lower_is_better(a.unit) else (
        max(a, b, key=lambda row: row.value or 0.0)
    )  # fmt: skip


def _joined(report: NodeReport, answer: NodeReport, phase: str) -> NodeReport:
    """What is known of a node with one more answer; its rows are of that phase."""
    rows = tuple(in_phase(row, phase) for row in answer.rows)
    if phase in (DRIVE, SHARED_ALONE, SHARED_TOGETHER):
        rows = tuple(replace(row, scenario=f"{phase}, {row.scenario}") for row in rows)
    return replace(
        report, facts={**report.facts, **answer.facts}, gpus=answer.gpus or report.gpus, rows=(*report.rows, *rows),
        findings=(*report.findings, *(replace(entry, phase=phase) for entry in answer.findings)),
        notes=(*report.notes, *answer.notes),
        judged=report.judged + answer.judged, busy=answer.busy or report.busy,
    )  # fmt: skip
