"""A single run of a load test as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanewise import units
from lanewise.report.screen import PIPE, Screen
from lanewise.report.text.loadtest import percentiles, render_notes, render_stages, tested


def render_run(data: Mapping[str, Any], screen: Screen = PIPE) -> str:
    """The verdict, Top-1 or the audit, latencies, where time went."""
    logs = [data["logs"] or data["folder"]]
    logs += [f"{data['same_sample']['logs']} (one sample)"] if data["same_sample"] else []
    return "\n\n".join(filter(None, [
        _answer(data, screen), render_stages(data, screen=screen), render_notes(data["notes"], logs, screen),
    ]))  # fmt: skip


def _answer(data: Mapping[str, Any], screen: Screen) -> str:
    bound = f", p{100 * data['percentile']:g} within {units.readable(data['bound'], 's')}" if data["bound"] else ""
    target = f" at {data['target']:,.0f}/s" if data["target"] else ""
    facts = [("reason", reason) for reason in data["reasons"]]
    if top1 := data["accuracy"]:
        facts.append(("Top-1", f"{100 * top1['top1']:.2f} %: {top1['correct']} of {top1['counted']} labelled images"))
    if audit := data["audit"]:
        facts.append(("audit", f"{audit['name']} {'passed' if audit['passed'] else 'FAILED'}: {audit['cause']}"))
    facts += [
        ("completed", f"{data['queries']:,} in {data['seconds']:.1f} s, {data['qps']:,.0f}/s"),
        ("latency", percentiles(data["latency"])),
        ("issue lag", percentiles(data["lag"])),
        ("tested", tested(data["about"])),
    ]
    head = screen.wrap(f"{data['scenario']}{target}{bound}: {data['verdict']}", 2)
    return f"{head}\n{screen.facts(facts, 0, 10)}"
