"""Verdicts: monotone in the measured value, the same in every unit, fine at the prediction itself, and symmetric."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_display_units import observation

from lanewise import units
from lanewise.api.loading import ready_systems
from lanewise.checking.checkup import Checkup
from lanewise.checking.earlier_runs import expect_earlier
from lanewise.checking.expectation import Expectation, expectation
from lanewise.checking.expectation_model import ExpectationModel
from lanewise.checking.findings import Finding
from lanewise.checking.tolerances import TOLERANCES
from lanewise.checking.verdict import PathResult, Verdict, judge
from lanewise.errors import InputError
from lanewise.report.text.check import render_checkup
from lanewise.results.estimate import robust_deviation
from lanewise.results.observation import Observation, Source

RATES = st.floats(min_value=1e-3, max_value=1e4)
WIDTHS = st.floats(min_value=0.0, max_value=0.5)
BASES = st.sampled_from(sorted(TOLERANCES))


def row(value: float | None, unit: str = "GB/s", metric: str = "goodput", **more: object) -> Observation:
    return observation("copy", "host0->gpu0", metric, value, unit, Source.MEASURED, **more)


def expected(value: float, width: float = 0.0, basis: str = "calibrated") -> Expectation:
    interval = (value * 1e9 * (1 - width), value * 1e9 * (1 + width))
    return expectation(row(None), basis=basis, value=value * 1e9, interval=interval)


def judged(measured: float | None, wanted: Expectation, unit: str = "GB/s") -> PathResult:
    return judge(row(measured, unit), wanted)


@given(RATES, RATES, RATES, WIDTHS, BASES)
def test_a_faster_copy_never_has_a_slower_verdict(one: float, other: float, value: float, width: float, basis: str):
    order = [Verdict.SLOW, Verdict.OK, Verdict.FAST]
    wanted = expected(value, width, basis)
    low, high = (order.index(judged(each, wanted).verdict) for each in sorted((one, other)))
    assert low <= high


@given(RATES, WIDTHS, BASES)
def test_the_expected_value_itself_is_always_fine(value: float, width: float, basis: str):
    assert judged(value, expected(value, width, basis)).verdict is Verdict.OK


@given(RATES, BASES, st.floats(min_value=0.0, max_value=0.9))
def test_the_tolerance_is_the_same_above_and_below(value: float, basis: str, beside: float):
    wanted = expected(value, 0.0, basis)
    below, above = (judged(value * (1 + sign * beside), wanted) for sign in (-1, 1))
    if abs(beside - TOLERANCES[basis].relative) > 1e-9:
        assert (below.verdict is Verdict.OK) == (above.verdict is Verdict.OK) == (beside < TOLERANCES[basis].relative)


@given(RATES, RATES, st.sampled_from(["GB/s", "MB/s", "GiB/s", "Gb/s", "B/s"]))
def test_a_verdict_does_not_depend_on_the_unit(measured: float, value: float, unit: str):
    wanted = expected(value)
    assert judged(units.from_si(measured * 1e9, unit), wanted, unit).verdict is judged(measured, wanted).verdict or (
        min(abs(measured - value * share) for share in (0.9, 1.1)) < 1e-9 * measured
    )


def test_a_longer_time_is_slow_and_a_shorter_one_fast():
    wanted = expectation(row(None, "us", "latency"), basis="latency", value=10e-6)
    verdicts = [judge(row(time, "us", "latency"), wanted).verdict for time in (3, 10, 17)]
    assert verdicts == [Verdict.FAST, Verdict.OK, Verdict.SLOW]


def test_a_row_without_a_value_failed_with_its_reason_and_one_without_expectation_is_unknown():
    failed = judge(row(None, note="waived: one GPU"), expected(10))
    unknown = judge(row(10), expectation(row(10), note="no figure"))
    assert (failed.verdict, failed.note) == (Verdict.FAILED, "waived: one GPU")
    assert (unknown.verdict, unknown.note) == (Verdict.UNKNOWN, "no figure")


@pytest.mark.parametrize("name", ready_systems())
def test_what_the_model_predicts_of_any_ready_system_is_fine_on_it(name: str):
    from lanewise import api
    from lanewise.topology.model import Kind

    system = api.load_system(name)
    model = ExpectationModel(system)
    gpus = [gpu for gpu in system.of_kind(Kind.GPU)[:3] if system.device(gpu).host]
    flows = [f"{a}->{b}" for a in gpus for b in gpus if a != b] + [f"{system.device(gpu).host}->{gpu}" for gpu in gpus]
    for flow in flows:
        seen = observation(flow, flow, "goodput", 1.0, "GB/s", Source.MEASURED)
        wanted = model.expect(seen)
        value = wanted.expected.value
        if value is not None:
            measured = observation(flow, flow, "goodput", value / 1e9, "GB/s", Source.MEASURED)
            assert judge(measured, wanted).verdict is Verdict.OK, flow


@given(st.lists(RATES, min_size=3, max_size=9))
def test_the_median_machine_of_a_class_is_fine(values: list[float]):
    middle = statistics.median(values)
    rows = expect_earlier([(f"m{n}.json", [row(value)]) for n, value in enumerate(values)])
    wanted = rows(row(middle))
    assert wanted.tolerance == TOLERANCES["class"]
    assert judge(row(middle), wanted).verdict is Verdict.OK


def test_one_bad_machine_of_five_does_not_move_its_class():
    good = [50.0, 50.2, 49.9, 50.1]
    rows = expect_earlier([(f"m{n}.json", [row(value)]) for n, value in enumerate([*good, 12.0])])
    assert robust_deviation([*good, 12.0]) < 0.2
    for value, verdict in ((12.0, Verdict.SLOW), *((each, Verdict.OK) for each in good)):
        wanted = rows(row(value))
        assert judge(row(value), wanted).verdict is verdict


def test_an_earlier_run_is_matched_by_flow_settings_and_method_and_two_are_no_class():
    before = row(50.0, settings={"bytes": 1 << 28}, how={"engine": "copy engine"})
    rows = expect_earlier([("before.json", [before])])
    assert rows(before).expected.value == 50e9
    assert rows(row(50.0, settings={"bytes": 1 << 20}, how={"engine": "copy engine"})).expected.value is None
    assert rows(row(50.0, settings={"bytes": 1 << 28}, how={"engine": "SM"})).expected.value is None
    with pytest.raises(InputError, match="two machines do not say which of them is right"):
        expect_earlier([("a.json", [before]), ("b.json", [before])])


@pytest.mark.parametrize(
    ("tolerance", "printed", "low", "high"),
    [(None, "collective -23 to +21 %", 0.774, 1.21), (0.1, "collective ±10 %", 0.9, 1.1)],
)
def test_the_tolerance_that_is_printed_is_the_one_applied(
    tolerance: float | None, printed: str, low: float, high: float
) -> None:
    wanted = expectation(row(None), basis="collective", value=300e9, interval=(0.88 * 300e9, 1.08 * 300e9))
    result = judge(row(200.0), wanted, tolerance)
    assert printed in render_checkup(Checkup((result,), (Finding("slow", "a title", (result,), (), ""),)))
    rates = (300 * low - 1, 300 * low + 1, 300 * high - 1, 300 * high + 1)
    verdicts = [judge(row(rate), wanted, tolerance).verdict for rate in rates]
    assert verdicts == [Verdict.SLOW, Verdict.OK, Verdict.OK, Verdict.FAST]


def test_the_rules_show_the_table_of_tolerances_as_it_is():
    page = (Path(__file__).parents[2] / "docs/reference/check-rules.md").read_text()
    rows = {t.basis: f"| {t.basis} | {100 * t.relative:.0f} % | {t.why} |" for t in TOLERANCES.values()}
    assert [basis for basis, row in rows.items() if row not in page] == []


def test_a_missing_percentile_is_unknown_as_nothing_failed():
    lone = row(None, "us", "latency_p99", note="61 I/Os a run are too few")
    assert judge(lone, expected(10)).verdict is Verdict.UNKNOWN
