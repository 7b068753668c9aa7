"""A fleet check for programs: plain data for JSON (docs/reference/fleet-json.md), and Prometheus' text format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise.fleet.fleet_check import FleetCheck
from lanewise.fleet.node import NodeFinding, NodeState, NodeVerdict
from lanewise.fleet.schedule import SurveyPhase, most_seconds
from lanewise.report.json import json_document
from lanewise.report.prometheus import family

_HELP = {
    "lanewise_fleet_node_state": "1 for the state of the node (ok, slow, fault, lost, unknown, busy), else 0.",
    "lanewise_fleet_node_share": "The node's worst value in a phase over the median of its class of machine.",
    "lanewise_fleet_nodes": "Nodes by state.",
    "lanewise_fleet_exit_code": "0 all well, 1 findings, 3 nodes that were not judged.",
    "lanewise_fleet_seconds": "How long the check took.",
    "lanewise_fleet_timestamp_seconds": "When the check ended, seconds since 1970.",
}


@json_document("fleet")
def fleet_json(result: FleetCheck) -> dict[str, Any]:
    """The check as plain data in SI units, the worst node first."""
    verdicts = result.verdicts
    return {
        "exit_code": result.exit_code, "counts": {state.value: verdicts.count(state) for state in NodeState},
        "nodes": [_node(verdict, result) for verdict in verdicts.nodes],
        "classes": [{"class": name, "nodes": nodes} for name, nodes in verdicts.classes.items()],
        "class_findings": [_finding(finding) for finding in verdicts.of_classes],
        "phases": result.phases, "network_rounds": result.rounds, "seconds": result.seconds,
        "interrupted": result.interrupted, "slow_paths": verdicts.slow_paths, "notes": verdicts.notes,
    }  # fmt: skip


@json_document("fleet-plan")
def fleet_plan_json(names: Sequence[str], phases: Sequence[SurveyPhase]) -> dict[str, Any]:
    """The nodes and phases of a survey, with the longest time of each (s)."""
    return {
        "nodes": names, "most_seconds": most_seconds(tuple(phases)),
        "phases": [{"phase": phase.name, "steps": phase.steps, "limit": phase.limit, "what": phase.what}
                   for phase in phases],
    }  # fmt: skip


def fleet_prometheus(result: FleetCheck, when: float) -> str:
    """The check in Prometheus' text format; `when` in s since 1970."""
    nodes = result.verdicts.nodes
    series: dict[str, list[tuple[dict[str, str], float]]] = {
        "lanewise_fleet_node_state": [
            ({"node": verdict.name, "state": state.value}, float(verdict.state is state))
            for verdict in nodes for state in NodeState
        ],
        "lanewise_fleet_node_share": [
            ({"node": verdict.name, "phase": phase}, share)
            for verdict in nodes for phase, share in verdict.shares.items()
        ],
        "lanewise_fleet_nodes": [({"state": state.value}, result.verdicts.count(state)) for state in NodeState],
        "lanewise_fleet_exit_code": [({}, result.exit_code)],
        "lanewise_fleet_seconds": [({}, round(result.seconds, 3))],
        "lanewise_fleet_timestamp_seconds": [({}, when)],
    }  # fmt: skip
    return "".join(family(metric, _HELP[metric], values) for metric, values in series.items() if values)


def _node(verdict: NodeVerdict, result: FleetCheck) -> dict[str, Any]:
    report = result.reports[verdict.name]
    return {
        "node": verdict.name, "state": verdict.state, "class": verdict.machine_class or None,
        "shares": verdict.shares, "tolerated": verdict.tolerated,
        "findings": [_finding(finding) for finding in verdict.findings],
        "note": verdict.note or None, "machine": report.facts, "gpus": report.gpus,
        "rows": [
            {"phase": row.table, "scenario": row.scenario, "flow": row.flow, "metric": row.metric,
             "settings": row.settings, "unit": row.unit, "measured": row.value}
            for row in report.rows
        ],
    }  # fmt: skip


def _finding(finding: NodeFinding) -> dict[str, Any]:
    return {
        "kind": finding.kind, "compared_with": finding.basis, "cause": finding.cause, "about": finding.about or None,
        "what": finding.title, "seen": finding.evidence or None, "share": finding.share, "rows": finding.rows,
        "next": finding.step,
    }  # fmt: skip
