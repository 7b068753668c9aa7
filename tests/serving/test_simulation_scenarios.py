"""MLPerf's scenarios and mixed services, worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from serving.slow_queues import Case, Leg, Pool, Service, Worker, simulate
from serving.test_simulation_oracle import compared

ALL = 10**9
LINK = (({0: 1.0}, None),)
FULL = 8e-3  # s of a batch of 8
NOTHING = Leg()
TIMES = tuple(2e-3 + 0.75e-3 * size for size in range(1, 9))


def offline(copy: Leg, gpus: int = 2, total: int = 8000, arrive: Leg = NOTHING, back: Leg = NOTHING) -> Case:
    service = Service("AT_ONCE", total=total, batch=8)
    if arrive == NOTHING:
        workers = tuple(Worker(0, g, TIMES, 4, copy, back) for g in range(gpus))
        return Case((service,), (Pool(),), workers, (1e9,), LINK, gpus=gpus)
    workers = tuple(Worker(g, g, TIMES, 4, copy, back) for g in range(gpus))
    return Case((service,), tuple(Pool(0, arrive) for _ in range(gpus)), workers, (1e9,), LINK, gpus=gpus)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_offline_runs_at_the_rate_of_the_gpus(slots: int) -> None:
    found = simulate(offline(Leg(0, 1e4, slots=slots)))
    assert found.services[0].samples / found.end == pytest.approx(2 * 8 / FULL, rel=0.01)
    assert found.services[0].batches == 1000
    assert found.most_in_flight < 200


@pytest.mark.parametrize("slots", [1, 2, 4])
@pytest.mark.parametrize("back", [Leg(), Leg(latency=2e-3)])
def test_offline_runs_at_the_rate_of_the_link(slots: int, back: Leg) -> None:
    # 2 GPUs could take 2000 samples/s; at 1 MB each the link brings 1000/s, and never rests
    found = simulate(offline(Leg(0, 1e6, slots=slots), back=back))
    assert found.services[0].samples / found.end == pytest.approx(1000.0, rel=0.01)


@pytest.mark.parametrize("most", [1, 4, 64])
def test_offline_over_a_network_runs_at_the_rate_of_the_link(most: int) -> None:
    found = simulate(offline(Leg(), arrive=Leg(0, 1e6, latency=1e-4, most=most)))
    assert found.services[0].samples / found.end == pytest.approx(1000.0, rel=0.01)


@pytest.mark.parametrize("most", [1, 4, 64])
def test_offline_over_a_network_runs_at_the_rate_of_the_gpus(most: int) -> None:
    found = simulate(offline(Leg(), arrive=Leg(0, 1e4, latency=1e-4, most=most)))
    assert found.services[0].samples / found.end == pytest.approx(2 * 8 / FULL, rel=0.01)


def test_offline_honours_the_setup_of_copies_that_move_nothing() -> None:
    # one copy at a time, each 10 ms before its first byte, to a GPU that needs 1 ms
    case = Case((Service("AT_ONCE", total=50),), (Pool(0, Leg(setup=1e-2)),), (Worker(0, 0, (1e-3,), 4),))
    assert simulate(case).end == pytest.approx(50 * 1e-2 + 1e-3, rel=1e-9)


def test_a_last_batch_that_cannot_fill_is_served_all_the_same() -> None:
    found = simulate(offline(Leg(0, 1e4), gpus=1, total=13), trace=ALL)
    assert [len(batch.scheduled) for batch in found.trace] == [8, 5]


def single(**more) -> Case:
    worker = Worker(0, 0, (5e-4,), 4, Leg(0, 1e6, 2e-6, 1e-6), Leg(0, 1e3, latency=1e-6))
    return replace(Case((Service("ONE_BY_ONE", **more),), (Pool(),), (worker,), (1e9,), LINK), duration=0.5)


def test_single_stream_takes_each_query_as_long_as_its_parts() -> None:
    found = simulate(single(), trace=ALL)
    parts = 2e-6 + 1e6 / 1e9 + 1e-6 + 5e-4 + 1e3 / 1e9 + 1e-6
    out = found.services[0]
    assert out.answered == math.ceil(0.5 / parts)
    for batch in found.trace:
        assert batch.done - batch.scheduled[0] == pytest.approx(parts, rel=1e-9)
    assert out.percentile(0.5) == pytest.approx(parts, rel=2**-8)
    assert out.stages(0.0) == pytest.approx([0, 0, 0, 0, 2e-6 + 1e-6, 1e-3, 0, 5e-4, 2e-6], rel=1e-9, abs=1e-15)
    starts = sorted(time for batch in found.trace for time in batch.scheduled)
    assert starts[1:] == sorted(batch.done for batch in found.trace)[:-1]


def test_multi_stream_answers_when_the_last_sample_is_done() -> None:
    # 8 samples in batches of 3, 3 and 2 on one GPU, copied one after the other
    worker = Worker(0, 0, (1e-3, 2e-3, 3e-3), 4, Leg(0, 1e5))
    service = Service("ONE_BY_ONE", samples=8, batch=3)
    case = Case((service,), (Pool(),), (worker,), (1e9,), LINK, duration=0.1)
    found = simulate(case, trace=ALL)
    sizes = [len(batch.scheduled) for batch in found.trace]
    # All samples are there at once, so they fill batches.
    assert sizes[:3] == [3, 3, 2]
    latency = found.trace[2].done
    assert found.trace[3].scheduled == [latency] * 3
    assert found.services[0].answered == len(sizes) // 3
    assert found.services[0].samples == 8 * found.services[0].answered
    assert found.services[0].sum == pytest.approx(latency * found.services[0].answered, rel=1e-9)
    compared(case)


def test_what_lands_first_is_served_first_though_copies_take_no_time() -> None:
    # 9 samples that waited for the connection land together, and become three batches in that order
    worker = Worker(0, 0, (1e-3,) * 3, buffers=4)
    pool = Pool(0, Leg(0, 1e6, most=9))
    case = Case((Service(rate=2e4, batch=3),), (pool,), (worker,), (1e9,), LINK, duration=0.02)
    found = simulate(case, trace=ALL)
    order = [time for batch in sorted(found.trace, key=lambda each: each.started) for time in batch.scheduled]
    assert order == sorted(order)
    assert len(order) > 100


def test_faster_gpus_answer_more() -> None:
    # offline, from one queue: as many batches each as its speed
    workers = tuple(Worker(0, g, (seconds,), 2) for g, seconds in enumerate((1e-3, 2e-3, 4e-3)))
    found = simulate(Case((Service("AT_ONCE", total=7000),), (Pool(),), workers, gpus=3), trace=ALL)
    counts = [sum(batch.worker == w for batch in found.trace) for w in range(3)]
    assert counts == pytest.approx([4000, 2000, 1000], abs=3)
    assert found.busy == pytest.approx([found.end] * 3, rel=1e-2)


def test_a_slow_gpu_with_a_queue_of_its_own_is_sent_fewer() -> None:
    workers = (Worker(0, 0, (1e-3,)), Worker(1, 1, (4e-3,)))
    found = simulate(Case((Service(rate=1230.0),), (Pool(), Pool()), workers, gpus=2, duration=60.0), trace=ALL)
    counts = [sum(batch.worker == w for batch in found.trace) for w in range(2)]
    assert counts[0] / counts[1] == pytest.approx(4.0, rel=0.1)
    assert min(found.busy) / found.end > 0.95


def test_two_services_share_a_gpu() -> None:
    services = (Service(rate=300.0), Service(rate=200.0))
    workers = (Worker(0, 0, (1e-3,), 9), Worker(1, 0, (2e-3,), 9))
    found = simulate(Case(services, (Pool(0), Pool(1)), workers, duration=300.0), skip=5.0)
    assert found.busy[0] / found.end == pytest.approx(0.3 + 0.4, rel=0.02)
    # M/G/1: both wait rate E[S^2] / (2 (1 - load)), whatever their own service
    wait = (300.0 * 1e-6 + 200.0 * 4e-6) / (2 * (1 - 0.7))
    for out, service in zip(found.services, (1e-3, 2e-3), strict=True):
        assert out.sum / out.counted - service == pytest.approx(wait, rel=0.03)


def test_two_services_share_a_link_and_no_more_than_it_has() -> None:
    # each alone would take 1.2 GB/s of a link of 1 GB/s
    services = tuple(Service("AT_ONCE", total=20_000) for _ in range(2))
    workers = tuple(Worker(g, g, (1e-5,), 4, Leg(0, 1e5, slots=2)) for g in range(2))
    found = simulate(replace(Case(services, (Pool(0), Pool(1)), workers, (1e9,), LINK, gpus=2), duration=3.0), steps=30)
    for moved in found.steps:
        assert moved[0] == pytest.approx(1e9 * 0.1, rel=1e-3)
    ends = [out.last_answer for out in found.services]
    assert ends == pytest.approx([4.0, 4.0], rel=1e-3)


def test_traffic_beside_a_service_takes_its_share() -> None:
    case = offline(Leg(0, 1e6, slots=1), gpus=1)
    case = replace(case, classes=(*LINK, ({0: 1.0}, None)))
    alone, beside = (simulate(replace(case, background=b)) for b in ((), ((1, 1e30, 0.0, 0.0),)))
    assert alone.services[0].samples / alone.end == pytest.approx(1000.0, rel=0.01)
    assert beside.services[0].samples / beside.end == pytest.approx(500.0, rel=0.01)
    assert beside.moved[1] == pytest.approx(0.5e9 * beside.end, rel=0.01)


def test_traffic_that_comes_again_and_again() -> None:
    case = replace(single(), classes=(*LINK, ({0: 1.0}, None)), background=((1, 1e6, 0.05, 0.1),))
    found = simulate(case)
    assert found.moved[1] == pytest.approx(5e6, rel=1e-9)  # at 0.05, 0.15 ... 0.45


@pytest.mark.parametrize(("share", "seconds"), [(1.0, 2e-3), (0.75, 1.5e-3), (0.5, 1e-3), (0.1, 1e-3)])
def test_batches_at_once_slow_each_other_as_far_as_they_use_up_the_gpu(share: float, seconds: float) -> None:
    worker = Worker(0, 0, (1e-3,), 2, streams=2, shares=(share,))
    found = simulate(Case((Service("AT_ONCE", total=2),), (Pool(),), (worker,)), trace=ALL)
    assert [batch.served for batch in found.trace] == pytest.approx([seconds] * 2)
    assert found.busy[0] == pytest.approx(seconds)


def test_a_gpu_that_all_batches_share_answers_as_processor_sharing_does() -> None:
    # M/D/1 with processor sharing: the mean is service / (1 - load), however the service times lie.
    worker = Worker(0, 0, (1e-3,), 1000, streams=1000)
    out = simulate(Case((Service(rate=700.0),), (Pool(),), (worker,), duration=100.0), skip=1.0).services[0]
    assert out.sum / out.counted == pytest.approx(1e-3 / (1 - 0.7), rel=0.03)


def test_a_batcher_of_its_own_waits_anew_whenever_its_gpu_is_free() -> None:
    # The oldest query came somewhere in the wait: the batch leaves a whole number of waits after the one before.
    worker = Worker(0, 0, (1e-4,) * 50)
    service = Service(rate=300.0, batch=50, timeout=2e-3, waiting="WORKER")
    batches = simulate(Case((service,), (Pool(),), (worker,), duration=2.0), trace=ALL).trace
    waits = [(later.formed - earlier.served) / 2e-3 for earlier, later in pairwise(batches)]
    assert waits == pytest.approx([round(wait) for wait in waits], abs=1e-6)
    assert min(waits) > 0.5
    assert max(batch.formed - batch.scheduled[0] for batch in batches) <= 2e-3 + 1e-4
    assert sum(batch.formed - batch.scheduled[0] < 1.9e-3 for batch in batches) > len(batches) / 2


def test_batchers_of_their_own_share_queries_and_the_first_whose_wait_ends_takes_them() -> None:
    # One batcher would fill batches of 8 in 1 ms; of four each waits 1.5 ms, and takes what is there.
    workers = tuple(Worker(0, gpu, (5e-4,) * 8) for gpu in range(4))

    def sizes(waiting: str) -> float:
        service = Service(rate=8e3, batch=8, timeout=1.5e-3, waiting=waiting)
        trace = simulate(Case((service,), (Pool(),), workers, gpus=4, duration=2.0), trace=ALL).trace
        return sum(len(batch.scheduled) for batch in trace) / len(trace)

    assert sizes("OLDEST") > 7.0
    assert sizes("WORKER") < 6.0


def test_workers_take_batches_in_turn_though_one_is_slow() -> None:
    workers = (Worker(0, 0, (1e-4,), 4), Worker(0, 1, (4e-3,), 4))
    counts = {}
    for in_turn in (True, False):
        case = Case((Service(rate=400.0, in_turn=in_turn),), (Pool(),), workers, gpus=2, duration=5.0)
        trace = simulate(case, trace=ALL).trace
        counts[in_turn] = sum(batch.worker == 0 for batch in trace) / len(trace)
    assert counts[True] == pytest.approx(0.5, abs=0.05)
    assert counts[False] > 0.6
