"""A fleet check as JUnit XML, which CI systems and admission pipelines read."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from lanewise.errors import printable
from lanewise.fleet.fleet_check import FleetCheck
from lanewise.fleet.node import NodeState, NodeVerdict

_FAILED = (NodeState.LOST, NodeState.FAULT, NodeState.SLOW)


def fleet_junit(result: FleetCheck) -> str:
    """A test case for each node: failed where it is lost, at fault or slow, skipped where it was not judged."""
    verdicts = result.verdicts
    failures = sum(map(verdicts.count, _FAILED))
    skipped = len(verdicts.nodes) - failures - verdicts.count(NodeState.OK)
    counts = {"tests": str(len(verdicts.nodes)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}
    suites = Xml.Element("testsuites", {**counts, "time": f"{result.seconds:.3f}"})
    suite = Xml.SubElement(suites, "testsuite", {"name": "lanewise fleet check", **counts})
    for verdict in sorted(verdicts.nodes, key=lambda verdict: verdict.name):
        _case(suite, verdict)
    Xml.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(suites, encoding="unicode") + "\n"


def _case(suite: Xml.Element, verdict: NodeVerdict) -> None:
    case = Xml.SubElement(suite, "testcase", {
        "name": printable(verdict.name), "classname": printable(verdict.machine_class) or "unknown",
    })  # fmt: skip
    if verdict.state in _FAILED:
        cause = verdict.findings[0]
        failure = Xml.SubElement(case, "failure", {"type": verdict.state, "message": printable(cause.title)})
        lines = [f"{entry.title}: {entry.evidence}\nnext: {entry.step}" for entry in verdict.findings]
        failure.text = printable("\n".join(lines))
    elif verdict.state is not NodeState.OK:
        Xml.SubElement(case, "skipped", {"message": printable(verdict.note or verdict.state)})
