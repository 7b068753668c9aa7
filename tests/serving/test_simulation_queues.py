"""The event simulation against closed forms of queues: percentiles, mean waits and the peak."""

from __future__ import annotations

import functools
import math

import pytest
from oracles.queue_percentiles import md1_sojourn, mm1_sojourn, mmc_tail, wait_percentile
from serving.slow_queues import Case, Pool, Service, Worker, simulate

from lanewise.results.service_result import SearchRun
from lanewise.serving import queues
from lanewise.serving.durations import Durations
from lanewise.serving.search import find_peak
from lanewise.serving.verdict import invalid_reason

SERVICE = 1e-3
# At this length chance moves a percentile by up to 0.65 %, of the 1 % that the tests leave it; at half of it by 2 %.
LONG = 4000.0


def queue(load: float, servers: int = 1, variation: float = 0.0, duration: float = 1.0, bound: float = 1.0) -> Case:
    """Servers that share one line and serve queries one by one; `load` is that of each."""
    workers = tuple(Worker(0, gpu, (SERVICE,)) for gpu in range(servers))
    service = Service(rate=load * servers / SERVICE, variation=variation, bound=bound)
    return Case((service,), (Pool(),), workers, gpus=servers, duration=duration)


@functools.cache
def run(case: Case, seed: int = 3):
    """The outcome of the one service, without the first tenth, in which the queue fills."""
    return simulate(case, seed, skip=0.1 * case.duration).services[0]


def mmc_sojourn(rate: float, servers: int, share: float) -> float:
    """The percentile of waiting and service in M/M/c: P(T > t) = e^-mt + C (e^-(cm - l)t - e^-mt) m / (m - (cm - l)).

    The wait is 0 or exponential with rate cm - l, and the service exponential with rate m, independent of it.
    """
    from scipy.optimize import brentq

    m, drain = 1.0 / SERVICE, servers / SERVICE - rate
    waits = mmc_tail(rate, SERVICE, servers, 0.0)

    def tail(t: float) -> float:
        return math.exp(-m * t) + waits * m / (m - drain) * (math.exp(-drain * t) - math.exp(-m * t))

    return float(brentq(lambda t: tail(t) - (1.0 - share), 0.0, 1000.0 * SERVICE))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("load", [0.3, 0.7])
def test_mm1_percentiles(load: float, share: float) -> None:
    found = run(queue(load, variation=1.0, duration=LONG))
    assert found.percentile(share) == pytest.approx(mm1_sojourn(load / SERVICE, SERVICE, share), rel=0.01)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("load", [0.5, 0.8])
def test_md1_percentiles(load: float, share: float) -> None:
    found = run(queue(load, duration=LONG))
    assert found.percentile(share) == pytest.approx(md1_sojourn(load / SERVICE, SERVICE, share), rel=0.01)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("servers", [2, 8])
def test_mdc_percentiles_of_a_shared_line(servers: int, share: float) -> None:
    load = 0.85
    found = run(queue(load, servers, duration=LONG / servers))
    wait = wait_percentile(queues.mdc(load * servers / SERVICE, SERVICE, servers), share)
    assert found.percentile(share) == pytest.approx(SERVICE + wait, rel=0.01)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("servers", [2, 6])
def test_mmc_percentiles_of_a_shared_line(servers: int, share: float) -> None:
    load = 0.7
    found = run(queue(load, servers, 1.0, duration=1.25 * LONG / servers))
    assert found.percentile(share) == pytest.approx(mmc_sojourn(load * servers / SERVICE, servers, share), rel=0.01)


@pytest.mark.parametrize(("variation", "squared"), [(0.0, 1.0), (0.5, 1.25), (1.0, 2.0)])
def test_the_mean_wait_is_that_of_pollaczek_and_khinchine(variation: float, squared: float) -> None:
    # W = rate E[S^2] / (2 (1 - load)), and E[S^2] is 1 + the squared coefficient of variation, in S^2
    load = 0.7
    found = run(queue(load, variation=variation, duration=LONG))
    wait = load * squared * SERVICE / (2.0 * (1.0 - load))
    assert found.sum / found.counted - SERVICE == pytest.approx(wait, rel=0.01)
    stages = found.stages(0.0)
    assert sum(stages[3:7]) == pytest.approx(wait, rel=0.01)
    assert stages[7] == pytest.approx(SERVICE, rel=0.002)


def test_the_share_of_late_queries_is_the_tail_of_the_wait() -> None:
    load, bound = 0.8, 8e-3
    found = run(queue(load, duration=2500.0, bound=bound))
    expected = queues.mdc(load / SERVICE, SERVICE).tail(bound - SERVICE)
    assert found.late / found.counted == pytest.approx(expected, rel=0.05)


def test_servers_with_lines_of_their_own_are_so_many_md1_queues() -> None:
    # Poisson arrivals dealt at random are Poisson again
    workers = tuple(Worker(gpu, gpu, (SERVICE,)) for gpu in range(4))
    service = Service(rate=2800.0, dispatch="RANDOM")
    case = Case((service,), tuple(Pool() for _ in range(4)), workers, gpus=4, duration=700.0)
    for share in (0.5, 0.9, 0.99):
        assert run(case).percentile(share) == pytest.approx(md1_sojourn(700.0, SERVICE, share), rel=0.01)


def test_dealing_in_turn_is_faster_than_at_random_and_the_shortest_line_faster_still() -> None:
    waits = []
    for dispatch in ("RANDOM", "ROUND_ROBIN", "LEAST"):
        workers = tuple(Worker(gpu, gpu, (SERVICE,)) for gpu in range(4))
        service = Service(rate=3400.0, dispatch=dispatch, variation=1.0)
        found = run(Case((service,), tuple(Pool() for _ in range(4)), workers, gpus=4, duration=100.0))
        waits.append(found.sum / found.counted)
    assert waits[0] > 1.3 * waits[1] > 1.3 * 1.3 * waits[2]


def test_the_search_finds_the_peak_of_an_md1_server() -> None:
    bound = 15e-3

    def trial(qps: float, seed: int, duration: float) -> SearchRun:
        case = queue(qps * SERVICE, duration=duration, bound=bound)
        out = simulate(case, seed).services[0]
        reason = invalid_reason(out.counted, out.late)
        return SearchRun(qps, seed, not reason, out.percentile(0.99), out.counted, reason)

    found = find_peak(trial, durations=Durations(bound), bracket=(700.0, 1000.0), precision=0.0025)
    assert found.confirmed
    exact = queues.md1_peak(SERVICE, bound)
    assert exact == pytest.approx(850.0, rel=0.005)
    assert found.rate == pytest.approx(exact, rel=0.005)


@pytest.mark.parametrize("samples", [1, 4])
def test_samples_of_different_length_vary_a_batch_by_what_each_adds(samples: int) -> None:
    # A full batch of four takes 2 ms and a sample adds 0.5 ms to it, however long a batch of one takes.
    times = (1e-3, 1.3e-3, 1.6e-3, 2e-3)
    service = Service(arrivals="ONE_BY_ONE", samples=samples, batch=4, sample_variation=0.4)
    out = run(Case((service,), (Pool(),), (Worker(0, 0, times),), duration=40.0))
    deviation = 0.4 * 0.5e-3 * math.sqrt(samples)
    least = times[samples - 1] - deviation
    assert out.percentile(0.0) == pytest.approx(least, rel=0.01)
    assert out.sum / out.counted == pytest.approx(times[samples - 1], rel=0.01)
    # Above its least value the time is exponential: it is half of all times within ln 2 deviations.
    assert out.percentile(0.5) == pytest.approx(least + math.log(2.0) * deviation, rel=0.01)
