"""What the native simulation refuses, and in which words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from serving.slow_queues import Case, Leg, Pool, Service, Worker, network, scenario, simulate

import lanewise._native as native

NAN, INF = math.nan, math.inf
GOOD = Case((Service(rate=10.0),), (Pool(),), (Worker(0, 0, (1e-3,)),), (1e9,), (({0: 1.0}, None),))


def with_service(**more) -> Case:
    return replace(GOOD, services=(replace(GOOD.services[0], **more),))


def with_worker(**more) -> Case:
    return replace(GOOD, workers=(replace(GOOD.workers[0], **more),))


def with_leg(**more) -> Case:
    return with_worker(copy=Leg(**{"flow_class": 0, "bytes": 1.0, **more}))


WRONG = [
    (with_service(rate=0.0), "service 0 has a rate of 0/s"),
    (with_service(rate=-1.0), "service 0 has a rate of -1/s"),
    (with_service(rate=NAN), "service 0 has a rate"),
    (with_service(rate=INF), "service 0 has a rate"),
    (with_service(samples=0), "service 0 has empty queries or batches"),
    (with_service(batch=0), "service 0 has empty queries or batches"),
    (with_service(arrivals="AT_ONCE", total=0), "service 0 has nothing to answer"),
    (with_service(timeout=-1e-3), "service 0 has a time-out of -0.001 s"),
    (with_service(timeout=NAN), "service 0 has a time-out"),
    (with_service(batch=2), "worker 0 knows no time for its largest batch"),
    (with_worker(pool=1), "worker 0 has no pool"),
    (with_worker(pool=-1), "worker 0 has no pool"),
    (with_worker(gpu=1), "worker 0 has no GPU"),
    (with_worker(gpu=-1), "worker 0 has no GPU"),
    (with_worker(buffers=0), "worker 0 has no buffer"),
    (with_worker(times=()), "worker 0 knows no time for its largest batch"),
    (with_worker(times=(0.0,)), "worker 0 serves a batch in 0 s"),
    (with_worker(times=(-1.0,)), "worker 0 serves a batch in -1 s"),
    (with_worker(times=(NAN,)), "worker 0 serves a batch in"),
    (with_worker(times=(INF,)), "worker 0 serves a batch in inf s"),
    (with_worker(streams=0), "worker 0 runs no batch, or more than 1000, at once"),
    (with_worker(streams=2, shares=(0.5, 0.5)), "worker 0 has shares for other batches than times"),
    (with_worker(streams=2, shares=(1.5,)), "worker 0 has a batch that uses 1.5 of the GPU"),
    (with_worker(streams=2, shares=(NAN,)), "worker 0 has a batch that uses"),
    (with_leg(flow_class=1), "worker 0 moves data in flow class 1"),
    (with_leg(flow_class=-2), "worker 0 moves data in flow class -2"),
    (with_leg(bytes=-1.0), "worker 0 has a size, time or rate that is none"),
    (with_leg(bytes=NAN), "worker 0 has a size, time or rate that is none"),
    (with_leg(setup=-1.0), "worker 0 has a size, time or rate that is none"),
    (with_leg(latency=INF), "worker 0 has a size, time or rate that is none"),
    (with_leg(alone=0.0), "worker 0 has a size, time or rate that is none"),
    (with_leg(slots=0), "worker 0 has no slot to move data in"),
    (with_leg(most=0), "worker 0 has no slot to move data in"),
    (with_worker(back=Leg(3)), "worker 0 moves data in flow class 3"),
    (replace(GOOD, pools=(Pool(0, Leg(7)),)), "pool 0 moves data in flow class 7"),
    (replace(GOOD, pools=(Pool(1),)), "pool 0 has no service"),
    (replace(GOOD, pools=(Pool(-1),)), "pool 0 has no service"),
    (replace(GOOD, pools=(Pool(), Pool())), "pool 1 has no worker"),
    (replace(GOOD, pools=(), workers=()), "service 0 has no pool"),
    (replace(GOOD, services=(*GOOD.services, Service())), "service 1 has no pool"),
    (replace(GOOD, background=((1, 1.0, 0.0, 0.0),)), "background traffic has no class"),
    (replace(GOOD, background=((-1, 1.0, 0.0, 0.0),)), "background traffic has no class"),
    (replace(GOOD, background=((0, NAN, 0.0, 0.0),)), "background traffic has no class, or a size"),
    (replace(GOOD, background=((0, 1.0, -1.0, 0.0),)), "background traffic has no class, or a size or time"),
    (replace(GOOD, background=((0, 1.0, 0.0, -1.0),)), "background traffic has no class, or a size or time"),
    (replace(GOOD, background=((0, 1.0, 0.0, 1e-30),)), "background traffic that comes again every 1e-30 s"),
    (replace(GOOD, gpus=0), "worker 0 has no GPU"),
    (Case((), (), (), gpus=-1), "fewer GPUs than none"),
    (replace(GOOD, duration=0.0), "a run of 0 s"),
    (replace(GOOD, duration=-1.0), "a run of -1 s"),
    (replace(GOOD, duration=NAN), "a run of"),
    (replace(GOOD, duration=INF), "a run of inf s"),
]


@pytest.mark.parametrize(("case", "cause"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_scenario_is_refused_with_its_cause_and_a_hint(case: Case, cause: str) -> None:
    with pytest.raises(native.BadInput) as error:
        simulate(case)
    said, hint = error.value.args
    assert said.startswith(cause) or cause in said
    assert hint


@pytest.mark.parametrize("more", [{"steps": -1}, {"skip": -1.0}, {"skip": NAN}])
def test_a_run_that_skips_or_divides_what_it_has_not(more) -> None:
    with pytest.raises(native.BadInput, match="skips or divides"):
        simulate(GOOD, **more)


def test_the_good_case_is_good() -> None:
    assert simulate(GOOD).services[0].answered > 0


def test_nothing_to_simulate_is_an_empty_outcome() -> None:
    found = simulate(Case((), (), (), gpus=0))
    assert (found.services, found.end, found.most_in_flight) == ([], 0.0, 0)


def test_no_network_is_no_argument() -> None:
    with pytest.raises(TypeError):
        native.simulate(None, scenario(GOOD))  # type: ignore[arg-type]
    assert native.simulate(network(GOOD), scenario(GOOD)).services[0].answered > 0
