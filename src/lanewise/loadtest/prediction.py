"""The peak predicted before the search begins, from the time between batches of the devices.

That time is measured in the system under test while every device always has the next batch: copies, the engine, and
whatever they do to each other, on all devices at once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lanewise import _native
from lanewise.errors import CannotMeasure, InputError
from lanewise.loadtest.system import cannot
from lanewise.options.loadtest import BatchingOptions
from lanewise.results.service_result import SearchRun
from lanewise.serving.durations import Durations
from lanewise.serving.search import find_peak
from lanewise.serving.times import time_key
from lanewise.serving.verdict import invalid_reason

SECONDS = 0.25  # of work for each size, or BATCHES where those take longer
BATCHES = 10  # of each device at least; the first and the last tenth do not count
SERVICE, PART = "measured", "measured-device"  # names in the part file of measured times


@dataclass(frozen=True, slots=True)
class PredictedPeak:
    """A prediction made before a search: rate in queries/s, its interval, and the rate without any bound."""

    rate: float
    interval: tuple[float, float]
    ceiling: float


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """Identical devices with one queue, each with up to `streams` batches in flight.

    A batch goes when it is full or its oldest query has waited `timeout` s. `steps`: a batch between two sizes takes as
    long as the larger, since it is filled up to it; else times between are straight lines.
    """

    bound: float
    percentile: float = 0.99
    servers: int = 1
    timeout: float = 0.0
    streams: int = 1
    steps: bool = False


def intervals(system: _native.BatchingSystem, options: BatchingOptions, sizes: Sequence[int]) -> dict[int, float]:
    """Seconds from one batch of a device to its next, by size, with all devices and streams at work.

    The system must not run. CannotMeasure where it fails.
    """
    resident = list(range(options.library))
    try:
        system.load(resident)
        return {size: _interval(system, options, size, len(resident)) for size in sizes}
    except _native.ProbeFailure as failure:
        raise cannot(failure) from None
    finally:
        system.limit_batch(options.batch)
        system.unload(resident)


def _interval(system: _native.BatchingSystem, options: BatchingOptions, size: int, resident: int) -> float:
    system.limit_batch(size)
    first = _measured(system, options, size, resident, 1)
    repeats = math.ceil(SECONDS / (BATCHES * first))
    return first if repeats <= 1 else _measured(system, options, size, resident, repeats)


def _measured(system: _native.BatchingSystem, options: BatchingOptions, size: int, resident: int, times: int) -> float:
    devices = len(options.devices)
    count = times * BATCHES * size * devices
    samples = np.arange(count, dtype=np.uint64) * 7919 % resident  # scattered: no cache has them
    result = _native.replay(system, np.zeros(count), samples, coalesce=True)
    cause, hint = result["failure"]
    if cause:
        raise CannotMeasure(cause, hint=hint)
    ends = np.sort(result["answered"])
    low, high = (times * tenth * size * devices - 1 for tenth in (1, BATCHES - 1))
    batches = (BATCHES - 2) * times
    return float(max(ends[high] - ends[low], 1) * 1e-9 / batches)


def check_times(times: Mapping[int, float]) -> dict[int, float]:
    """Seconds by batch, ascending; InputError for none, a batch below 1 or a time that is not positive."""
    if not times:
        raise InputError("no service times were measured", hint="measure a batch of 1 and the largest at least")
    for batch, seconds in times.items():
        if batch < 1 or not 0.0 < seconds < math.inf:
            raise InputError(f"a batch of {batch} in {seconds} s", hint="give batches of 1 or more and seconds above 0")
    return dict(sorted(times.items()))


def predict_peak(times: Mapping[int, float], model: DeviceModel, seed: int = 1) -> PredictedPeak:
    """The peak of devices from the seconds between a device's batches, by size, while it always has the next one.

    InputError if no rate keeps the bound.
    """
    time_of = check_times(times)
    seconds = [_batch_time(time_of, batch, model.steps) for batch in range(1, max(time_of) + 1)]
    most = model.servers * max(batch / took for batch, took in enumerate(seconds, 1))
    estimate = find_peak(
        lambda rate, number, duration: _simulated(seconds, model, rate, number, duration), seed=seed, start=0.9 * most,
        durations=Durations(model.bound, 1.0, max(60.0, 1e6 / most), percentile=model.percentile), precision=0.005,
        bracket=(0.7 * most, most),
    )  # fmt: skip
    if not estimate.rate:
        raise InputError(f"no rate is predicted to keep the bound: {estimate.reason}", hint="a smaller batch may")
    return PredictedPeak(estimate.rate, estimate.interval, most)


def full_load_cost(intervals: Mapping[int, float], model: DeviceModel, rate: float) -> float:
    """Seconds that each query adds to its device's time, if devices with these intervals answer `rate` queries/s in all
    at full load; 0 where they are as fast. InputError for a rate that is not positive."""
    if not 0.0 < rate < math.inf:
        raise InputError(f"{rate} queries/s at full load", hint="measure a rate above 0")
    fastest = min(seconds / size for size, seconds in check_times(intervals).items())
    return max(0.0, model.servers / rate - fastest)


def _batch_time(time_of: Mapping[int, float], batch: int, steps: bool) -> float:
    if steps:
        return time_of[min(size for size in time_of if size >= batch)]
    return float(np.interp(batch, list(time_of), list(time_of.values())))


def _simulated(times: Sequence[float], model: DeviceModel, rate: float, seed: int, seconds: float) -> SearchRun:
    scenario, service = _native.Scenario(), _native.Service()
    service.rate, service.bound, service.batch, service.timeout = rate, model.bound, len(times), model.timeout
    service.dispatch = _native.Dispatch.LEAST
    scenario.services, scenario.gpus, scenario.duration, scenario.seed = [service], model.servers, seconds, seed
    scenario.pools = [_native.Pool(0, _native.Leg()) for _ in range(model.servers)]
    scenario.workers = [
        _native.Worker(index, index, model.streams, _native.Leg(slots=model.streams), _native.Leg(), list(times))
        for index in range(model.servers)
    ]
    out = _native.simulate(_native.Network([], [], [], []), scenario).services[0]
    reason = invalid_reason(out.counted, out.late, model.percentile)
    return SearchRun(rate, seed, not reason, out.percentile(model.percentile), out.counted, reason, seconds)


def part_file(times: Mapping[int, float], source: str, software: float | None = None, condition: str = "") -> str:
    """Service times by batch (s) as a part file for --parts and `lanewise calibrate`.

    `software` (s) is what a query costs over the network, measured under that `condition`.
    """
    time_of = check_times(times)
    figures = "\n".join(
        f"          {time_key(SERVICE, size)}: {seconds * 1e6:.6g} us" for size, seconds in time_of.items()
    )
    cost = "" if software is None else (
        f"      - source: {json.dumps(source)}\n        basis: calibrated\n        condition: {json.dumps(condition)}\n"
        f"        figures:\n          software.{SERVICE}: {software * 1e6:.6g} us\n"
    )  # fmt: skip
    return (
        f"parts:\n  - part: {PART}\n    kind: gpu\n    title: a device as measured\n    from:\n"
        f"      - source: {json.dumps(source)}\n        basis: calibrated\n"
        f"        condition: one batch after the other, nothing beside it\n        figures:\n{figures}\n{cost}"
    )
