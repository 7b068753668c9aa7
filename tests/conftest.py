"""Lets every test import what lies in this folder: `from oracles import slow_maxmin`."""

import gc
import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# No example is judged by how long it took: a busy machine is no error. CI and `make test` try the same examples each
# time, so that no run depends on luck, and a third as many: more of the same find nothing. Elsewhere they are fresh.
CLOCKLESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fresh", CLOCKLESS)
settings.register_profile("ci", CLOCKLESS, derandomize=True, max_examples=30)
settings.load_profile("ci" if os.environ.get("CI") else "fresh")


def pytest_collection_finish() -> None:
    """Thousands of collected tests live until the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()
