"""The search for the peak: servers with a planted threshold, and an M/D/1 server whose verdicts are partly chance."""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.errors import InputError
from lanewise.results.service_result import SearchRun
from lanewise.serving.durations import Durations
from lanewise.serving.posterior import Array, Posterior
from lanewise.serving.queues import md1_peak
from lanewise.serving.search import PeakEstimate, RunFunction, find_peak
from lanewise.serving.verdict import most_late, percentile_index

BOUND = 0.015
allowed = cache(most_late)


@cache
def highest_rate() -> float:
    """The peak of a server of 1 ms a query; every worker collects this file, one runs it."""
    return md1_peak(0.001, BOUND)


def planted(threshold: float, latency: bool = True, power: float = 8.0) -> RunFunction:
    """A server without chance: valid up to the threshold and never above."""

    def run(qps: float, seed: int, duration: float) -> SearchRun:
        seen = BOUND * (qps / threshold) ** power if latency else math.nan
        return SearchRun(qps, seed, qps <= threshold, seen, int(qps * duration), "" if qps <= threshold else "too slow")

    return run


def md1(draw: int, bound: float = BOUND) -> RunFunction:
    """A server of 1 ms by Lindley's recursion, judged as LoadGen does."""

    def run(qps: float, seed: int, duration: float) -> SearchRun:
        queries = max(int(qps * duration), 1)
        due = np.cumsum(np.random.default_rng(1000 * draw + seed).exponential(1.0 / qps, queries))
        work = 0.001 * np.arange(queries) - due
        times = work - np.minimum.accumulate(work) + 0.001
        late = int((times > bound).sum())
        index = percentile_index(queries)
        return SearchRun(qps, seed, late <= allowed(queries), float(np.partition(times, index)[index]), queries)

    return run


ENDLESS = Durations(BOUND, longest=math.inf)


@settings(max_examples=25, deadline=None)
@given(exponent=st.floats(-3.0, 9.0), latency=st.booleans(), off=st.floats(0.3, 3.0), predicted=st.booleans())
def test_a_server_without_chance_is_found_at_any_scale(
    exponent: float, latency: bool, off: float, predicted: bool
) -> None:
    threshold = 10.0**exponent
    bracket = (0.8 * off * threshold, 1.2 * off * threshold) if predicted else None
    found = find_peak(planted(threshold, latency), durations=ENDLESS, bracket=bracket, precision=0.01, most_runs=60)
    assert found.confirmed, found.reason
    assert found.rate <= threshold < found.refused
    assert found.rate == pytest.approx(threshold, rel=0.02)
    assert found.runs[-1].valid
    assert found.runs[-1].rate == found.rate


def test_an_md1_server_of_1_ms_in_12_runs_of_10_s() -> None:
    found = [
        find_peak(md1(draw), durations=Durations(BOUND, 10.0, 10.0), bracket=(700.0, 1000.0), most_runs=12)
        for draw in range(40)
    ]
    assert all(len(peak.runs) <= 12 for peak in found)
    assert sum(abs(peak.rate / highest_rate() - 1.0) < 0.02 for peak in found) >= 34
    assert sum(peak.confirmed and peak.runs[-1].valid for peak in found) >= 34
    assert float(np.mean([peak.rate for peak in found])) == pytest.approx(highest_rate(), rel=0.01)


def test_longer_runs_find_it_within_half_a_per_cent() -> None:
    found = [find_peak(md1(draw), durations=Durations(BOUND), bracket=(700.0, 1000.0)) for draw in range(5)]
    assert sum(abs(peak.rate / highest_rate() - 1.0) < 0.005 for peak in found) >= 4
    assert all(peak.confirmed and peak.runs[-1].valid for peak in found)
    assert all(peak.interval[0] <= peak.interval[1] for peak in found)


def test_a_more_lenient_bound_gives_a_higher_peak() -> None:
    def peak(bound: float) -> float:
        return find_peak(md1(1, bound), durations=Durations(bound, longest=100.0), precision=0.01).rate

    assert peak(0.005) < peak(0.015) < peak(0.05) < 1000.0


def test_a_posterior_that_goes_on_from_an_earlier_one_is_that_of_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[SearchRun] = []
    whole = Posterior._log_chance

    def counted(self: Posterior, run: SearchRun, rate: float) -> Array:
        weighed.append(run)
        return whole(self, run, rate)

    monkeypatch.setattr(Posterior, "_log_chance", counted)
    posterior = partial(Posterior, bound=BOUND, percentile=0.99, step=0.005, most=900.0)
    # The third widens the range of rates, so that all of them are weighed anew; the fourth and fifth do not.
    runs = [md1(2)(rate, seed, 10.0) for seed, rate in enumerate([800.0, 850.0, 1200.0, 900.0, 840.0])]
    last = None
    for count, anew in zip(range(1, 6), (1, 2, 3, 1, 1), strict=True):
        weighed.clear()
        last = posterior(runs[:count], before=last)
        assert len(weighed) == anew
        alone = posterior(runs[:count])
        assert last.quantiles(0.05, 0.5, 0.95) == alone.quantiles(0.05, 0.5, 0.95)
        assert last.valid(6.7, 8000) == alone.valid(6.7, 8000)
    weighed.clear()
    other = posterior([*runs[:3], runs[4], runs[3]], before=last)  # no continuation of those
    assert len(weighed) == 5
    assert other.quantiles(0.5) == pytest.approx(last.quantiles(0.5) if last else None)


def test_a_false_verdict_is_outvoted() -> None:
    honest = planted(1000.0, latency=False)

    def run(qps: float, seed: int, duration: float) -> SearchRun:
        trial = honest(qps, seed, duration)
        return SearchRun(qps, seed, not trial.valid, trial.latency, trial.queries) if seed in (1, 4) else trial

    found = find_peak(run, durations=Durations(BOUND), bracket=(800.0, 1500.0), precision=0.01, most_runs=60)
    assert found.confirmed
    assert found.rate == pytest.approx(1000.0, rel=0.02)


def test_the_last_runs_are_long_enough_to_show_a_backlog() -> None:
    # A server of 1,000/s that never idles: the backlog of a rate above it passes the bound after bound / excess only.
    times: list[float] = []

    def run(qps: float, seed: int, duration: float) -> SearchRun:
        times.append(duration)
        backlog = max(qps / 1000.0 - 1.0, 0.0) * duration
        return SearchRun(qps, seed, backlog <= BOUND, math.nan, int(qps * duration))

    found = find_peak(run, durations=Durations(BOUND), bracket=(500.0, 2000.0))
    assert found.rate == pytest.approx(1000.0, rel=0.005)
    assert times[0] < times[-1]
    assert times[-1] >= BOUND / 0.0025
    times.clear()
    find_peak(run, durations=Durations(BOUND, longest=4.0), bracket=(500.0, 2000.0), most_runs=10)
    assert max(times) == 4.0


def test_no_rate_meets_the_bound() -> None:
    found = find_peak(planted(1e-9), durations=Durations(BOUND), bracket=(500.0, 900.0))
    assert found.rate == 0.0
    assert not found.confirmed
    assert found.interval[0] == 0.0
    assert found.reason.endswith("meets the bound: too slow")
    assert min(trial.rate for trial in found.runs) == pytest.approx(1000 / 600)  # the default floor


def test_every_rate_up_to_the_ceiling_meets_it() -> None:
    found = find_peak(planted(1e9), durations=Durations(BOUND), bracket=(500.0, 900.0), ceiling=5000.0)
    assert (found.rate, found.refused, found.confirmed) == (5000.0, math.inf, True)
    assert found.reason == "valid up to the ceiling of 5000 queries/s"


def test_runs_used_up_while_all_are_valid() -> None:
    found = find_peak(planted(1e9), durations=Durations(BOUND), start=1.0, floor=0.0, most_runs=3)
    assert (found.rate, found.confirmed) == (4.0, False)
    assert found.reason == "all 3 runs are used up"


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("after", [0, 1, 4, 9])
def test_what_was_cut_off_resumes_where_it_stood(after: int, error: type[BaseException]) -> None:
    def search(run: RunFunction, earlier: list[SearchRun], kept: list[SearchRun]) -> PeakEstimate:
        return find_peak(
            run, durations=Durations(BOUND, longest=20.0), bracket=(700.0, 1000.0), earlier=earlier,
            on_run=kept.append,
        )  # fmt: skip

    kept: list[SearchRun] = []

    def failing(qps: float, seed: int, duration: float) -> SearchRun:
        if len(kept) == after:
            raise error
        return md1(3)(qps, seed, duration)

    with pytest.raises(error):
        search(failing, [], kept)
    assert len(kept) == after
    rest: list[SearchRun] = []
    resumed = search(md1(3), kept, rest)
    assert resumed == search(md1(3), [], [])
    assert resumed.runs == (*kept, *rest)


def test_every_run_has_a_seed_of_its_own_even_after_those_of_another_search() -> None:
    earlier = [SearchRun(400.0, 7, True, 0.002, 4000), SearchRun(2000.0, 3, False, math.inf, 90, hopeless=True)]
    found = find_peak(planted(1000.0), durations=Durations(BOUND), earlier=earlier, precision=0.01)
    assert len({trial.seed for trial in found.runs}) == len(found.runs)
    assert found.rate == pytest.approx(1000.0, rel=0.02)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bracket": (0.0, 5.0)}, {"bracket": (math.nan, 5.0)}, {"bracket": (9.0, 5.0)},
        {"ceiling": -1.0}, {"floor": -1.0},
        {"floor": 10.0, "ceiling": 5.0}, {"precision": 0.0}, {"precision": math.nan}, {"start": 0.0}, {"most_runs": 0},
    ],
)  # fmt: skip
def test_impossible_searches_are_refused_with_a_hint(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        find_peak(planted(1.0), durations=Durations(BOUND), **wrong)  # type: ignore[arg-type]
    assert caught.value.hint


@pytest.mark.parametrize(
    "wrong", [{"bound": 0.0}, {"bound": math.nan}, {"shortest": -1.0}, {"longest": 0.5}, {"queries": 0}]
)
def test_impossible_durations_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Durations(**({"bound": BOUND} | wrong))  # type: ignore[arg-type]
