"""SIGKILL at random moments, either side; benchmarks/dispatch_kills.py goes on with more of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lanewise.installed import loadgen_missing

if sys.platform != "linux":
    pytest.skip("load tests are for Linux", allow_module_level=True)
if missing := loadgen_missing():
    pytest.skip(f"built without LoadGen: {missing}", allow_module_level=True)

from dispatch.kills import Killing

KILLS = (("node", "tcp"), ("frontend", "shm"))


def test_kills_leave_no_hang_no_corrupt_answer_and_nothing_behind(tmp_path: Path) -> None:
    # Some fall into a load test's start or end, on any machine; what is true after a kill is true at every moment.
    with Killing(tmp_path, seed=253, took={"tcp": 2.5, "shm": 2.5}) as killing:
        for side, transport in KILLS:
            kill = killing.round(side, transport)
            assert not kill.faults, "\n".join(kill.faults)
