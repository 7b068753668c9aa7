"""One kill of each kind in a sweep; `make ray` runs four of them, `make nightly` all, and benchmarks/scenario_kills.py
many at random moments.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from sweep_interrupts import COMMANDS, interrupt_round, interruptible, of_session, ray_cluster
from sweep_kills import Rows, kill_round, rows_of, start

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed (pip install 'lanewise[ray]')"),
]
IN_RAY = pytest.mark.nightly  # half a minute each, most of it Ray's own start and end
SWEEP = ("data=1..15", "cache=1..10")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    folder = tmp_path_factory.mktemp("undisturbed") / "results"
    assert start("local:2", folder, SWEEP).wait() == 0
    return rows_of(folder)


@pytest.mark.parametrize(
    ("on", "victim"),
    [
        ("local:2", "driver"),
        ("local:2", "worker"),
        ("ray:2", "driver"),
        pytest.param("ray:2", "worker", marks=IN_RAY),
        pytest.param("ray:2", "raylet", marks=IN_RAY),
    ],
)
def test_a_killed_sweep_resumes_to_the_same_rows(on: str, victim: str, tmp_path: Path, expected: Rows) -> None:
    if on.startswith("ray") and find_spec("ray") is None:
        pytest.skip("ray is not installed (pip install 'lanewise[ray]')")
    result = kill_round(on, victim, 0.0, tmp_path / "results", expected, SWEEP, random.Random(1))
    assert result.faults == []
    assert result.rows == 2 * 150, "the slowest flow and the sum of each"


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, expected: Rows) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    words, _ = COMMANDS["predict"]
    assert interruptible(words, "local:2", tmp_path / "undisturbed").wait() == 0
    rows = rows_of(tmp_path / "undisturbed")
    assert interrupt_round("predict", "ray:2", 4.0, tmp_path / "interrupted", rows).faults == []


def sweep_under_way(words: Sequence[str], address: str, folder: Path) -> subprocess.Popen[bytes]:
    """A sweep that has its first results; on a busy machine Ray's proxy may give a client up after 30 s."""
    for attempt in range(3):
        results, errors = folder / f"results-{attempt}", folder / f"stderr-{attempt}"
        process = interruptible(words, address, results, errors)
        while process.poll() is None and not list(results.glob("*.parquet")):
            time.sleep(0.1)
        if process.poll() is None:
            return process
    pytest.fail(f"no sweep began: {errors.read_text(errors='replace')}")


@IN_RAY
def test_ctrl_c_ends_a_sweep_whose_cluster_answers_no_more(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    words, _ = COMMANDS["predict"]
    with ray_cluster() as (address, session):
        process = sweep_under_way([*words, "--sweep", "lanes=8,16"], address, tmp_path)
        cluster = [number for number, _ in of_session(session)]
        for number in cluster:
            os.kill(number, signal.SIGSTOP)
        try:
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(600) == 128 + signal.SIGINT, "within seconds; before, it never ended"
        finally:
            process.kill()
            for number in cluster:
                os.kill(number, signal.SIGCONT)
