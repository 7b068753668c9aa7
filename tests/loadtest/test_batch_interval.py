"""How long batches take in a system at work."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("the system under test is built on Linux only", allow_module_level=True)

from lanewise import _native
from lanewise.loadtest.prediction import intervals
from lanewise.loadtest.session import open_system
from lanewise.loadtest.system import statistics
from lanewise.options.loadtest import BatchingOptions

ASK = BatchingOptions(devices=("cpu", "cpu"), batch=4, sample_bytes=64, library=16, service=(0.001, 0.0001))


def test_an_interval_is_the_time_of_a_batch_whatever_the_first_and_the_last_took(monkeypatch: pytest.MonkeyPatch):
    system, counts = open_system(ASK), []

    def planted(system: Any, seconds: Any, samples: Any, coalesce: bool) -> dict[str, Any]:
        """Both devices end a batch of 3 each 5 ms; the first tenth comes 1 s late, the last takes 1 s longer."""
        batches = len(samples) // 3 // 2
        counts.append(batches)
        ends = np.arange(1, batches + 1) * 5e6 + 1e9
        ends[-batches // 10 :] += 1e9
        return {"failure": ("", ""), "answered": np.repeat(ends.astype(np.int64), 3 * 2)}

    monkeypatch.setattr(_native, "replay", planted)
    assert intervals(system, ASK, [3]) == {3: pytest.approx(0.005)}
    assert counts == [10, 50]  # a quarter of a second's work


def test_a_system_at_work_takes_its_service_and_batches_of_that_size():
    system = open_system(ASK)
    for size in (1, 3, 4):
        interval = intervals(system, ASK, [size])[size]
        assert interval >= 0.5 * (0.001 + size * 0.0001)  # a machine that stands still may end many batches at once
        sizes = statistics(system).sizes
        assert max(sizes) == size == max(sizes, key=lambda count: sizes[count])  # a late issuer leaves some smaller
    system.load(list(range(16)))  # they were let go, and whole batches are taken again
    _native.replay(system, np.zeros(16), np.arange(16, dtype=np.uint64), coalesce=True)
    assert max(statistics(system).sizes) == 4
