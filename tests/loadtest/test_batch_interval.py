"""How long batches take in a system at work."""

from __future__ import annotations

import sys

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("the system under test is built on Linux only", allow_module_level=True)

from lanewise._native import drive
from lanewise.loadtest.batch_interval import intervals
from lanewise.loadtest.system import SystemSpec, account, open_system


def test_intervals_are_no_shorter_than_the_service_and_of_batches_of_that_size():
    ask = SystemSpec(
        devices=("cpu", "cpu"), batch=4, sample_bytes=64, library=16, service_batch=0.001, service_query=0.0001
    )
    system = open_system(ask)
    seen = {size: (intervals(system, ask, [size])[size], account(system).sizes) for size in (1, 3, 4)}
    for size, (took, sizes) in seen.items():
        assert took >= 0.8 * (0.001 + size * 0.0001)  # a machine that stands still may end two batches at once
        assert max(sizes) == size == max(sizes, key=lambda each: sizes[each])  # a late issuer leaves some smaller
    intervals(system, ask, [1])
    system.load(list(range(16)))  # they were let go, and whole batches are taken again
    drive(system, np.zeros(16), np.arange(16, dtype=np.uint64), coalesce=True)
    assert max(account(system).sizes) == 4
