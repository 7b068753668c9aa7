"""The search for the largest VALID rate over runners of known law."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loadtest.known_runner import KnownRunner

from lanewise.errors import Contradiction, FormatError, InputError
from lanewise.loadtest import state
from lanewise.loadtest.load_run import SERVER, LoadGenResult, LoadSpec
from lanewise.loadtest.peak import SearchProgress, find
from lanewise.loadtest.system import SystemStatistics
from lanewise.options.loadtest import PeakOptions
from lanewise.results.service_result import SearchRun
from lanewise.serving.durations import Durations
from lanewise.serving.queues import md1_peak
from lanewise.serving.search import find_peak, known_within

BOUND = 0.015
USUAL = PeakOptions(seconds=150.0)
QUICK = PeakOptions(seconds=20.0, within=0.05)


@cache
def peak() -> float:
    """That of a server of 1 ms a query; every worker collects this file, one runs it."""
    return md1_peak(0.001, BOUND)


def test_the_peak_of_an_md1_server_is_within_2_per_cent_in_9_of_10_seeds() -> None:
    runners = [KnownRunner(stream=each) for each in range(24)]
    found = [find(runner, USUAL) for runner in runners]
    assert sum(abs(each.qps / peak() - 1.0) <= 0.02 for each in found) >= 22
    assert all(each.best is not None and each.best.valid for each in found)
    assert all(each.best.load.qps == each.qps for each in found if each.best)
    assert all(len(each.search_runs) <= 12 for each in found)
    assert sum(each.seconds for each in found) <= 150.0 * len(found)
    assert sum(each.confirmed for each in found) >= 23


@pytest.mark.parametrize(
    ("runner", "bound"),
    [
        (KnownRunner(times=(5e-5,)), 0.00075),
        (KnownRunner(times=tuple(0.002 + 0.00025 * size for size in range(1, 33)), timeout=0.001), BOUND),
        (KnownRunner(times=(0.008,), servers=8), BOUND),
    ],
    ids=["20x faster", "batches", "8 servers"],
)
def test_other_servers_are_found_with_a_valid_run_and_in_time(runner: KnownRunner, bound: float) -> None:
    found = find(runner, replace(USUAL, bound=bound))
    assert found.confirmed
    assert found.best is not None
    assert found.best.valid
    assert found.seconds < 165.0
    above = runner.run(LoadSpec(qps=1.08 * found.qps, seconds=200_000 / found.qps, bound=bound, seed=99))
    below = runner.run(LoadSpec(qps=0.94 * found.qps, seconds=200_000 / found.qps, bound=bound, seed=98))
    assert not above.valid
    assert below.valid


@settings(max_examples=15, deadline=None)
@given(off=st.floats(0.5, 2.0))
def test_a_wrong_prediction_or_offline_rate_still_leads_to_the_peak(off: float) -> None:
    found = find(KnownRunner(stream=3), replace(QUICK, seconds=100.0), off * peak())
    assert found.qps == pytest.approx(peak(), rel=0.1)


@dataclass
class Lying(KnownRunner):
    """Its Offline rate is not what the server can."""

    factor: float = 1.0

    def run(self, load: LoadSpec) -> LoadGenResult:
        found = super().run(load)
        return found if load.scenario == SERVER else replace(found, qps=self.factor * found.qps)


@pytest.mark.parametrize("factor", [0.6, 2.0])
def test_an_offline_rate_that_is_wrong_is_left_behind(factor: float) -> None:
    found = find(Lying(factor=factor), USUAL)
    assert found.qps == pytest.approx(peak(), rel=0.05)
    assert any("above the Offline rate" in note for note in found.notes) is (factor < 1.0)


def test_a_prediction_above_the_offline_rate_begins_there_whatever_its_digits() -> None:
    # Of such rates x the square over x is above x, which made an empty bracket of the two.
    rates = [x for x in (1400.0 + each / 7 for each in range(1400)) if x**2 / x > x]
    assert rates
    for rate in rates[:3]:
        found = find(Lying(factor=rate / 1000.0), QUICK, 1e6)
        assert found.bracket[0] == found.bracket[1] == found.offline


def test_a_valid_run_above_the_peak_is_named_with_the_rule_that_chose_the_peak() -> None:
    found = [find(KnownRunner(stream=stream), QUICK) for stream in range(30)]
    above = [any(run.valid and run.load.qps > each.qps for run in each.search_runs) for each in found]
    assert 0 < sum(above) < len(above)
    assert [any("was VALID too" in note for note in each.notes) for each in found] == above


@pytest.mark.parametrize(("share", "text"), [(1.9, "190 %"), (0.15, "15 %"), (0.0996, "10 %"), (0.0031, "0.31 %")])
def test_how_well_a_peak_is_known_has_no_exponent(share: float, text: str) -> None:
    assert known_within(share) == f"known within {text}"


def test_a_first_run_refused_beside_other_work_is_tried_again_before_the_rate_is_lowered() -> None:
    hit = [SearchRun(500.0, seed, False, 0.02, 500, disturbed=True) for seed in (1, 2, 3)]
    ask = {"durations": Durations(BOUND), "bracket": (490.0, 510.0), "budget": 100.0, "floor": 10.0}

    def next_after(*trials: SearchRun) -> float:
        asked: list[float] = []

        def run(qps: float, seed: int, seconds: float) -> SearchRun:
            asked.append(qps)
            raise Cut

        with pytest.raises(Cut):
            find_peak(run, earlier=trials, **ask)  # type: ignore[arg-type]
        return asked[0]

    alone = replace(hit[0], disturbed=False, hopeless=True)
    again = [replace(each, hopeless=True) for each in hit]
    assert next_after(again[0]) == next_after(*again[:2]) == 500.0
    assert next_after(*again) == 490.0
    assert next_after(alone) == 490.0


@pytest.mark.parametrize(
    ("others", "still", "late", "hit"),
    [
        (None, 0.0, 50, False),
        (0.05, 0.0, 50, False),
        (0.2, 0.0, 50, True),
        (0.0, 0.05, 180, True),  # 4 x 1,000/s x 50 ms
        (0.0, 0.05, 220, False),
        (None, 0.0, 0, False),
    ],
)
def test_a_refused_run_is_disturbed_by_others_or_where_the_machine_stood_still(
    others: float | None, still: float, late: int, hit: bool
) -> None:
    run = replace(
        LoadGenResult(LoadSpec(qps=1000.0), False, ("late",), 5000, 5.0, 1000.0, {}, late),
        interference=others,
        still=still,
    )
    assert run.disturbed is hit
    assert not replace(run, valid=True).disturbed


def test_warm_ups_do_not_count_and_every_run_has_its_own_seed() -> None:
    runner = KnownRunner()
    found = find(runner, QUICK)
    roles = [run.role for run in found.runs]
    assert roles[0] == "warm-up"
    assert roles.count("offline") == 1
    seeds = [run.load.seed for run in found.search_runs]
    assert len({*seeds}) == len(seeds) == len(found.search_runs)
    assert found.offline == pytest.approx(1000.0)
    assert [run.load for run in found.runs] == runner.ran


def test_no_valid_rate_is_said_and_not_invented() -> None:
    found = find(KnownRunner(times=(0.02,)), QUICK)  # each answer alone takes longer than the bound
    assert (found.qps, found.best, found.confirmed) == (0.0, None, False)
    assert found.notes[0].startswith("no rate was VALID")


def test_a_late_generator_is_noted() -> None:
    found = find(KnownRunner(lag=0.004), QUICK)
    assert any(note.startswith("the generator is the limit: at the percentile it is late itself by 4 ms")
               for note in found.notes)  # fmt: skip
    assert not any("generator" in note for note in find(KnownRunner(), QUICK).notes)


@dataclass
class Disturbed(KnownRunner):
    """Three of ten Server runs are slowed by other work on the machine, which is `told` of or not."""

    told: bool = True

    def run(self, load: LoadSpec) -> LoadGenResult:
        if load.scenario != SERVER or random.Random(f"{self.stream} {load.seed}").random() > 0.3:
            return super().run(load)
        alone, self.times = self.times, [1.6 * took for took in self.times]
        found = super().run(load)
        self.times = alone
        return replace(found, interference=0.4 if self.told else None)


def test_runs_refused_beside_other_work_count_little_and_are_noted() -> None:
    def errors(told: bool) -> list[float]:
        found = [find(Disturbed(stream=each, told=told), USUAL) for each in range(15)]
        noted = sum(any("refused while the machine was not quiet" in note for note in each.notes) for each in found)
        assert noted >= 14 if told else noted == 0
        return [abs(each.qps / peak() - 1.0) for each in found]

    blind, warned = errors(False), errors(True)
    assert sum(error <= 0.05 for error in warned) >= 12
    assert sum(warned) < 0.4 * sum(blind)


def test_progress_tells_what_runs_next_and_how_long_it_may_take() -> None:
    told: list[SearchProgress] = []
    found = find(KnownRunner(), QUICK, on_progress=told.append)
    assert len(told) == len(found.runs)
    assert all(0.0 < each.remaining <= each.at_most <= QUICK.seconds for each in told)
    assert [each.load for each in told] == [run.load for run in found.runs]


class Cut(KeyboardInterrupt):
    pass


def cut_after(runner: KnownRunner, runs: int) -> Callable[[LoadSpec], LoadGenResult]:
    def run(load: LoadSpec) -> LoadGenResult:
        if len(runner.ran) == runs:
            raise Cut
        return KnownRunner.run(runner, load)

    return run


@pytest.mark.parametrize("after", [0, 1, 4, 7])
def test_an_interrupted_search_goes_on_where_it_stood(after: int) -> None:
    whole = find(KnownRunner(stream=5), QUICK)
    runner = KnownRunner(stream=5)
    kept: list[LoadGenResult] = []
    runner.run = cut_after(runner, after)  # type: ignore[method-assign, assignment]
    with pytest.raises(Cut):
        find(runner, QUICK, on_run=kept.append)
    text = state.text_of(QUICK, None, kept, "here")
    earlier = state.read(
        text + '{"kind": "sea', "search.jsonl", QUICK, None, "here"
    )  # cut off while a line was written
    assert len(earlier) == min(after, len(kept))
    resumed = find(KnownRunner(stream=5), QUICK, earlier=earlier)
    assert resumed.runs == whole.runs
    assert (resumed.qps, resumed.interval) == (whole.qps, whole.interval)


def test_a_state_of_other_settings_or_another_machine_is_refused() -> None:
    text = state.text_of(QUICK, None, [], "onnxruntime")
    with pytest.raises(Contradiction, match=r"bound was 0\.015, is 0\.1") as caught:
        state.read(text, "search.jsonl", replace(QUICK, bound=0.1), None, "onnxruntime")
    assert caught.value.hint
    with pytest.raises(Contradiction, match="'onnxruntime', is of 'torch'"):
        state.read(text, "search.jsonl", QUICK, None, "torch")
    assert state.read(text, "search.jsonl", QUICK, None, "onnxruntime") == []


@pytest.mark.parametrize("bad", ["nonsense\n", '{"lanewise": 9}\n', "[1]\n"])
def test_a_file_that_is_no_state_is_refused_with_its_line(bad: str) -> None:
    with pytest.raises(FormatError) as caught:
        state.read(bad, "search.jsonl", QUICK, None)
    assert caught.value.location is not None
    assert caught.value.location.line == 1
    with pytest.raises(FormatError, match=r"search\.jsonl:2: not a run"):
        state.read(state.head(QUICK, None) + '\n{"kind": "search"}\n', "search.jsonl", QUICK, None)


def test_every_outcome_survives_being_written_and_read(tmp_path) -> None:
    run = replace(KnownRunner().run(LoadSpec(qps=500.0, seconds=2.0)), folder=tmp_path, settings={"a": 1})
    assert state.read(state.text_of(QUICK, None, [run]), "x", QUICK, None) == [run]


@pytest.mark.parametrize("wrong", [{"bound": 0.0}, {"seconds": -1.0}, {"percentile": 1.0}, {"most_runs": 0}])
def test_impossible_asks_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError) as caught:
        find(KnownRunner(), PeakOptions(**wrong))  # type: ignore[arg-type]
    assert caught.value.hint


def test_a_prediction_that_is_no_rate_is_refused() -> None:
    with pytest.raises(InputError):
        find(KnownRunner(), QUICK, -5.0)


@pytest.mark.parametrize("stream", range(8))
def test_a_finished_search_that_is_asked_again_runs_nothing_and_answers_the_same(stream: int) -> None:
    ask = replace(QUICK, seconds=8.0, most_runs=3 + stream)  # short of time and runs: ends of every kind
    whole = find(KnownRunner(stream=stream), ask)
    again = find(idle := KnownRunner(), ask, earlier=whole.runs)
    assert idle.ran == []
    assert again == whole


def test_accounts_are_read_back_as_they_were_and_lines_that_are_none_left_out() -> None:
    account = SystemStatistics(
        {"copy": {"p99": 0.1}}, {1: 2, 8: 3}, 10, 26, 0, 0.5, (("batch", {"batch": 1e-3}), ("memcpy", {}))
    )
    run = LoadGenResult(LoadSpec(seed=7), True, (), 9, 1.0, 9.0, {}, 0)
    line = state.statistics_line(run, account)
    bad = ["", "[]", "{}", "null", line[:-9], line.replace('"sizes": {', '"sizes": {"x": 1, '),
           line.replace('{"copy": {"p99": 0.1}}', "null")]  # fmt: skip
    assert state.read_statistics("\n".join([*bad, line, *bad])) == {("search", 7): account}


@pytest.mark.parametrize("above", [1.05, 1.3])
def test_above_a_bracket_whose_upper_end_is_valid_the_steps_begin_small(above: float) -> None:
    tried: list[float] = []

    def planted(qps: float, seed: int, seconds: float) -> SearchRun:
        tried.append(qps)
        valid = qps <= 1000.0 * above
        latency, completed = (0.001, 1.0) if valid else (9.0, 0.0)
        queries = round(qps * seconds)
        return SearchRun(qps, seed, valid, latency, queries, hopeless=not valid, completed=completed)

    found = find_peak(planted, durations=Durations(BOUND), bracket=(950.0, 1000.0), precision=0.02, budget=100.0)
    assert found.rate == pytest.approx(1000.0 * above, rel=0.2)
    assert max(tried) <= 2.2 * 1000.0


def test_where_no_run_was_refused_but_latency_tells_the_interval_has_two_ends() -> None:
    def near(qps: float, seed: int, seconds: float) -> SearchRun:
        return SearchRun(qps, seed, True, 0.9 * BOUND, round(qps * seconds))

    found = find_peak(near, durations=Durations(BOUND), bracket=(950.0, 1000.0), most_runs=3, budget=100.0)
    assert found.interval[0] < found.rate <= found.interval[1] * 1.01 < 2000.0


def test_without_a_refused_run_the_peak_may_lie_higher() -> None:
    found = find(KnownRunner(times=(1e-5,)), replace(QUICK, most_runs=1), 100.0)
    assert found.best is not None
    assert any("may lie higher" in note for note in found.notes)
