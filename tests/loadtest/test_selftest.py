"""The generator's ceiling: the search on a runner of known answers, and the real thing once."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import CannotMeasure
from lanewise.loadtest.load_run import LoadGenResult, LoadSpec
from lanewise.loadtest.selftest import ceilings
from lanewise.options.loadtest import SelftestOptions


class Limited:
    """A runner that is valid up to a rate, and disturbed now and then."""

    def __init__(self, limit: float, disturbed: tuple[int, ...] = (), room: float = 1e12) -> None:
        self.limit, self.disturbed, self.room, self.runs = limit, disturbed, room, 0

    def run(self, load: LoadSpec) -> LoadGenResult:
        self.runs += 1
        if load.qps > self.room:
            raise CannotMeasure("no memory", hint="less")
        valid = load.qps <= self.limit and self.runs not in self.disturbed
        return LoadGenResult(load, valid, (), 1, 1.0, load.qps, {"p50": 1e-6}, 0)


@given(st.floats(1e3, 1e8), st.floats(0.01, 0.2))
def test_the_ceiling_is_found_within_the_gap_asked_for(limit, precision):
    (found,) = ceilings(Limited(limit), SelftestOptions(("plain",), start=1e3, precision=precision))
    assert found.failed is not None
    assert found.qps <= limit < found.failed
    assert found.failed - found.qps <= precision * found.failed


def test_a_ceiling_below_the_first_rate_is_found_too():
    (found,) = ceilings(Limited(700.0), SelftestOptions(("plain",), start=50_000.0))
    assert found.failed is not None
    assert found.qps <= 700.0 < found.failed
    assert found.failed <= 1.06 * found.qps


def test_one_disturbed_run_does_not_decide():
    (found,) = ceilings(Limited(1e6, disturbed=(1, 3)), SelftestOptions(("plain",), start=1e3))
    assert found.qps > 0.95e6


def test_a_ceiling_beyond_what_memory_allows_is_marked():
    (found,) = ceilings(Limited(1e9, room=1e6), SelftestOptions(("coalesced",), start=1e3))
    assert found.qps > 0.5e6
    assert found.note == "not tried further: no memory"
    with pytest.raises(CannotMeasure, match="no memory"):
        list(ceilings(Limited(1e9, room=1.0), SelftestOptions(start=1e3)))


def test_a_host_that_reaches_nothing_is_an_error():
    with pytest.raises(CannotMeasure, match="not even"):
        list(ceilings(Limited(0.0), SelftestOptions()))


def test_selftest_gives_json_and_says_what_it_tries(loadgen, lanewise):
    done = lanewise(
        "loadtest", "selftest", "--json", "--seconds", "0.1", "--start", "100000", "--precision", "1", "--tries", "1",
        "--bound", "500 ms", "--modes", "plain",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["modes"]
    assert found["mode"] == "plain"
    assert found["qps"] >= 100_000.0
    assert found["failed"] is None or found["failed"] > found["qps"]
    assert set(found["latency"]) == {"p50", "p90", "p99", "p99.9", "mean", "max"}
    assert "plain: 100,000 queries/s VALID" in done.stderr.splitlines()


def test_an_unknown_mode_is_an_error(lanewise):
    done = lanewise("loadtest", "selftest", "--modes", "plane")
    assert done.returncode == 2
    assert done.stderr == "error: unknown mode 'plane'\nhint:  did you mean plain?\n"
