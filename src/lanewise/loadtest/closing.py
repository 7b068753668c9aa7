"""Predicted beside measured: service times of the engine become a part, which predicts the peak before the search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise.catalog import Figure, Part
from lanewise.errors import InputError
from lanewise.serving.ceiling import ceiling
from lanewise.serving.load import Load
from lanewise.serving.peak import Sought, seek
from lanewise.serving.search import Durations, Trial, find_peak
from lanewise.serving.times import time_key
from lanewise.serving.verdict import judge

if TYPE_CHECKING:
    from lanewise.topology.model import System

SERVICE, PART = "measured", "measured-device"  # names in the part file of measured times


@dataclass(frozen=True, slots=True)
class Expected:
    """A prediction made before a search: rate in queries/s, its interval, what limits it and what it rests on."""

    qps: float
    interval: tuple[float, float]
    limit: str
    rests_on: tuple[str, ...] = ()
    ceiling: float | None = None


@dataclass(frozen=True, slots=True)
class Alone:
    """Devices that serve by themselves, with no path between: `servers` of one line, batches after `timeout` s."""

    bound: float
    percentile: float = 0.99
    servers: int = 1
    timeout: float = 0.0


def check_times(times: Mapping[int, float]) -> dict[int, float]:
    """Seconds by batch, ascending; InputError for none, a batch below 1 or a time that is not positive."""
    if not times:
        raise InputError("no service times were measured", hint="measure a batch of 1 and the largest at least")
    for batch, seconds in times.items():
        if batch < 1 or not 0.0 < seconds < math.inf:
            raise InputError(f"a batch of {batch} in {seconds} s", hint="give batches of 1 or more and seconds above 0")
    return dict(sorted(times.items()))


def calibrated(part: Part, workload: str, times: Mapping[int, float], source: str) -> Part:
    """The part with measured times (batch to s) in place of every score and time of that workload that it states."""
    known = check_times(times)
    stem = f"service_time.{workload}."
    kept = {key: figure for key, figure in part.figures.items() if not key.startswith(stem)}
    for mode in ("server", "offline"):
        kept.pop(f"service.{workload}.{mode}", None)
    made = {time_key(workload, batch): Figure(took, "s", source, basis="calibrated") for batch, took in known.items()}
    return replace(part, figures={**kept, **made})


def expect(system: System, load: Load, seed: int = 1) -> Expected:
    """The peak of a described system whose GPUs are calibrated parts, by event simulation of paths and GPUs."""
    loaded, simulation, _ = seek(system, load, (), (), Sought(seed=seed))
    found = loaded[0]
    if not found.valid:
        raise InputError(f"no rate is predicted to keep the bound: {found.reason}", hint="a smaller batch may")
    most = ceiling(simulation, 0, [found.qps]).qps
    return Expected(found.qps, found.peak or (found.qps, found.qps), found.limit, found.rests_on, most)


def expect_alone(times: Mapping[int, float], alone: Alone, seed: int = 1) -> Expected:
    """The peak of devices known by their service times alone, such as a CPU; between batches times are straight lines.

    InputError if no rate keeps the bound.
    """
    known = check_times(times)
    steps = [_between(known, batch) for batch in range(1, max(known) + 1)]
    most = alone.servers * max((batch + 1) / took for batch, took in enumerate(steps))
    found = find_peak(
        lambda qps, number, seconds: _simulated(steps, alone, qps, number, seconds), seed=seed, start=0.9 * most,
        durations=Durations(alone.bound, 1.0, max(60.0, 1e6 / most), percentile=alone.percentile), precision=0.005,
        bracket=(0.7 * most, most),
    )  # fmt: skip
    if not found.found:
        raise InputError(f"no rate is predicted to keep the bound: {found.reason}", hint="a smaller batch may")
    rests = (f"service times measured at batches of {', '.join(map(str, known))}",)
    return Expected(found.qps, found.interval, "the device", rests, most)


def _between(known: Mapping[int, float], batch: int) -> float:
    import numpy as np

    return float(np.interp(batch, list(known), list(known.values())))


def _simulated(steps: Sequence[float], alone: Alone, qps: float, seed: int, seconds: float) -> Trial:
    import lanewise._native as native

    made, one = native.Scenario(), native.Service()
    one.rate, one.bound, one.batch, one.timeout = qps, alone.bound, len(steps), alone.timeout
    made.services, made.gpus, made.duration, made.seed = [one], alone.servers, seconds, seed
    made.pools = [native.Pool(0, native.Leg())]
    made.workers = [native.Worker(0, g, 1, native.Leg(), native.Leg(), list(steps)) for g in range(alone.servers)]
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


__all__ = ["PART", "SERVICE", "Alone", "Expected", "calibrated", "check_times", "expect", "expect_alone", "part_file"]
