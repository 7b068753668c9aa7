"""Predicted beside measured: what batches take on the devices predicts the peak before the search begins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lanewise.errors import InputError
from lanewise.serving.durations import Durations, Trial
from lanewise.serving.search import find_peak
from lanewise.serving.times import time_key
from lanewise.serving.verdict import judge

SERVICE, PART = "measured", "measured-device"  # names in the part file of measured times


@dataclass(frozen=True, slots=True)
class PredictedPeak:
    """A prediction made before a search: rate in queries/s, its interval, and the rate without any bound."""

    qps: float
    interval: tuple[float, float]
    ceiling: float


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """Devices that serve by themselves, with a queue and up to `streams` batches in flight each.

    A batch goes when it is full or its oldest query has waited `timeout` s. `steps`: a batch between two sizes takes as
    long as the larger, since it is filled up to it; else times between are straight lines.
    """

    bound: float
    percentile: float = 0.99
    servers: int = 1
    timeout: float = 0.0
    streams: int = 1
    steps: bool = False


def check_times(times: Mapping[int, float]) -> dict[int, float]:
    """Seconds by batch, ascending; InputError for none, a batch below 1 or a time that is not positive."""
    if not times:
        raise InputError("no service times were measured", hint="measure a batch of 1 and the largest at least")
    for batch, seconds in times.items():
        if batch < 1 or not 0.0 < seconds < math.inf:
            raise InputError(f"a batch of {batch} in {seconds} s", hint="give batches of 1 or more and seconds above 0")
    return dict(sorted(times.items()))


def predict_peak(times: Mapping[int, float], alone: DeviceModel, seed: int = 1) -> PredictedPeak:
    """The peak of devices from the seconds between a device's batches, by size, while it always has the next one.

    InputError if no rate keeps the bound.
    """
    known = check_times(times)
    took = [_at(known, batch, alone.steps) for batch in range(1, max(known) + 1)]
    most = alone.servers * max((batch + 1) / seconds for batch, seconds in enumerate(took))
    found = find_peak(
        lambda qps, number, seconds: _simulated(took, alone, qps, number, seconds), seed=seed, start=0.9 * most,
        durations=Durations(alone.bound, 1.0, max(60.0, 1e6 / most), percentile=alone.percentile), precision=0.005,
        bracket=(0.7 * most, most),
    )  # fmt: skip
    if not found.found:
        raise InputError(f"no rate is predicted to keep the bound: {found.reason}", hint="a smaller batch may")
    return PredictedPeak(found.qps, found.interval, most)


def _at(known: Mapping[int, float], batch: int, steps: bool) -> float:
    import numpy as np

    if steps:
        return known[min(size for size in known if size >= batch)]
    return float(np.interp(batch, list(known), list(known.values())))


def _simulated(took: Sequence[float], alone: DeviceModel, qps: float, seed: int, seconds: float) -> Trial:
    import lanewise._native as native

    made, one = native.Scenario(), native.Service()
    one.rate, one.bound, one.batch, one.timeout = qps, alone.bound, len(took), alone.timeout
    one.dispatch = native.Dispatch.LEAST
    made.services, made.gpus, made.duration, made.seed = [one], alone.servers, seconds, seed
    made.pools = [native.Pool(0, native.Leg()) for _ in range(alone.servers)]
    made.workers = [
        native.Worker(g, g, alone.streams, native.Leg(slots=alone.streams), native.Leg(), list(took))
        for g in range(alone.servers)
    ]
    out = native.simulate(native.Network([], [], [], []), made).services[0]
    verdict = judge(out.counted, out.late, percentile=alone.percentile)
    return Trial(qps, seed, verdict.valid, out.percentile(alone.percentile), out.counted, verdict.reason)


def part_file(times: Mapping[int, float], source: str) -> str:
    """Service times by batch (s) as a part file for --parts and `lanewise calibrate`."""
    known = check_times(times)
    figures = "\n".join(f"          {time_key(SERVICE, size)}: {took * 1e6:.6g} us" for size, took in known.items())
    return (
        f"parts:\n  - part: {PART}\n    kind: gpu\n    title: a device as measured\n    from:\n"
        f"      - source: {_quoted(source)}\n        basis: calibrated\n"
        f"        condition: one batch after the other, nothing beside it\n        figures:\n{figures}\n"
    )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "").replace('"', "'") + '"'
