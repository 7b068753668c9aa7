"""A fleet check as one offline HTML page: a tile for each node, a heat map of phases, each finding."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

from lanewise.errors import printable
from lanewise.fleet.fleet_check import FleetCheck
from lanewise.fleet.node import PHASES, NodeState, NodeVerdict
from lanewise.report.table import Column, Table, number_columns
from lanewise.report.text.fleet import GRADES, fleet_summary
from lanewise.report.words import anchor, plural

# Nodes with a row of their own, the worst; above so many every node has a tile too.
MOST_ROWS = 60
# From this share on, by grade.
_GRADES = ((0.95, "s0"), (0.90, "s1"), (0.80, "s2"), (0.65, "s3"), (0.50, "s4"), (0.0, "s5"))


def fleet_html(result: FleetCheck, created: str) -> str:
    """The page as text; it needs no network and no script."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    folder = resources.files("lanewise.report") / "templates"
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in ("fleet.html.j2", "table.html.j2")}
    environment = Environment(autoescape=True, trim_blocks=True, undefined=StrictUndefined, loader=DictLoader(texts))
    nodes = result.verdicts.nodes
    shown, wrong = nodes[:MOST_ROWS], [verdict for verdict in nodes if verdict.findings]
    phases = [phase for phase in PHASES if any(phase in verdict.shares for verdict in nodes)]
    heading = f"The {len(shown)} worst of {len(nodes)} nodes" if len(nodes) > MOST_ROWS else plural(len(nodes), "node")
    page = environment.get_template("fleet.html.j2").render(
        title="Fleet check", created=created, summary=fleet_summary(result), lead=_lead(result),
        css=Markup((folder / "page.css").read_text(encoding="utf-8")), heading=heading, phases=phases,
        tiles=[_tile(verdict) for verdict in nodes] if len(nodes) > MOST_ROWS else [],
        rows=[_row(verdict, phases) for verdict in shown],
        findings=[{"anchor": _anchor(verdict), "title": f"{verdict.name}: {verdict.state}",
                   "findings": verdict.findings} for verdict in wrong],
        classes=_classes(result), notes=[*(f"{entry.title} ({entry.evidence}); next: {entry.step}"
                                           for entry in result.verdicts.of_classes), *result.verdicts.notes],
    )  # fmt: skip
    return printable(page)


def share_grade(share: float | None) -> str:
    """The class of a cell: s0 (95 % and more) to s5, or none where nothing was measured."""
    if share is None:
        return "none"
    return next(grade for least, grade in _GRADES if share >= least)


def _lead(result: FleetCheck) -> str:
    """What is wrong, by cause: '1,000 nodes, 20 of them with findings: 3 link, 2 memory'."""
    wrong = [verdict for verdict in result.verdicts.nodes if verdict.cause]
    causes = [verdict.cause.cause for verdict in wrong if verdict.cause]
    counts = ", ".join(f"{causes.count(cause)} {cause}" for cause in dict.fromkeys(causes))
    nodes = plural(len(result.verdicts.nodes), "node")
    return f"{nodes}, {len(wrong)} of them with findings: {counts}." if wrong else f"{nodes}, none with a finding."


def _worst(verdict: NodeVerdict) -> float | None:
    shares = [*verdict.shares.values(), *(entry.share for entry in verdict.findings if entry.share is not None)]
    return min(shares, default=None)


def _tile(verdict: NodeVerdict) -> dict[str, Any]:
    cause = f": {verdict.cause.title}" if verdict.cause else ""
    grade = "lost" if verdict.state is NodeState.LOST else share_grade(_worst(verdict))
    return {"grade": grade, "text": f"{verdict.name} {verdict.state}{cause}", "href": _href(verdict)}


def _row(verdict: NodeVerdict, phases: Sequence[str]) -> dict[str, Any]:
    lost = verdict.state is NodeState.LOST
    cells = [
        ("", "lost") if lost else (_percent(verdict.shares.get(phase)), share_grade(verdict.shares.get(phase)))
        for phase in phases
    ]
    cause = verdict.note if verdict.cause is None else verdict.cause.title
    return {"name": verdict.name, "state": verdict.state.value, "grade": GRADES[verdict.state], "cells": cells,
            "cause": cause, "href": _href(verdict)}  # fmt: skip


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
