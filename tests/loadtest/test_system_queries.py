"""The batching system: every query is answered once, with its own sample's data, in batches as asked."""

from __future__ import annotations

import json
import sys
import threading
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if sys.platform != "linux":
    pytest.skip("load tests are for Linux", allow_module_level=True)

from lanewise import _native
from lanewise.loadtest.interference import cpu_usage
from lanewise.loadtest.load_run import LoadSpec
from lanewise.loadtest.loadgen import LoadGenRunner, RunnerSetup
from lanewise.loadtest.session import open_system
from lanewise.loadtest.system import SystemStatistics, perfetto, statistics
from lanewise.options.loadtest import BatchingOptions

BYTES, LIBRARY = 100, 32  # not a multiple of 16: samples keep their distance on the device


SMALL: dict[str, Any] = {"sample_bytes": BYTES, "library": LIBRARY, "batch": 64, "service": (0.0, 0.0)}


def made(engines: Any = (), checksum: bool = True, trace: int = 0, **asked: Any) -> _native.BatchingSystem:
    """A small system with all its samples loaded."""
    system = open_system(BatchingOptions(**{**SMALL, **asked}), engines, checksum=checksum, trace=trace)
    system.load(list(range(LIBRARY)))
    return system


def driven(system: _native.BatchingSystem, times: Any, samples: Any = None, **how: Any) -> dict[str, Any]:
    """Queries at those times, of samples in turn unless told."""
    seconds = np.asarray(times, np.float64)
    picked = np.arange(len(seconds)) % LIBRARY if samples is None else samples
    return _native.replay(system, seconds, np.asarray(picked, np.uint64), **how)


def checksum(sample: int) -> bytes:
    """What a query of that sample is answered with."""
    return zlib.crc32(_native.synthetic_sample(sample, BYTES)).to_bytes(4, "little")


SCHEDULES = st.lists(st.integers(0, 3000), min_size=1, max_size=120).map(
    lambda us: [each * 1e-6 for each in sorted(us)]
)


@settings(max_examples=40, deadline=None)
@given(
    times=SCHEDULES,
    picks=st.randoms(use_true_random=False),
    batch=st.integers(1, 9),
    timeout=st.sampled_from([0.0, 0.0002, 0.002]),
    streams=st.integers(1, 3),
    lanes=st.integers(1, 3),
    waiting=st.sampled_from([1, 7, 1 << 12]),
    balance=st.sampled_from(["least-outstanding", "round-robin"]),
    coalesce=st.booleans(),
    flush=st.booleans(),
)
def test_every_query_is_answered_once_with_what_its_sample_is(
    times: list[float], picks: Any, batch: int, timeout: float, streams: int, lanes: int, waiting: int, balance: str,
    coalesce: bool, flush: bool,
) -> None:  # fmt: skip
    samples = [picks.randrange(LIBRARY) for _ in times]
    system = made(batch=batch, timeout=timeout, streams=streams, devices=("cpu",) * lanes, most_waiting=waiting,
                  balance=balance)  # fmt: skip
    found = driven(system, times, samples, coalesce=coalesce, flush=flush, keep=True)
    assert found["failure"] == ("", "")
    assert list(found["answers"]) == [1] * len(times)
    assert found["data"] == [checksum(sample) for sample in samples]
    assert (found["issued"] >= found["scheduled"]).all()
    assert (found["answered"] >= found["issued"]).all()
    told = statistics(system)
    assert max(told.sizes) <= batch
    assert sum(size * count for size, count in told.sizes.items()) == told.answered == len(times)
    assert told.bytes == len(times) * BYTES
    assert told.failed == 0


def test_a_full_batch_does_not_wait_for_its_time_out() -> None:
    system = made(batch=4, timeout=1000.0)
    result = driven(system, [0.0] * 8, coalesce=True, flush=False)
    assert statistics(system).sizes == {4: 2}
    assert list(result["answers"]) == [1] * 8


def test_a_partial_batch_waits_for_its_time_out() -> None:
    system = made(batch=4, timeout=0.05)
    result = driven(system, [0.0] * 2, coalesce=True, flush=False)
    assert statistics(system).sizes == {2: 1}
    assert (result["answered"] - result["issued"]).min() >= 0.05e9


def test_flush_lets_a_partial_batch_go_long_before_its_time_out() -> None:
    system = made(batch=64, timeout=1000.0)
    found = driven(system, [0.0] * 5, coalesce=True)
    assert list(found["answers"]) == [1] * 5
    assert statistics(system).sizes == {5: 1}


def test_without_a_time_out_a_query_waits_for_no_other() -> None:
    system = made(batch=64, timeout=0.0)
    result = driven(system, [0.0], flush=False)
    assert list(result["answers"]) == [1]
    assert statistics(system).sizes == {1: 1}


def test_what_waits_while_the_device_is_busy_goes_together(loadgen: object, tmp_path: Path) -> None:
    # LoadGen says when all queries are issued: until then the engine keeps its first batch.
    issued_all = threading.Event()

    def engine(batch: Any, samples: Any) -> bytes:
        assert issued_all.wait(300)
        return bytes(len(samples))

    def tick(issued: int, answered: int, late: int) -> None:
        if issued == 20:
            issued_all.set()

    system = open_system(BatchingOptions(**SMALL, timeout=0.0, streams=1), [engine])
    runner = LoadGenRunner(system, tmp_path, RunnerSetup(samples=LIBRARY, resident=LIBRARY), tick)
    runner.run(LoadSpec(qps=1000.0, seconds=0.001, queries=20, bound=600.0))
    sizes = statistics(system).sizes
    assert sum(size * count for size, count in sizes.items()) == 20
    assert sum(sizes.values()) <= 2  # those there at first, and all that came meanwhile


def test_the_next_batch_is_copied_while_the_device_is_held() -> None:
    service = 0.05
    for streams in (1, 3):
        system = made(batch=1, timeout=0.0, streams=streams, service=(service, 0.0), trace=64)
        driven(system, [0.0] * 6)
        batches = sorted((copied, inferred) for _, _, _, copied, inferred, *_ in system.trace())
        early = [copied for (_, inferred), (copied, _) in pairwise(batches) if copied < inferred]
        assert bool(early) is (streams > 1)
    assert statistics(system).stages["infer"]["max"] > 1.9 * service  # it waits for its device, copied


def test_an_idle_system_uses_every_device_and_a_slow_device_gets_less() -> None:
    system = made(batch=1, timeout=0.0, devices=("cpu",) * 4, service=(0.02, 0.0), trace=64)
    driven(system, np.arange(8) * 0.03)
    assert {batch[0] for batch in system.trace()} == {0, 1, 2, 3}

    answered, enough = [], threading.Event()

    def slow(batch: Any, samples: Any) -> None:
        assert enough.wait(300)

    def quick(batch: Any, samples: Any) -> None:
        answered.extend(samples)
        if len(answered) == 10:
            enough.set()

    system = made((slow, quick), devices=("cpu", "cpu"), batch=1, streams=1, timeout=0.0, trace=64, checksum=False)
    driven(system, np.arange(24) * 0.01)
    lanes = [batch[0] for batch in system.trace()]
    assert lanes.count(0) < lanes.count(1)


def test_samples_come_from_the_data_set_and_leave_room_when_unloaded() -> None:
    rows = {number: bytes([number]) * BYTES for number in range(200)}
    system = open_system(BatchingOptions(**{**SMALL, "library": 2}), samples=200, fill=rows.__getitem__, checksum=True)
    for pair in ([3, 150], [7, 8]):
        system.load(pair)
        found = driven(system, [0.0, 0.0], pair, keep=True)
        assert found["data"] == [zlib.crc32(rows[number]).to_bytes(4, "little") for number in pair]
        with pytest.raises(_native.ProbeFailure, match="more samples"):
            system.load([11])
        system.unload(pair)


def test_a_run_tells_where_time_went() -> None:
    system = made(batch=2, timeout=0.0, service=(0.01, 0.005), trace=3)
    driven(system, np.arange(8) * 0.03)
    told: SystemStatistics = statistics(system)
    assert told.stages["infer"]["p50"] >= 0.015 * 0.99
    assert told.stages["total"]["max"] >= told.stages["infer"]["max"]
    assert told.mean_batch == pytest.approx(8 / sum(told.sizes.values()))
    means = [told.stages[stage]["mean"] for stage in ("queue", "copy", "infer", "answer")]
    assert sum(means) == pytest.approx(told.stages["total"]["mean"], rel=1e-6)
    assert len(system.trace()) == 3


def test_the_trace_is_bounded_and_each_batch_nests_in_time() -> None:
    system = made(batch=4, timeout=0.0, trace=5, devices=("cpu", "cpu"))
    driven(system, [0.0] * 40, coalesce=True)
    events = json.loads(perfetto(system, ("cpu", "cpu")))["traceEvents"]
    stages = [event for event in events if event["ph"] == "X"]
    assert len(stages) == 3 * 5
    for number in range(5):
        copy, infer, answer = (event for event in stages if event["args"]["batch"] == number)
        assert copy["ts"] + copy["dur"] <= infer["ts"] + 1e-6
        assert infer["ts"] + infer["dur"] <= answer["ts"] + 1e-6
    begun = [event["id"] for event in events if event["ph"] == "b"]
    assert begun == [event["id"] for event in events if event["ph"] == "e"]
    assert len(begun) == len(set(begun))


def test_it_runs_again_and_forgets_the_run_before() -> None:
    system = made(batch=3)
    for count in (20, 5):
        driven(system, [0.0] * count)
        assert statistics(system).answered == count


def test_deterministic_service_queues_as_m_d_1_does() -> None:
    """Mean wait of M/D/1: rho/(2(1-rho)) services; here 5 ms at rho 0.6, so 3.75 ms of waiting, within 60 %."""
    service, load = 0.005, 0.6
    times = np.cumsum(np.random.default_rng(4).exponential(service / load, 150))
    system = made(batch=1, timeout=0.0, streams=2, service=(service, 0.0), checksum=False)
    before = cpu_usage()
    result = driven(system, times)
    after = cpu_usage()
    latencies = (result["answered"] - result["scheduled"]) * 1e-9
    exact, free = [], 0.0
    for time in times:  # Lindley: what a server without overhead would do with this very schedule
        free = max(free, time) + service
        exact.append(free - time)
    # The two streams may swap two queries on a busy machine, so completions are compared in their own order.
    assert (latencies > service - 1e-6).all()
    assert (np.sort(times + latencies) > times + np.array(exact) - 1e-6).all()
    # A busy machine wakes threads late, and only then most queries may wait longer.
    if before and after and after.interference_since(before) == 0.0:
        assert np.median(latencies) < 1.6 * np.median(exact) + 0.01
