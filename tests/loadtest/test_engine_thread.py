"""What engines share, shown by one without a library: one thread does the work, errors and strides are checked."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lanewise.errors import CannotMeasure, InputError
from lanewise.loadtest.engines.base import Engine, classes_of
from lanewise.loadtest.spec import SampleSpec, in_memory

Array = np.ndarray


class Adder(Engine):
    """Answers the sum of each sample and keeps on which threads; the next piece of work raises `fails`."""

    name, spec, classifies = "adder", SampleSpec((2, 3), "uint8"), False

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()
        self.fails: Exception | None = None
        self.gone = 0

    def describe(self) -> dict[str, object]:
        return {"engine": self.name}

    def _here(self) -> None:
        self.threads.add(threading.get_ident())
        if self.fails is not None:
            raise self.fails

    def _open(self, index: int | None) -> None:
        self._here()

    def _infer(self, rows: Array) -> Array:
        self._here()
        return rows.reshape(len(rows), -1).sum(axis=1, dtype=np.int64)

    def infer_at(self, address: int, n: int, stride: int = 0) -> Array:
        return self._do(self._infer, in_memory(address, n, self.spec, self._step(stride)))

    def classes_at(self, address: int, n: int, stride: int = 0) -> Array:
        return classes_of(self.infer_at(address, n, stride))

    def _checksums(self, rows: Array) -> Array:
        return self._infer(rows)

    def _placed(self, batch: Array) -> tuple[int, object]:
        self._here()
        return batch.ctypes.data, batch

    def _let_go(self) -> None:
        self.threads.add(threading.get_ident())
        self.gone += 1

    def _ours(self, error: Exception) -> CannotMeasure | None:
        return CannotMeasure(f"adder: {error}", hint="add less") if isinstance(error, ArithmeticError) else None


def loaded(device: str = "cpu", max_batch: int = 4) -> Adder:
    engine = Adder()
    engine.load(device, max_batch)
    return engine


def test_one_thread_does_all_the_work_whoever_asks():
    engine = loaded()
    batch = np.arange(24, dtype=np.uint8).reshape(4, 6)
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda _: engine.infer(batch).tolist(), range(20)))
    engine.warm([1, 4])
    engine.checksums(batch)
    engine.close()
    assert found == [[15, 51, 87, 123]] * 20
    assert len(engine.threads) == 1
    assert threading.get_ident() not in engine.threads
    assert engine.gone == 1


class Unhurried(Adder):
    """Works in the thread of whoever asks, and notes if two ask at once."""

    inside, most = 0, 0

    def _by_caller(self, index: int | None) -> bool:
        return True

    def _infer(self, rows: Array) -> Array:
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.002)
        self.inside -= 1
        return super()._infer(rows)


def test_work_by_the_caller_takes_turns():
    engine = Unhurried()
    engine.load("cpu", 4)
    batch = np.arange(24, dtype=np.uint8).reshape(4, 6)
    gate = threading.Barrier(4)

    def ask(_: int) -> int:
        gate.wait()
        assert engine.infer(batch).tolist() == [15, 51, 87, 123]
        return threading.get_ident()

    with ThreadPoolExecutor(4) as callers:
        asked = set(callers.map(ask, range(4)))
    assert engine.most == 1
    assert asked <= engine.threads <= asked | {threading.get_ident()}
    engine.fails = OverflowError("too much")
    with pytest.raises(CannotMeasure, match="adder: too much"):
        engine.infer(batch)
    engine.close()
    assert engine.gone == 1


def test_a_failure_of_the_library_is_ours_and_any_other_stays_what_it_is():
    engine = loaded()
    engine.fails = OverflowError("too much")
    with pytest.raises(CannotMeasure, match="adder: too much") as raised:
        engine.infer(np.zeros((1, 6), np.uint8))
    assert raised.value.__cause__ is engine.fails
    engine.fails = KeyError("a mistake of ours")
    with pytest.raises(KeyError):
        engine.infer(np.zeros((1, 6), np.uint8))
    engine.fails = None
    assert engine.infer(np.ones((1, 6), np.uint8)).tolist() == [6]


def test_an_engine_that_does_not_open_leaves_no_thread():
    engine = Adder()
    engine.fails = OverflowError("no room")
    before = threading.enumerate()
    with pytest.raises(CannotMeasure, match="no room"):
        engine.load("cpu", 4)
    assert engine.gone == 1
    assert set(threading.enumerate()) <= set(before)
    with pytest.raises(CannotMeasure, match="closed"):
        engine.infer(np.zeros((1, 6), np.uint8))


def test_samples_may_lie_apart_but_not_overlap():
    engine = loaded()
    memory = np.arange(64, dtype=np.uint8)
    assert engine.infer_at(memory.ctypes.data, 2).tolist() == [15, 51]
    assert engine.infer_at(memory.ctypes.data, 3, 16).tolist() == [15, 111, 207]
    with pytest.raises(InputError, match="cannot lie 5 B apart"):
        engine.infer_at(memory.ctypes.data, 2, 5)
    engine.spec = SampleSpec((3,), "int16")
    with pytest.raises(InputError, match="cannot lie 7 B apart"):
        engine.infer_at(memory.ctypes.data, 2, 7)


def test_batches_beyond_the_largest_are_refused():
    with pytest.raises(InputError, match="a batch of 5 is above 4"):
        loaded().infer(np.zeros((5, 6), np.uint8))


def test_service_times_of_a_gpu_are_of_samples_that_lie_there(monkeypatch: pytest.MonkeyPatch):
    engine = loaded("cuda:1")
    seen: list[int] = []
    monkeypatch.setattr(engine, "infer_at", lambda address, n: seen.append(n))
    monkeypatch.setattr(engine, "infer", lambda batch: pytest.fail("the batch was brought there again"))
    assert sorted(engine.service_times([4, 1])) == [1, 4]
    assert set(seen) == {1, 4}
    engine.classifies = True
    monkeypatch.setattr(engine, "classes_at", lambda address, n: seen.append(-n))
    engine.service_times([2])
    assert -2 in seen


@pytest.mark.parametrize(
    ("made", "classes"),
    [
        (np.array([[0.1, 0.7, 0.2], [3, 2, 1]], np.float32), [1, 0]),
        (np.array([[7], [9]], np.int64), [7, 9]),
        (np.array([[0.5], [0.1]], np.float32), [0, 0]),
    ],
)
def test_a_class_is_the_largest_score_or_the_integer_that_a_model_answers(made: Array, classes: list[int]):
    found = classes_of(made)
    assert (found.dtype, found.tolist()) == (np.int32, classes)
