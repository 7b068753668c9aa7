"""Lets every test import what lies in this folder: `from oracles import slow_maxmin`."""

import gc
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# No example is judged by how long it took: a busy machine is no error. CI and `make test` try the same examples each
# time, so that no run depends on luck, and a fifth as many: more of the same find nothing. Elsewhere they are fresh.
CLOCKLESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fresh", CLOCKLESS)
settings.register_profile("ci", CLOCKLESS, derandomize=True, max_examples=20)
settings.load_profile("ci" if os.environ.get("CI") else "fresh")


def pytest_collection_finish() -> None:
    """Thousands of collected tests live until the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


# Files whose tests share a result that is dear: one worker runs them all, so that each is simulated once.
ONE_WORKER = {"tests/studies/test_ready_studies.py", "tests/studies/test_hop_budget.py"}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each worker takes one test after the other, or a file of ONE_WORKER as a whole."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class TestScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file in ONE_WORKER else nodeid

    return TestScheduling(config, log)
