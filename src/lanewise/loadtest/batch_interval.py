"""How long batches take in the system under test while every device always has the next one.

This is what a peak rests on: copies, the engine, and whatever they do to each other, on all devices at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lanewise.errors import CannotMeasure
from lanewise.loadtest.system import cannot

if TYPE_CHECKING:
    from lanewise import _native
    from lanewise.loadtest.system import SystemSpec

SECONDS = 0.25  # of work for each size, or BATCHES where those take longer
BATCHES = 10  # of each device at least; the first and the last tenth do not count


def intervals(system: _native.BatchingSystem, spec: SystemSpec, sizes: Sequence[int]) -> dict[int, float]:
    """Seconds from one batch of a device to its next, by size, with all devices and streams at work.

    The system must not run. CannotMeasure where it fails.
    """
    from lanewise._native import ProbeFailure

    resident = list(range(min(spec.library, spec.samples or spec.library)))
    try:
        system.load(resident)
        return {size: _interval(system, spec, size, len(resident)) for size in sizes}
    except ProbeFailure as failure:
        raise cannot(failure) from None
    finally:
        system.limit_batch(spec.batch)
        system.unload(resident)


def _interval(system: _native.BatchingSystem, spec: SystemSpec, size: int, resident: int) -> float:
    system.limit_batch(size)
    first = _measured(system, spec, size, resident, 1)
    repeats = math.ceil(SECONDS / (BATCHES * first))
    return first if repeats <= 1 else _measured(system, spec, size, resident, repeats)


def _measured(system: _native.BatchingSystem, spec: SystemSpec, size: int, resident: int, times: int) -> float:
    import lanewise._native as native

    devices = len(spec.devices)
    count = times * BATCHES * size * devices
    samples = np.arange(count, dtype=np.uint64) * 7919 % resident  # scattered: no cache has them
    result = native.replay(system, np.zeros(count), samples, coalesce=True)
    cause, hint = result["failure"]
    if cause:
        raise CannotMeasure(cause, hint=hint)
    ends = np.sort(result["answered"])
    low, high = (times * tenth * size * devices - 1 for tenth in (1, BATCHES - 1))
    batches = (BATCHES - 2) * times
    return float(max(ends[high] - ends[low], 1) * 1e-9 / batches)
