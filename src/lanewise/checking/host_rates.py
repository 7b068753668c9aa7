"""Measured rows of a machine as rates that tell its capacities (perf.host_calibration)."""

from __future__ import annotations

from collections.abc import Iterable

from lanewise.checking.block_rows import is_of_blocks
from lanewise.checking.collective_rows import is_collective
from lanewise.checking.expectation import covers
from lanewise.checking.expectation_model import ExpectationModel
from lanewise.errors import LanewiseError
from lanewise.perf.host_calibration import HostRate
from lanewise.results.observation import Observation
from lanewise.topology.model import Kind, System

_RATES = ("goodput", "total")


def host_rates(system: System, rows: Iterable[Observation]) -> list[HostRate]:
    """The rates (B/s) of copies between devices of the system, those of few flows first; copies by kernels are none."""
    model = ExpectationModel(system)
    rates = [rate for row in rows if (rate := _rate(model, row)) is not None]
    return sorted(rates, key=lambda rate: len(rate.flows))


def _rate(model: ExpectationModel, row: Observation) -> HostRate | None:
    if row.metric not in _RATES or row.value is None or not covers(row) or row.how.get("engine") in ("SM", "CPU"):
        return None
    try:
        if is_collective(row) or is_of_blocks(row):
            return None
        flows = model.flows(row)
        ends = {model.system.device(route_end).kind for route_end in model.route_devices(row)}
    except LanewiseError:  # words of another tool, or devices that the description does not have
        return None
    names = [flow.name for flow in flows]
    if not ends & {Kind.GPU} or (row.metric == "goodput" and row.flow not in names):
        return None
    of = names.index(row.flow) if row.metric == "goodput" and len(flows) > 1 else None
    return HostRate(row.how.get("flows") or row.flow, flows, row.value, of)
