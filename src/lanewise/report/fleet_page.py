"""A fleet check as one offline HTML page: a tile for each node, a heat map of phases, each finding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lanewise.errors import printable
from lanewise.fleet.fleet_check import FleetCheck
from lanewise.fleet.node import PHASES, NodeState, NodeVerdict
from lanewise.report.table import Column, Table, number_columns
from lanewise.report.template import page_environment, page_styles
from lanewise.report.text.fleet import GRADES, fleet_summary, remarks
from lanewise.report.words import anchor, plural

# Nodes with a row of their own, the worst; above so many every node has a tile too.
MOST_ROWS = 60
# From so many percent on, by grade; the colour is that of the number that is shown.
_GRADES = ((95, "s0"), (90, "s1"), (80, "s2"), (65, "s3"), (50, "s4"), (0, "s5"))

_TOLERATED = "tolerated"


def fleet_html(result: FleetCheck, created: str, version: str, command: str) -> str:
    """The page as text; it needs no network and no script."""
    from markupsafe import Markup

    nodes = result.verdicts.nodes
    shown, wrong = nodes[:MOST_ROWS], [verdict for verdict in nodes if verdict.findings]
    phases = [phase for phase in PHASES if any(phase in verdict.shares for verdict in nodes)]
    heading = f"The {len(shown)} worst of {len(nodes)} nodes" if len(nodes) > MOST_ROWS else plural(len(nodes), "node")
    page = page_environment("fleet.html.j2", "table.html.j2").get_template("fleet.html.j2").render(
        title="Fleet check", created=created, version=version, command=command, summary=fleet_summary(result),
        lead=_lead(result), legend=_legend(nodes),
        css=Markup(page_styles()), heading=heading, phases=phases,
        tiles=[_tile(verdict) for verdict in nodes] if len(nodes) > MOST_ROWS else [],
        rows=[_row(verdict, phases) for verdict in shown],
        findings=[{"anchor": _anchor(verdict), "title": f"{verdict.name}: {verdict.state}",
                   "findings": verdict.findings} for verdict in wrong],
        classes=_classes(result), slow_paths=result.verdicts.slow_paths,
        notes=[*(f"{entry.title} ({entry.evidence}); next: {entry.step}" for entry in result.verdicts.of_classes),
               *result.verdicts.notes],
    )  # fmt: skip
    return printable(page)


def share_grade(share: float | None) -> str:
    """The class of a cell: s0 (95 % and more) to s5, or none where nothing was measured."""
    if share is None:
        return "none"
    return next(grade for least, grade in _GRADES if round(100 * share) >= least)


def _legend(nodes: Sequence[NodeVerdict]) -> list[tuple[str, str]]:
    """The class of each kind of cell, and what it means."""
    bounds = [least for least, _ in _GRADES]
    texts = [f"{bounds[0]} % and more", *(f"{low} to {high - 1} %" for high, low in pairwise(bounds[:-1]))]
    kinds = [*zip((grade for _, grade in _GRADES), [*texts, f"below {bounds[-2]} %"], strict=True)]
    if any(verdict.tolerated for verdict in nodes):
        kinds.append((_TOLERATED, "low, but its siblings differ as much: no finding"))
    if any(verdict.state is NodeState.LOST for verdict in nodes):
        kinds.append(("lost", "lost"))
    return [*kinds, ("none", "not compared")]


def _lead(result: FleetCheck) -> str:
    """What is wrong, by cause: '1,000 nodes, 20 of them with findings: link 3, memory 2.'"""
    wrong = [verdict for verdict in result.verdicts.nodes if verdict.cause]
    causes = [verdict.cause.cause for verdict in wrong if verdict.cause]
    counts = ", ".join(f"{cause} {causes.count(cause)}" for cause in dict.fromkeys(causes))
    nodes = plural(len(result.verdicts.nodes), "node")
    text = f"{nodes}, {len(wrong)} of them with findings: {counts}." if wrong else f"{nodes}, none with a finding."
    paths = len(result.verdicts.slow_paths)
    return (
        f"{text} {plural(paths, 'path')} between nodes that are fine {'is' if paths == 1 else 'are'} slow."
        if (paths)
        else text
    )


def _worst(verdict: NodeVerdict) -> float | None:
    shares = [*verdict.shares.values(), *(entry.share for entry in verdict.findings if entry.share is not None)]
    return min(shares, default=None)


def _tile(verdict: NodeVerdict) -> dict[str, Any]:
    cause = f": {verdict.cause.title}" if verdict.cause else ""
    lost = verdict.state is NodeState.LOST
    grade = "lost" if lost else _TOLERATED if verdict.tolerated and not cause else share_grade(_worst(verdict))
    return {"grade": grade, "text": f"{verdict.name} {verdict.state}{cause}", "href": _href(verdict)}


def _row(verdict: NodeVerdict, phases: Sequence[str]) -> dict[str, Any]:
    lost = verdict.state is NodeState.LOST
    cells = [
        ("", "lost") if lost else (_percent(verdict.shares.get(phase)), _grade(verdict, phase)) for phase in phases
    ]
    cause = "" if verdict.cause is None else verdict.cause.title
    return {"name": verdict.name, "state": verdict.state.value, "grade": GRADES[verdict.state], "cells": cells,
            "cause": cause, "notes": [*filter(None, [verdict.note]), *remarks(verdict)],
            "href": _href(verdict)}  # fmt: skip


def _grade(verdict: NodeVerdict, phase: str) -> str:
    return _TOLERATED if phase in verdict.tolerated else share_grade(verdict.shares.get(phase))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _href(verdict: NodeVerdict) -> str:
    return f"#{_anchor(verdict)}" if verdict.findings else ""


def _anchor(verdict: NodeVerdict) -> str:
    return anchor("node", verdict.name)


def _classes(result: FleetCheck) -> Table:
    table = Table([Column("class", wrap=True), *number_columns("nodes", "with findings")])
    wrong = {verdict.name for verdict in result.verdicts.nodes if verdict.findings}
    for name, nodes in result.verdicts.classes.items():
        table.add(name, str(len(nodes)), str(len(wrong & set(nodes))))
    return table
