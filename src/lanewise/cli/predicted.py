"""What `lanewise predict` answers, as text for people and as data for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanewise.cli import terminal
from lanewise.cli.terminal import heading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lanewise.perf.matrix import Matrix
    from lanewise.perf.predict import FlowRate, Prediction
    from lanewise.perf.transfers import Finished
    from lanewise.serving.steady import ServiceRate
    from lanewise.topology.model import System


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as data, and how it is shown to people."""

    data: dict[str, Any]
    show: Callable[[], None]


def rates(found: Prediction) -> Answer:
    """Flows together: goodput, interval, limit, basis and what it rests on."""
    from lanewise import units

    notes = terminal.Footnotes()
    rows = [_flow_row(flow, notes) for flow in found.flows]
    if len(rows) > 1:
        rows.append(("all together", "", units.number(found.total / 1e9), "", "", "", ""))
    heads = ("flow", "route", "GB/s", "interval", "limit", "basis", "rests on")
    text = [heading(found.system), terminal.table(heads, rows, right=("GB/s",)), "", notes.show()]
    data = {
        **_head(found.system),
        "total": found.total,
        "unit": "B/s",
        "flows": [_flow_data(flow) for flow in found.flows],
    }
    return Answer(data, lambda: terminal.out("\n".join(text)))


def transfers(system: System, found: Sequence[Finished]) -> Answer:
    """Finite transfers: who ends when, at which average rate, and what limits each while all run."""
    from lanewise import units

    rows = []
    for one in found:
        times = (_clock(one.start), _clock(one.delay), _clock(one.finish))
        rate = units.number(one.rate / 1e9)
        rows.append((one.flow.name, _size(one.flow.size or 0.0), *times, rate, one.limit, one.basis))
    heads = ("flow", "size", "start", "latency", "end", "average GB/s", "limit while all run", "basis")
    data = [
        {
            "flow": f.flow.name,
            "size": f.flow.size,
            "start": f.start,
            "latency": f.delay,
            "finish": f.finish,
            "goodput": f.rate,
            "limit": f.limit,
            "basis": f.basis,
            "rests_on": list(f.rests_on),
            "ways": [list(route.nodes) for route in f.routes],
        }
        for f in found
    ]
    units_of = {"size": "B", "start": "s", "latency": "s", "finish": "s", "goodput": "B/s"}

    def show() -> None:
        from lanewise.report.matrices import Transfer, show_timeline

        terminal.out(f"{heading(system)}\n{terminal.table(heads, rows, right=heads[1:6])}\n")
        terminal.out("latency: of a small copy, as far as it is known (wire alone where the API's time is not)\n")
        show_timeline([Transfer(f.flow.name, f.start, f.finish, f.flow.size) for f in found])

    return Answer({**_head(system), "units": units_of, "transfers": data}, show)


def _clock(seconds: float) -> str:
    from lanewise import units

    unit = "s" if seconds >= 1 or seconds == 0 else "ms" if seconds >= 1e-3 else "us"
    return units.show(seconds, unit)


def _size(size: float) -> str:
    """In the unit that gives few digits: powers of two where they fit, else powers of ten."""
    from lanewise import units

    for binary, decimal in (("GiB", "GB"), ("MiB", "MB"), ("KiB", "kB")):
        if size >= units.to_si(1, binary):
            return units.show(
                size, binary if units.from_si(size, binary) == round(units.from_si(size, binary), 2) else decimal
            )
    return units.show(size, "B")


def matrix(system: System, found: Matrix) -> Answer:
    """All pairs, each alone."""
    from lanewise import units

    unit = "GB/s" if found.unit == "B/s" else "us"
    data = {
        **_head(system),
        "title": found.title,
        "unit": found.unit,
        "names": list(found.names),
        "cells": [list(row) for row in found.cells],
        "limits": [list(row) for row in found.limits],
    }

    def show() -> None:
        from lanewise.report.matrices import show_bandwidths

        cells = [[None if cell is None else units.from_si(cell, unit) for cell in row] for row in found.cells]
        show_bandwidths(found.names, cells, f"{heading(system)}: {found.title}, {unit}, from row to column")
        for line in _why_none(found):
            terminal.out(line)

    return Answer(data, show)


def service(system: System, found: ServiceRate, mode: str, division: str) -> Answer:
    """A service in steady state: queries a second, goodput, limit."""
    from lanewise import units

    gpus = len(found.prediction.flows)
    rows = [
        ("queries", units.show(found.qps, "QPS", 6)),
        ("goodput", units.show(found.goodput, "GB/s")),
        ("limit", found.limit),
        ("basis", found.basis),
        *(("rests on", text) for text in found.rests_on),
    ]
    count = f"{gpus} GPU{'s' * (gpus != 1)}"
    head = f"{heading(system)}: {found.workload.name}, {mode}, {division} division, {count}"
    lines = [head, *(f"  {name:9} {text}" for name, text in rows)]
    lines.append("  note      steady state: the ceiling that a latency bound lowers")
    data = {
        **_head(system),
        "workload": found.workload.name,
        "mode": mode,
        "division": division,
        "gpus": gpus,
        "qps": found.qps,
        "goodput": found.goodput,
        "unit": "B/s",
        "limit": found.limit,
        "basis": found.basis,
        "rests_on": list(found.rests_on),
    }
    return Answer(data, lambda: terminal.out("\n".join(lines)))


def _head(system: System) -> dict[str, Any]:
    return {"system": system.name, "settings": dict(system.settings)}


def _flow_row(flow: FlowRate, notes: terminal.Footnotes) -> tuple[str, ...]:
    from lanewise import units

    apart = flow.high - flow.low > 1e-9 * flow.high
    interval = f"{units.number(flow.low / 1e9)} to {units.number(flow.high / 1e9)}" if apart else ""
    marks = notes.mark([*flow.rests_on, flow.doubt])
    return (
        flow.flow.name,
        _way(flow),
        units.number(flow.rate / 1e9),
        interval,
        flow.limit,
        flow.basis,
        marks,
    )


def _way(flow: FlowRate) -> str:
    first = flow.routes[0]
    more = f" and {len(flow.routes) - 1} more" if len(flow.routes) > 1 else ""
    return f"{first.cls} {first.via}{more}"


def _flow_data(flow: FlowRate) -> dict[str, Any]:
    from lanewise.cli.route import plain

    return {
        "flow": flow.flow.name,
        "goodput": flow.rate,
        "low": flow.low,
        "high": flow.high,
        "raw": flow.raw,
        "limit": flow.limit,
        "basis": flow.basis,
        "rests_on": list(flow.rests_on),
        "doubt": flow.doubt or None,
        "routes": [plain(route) for route in flow.routes],
    }


def _why_none(found: Matrix) -> list[str]:
    reasons = {
        found.limits[i][j] for i, row in enumerate(found.cells) for j, cell in enumerate(row) if cell is None and i != j
    }
    return [f"--: {why}" for why in sorted(reasons) if why]
