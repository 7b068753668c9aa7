"""Lets every test import what lies in this folder: `from oracles import slow_maxmin`."""

import gc
import os
import sys
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# No example is judged by how long it took: a busy machine is no error. CI and `make test` try the same examples each
# time, so that no run depends on luck, and a fifth as many: more of the same find nothing. Elsewhere they are fresh.
# A property that needs more than the profile's count says how many with example_counts.examples.
CLOCKLESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fresh", CLOCKLESS)
settings.register_profile("ci", CLOCKLESS, derandomize=True, max_examples=20)
settings.load_profile("ci" if os.environ.get("CI") else "fresh")


# Thousands of modules and tests live until the end: the garbage collector need not look at them again and again, while
# they are collected and afterwards.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on garbage is that of the tests."""
    gc.freeze()
    gc.enable()


# Files of many processes or waits, whose tests share nothing: a worker takes one of their tests at a time.
SPLIT = {
    "tests/cli/test_cli_interrupt.py", "tests/cli/test_cli_saving.py", "tests/cli/test_cli_services.py",
    "tests/cli/test_docs.py", "tests/cli/test_end_to_end_measuring.py", "tests/discovery/test_hostile_dumps.py",
    "tests/dispatch/test_dispatch_namespaces.py", "tests/dispatch/test_divisions_run.py",
    "tests/dispatch/test_network_division.py", "tests/fuzz/test_fuzz.py", "tests/loadtest/test_loadgen_runs.py",
    "tests/loadtest/test_loadtest_verbs.py", "tests/network/test_network_commands.py",
}  # fmt: skip


def scope_of(nodeid: str) -> str:
    """What a worker runs in one go: a file, or one test of the files of SPLIT."""
    file = nodeid.partition("::")[0]
    return nodeid if file in SPLIT else file


def in_order_of_work(nodeids: list[str]) -> dict[str, float]:
    """When, from 0 to 1, a worker takes each scope: files of many tests first, and among all of them, evenly, the tests
    of SPLIT, which wait more than they compute.
    """
    counts = Counter(map(scope_of, nodeids))
    waiting = [scope for scope in counts if "::" in scope]
    files = sorted(counts.keys() - set(waiting), key=lambda file: (-counts[file], file))
    ends = list(accumulate(counts[file] for file in files))
    place = {file: (end - counts[file]) / ends[-1] for file, end in zip(files, ends, strict=True)}
    return place | {scope: (index + 0.5) / len(waiting) for index, scope in enumerate(waiting)}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Several workers run the tests in the order of work; one process in the order of the files."""
    if hasattr(config, "workerinput"):
        place = in_order_of_work([item.nodeid for item in items])
        items.sort(key=lambda item: place[scope_of(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each worker takes one file after the other, so that fixtures and caches of a file are made once, and between them
    a test of the files of SPLIT.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class TestScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    config.option.loadscopereorder = False
    return TestScheduling(config, log)
