"""`lanewise predict` as text: flows, transfers, pairs, a service in steady state, and sweeps of a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lanewise import units
from lanewise.perf.matrix import RateMatrix
from lanewise.perf.predict import FlowRate, Prediction
from lanewise.perf.transfers import FinishedTransfer
from lanewise.report import services
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Footnotes, Table, TableCell, number_columns, render_matrix, render_table
from lanewise.report.words import NONE, basis_note, clock, heading, plural, range_text
from lanewise.results.network_share import NetworkShare
from lanewise.results.service_result import ServiceResult
from lanewise.serving.steady import ServiceRate
from lanewise.topology.model import System

_WIDEST_BARS = 160  # columns of a time line where the screen has no width


def render_flow_rates(prediction: Prediction, screen: Screen = PLAIN) -> str:
    """Concurrent flows: goodput, interval, limit and basis."""
    notes = Footnotes()
    columns = [
        Column("flow", wrap=True), Column("route", drop_order=3, wrap=True), Column("GB/s", number=True),
        Column("interval", drop_order=2), Column("limit", wrap=True), Column("basis", drop_order=1), Column("source"),
    ]  # fmt: skip
    table = Table(columns, [_flow_row(rate, notes) for rate in prediction.rates])
    if len(table.rows) > 1:
        interval = range_text(prediction.total, prediction.total_low, prediction.total_high)
        table.add("all together", "", units.number(prediction.total / 1e9), interval, "", "", "")
    accuracy = basis_note(rate.basis for rate in prediction.rates)
    schedule = prediction.schedule
    title = heading(prediction.system) + (f", {schedule.name}: {schedule.what}" if schedule.source else "")
    return "\n".join(
        [
            screen.wrap(title, indent=2),
            render_table(table, screen),
            "",
            *_wrapped(accuracy, screen),
            notes.render(screen),
        ]
    )


def _wrapped(text: str, screen: Screen) -> list[str]:
    return [screen.wrap(text, indent=2)] if text else []


def _flow_row(rate: FlowRate, notes: Footnotes) -> tuple[str, ...]:
    interval = range_text(rate.rate, rate.low, rate.high)
    sources = notes.mark([*rate.rests_on, rate.doubt])
    first, *others = rate.routes
    route = f"{first.cls} {first.via}{f' and {len(others)} more' if others else ''}"
    return rate.flow.name, route, units.number(rate.rate / 1e9), interval, rate.limit, rate.basis, sources


def render_transfers(system: System, transfers: Sequence[FinishedTransfer], screen: Screen = PLAIN) -> str:
    """Finite transfers: when each ends, its mean rate, and what limits it while all run."""
    columns = [
        Column("flow", wrap=True), *number_columns("size"), *number_columns("start", drop_order=2),
        *number_columns("latency", drop_order=3), *number_columns("end"), Column("mean", "GB/s", number=True),
        Column("limit while all run", wrap=True, drop_order=1), Column("basis", drop_order=2),
    ]  # fmt: skip
    table = Table(columns)
    for transfer in transfers:
        times = (clock(transfer.start), clock(transfer.delay), clock(transfer.finish))
        rate = units.number(transfer.rate / 1e9)
        table.add(transfer.flow.name, _size(transfer.flow.size or 0.0), *times, rate, transfer.limit, transfer.basis)
    note = "latency: that of a small copy, as far as it is known (the wire alone where the API's time is unknown)"
    facts = [screen.wrap(note, indent=2), *_wrapped(basis_note(transfer.basis for transfer in transfers), screen)]
    return "\n".join([heading(system), render_table(table, screen), "", *facts, "", render_timeline(transfers, screen)])


def render_timeline(transfers: Sequence[FinishedTransfer], screen: Screen = PLAIN) -> str:
    """One bar a transfer on a common time axis."""
    first, last = min(t.start for t in transfers), max(t.finish for t in transfers)
    span = max(last - first, 1e-30)
    label = max(len(transfer.flow.name) for transfer in transfers)
    length = max(10, min(screen.width or _WIDEST_BARS // 2, _WIDEST_BARS) - label - 2)
    lines = []
    for transfer in transfers:
        bar = max(1, round((transfer.finish - transfer.start) / span * length))
        left = min(round((transfer.start - first) / span * length), length - bar)
        lines.append(f"{transfer.flow.name:<{label}}  {' ' * left}{screen.style('█' * bar, 'cyan')}")
    ends = clock(first), clock(last)
    axis = " " * (label + 2) + ends[0] + " " * max(1, length - len(ends[0]) - len(ends[1])) + ends[1]
    return "\n".join([*lines, screen.style(axis, "dim")])


def _size(size: float) -> str:
    """In the unit that gives few digits: powers of two where they fit, else powers of ten."""
    for binary, decimal in (("GiB", "GB"), ("MiB", "MB"), ("KiB", "kB")):
        if size >= units.to_si(1, binary):
            short = units.from_si(size, binary) == round(units.from_si(size, binary), 2)
            return units.show(size, binary if short else decimal)
    return units.show(size, "B")


def render_pairs(system: System, matrix: RateMatrix, screen: Screen = PLAIN) -> str:
    """Goodput or latency of each pair of devices, every pair alone."""
    unit = "GB/s" if matrix.unit == "B/s" else "us"
    cells = [[None if cell is None else units.from_si(cell, unit) for cell in row] for row in matrix.cells]
    title = f"{heading(system)}: {matrix.title}, {unit}, from row to column"
    reasons = {
        matrix.limits[i][j]
        for i, row in enumerate(matrix.cells)
        for j, cell in enumerate(row)
        if cell is None and i != j
    }
    lines = [screen.wrap(f"--: {why}", indent=4) for why in sorted(reasons) if why]
    return "\n".join([render_matrix(matrix.names, matrix.names, cells, title, screen), *lines])


def render_steady_service(system: System, rate: ServiceRate, mode: str, division: str, screen: Screen = PLAIN) -> str:
    """A service in steady state: queries a second, goodput, limit."""
    gpus = plural(len(rate.prediction.rates), "GPU")
    facts = [
        ("queries", units.show(rate.qps, "QPS", 6)),
        ("goodput", units.show(rate.goodput, "GB/s")),
        *services.network_facts(rate.network),
        ("limit", rate.limit),
        ("basis", basis_note([rate.basis]) or rate.basis),
        *(("source", text) for text in rate.rests_on),
        *([("note", rate.note)] if rate.note else []),
        ("note", "steady state: the ceiling; a latency bound lowers it (--peak finds by how much)"),
    ]
    title = f"{heading(system)}: {rate.workload.name}, {mode}, {division} division, {gpus}"
    return f"{screen.wrap(title, indent=2)}\n{screen.facts(facts, 2)}"


_MOST_FLOWS = 4  # with more flows the slowest and the total say enough


def render_flow_sweep(parameter: str, predictions: Mapping[int, Prediction], screen: Screen = PLAIN) -> str:
    """Goodput of each flow, of all together, and the limit of the slowest, one row a value of the parameter."""
    first = next(iter(predictions.values()))
    few = len(first.rates) <= _MOST_FLOWS
    names = [rate.flow.name for rate in first.rates] if few else []
    names = names or ["slowest"]
    names += ["total"] if len(first.rates) > 1 else []
    columns = [
        Column(parameter, number=True), *number_columns(*names, unit="GB/s"), Column("limit", wrap=True),
        Column("basis", drop_order=1),
    ]  # fmt: skip
    table = Table(columns)
    for value, prediction in predictions.items():
        slowest = min(prediction.rates, key=lambda rate: rate.rate)
        goodputs = [rate.rate for rate in prediction.rates] if few else [slowest.rate]
        goodputs += [prediction.total] if len(prediction.rates) > 1 else []
        table.add(str(value), *(units.number(rate / 1e9) for rate in goodputs), slowest.limit, slowest.basis)
    accuracy = basis_note(rate.basis for prediction in predictions.values() for rate in prediction.rates)
    return "\n".join(filter(None, [first.system.name, render_table(table, screen), screen.wrap(accuracy, indent=2)]))


def render_steady_sweep(parameter: str, rates: Mapping[int, ServiceRate], screen: Screen = PLAIN) -> str:
    """A service in steady state, one row a value of the parameter."""
    networks = [rate.network for rate in rates.values()]
    share = _share_columns(networks)
    columns = [
        Column(parameter, number=True), *number_columns("GPUs", drop_order=2), *number_columns("QPS", "GB/s"),
        *share, Column("limit", wrap=True), Column("basis", drop_order=1),
    ]  # fmt: skip
    table = Table(columns)
    for value, rate in rates.items():
        table.add(str(value), str(len(rate.prediction.rates)), f"{rate.qps:,.0f}", units.number(rate.goodput / 1e9),
                  *_share_cell(rate.network, share), rate.limit, rate.basis)  # fmt: skip
    first = next(iter(rates.values()))
    title = f"{first.prediction.system.name}: {first.workload.name} in steady state"
    notes = [basis_note(rate.basis for rate in rates.values()), *_assumed(networks)]
    return "\n".join([title, render_table(table, screen), *(screen.wrap(note, indent=2) for note in notes if note)])


def render_service_sweep(parameter: str, results: Mapping[int, ServiceResult], screen: Screen = PLAIN) -> str:
    """A simulated service, one row a value of the parameter."""
    networks = [result.network for result in results.values()]
    share = _share_columns(networks)
    columns = [
        Column(parameter, number=True), *number_columns("QPS"), Column("verdict"), Column("latency"),
        *number_columns("largest valid rate", unit="QPS"), *share,
        Column("limit", wrap=True, drop_order=1),
    ]  # fmt: skip
    table = Table(columns)
    for value, result in results.items():
        verdict = TableCell(services.verdict(result), "good" if result.valid else "bad")
        table.add(str(value), f"{result.qps:,.0f}", verdict, services.latency_of_bound(result),
                  services.peak_interval(result), *_share_cell(result.network, share), result.limit)  # fmt: skip
    first = next(iter(results.values()))
    notes = [screen.wrap(note, indent=2) for note in _assumed(networks)]
    return "\n".join([f"{first.system}: {first.name}", render_table(table, screen), *notes])


def _share_columns(networks: Sequence[NetworkShare | None]) -> list[Column]:
    """A column for the share of Closed, where any service has one."""
    known = any(network is not None and network.share is not None for network in networks)
    return number_columns("share of Closed", unit="%") if known else []


def _share_cell(network: NetworkShare | None, columns: Sequence[Column]) -> list[str]:
    """The share of Closed where the table has its column."""
    share = network.share if network is not None else None
    return [units.number(100 * share) if share is not None else NONE] * len(columns)


def _assumed(networks: Sequence[NetworkShare | None]) -> list[str]:
    """What was assumed of the software cost of a query, once, with its hint."""
    notes = (f"{network.note} (hint: {network.hint})" for network in networks if network is not None and network.note)
    return list(dict.fromkeys(notes))
