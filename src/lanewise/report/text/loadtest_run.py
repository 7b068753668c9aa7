"""A single run of a load test for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lanewise import units
from lanewise.report.text.loadtest import stages, tested, times


def as_text(data: Mapping[str, Any]) -> str:
    """The verdict, Top-1 or the audit, latencies, where time went."""
    return "\n".join([*_answer(data), "", *stages(data), "", *_rest(data)])


def _answer(data: Mapping[str, Any]) -> Iterator[str]:
    keeping = ""
    if data["bound"]:
        keeping = f", p{100 * data['percentile']:g} within {units.readable(data['bound'], 's')}"
    target = f" at {data['target']:,.0f}/s" if data["target"] else ""
    yield f"{data['scenario']}{target}{keeping}: {data['verdict']}"
    for reason in data["reasons"]:
        yield f"reason     {reason}"
    if top1 := data["accuracy"]:
        yield f"Top-1      {100 * top1['top1']:.2f} %: {top1['correct']} of {top1['counted']} labelled images"
    if audit := data["audit"]:
        yield f"audit      {audit['name']} {'passed' if audit['passed'] else 'FAILED'}: {audit['cause']}"
    yield f"completed  {data['queries']:,} in {data['seconds']:.1f} s, {data['qps']:,.0f}/s"
    for name, values in (("latency", data["latency"]), ("issue lag", data["lag"])):
        if shown := times(values):
            yield f"{name:11}{shown}"
    yield f"tested     {tested(data['about'])}"


def _rest(data: Mapping[str, Any]) -> Iterator[str]:
    for note in data["notes"]:
        yield f"note: {note}"
    yield f"logs: {data['logs'] or data['folder']}"
    if data["same_sample"]:
        yield f"logs: {data['same_sample']['logs']} (one sample)"


__all__ = ["as_text"]
