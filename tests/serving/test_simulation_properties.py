"""What holds for every run of the event simulation, whatever the services and links are."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from example_counts import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from serving.slow_queues import Case, Leg, Pool, Service, Worker, simulate
from serving.test_simulation_oracle import cases

import lanewise._native as native

ALL = 10**9
TIMES = ("formed", "copied", "started", "served", "done")
many = examples(100, derandomize=True, suppress_health_check=list(HealthCheck))
EPS = 1e-12


def alone(case: Case, leg: Leg, samples: int = 1) -> float:
    """How long a leg takes with nothing beside it."""
    if leg.flow_class < 0:
        return leg.setup + leg.setup_each * samples + leg.latency
    uses, cap = case.classes[leg.flow_class]
    rate = min([cap or math.inf, *(case.capacities[r] / amount for r, amount in uses.items())])
    return leg.setup + leg.setup_each * samples + leg.latency + samples * leg.bytes / rate


def shared(gpus: int = 4, rate: float = 4000.0, link: float = 1e9, **more) -> Case:
    """GPUs of 1 ms + 0.1 ms a sample that get 100 kB a sample over one link."""
    service = Service(**{"rate": rate, "batch": 8, "timeout": 1e-3, "bound": 15e-3, **more})
    times = tuple(1e-3 + 1e-4 * size for size in range(1, service.batch + 1))
    workers = tuple(Worker(0, g, times, 3, Leg(0, 1e5, 2e-6, 1e-6, slots=2), Leg(1, 100.0)) for g in range(gpus))
    classes = (({0: 1.0}, None), ({1: 1.0}, None))
    return Case((service,), (Pool(),), workers, (link, 1e9), classes, gpus=gpus, duration=2.0)


@many
@given(cases(), st.integers(0, 2**63))
def test_what_goes_in_comes_out(case, seed):
    outcome = simulate(case, seed, trace=ALL)
    moved = [0.0] * len(case.classes)
    busy = [0.0] * case.gpus
    samples, batches = [0] * len(case.services), [0] * len(case.services)
    for batch in outcome.trace:
        worker = case.workers[batch.worker]
        service = case.pools[worker.pool].service
        count = len(batch.scheduled)
        assert 1 <= count <= case.services[service].batch
        samples[service] += count
        batches[service] += 1
        busy[worker.gpu] += batch.served - batch.started
        for leg in (case.pools[worker.pool].arrive, worker.copy, worker.back):
            if leg.flow_class >= 0:
                moved[leg.flow_class] += count * leg.bytes
    for service, found, count, formed in zip(case.services, outcome.services, samples, batches, strict=True):
        assert found.issued == found.answered == found.counted
        assert (found.samples, found.batches) == (count, formed)
        assert count == found.issued * service.samples
        assert service.arrivals != "AT_ONCE" or count == service.total
    beside = {each[0] for each in case.background}
    for k, size in enumerate(moved):
        assert k in beside or outcome.moved[k] == pytest.approx(size, rel=1e-9)
    assert outcome.busy == pytest.approx(busy, rel=1e-9)
    assert outcome.end == max(batch.done for batch in outcome.trace) if outcome.trace else True
    assert not outcome.ended_early


@many
@given(cases(), st.integers(0, 2**63))
def test_times_follow_each_other_and_no_leg_is_faster_than_alone(case, seed):
    for batch in simulate(case, seed, trace=ALL).trace:
        worker, count = case.workers[batch.worker], len(batch.scheduled)
        arrive = alone(case, case.pools[worker.pool].arrive)
        for scheduled, landed in zip(batch.scheduled, batch.landed, strict=True):
            assert scheduled + arrive <= landed + EPS
            assert landed <= batch.formed
        assert batch.copied - batch.formed >= alone(case, worker.copy, count) - EPS
        assert batch.started >= batch.copied
        assert batch.served - batch.started == pytest.approx(worker.times[count - 1], rel=1e-9)
        assert batch.done - batch.served >= alone(case, worker.back, count) - EPS


@many
@given(cases(), st.integers(0, 2**63))
def test_stages_sum_to_the_latency(case, seed):
    for found in simulate(case, seed).services:
        stages = found.stages(0.0)
        assert min(stages) >= -EPS
        if found.counted:
            assert sum(stages) == pytest.approx(found.sum / found.counted, rel=1e-9)


@many
@given(cases(), st.integers(0, 2**63))
def test_a_batch_forms_as_soon_as_it_may_and_samples_keep_their_order(case, seed):
    outcome = simulate(case, seed, trace=ALL)
    for p, pool in enumerate(case.pools):
        service = case.services[pool.service]
        mine = [batch for batch in outcome.trace if case.workers[batch.worker].pool == p]
        mine.sort(key=lambda batch: (batch.formed, batch.landed))
        # A worker opens when the GPU ends a batch of it, and when a copy to it has sent its last byte.
        freed = [b.served for b in mine] + [b.copied - case.workers[b.worker].copy.latency for b in mine]
        for batch in mine:
            full = len(batch.scheduled) == service.batch
            due = batch.landed[-1] if full else max(batch.landed[-1], batch.landed[0] + service.timeout)
            assert batch.formed >= due - EPS
            assert any(abs(batch.formed - time) < EPS for time in (due, *freed))
        for one, other in itertools.pairwise(mine):
            assert one.landed[-1] <= other.landed[0]


@many
@given(cases(), st.integers(0, 2**63))
def test_a_gpu_serves_one_batch_at_a_time_and_never_rests_while_one_is_there(case, seed):
    outcome = simulate(case, seed, trace=ALL)
    for gpu in range(case.gpus):
        mine = sorted((b for b in outcome.trace if case.workers[b.worker].gpu == gpu), key=lambda b: b.started)
        for one, other in itertools.pairwise(mine):
            assert other.started == max(one.served, other.copied)
            assert one.copied <= other.copied  # in the order they came


@many
@given(cases(), st.integers(0, 2**63))
def test_slots_and_buffers_are_never_exceeded(case, seed):
    outcome = simulate(case, seed, trace=ALL)
    for w, worker in enumerate(case.workers):
        mine = [batch for batch in outcome.trace if batch.worker == w]
        held = [(b.formed, b.served) for b in mine]
        copying = [(b.formed, b.copied - worker.copy.latency) for b in mine]
        assert most_at_once(held) <= worker.buffers
        assert most_at_once(copying) <= worker.copy.slots


def most_at_once(spans) -> int:
    """The most spans that overlap; one that ends as another begins does not, give or take rounding."""
    ends = sorted([(start, 1) for start, _ in spans] + [(end - EPS, -1) for _, end in spans])
    return max(itertools.accumulate(change for _, change in ends), default=0)


@many
@given(cases(), st.integers(0, 2**63))
def test_links_never_carry_more_than_they_can(case, seed):
    steps = 20
    outcome = simulate(case, seed, steps=steps)
    width = case.duration / steps
    for moved in (*outcome.steps, [0.0] * len(case.classes)):
        for r, capacity in enumerate(case.capacities):
            taken = sum(size * case.classes[k][0].get(r, 0.0) for k, size in enumerate(moved))
            assert taken <= capacity * width * (1 + 1e-9)
    for busy in outcome.gpu_steps:
        assert all(-EPS <= share <= width * (1 + 1e-9) for share in busy)
    for k in range(len(case.classes)):
        assert sum(moved[k] for moved in outcome.steps) <= outcome.moved[k] * (1 + 1e-9) + EPS


@many
@given(cases(), st.integers(0, 2**63))
def test_a_seed_gives_the_same_bits_in_any_thread_and_tracing_changes_nothing(case, seed):
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda more: fingerprint(simulate(case, seed, **more)), [{}, {"trace": ALL}, {}]))
    assert runs[0] == runs[1] == runs[2]


def fingerprint(outcome: native.Outcome) -> list[str]:
    """All sums of a run, to the last bit."""
    values = [outcome.end, *outcome.busy, *outcome.moved]
    for each in outcome.services:
        values += [each.sum, each.last_answer, each.percentile(0.99), float(each.late)]
    return [value.hex() for value in values]


def test_other_seeds_give_other_arrivals():
    assert len({simulate(shared(), seed).services[0].sum for seed in range(20)}) == 20


def test_services_of_one_run_have_arrivals_of_their_own():
    case = Case((Service(rate=1000.0),) * 2, (Pool(0), Pool(1)), (Worker(0, 0, (1e-4,)), Worker(1, 1, (1e-4,))), gpus=2)
    one, other = simulate(case).services
    assert one.sum != other.sum
    # adding a service changes nothing for the first one, as they share nothing
    alone_ = replace(case, services=case.services[:1], pools=case.pools[:1], workers=case.workers[:1])
    assert simulate(alone_).services[0].sum == one.sum


def test_the_first_arrivals_are_the_same_bits_on_every_machine():
    # mt19937_64 seeded by seed_seq{seed, stream} and -ln u / rate; the logarithm is our own
    batches = simulate(Case((Service(rate=1000.0),), (Pool(),), (Worker(0, 0, (1e-6,)),), duration=0.01), 42, ALL).trace
    assert [batch.scheduled[0].hex() for batch in batches] == ARRIVALS


def test_arrivals_are_those_of_the_standard_generator():
    # ISO C++ [rand.eng.mers] and [rand.util.seedseq], written anew; the gaps are -ln u / rate, to the last digits
    words = mt19937_64([42, 0, 0, 0])
    due, expected = 0.0, []
    for _ in ARRIVALS:
        due += -math.log(((next(words) >> 11) + 1) * 2.0**-53) / 1000.0
        expected.append(due)
    assert [float.fromhex(text) for text in ARRIVALS] == pytest.approx(expected, rel=1e-15)


def seed_seq(seeds: list[int], count: int) -> list[int]:
    """What std::seed_seq generates: `count` words of 32 bits."""
    mask, words = 2**32 - 1, [0x8B8B8B8B] * count
    lag = 11 if count >= 623 else 7 if count >= 68 else 5 if count >= 39 else 3 if count >= 7 else (count - 1) // 2
    p = (count - lag) // 2
    q, rounds = p + lag, max(len(seeds) + 1, count)

    def mixed(value: int) -> int:
        return (value ^ (value >> 27)) & mask

    for k in range(rounds):
        one = 1664525 * mixed(words[k % count] ^ words[(k + p) % count] ^ words[(k - 1) % count]) & mask
        other = (one + (len(seeds) if k == 0 else k % count + (seeds[k - 1] if k <= len(seeds) else 0))) & mask
        words[(k + p) % count] = (words[(k + p) % count] + one) & mask
        words[(k + q) % count] = (words[(k + q) % count] + other) & mask
        words[k % count] = other
    for k in range(rounds, rounds + count):
        one = 1566083941 * mixed((words[k % count] + words[(k + p) % count] + words[(k - 1) % count]) & mask) & mask
        other = (one - k % count) & mask
        words[(k + p) % count] ^= one
        words[(k + q) % count] ^= other
        words[k % count] = other
    return words


def mt19937_64(seeds: list[int]):
    """The numbers of std::mt19937_64 seeded by std::seed_seq."""
    n, m, mask = 312, 156, 2**64 - 1
    seeded = seed_seq(seeds, 2 * n)
    state = [seeded[2 * i] | seeded[2 * i + 1] << 32 for i in range(n)]
    while True:
        for i in range(n):
            y = (state[i] & ~0x7FFFFFFF & mask) | (state[(i + 1) % n] & 0x7FFFFFFF)
            state[i] = state[(i + m) % n] ^ (y >> 1) ^ (0xB5026F5AA96619E9 if y & 1 else 0)
        for x in state:
            x ^= (x >> 29) & 0x5555555555555555
            x ^= (x << 17) & 0x71D67FFFEDA60000
            x ^= (x << 37) & 0xFFF7EEE000000000
            yield (x & mask) ^ ((x & mask) >> 43)


def test_a_whole_run_is_the_same_bits_on_every_machine():
    assert fingerprint(simulate(replace(shared(), duration=0.5), 42)) == RUN


def test_a_higher_rate_never_lowers_the_percentile():
    latencies = [simulate(shared(rate=rate), 7).services[0].percentile(0.99) for rate in range(1000, 13_000, 1500)]
    assert all(more > 0.98 * less for less, more in itertools.pairwise(latencies))
    assert latencies[-1] > 3 * latencies[0]


def test_memory_is_that_of_what_is_in_flight():
    short, long = (simulate(replace(shared(), duration=seconds), 7) for seconds in (2.0, 20.0))
    assert long.services[0].issued > 9 * short.services[0].issued
    assert long.most_in_flight < 2 * short.most_in_flight


def test_what_is_in_flight_at_most_is_counted_from_the_trace():
    outcome = simulate(shared(), 7, trace=ALL)
    spans = [(time, batch.done) for batch in outcome.trace for time in batch.scheduled]
    assert outcome.most_in_flight == most_at_once(spans)


def test_skip_leaves_out_what_began_before():
    outcome = simulate(shared(), 7, trace=ALL, skip=0.5)
    late = [t for batch in outcome.trace for t in batch.scheduled if t >= 0.5]
    found = outcome.services[0]
    assert found.counted == len(late) < found.answered
    assert found.sum == pytest.approx(sum(b.done - t for b in outcome.trace for t in b.scheduled if t >= 0.5))


def test_a_hopeless_run_ends_as_soon_as_it_is_hopeless():
    whole = simulate(shared(rate=50_000.0), 7)
    early = simulate(shared(rate=50_000.0, late_limit=100), 7)
    assert not whole.ended_early
    assert early.ended_early
    assert 100 < early.services[0].late <= 100 + 8
    assert early.end < 0.1 < whole.end


def test_a_run_that_just_keeps_its_limit_does_not_end_early():
    late = simulate(shared(rate=9900.0), 7).services[0].late
    assert late > 10
    assert not simulate(shared(rate=9900.0, late_limit=late), 7).ended_early
    assert simulate(shared(rate=9900.0, late_limit=late - 1), 7).ended_early


def test_the_trace_keeps_as_many_samples_as_were_asked_for():
    outcome = simulate(shared(), 7, trace=100)
    assert 100 <= sum(len(batch.scheduled) for batch in outcome.trace) < 100 + 8


ARRIVALS = [
    "0x1.764c38516b549p-11", "0x1.9c8f82816a6b6p-10", "0x1.b8a61823eaedcp-10", "0x1.0624543970766p-9",
    "0x1.61cc51dd2a520p-9", "0x1.40ab25b50002ap-8", "0x1.d92f77b4cf2cdp-8", "0x1.00b11b75813f3p-7",
    "0x1.440a6e4328b5bp-7",
]  # fmt: skip
RUN = [
    "0x1.00cdc7436f948p-1", "0x1.374bc6a7ef9e5p-3", "0x1.374bc6a7ef9e6p-3", "0x1.3a5e353f7cedfp-3",
    "0x1.3e425aee63200p-3", "0x1.7f2fb3fffffffp+27", "0x1.8862000000000p+17", "0x1.5959243bad52cp+2",
    "0x1.00cdc7436f948p-1", "0x1.cde8f5c28f5c4p-9", "0x0.0p+0",
]  # fmt: skip
