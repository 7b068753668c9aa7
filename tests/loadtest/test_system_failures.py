"""What goes wrong in a system under test is told once, and no query is left without an answer."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
from garbage import collect

if sys.platform != "linux":
    pytest.skip("load tests are for Linux", allow_module_level=True)

from lanewise import _native
from lanewise.errors import CannotMeasure, InputError, UnknownName
from lanewise.loadtest.session import open_system
from lanewise.loadtest.system import cannot, statistics
from lanewise.options.loadtest import BatchingOptions

SMALL: dict[str, Any] = {"sample_bytes": 64, "library": 16, "timeout": 0.0, "batch": 64, "service": (0.0, 0.0)}


def driven(system: _native.BatchingSystem, count: int, samples: Any = None, **how: Any) -> dict[str, Any]:
    picked = np.arange(count) % 16 if samples is None else samples
    return _native.replay(system, np.zeros(count), np.asarray(picked, np.uint64), keep=True, **how)


def opened(engine: Any = None, **asked: Any) -> _native.BatchingSystem:
    system = open_system(BatchingOptions(**{**SMALL, **asked}), [engine] if engine else [])
    system.load(list(range(16)))
    return system


def test_an_engine_sees_the_batch_and_its_answers_come_back() -> None:
    def engine(batch: Any, samples: Any) -> list[bytes | None]:
        assert batch.shape == (len(samples), 64)
        for row, sample in zip(batch, samples, strict=True):
            assert bytes(row) == _native.synthetic_sample(int(sample), 64)
        return [None if sample % 2 else bytes([int(sample)] * 3) for sample in samples]

    found = driven(opened(engine=engine, batch=5), 40)
    assert found["failure"] == ("", "")
    assert found["data"] == [b"" if i % 16 % 2 else bytes([i % 16] * 3) for i in range(40)]


def test_an_array_of_answers_is_split_evenly() -> None:
    found = driven(opened(engine=lambda batch, samples: (samples * 2).astype("<u2"), batch=4), 16)
    assert found["data"] == [(2 * i).to_bytes(2, "little") for i in range(16)]


def test_answers_are_read_where_they_lie_until_the_next_batch() -> None:
    made: list[weakref.ref[Any]] = []
    room = bytearray(4)

    def engine(batch: Any, samples: Any) -> list[Any]:
        assert [each() for each in made] == [None] * len(made)
        room.append(0)  # no buffer of it is left: one that is read cannot grow
        given = [np.full(2, sample, np.uint8) for sample in samples]
        made.extend(weakref.ref(each) for each in given)
        return [*given[:-1], memoryview(room)]

    system = opened(engine=engine, batch=4, streams=1, timeout=600.0)
    found = driven(system, 16)
    assert found["failure"] == ("", "")
    assert [found["data"][i] for i in range(16) if i % 4 < 3] == [bytes([i] * 2) for i in range(16) if i % 4 < 3]
    assert sum(each() is not None for each in made) == 3
    del system
    collect()
    assert [each() for each in made] == [None] * 16


@pytest.mark.parametrize("streams", [1, 3])
def test_an_engines_error_ends_the_run_but_every_query_is_answered(streams: int) -> None:
    calls, failed = [], threading.Event()

    def engine(batch: Any, samples: Any) -> bytes:
        calls.append(len(samples))
        if failed.is_set():  # a batch under way on another stream: it leaves the failed one time to end the run
            time.sleep(0.05)
        if 9 in samples:
            failed.set()
            raise ValueError("no such layer")
        return bytes(len(samples))

    system = opened(engine=engine, batch=1, streams=streams)
    found = driven(system, 200)
    cause, hint = found["failure"]
    assert "ValueError: no such layer" in cause
    assert "test_system_failures.py" in hint
    assert list(found["answers"]) == [1] * 200
    assert found["data"][9] == b""
    assert found["data"][-1] == b""
    told = statistics(system)
    assert told.answered + told.failed == 200
    assert len(calls) < 200
    failed.clear()
    again = driven(system, 5)  # the next run starts afresh
    assert again["failure"] == ("", "")
    assert again["data"] == [b"\0"] * 5


@pytest.mark.parametrize("answer", [[b"one"], b"1234567", [b"a"] * 4, 7])
def test_an_answer_that_is_not_one_a_query_is_refused(answer: Any) -> None:
    found = driven(opened(engine=lambda batch, samples: answer, batch=3, timeout=600.0), 3)
    assert "engine" in found["failure"][0]
    assert list(found["answers"]) == [1] * 3


def test_a_query_of_a_sample_that_is_not_loaded_fails_the_run() -> None:
    system = open_system(BatchingOptions(**SMALL), samples=100)
    system.load([1, 2])
    found = driven(system, 3, [1, 2, 50])
    assert "sample 50" in found["failure"][0]
    assert list(found["answers"]) == [1] * 3
    with pytest.raises(_native.ProbeFailure, match="no sample 100"):
        system.load([100])


def test_a_broken_sample_is_named_when_it_is_loaded() -> None:
    def fill(sample: int) -> bytes:
        if sample == 3:
            raise OSError("truncated image")
        return bytes(64)

    system = open_system(BatchingOptions(**SMALL), fill=fill)
    with pytest.raises(_native.ProbeFailure, match="sample 3 cannot be read: OSError: truncated image") as failure:
        system.load(list(range(5)))
    assert "test_system_failures.py" in cannot(failure.value).hint
    assert list(driven(system, 3, [0, 1, 2])["answers"]) == [1] * 3

    short = open_system(BatchingOptions(**SMALL), fill=lambda sample: bytes(63))
    with pytest.raises(_native.ProbeFailure, match="sample 0 has 63 bytes in place of 64"):
        short.load([0])


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"batch": 0}, InputError),
        ({"timeout": -1.0}, InputError),
        ({"service": (float("nan"), 0.0)}, InputError),
        ({"copy": "teleport"}, UnknownName),
        ({"balance": "random"}, UnknownName),
        ({"devices": ()}, InputError),
        ({"devices": ("tpu0",)}, UnknownName),
        ({"most_waiting": 0}, InputError),
        ({"batch": 70000}, InputError),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(asked: dict[str, Any], error: type[InputError]) -> None:
    with pytest.raises(error) as refused:
        BatchingOptions(**asked)
    assert refused.value.hint


def test_too_large_a_library_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(CannotMeasure, match="GB of host memory needed"):
        open_system(BatchingOptions(library=10**9))


def test_each_device_needs_an_engine_of_its_own() -> None:
    with pytest.raises(InputError, match="2 engines for 1 devices"):
        open_system(BatchingOptions(**SMALL), [bytes, bytes])


def test_a_schedule_out_of_order_is_refused() -> None:
    with pytest.raises(_native.ProbeFailure, match="out of order"):
        _native.replay(opened(), np.array([1.0, 0.0]), np.zeros(2, np.uint64))
