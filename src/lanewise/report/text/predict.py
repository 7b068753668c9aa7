"""What `lanewise predict` answers, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise import units
from lanewise.report.table import Footnotes, heading, text_table
from lanewise.report.text.matrices import Transfer, show_bandwidths, show_timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.perf.matrix import Matrix
    from lanewise.perf.predict import FlowRate, Prediction
    from lanewise.perf.transfers import Finished
    from lanewise.serving.steady import ServiceRate
    from lanewise.topology.model import System


def render_flow_rates(found: Prediction) -> str:
    """Flows together: goodput, interval, limit, basis and what it rests on."""
    notes = Footnotes()
    rows = [_flow_row(flow, notes) for flow in found.flows]
    if len(rows) > 1:
        rows.append(("all together", "", units.number(found.total / 1e9), "", "", "", ""))
    heads = ("flow", "route", "GB/s", "interval", "limit", "basis", "rests on")
    text = [heading(found.system), text_table(heads, rows, right=("GB/s",)), "", notes.render()]
    return "\n".join(text)


def show_transfers(system: System, found: Sequence[Finished]) -> None:
    """Finite transfers: who ends when, at which average rate, and what limits each while all run."""
    rows = []
    for one in found:
        times = (_clock(one.start), _clock(one.delay), _clock(one.finish))
        rate = units.number(one.rate / 1e9)
        rows.append((one.flow.name, _size(one.flow.size or 0.0), *times, rate, one.limit, one.basis))
    heads = ("flow", "size", "start", "latency", "end", "average GB/s", "limit while all run", "basis")
    print(f"{heading(system)}\n{text_table(heads, rows, right=heads[1:6])}\n")
    print("latency: of a small copy, as far as it is known (wire alone where the API's time is not)\n")
    show_timeline([Transfer(f.flow.name, f.start, f.finish, f.flow.size) for f in found])


def _clock(seconds: float) -> str:
    unit = "s" if seconds >= 1 or seconds == 0 else "ms" if seconds >= 1e-3 else "us"
    return units.show(seconds, unit)


def _size(size: float) -> str:
    """In the unit that gives few digits: powers of two where they fit, else powers of ten."""
    for binary, decimal in (("GiB", "GB"), ("MiB", "MB"), ("KiB", "kB")):
        if size >= units.to_si(1, binary):
            return units.show(
                size, binary if units.from_si(size, binary) == round(units.from_si(size, binary), 2) else decimal
            )
    return units.show(size, "B")


def show_pairs(system: System, found: Matrix) -> None:
    """All pairs, each alone."""
    unit = "GB/s" if found.unit == "B/s" else "us"
    cells = [[None if cell is None else units.from_si(cell, unit) for cell in row] for row in found.cells]
    show_bandwidths(found.names, cells, f"{heading(system)}: {found.title}, {unit}, from row to column")
    for line in _why_none(found):
        print(line)


def render_steady_service(system: System, found: ServiceRate, mode: str, division: str) -> str:
    """A service in steady state: queries a second, goodput, limit."""
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
    return "\n".join(lines)


def _flow_row(flow: FlowRate, notes: Footnotes) -> tuple[str, ...]:
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


def _why_none(found: Matrix) -> list[str]:
    reasons = {
        found.limits[i][j] for i, row in enumerate(found.cells) for j, cell in enumerate(row) if cell is None and i != j
    }
    return [f"--: {why}" for why in sorted(reasons) if why]
