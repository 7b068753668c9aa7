"""How service times are taken, with a clock that the test moves; and what an absent library says."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from lanewise.errors import MissingDependency
from lanewise.loadtest.engines import open_engine
from lanewise.loadtest.engines.base import LEAST, MOST, SECONDS, closed_loop


class Machine:
    """Takes what `seconds` says for each run, one after another, the last again and again."""

    def __init__(self, seconds: list[float]) -> None:
        self.now, self.seconds, self.runs = 0.0, seconds, 0

    def infer(self, batch: np.ndarray) -> None:
        self.now += self.seconds[min(self.runs, len(self.seconds) - 1)]
        self.runs += 1

    def clock(self) -> float:
        return self.now


def test_a_service_time_is_the_median_without_the_first_runs():
    # Two runs to warm up, then seven that count: the median of 5 x 1 s, 100 s, 1 s is 1 s.
    machine = Machine([50.0, 50.0, 1.0, 1.0, 1.0, 1.0, 1.0, 100.0, 1.0])
    assert closed_loop(machine.infer, {4: np.zeros((4, 8))}, machine.clock) == {4: 1.0}
    assert machine.runs == 2 + LEAST


@pytest.mark.parametrize(("each", "runs"), [(SECONDS / 50, 50), (SECONDS / 1e6, MOST), (10.0, LEAST)])
def test_short_batches_are_repeated_more_often(each: float, runs: int):
    machine = Machine([each])
    closed_loop(machine.infer, {1: np.zeros((1, 8))}, machine.clock)
    assert abs(machine.runs - 2 - runs) <= 1


@pytest.mark.parametrize(
    ("engine", "requirement"),
    [("onnxruntime", "lanewise[loadtest]"), ("torch", "lanewise[torch]"), ("tensorrt", "tensorrt>=10")],
)
def test_an_absent_library_is_an_error_with_the_command_that_installs_it(
    engine: str, requirement: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, engine, None)
    with pytest.raises(MissingDependency, match=f"needs {engine}, which is not installed") as raised:
        open_engine(engine, "small-cnn")
    assert raised.value.hint == f"pip install '{requirement}'"
