"""LoadGen's FindPeakPerformance, which runs many tests within one call: the peer of the search for a peak."""

from __future__ import annotations

import re

import pytest

from lanewise import _native
from lanewise.loadtest.load_run import LoadSpec
from lanewise.loadtest.loadgen import LoadGenRunner

SERVICE = 0.005  # s
WITHIN_ONE_TEST = 200  # queries; none has so many


@pytest.fixture
def system():
    return _native.LawSystem(SERVICE)


@pytest.fixture
def asked(loadgen, tmp_path):
    made = loadgen.Settings()
    made.mode, made.folder, made.seed = loadgen.Mode.FIND_PEAK, str(tmp_path), 1
    # A dozen queries are answered in time wherever nothing stands still for 0.2 s, and 160 at once are not.
    made.qps, made.bound, made.seconds, made.queries = 80.0, 0.2, 0.125, 10
    made.sample_count = made.performance_sample_count = 16
    return made


def test_all_tests_of_a_search_are_counted_and_none_is_ended_as_hopeless(loadgen, system, asked, tmp_path):
    counts = loadgen.run_load(system, asked)
    log = (tmp_path / "mlperf_log_detail.txt").read_text()
    tests = [int(each) for each in re.findall(r'"generated_query_count", "value": (\d+)', log)]
    (peak,) = re.findall(r"Found peak performance field: ([\d.]+)", log)
    assert len(tests) > 5
    assert max(tests) < WITHIN_ONE_TEST
    assert counts.issued == counts.answered == sum(tests)
    assert counts.late > 0
    assert not counts.hopeless
    assert 80.0 <= float(peak) < 1280.0


def test_a_search_ends_in_a_later_test_and_the_next_run_is_sound(loadgen, system, asked, tmp_path):
    def tick(issued, answered, late):
        if issued > 2 * WITHIN_ONE_TEST:  # in the halving, where no samples are loaded in between
            raise TimeoutError

    with pytest.raises(TimeoutError):
        loadgen.run_load(system, asked, tick)
    assert "Lanewise ended the run early: interrupted" in (tmp_path / "mlperf_log_detail.txt").read_text()
    found = LoadGenRunner(system, tmp_path / "logs").run(LoadSpec(qps=80.0, seconds=0.1, queries=10, bound=600.0))
    assert found.queries >= 10
    assert not found.ended_early
