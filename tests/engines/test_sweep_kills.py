"""One kill of each kind in a sweep; `make ray` runs them, benchmarks/scenario_kills.py many at random moments."""

from __future__ import annotations

import random
from importlib.util import find_spec
from pathlib import Path

import pytest
from engines.sweep_kills import Rows, kill_round, rows_of, start

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed (pip install 'lanewise[ray]')"),
]
SWEEP = ("data=1..15", "cache=1..10")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    folder = tmp_path_factory.mktemp("undisturbed") / "results"
    assert start("local:2", folder, SWEEP).wait() == 0
    return rows_of(folder)


@pytest.mark.parametrize(
    ("on", "victim"),
    [("local:2", "driver"), ("local:2", "worker"), ("ray:2", "driver"), ("ray:2", "worker"), ("ray:2", "raylet")],
)
def test_a_killed_sweep_resumes_to_the_same_rows(on: str, victim: str, tmp_path: Path, expected: Rows) -> None:
    if on.startswith("ray") and find_spec("ray") is None:
        pytest.skip("ray is not installed (pip install 'lanewise[ray]')")
    result = kill_round(on, victim, 0.0, tmp_path / "results", expected, SWEEP, random.Random(1))
    assert result.faults == []
    assert result.rows == 2 * 150, "the slowest flow and the sum of each"
