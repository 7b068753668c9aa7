"""`lanewise predict --sweep` as text: one row a value of the parameter."""

from __future__ import annotations

from collections.abc import Mapping

from lanewise import units
from lanewise.perf.predict import Prediction
from lanewise.report import services
from lanewise.report.basis import basis_note
from lanewise.report.screen import PIPE, Screen
from lanewise.report.table import Column, Table, TableCell, number_columns, render_table
from lanewise.results.service_result import ServiceResult
from lanewise.serving.steady import ServiceRate

_MOST_FLOWS = 4  # with more flows the slowest and the total say enough


def render_flows(parameter: str, predictions: Mapping[int, Prediction], screen: Screen = PIPE) -> str:
    """Goodput of each flow, of all together, and the limit of the slowest."""
    first = next(iter(predictions.values()))
    few = len(first.flows) <= _MOST_FLOWS
    names = [flow.flow.name for flow in first.flows] if few else []
    names = names or ["slowest"]
    names += ["total"] if len(first.flows) > 1 else []
    columns = [
        Column(parameter, number=True), *number_columns(*names, unit="GB/s"), Column("limit", wrap=True),
        Column("basis", drop=1),
    ]  # fmt: skip
    table = Table(columns)
    for value, prediction in predictions.items():
        slowest = min(prediction.flows, key=lambda flow: flow.rate)
        rates = [flow.rate for flow in prediction.flows] if few else [slowest.rate]
        rates += [prediction.total] if len(prediction.flows) > 1 else []
        table.add(str(value), *(units.number(rate / 1e9) for rate in rates), slowest.limit, slowest.basis)
    error = basis_note(flow.basis for prediction in predictions.values() for flow in prediction.flows)
    return "\n".join(filter(None, [first.system.name, render_table(table, screen), screen.wrap(error, 2)]))


def render_steady(parameter: str, rates: Mapping[int, ServiceRate], screen: Screen = PIPE) -> str:
    """A service in steady state."""
    table = Table([Column(parameter, number=True), *number_columns("GPUs", drop=2), *number_columns("QPS", "GB/s"),
                   Column("limit", wrap=True), Column("basis", drop=1)])  # fmt: skip
    for value, rate in rates.items():
        table.add(str(value), str(len(rate.prediction.flows)), f"{rate.qps:,.0f}", units.number(rate.goodput / 1e9),
                  rate.limit, rate.basis)  # fmt: skip
    first = next(iter(rates.values()))
    title = f"{first.prediction.system.name}: {first.workload.name} in steady state"
    error = basis_note(rate.basis for rate in rates.values())
    return "\n".join(filter(None, [title, render_table(table, screen), screen.wrap(error, 2)]))


def render_services(parameter: str, results: Mapping[int, ServiceResult], screen: Screen = PIPE) -> str:
    """A simulated service."""
    table = Table([Column(parameter, number=True), *number_columns("QPS"), Column("verdict"), Column("latency"),
                   *number_columns("largest valid rate", unit="QPS"), Column("limit", wrap=True, drop=1)])  # fmt: skip
    for value, result in results.items():
        verdict = TableCell(services.verdict(result), "good" if result.valid else "bad")
        table.add(str(value), f"{result.qps:,.0f}", verdict, services.latency_of_bound(result),
                  services.peak_interval(result), result.limit)  # fmt: skip
    first = next(iter(results.values()))
    return f"{first.system}: {first.name}\n{render_table(table, screen)}"
