"""What a few measurements of a machine say of its capacities, and so of all paths that nobody measured there.

A measured rate that the model does not give is put down to one class of capacities (perf.measured_capacity), the one
that has to move the least, as a share of its own range, for the model to give the rate: the least surprising one. If
several rates were measured, each is explained in addition to those before, unless they tell it already. A rate that no
single class within its range explains is left out, as something else is wrong. Every capacity that measured flows
load is at least as large as their load.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lanewise.perf.concurrent_flows import flow_demands
from lanewise.perf.flow import Flow
from lanewise.perf.measured_capacity import MEASURED, CapacityClass, class_of_resource
from lanewise.perf.predict import predict
from lanewise.perf.resources import Resource
from lanewise.perf.schedules import TOGETHER, Schedule
from lanewise.perf.uncertainty import RANGES
from lanewise.topology.model import MeasuredFactor, System

CLOSE = 0.01  # of the measured rate: the model gives it
MARGIN = 1.10  # how far beyond its range a capacity may be
NOISE = 0.03  # of repeated measurements
# A capacity limits if so much of it gives so much of the rate.
_STEPS, _TRIAL, _LIMITING = 8, 0.985, 0.997


@dataclass(frozen=True, slots=True)
class HostRate:
    """A rate in B/s of flows that ran together: of all of them, or of the one with the index `of`; `name` is shown."""

    name: str
    flows: tuple[Flow, ...]
    rate: float
    of: int | None = None
    schedule: Schedule = TOGETHER


@dataclass(frozen=True, slots=True)
class CalibrationStep:
    """What a measured rate says: the rate predicted before it (B/s), the class of capacity that explains it, and the
    factor of that; None where none does."""

    measured: HostRate
    predicted: float
    capacity: CapacityClass | None = None
    factor: float = 1.0

    @property
    def is_as_predicted(self) -> bool:
        """Whether the model gave the measured rate."""
        return abs(self.predicted / self.measured.rate - 1) < CLOSE


@dataclass(frozen=True, slots=True)
class HostCalibration:
    """A system with the capacities that were measured on it, and what each rate said."""

    system: System
    steps: tuple[CalibrationStep, ...]


def calibrate_host(system: System, rates: Iterable[HostRate]) -> HostCalibration:
    """The system with the most likely capacities by these rates, one after the other; what `predict` raises."""
    steps = []
    for measured in rates:
        if not _is_told(system, measured):
            step = _explained(system, measured)
            steps.append(step)
            if step.capacity is not None:
                before = system.measured.get(step.capacity, MeasuredFactor())
                system = _with(system, step.capacity, step.factor * before.factor, measured)
            elif not step.is_as_predicted:
                continue
        system = _with_loads(system, measured)
    return HostCalibration(system, tuple(steps))


def rate_of(system: System, measured: HostRate) -> float:
    """What the model gives for the same flows, in B/s."""
    rates = [each.rate for each in predict(system, measured.flows, measured.schedule).rates]
    return math.fsum(rates) if measured.of is None else rates[measured.of]


def _is_told(system: System, measured: HostRate) -> bool:
    """Whether earlier measurements of the machine tell the rate within the range of a measured figure."""
    rates = predict(system, measured.flows, measured.schedule).rates
    low, high = RANGES["calibrated"]
    here = all(any(MEASURED in text for text in rate.rests_on) for rate in rates)
    return here and low <= measured.rate / rate_of(system, measured) <= high


def _explained(system: System, measured: HostRate) -> CalibrationStep:
    predicted = rate_of(system, measured)
    best: tuple[float, CapacityClass, float] | None = None
    for capacity, (low, high) in _classes(system, measured).items():
        factor = _factor(system, measured, predicted, capacity, (low / MARGIN, high * MARGIN))
        if factor is not None:
            surprise = abs(math.log(factor)) / math.log(high * MARGIN if factor > 1 else MARGIN / low)
            best = min(best or (math.inf, capacity, factor), (surprise, capacity, factor))
    return CalibrationStep(measured, predicted, *(best[1:] if best else (None, 1.0)))


def _classes(system: System, measured: HostRate) -> Mapping[CapacityClass, tuple[float, float]]:
    """The range of each class of capacity that the flows take, as factors."""
    ranges: dict[CapacityClass, tuple[float, float]] = {}
    for demand in flow_demands(system, measured.flows, measured.schedule.opposite):
        for resource in demand.per_byte:
            ranges.setdefault(class_of_resource(resource), resource.factors)
        if demand.staging is not None:
            nominal, low, high = (demand.staging.rate(bound) for bound in ("nominal", "low", "high"))
            ranges.setdefault(demand.staging.capacity_class, (low / nominal, high / nominal))
    return ranges


def _factor(
    system: System, measured: HostRate, predicted: float, capacity: CapacityClass, within: tuple[float, float]
) -> float | None:
    """The factor of one class with which the model gives the measured rate; None if there is none in the range."""
    base, factor, rate = system.measured.get(capacity, MeasuredFactor()).factor, 1.0, predicted
    for _ in range(_STEPS):
        factor *= measured.rate / rate
        if not within[0] <= factor <= within[1]:
            return None
        rate = rate_of(_with(system, capacity, base * factor, measured), measured)
        if abs(rate / measured.rate - 1) < CLOSE:
            lower = rate_of(_with(system, capacity, base * factor * _TRIAL, measured), measured)
            return factor if lower < rate * _LIMITING else None
    return None


def _with(system: System, capacity: CapacityClass, factor: float, measured: HostRate) -> System:
    text = f"{measured.name}, {measured.rate / 1e9:.4g} GB/s"
    least = system.measured.get(capacity, MeasuredFactor()).least
    return system.with_measured({**system.measured, capacity: MeasuredFactor(factor, text, least)})


def _with_loads(system: System, measured: HostRate) -> System:
    """Capacities are at least what the measured flows loaded them with, less some noise."""
    loads: dict[Resource, float] = defaultdict(float)
    rates = predict(system, measured.flows).rates  # all of them, of which a tool may count one
    for demand, rate in zip(flow_demands(system, measured.flows), rates, strict=True):
        for resource, amount in demand.per_byte.items():
            loads[resource] += (1 - NOISE) * rate.rate * amount
    factors = dict(system.measured)
    for resource, load in loads.items():
        before = factors.get(kind := class_of_resource(resource), MeasuredFactor())
        factors[kind] = replace(before, least=max(before.least, load))
    return system.with_measured(factors)
