"""The event simulation against a plain one that was written apart: every time of every batch, at the same arrivals."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

import pytest
from example_counts import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from serving.slow_queues import Batch, Case, Leg, Pool, Service, Slow, Worker, simulate

import lanewise._native as native

ALL = 10**9  # samples to trace
CLOSE = 1e-8


def compared(case: Case, seed: int = 1) -> tuple[native.Outcome, list[Batch]]:
    """Both runs, asserted to be the same batch by batch for as long as rounding does not decide what happens."""
    outcome = simulate(case, seed, trace=ALL)
    return outcome, reference(case, outcome)


def reference(case: Case, outcome: native.Outcome) -> list[Batch]:
    """The plain run of a case at the arrivals of a native outcome, which is asserted to agree."""
    times = [sorted(scheduled_of(case, outcome, s))[:: each.samples] for s, each in enumerate(case.services)]
    slow = Slow(case, times)
    batches = slow.run()
    difference = first_difference(outcome.trace, batches)
    if difference[0] < math.inf:
        unstable = first_difference(Slow(nudged(case), times).run(), batches)
        assert unstable[0] <= difference[0], difference
        return batches
    assert len(outcome.trace) == len(batches)
    for service, found, latencies in zip(case.services, outcome.services, slow.latencies, strict=True):
        assert found.answered == found.issued == len(latencies)
        near = sum(abs(latency - service.bound) < CLOSE for latency in latencies)
        assert abs(found.late - sum(latency > service.bound for latency in latencies)) <= near
        assert found.sum == pytest.approx(sum(latencies), rel=CLOSE)
        ranked, last = sorted(latencies), len(latencies) - 1
        for share in (0.25, 0.5, 0.9, 0.99):
            if latencies:  # a bucket is 2^-8 wide; between two samples any value will do
                low, high = ranked[int(share * last)], ranked[min(int(share * len(ranked)) + 1, last)]
                assert low * (1 - 2**-8) <= found.percentile(share) <= high * (1 + 2**-8)
    return batches


def nudged(case: Case) -> Case:
    """The case with links faster by 1e-12: far less than CLOSE, far more than what rounding does in one event."""
    return replace(case, capacities=tuple(capacity * (1 + 1e-12) for capacity in case.capacities))


def first_difference(ours: Sequence[Batch | native.TracedBatch], theirs: Sequence[Batch]) -> tuple[float, int, str]:
    """When (s, infinity: never) two runs first differ by more than CLOSE, on which worker and in what."""
    first = (math.inf, -1, "")
    for worker in {each.worker for each in [*ours, *theirs]}:
        rows = [sorted((b for b in run if b.worker == worker), key=lambda b: b.served) for run in (ours, theirs)]
        for one, other in zip_longest(*rows):
            if one is None or other is None:
                first = min(first, ((one or other).formed, worker, "batches"))
                continue
            for name in ("scheduled", "landed", "formed", "copied", "started", "served", "done"):
                pair = getattr(one, name), getattr(other, name)
                if pair[0] != pytest.approx(pair[1], rel=CLOSE, abs=CLOSE):
                    # Samples belong to their batch from when it is formed.
                    when = min(one.formed, other.formed) if name in ("scheduled", "landed") else min(pair)
                    first = min(first, (when, worker, name))
    return first


def scheduled_of(case: Case, outcome: native.Outcome, service: int) -> list[float]:
    """When the samples of that service were scheduled."""
    mine = {w for w, worker in enumerate(case.workers) if case.pools[worker.pool].service == service}
    return [time for batch in outcome.trace if batch.worker in mine for time in batch.scheduled]


@st.composite
def cases(draw):
    """Small services over up to three shared links. Numbers are odd ones, so that no two things coincide by chance."""
    odd = random.Random(draw(st.integers(0, 2**32)))

    def about(value: float, spread: float = 3.0) -> float:
        return value * spread ** odd.uniform(-1, 1)

    links = draw(st.integers(1, 3))
    classes: list[tuple[dict[int, float], float | None]] = []

    def leg(bytes_: float, slots: int, most: int = 1, plain: bool = True) -> Leg:
        kind = draw(st.sampled_from(["none", "flow", "flow", "flow"] if plain else ["flow"]))
        setup = about(2e-4) if draw(st.booleans()) else 0.0
        latency = about(1e-4) if draw(st.booleans()) else 0.0
        each = about(1e-4) if draw(st.booleans()) else 0.0
        if kind == "none":
            return Leg() if draw(st.booleans()) else Leg(-1, 0.0, setup, latency, slots, setup_each=each)
        uses = {r: about(1.0) for r in range(links) if r == 0 or draw(st.booleans())}
        classes.append((uses, about(2e6) if draw(st.booleans()) else None))
        return Leg(len(classes) - 1, about(bytes_), setup, latency, slots, most, setup_each=each)

    services, pools, workers = [], [], []
    gpus = draw(st.integers(1, 3))
    for s in range(draw(st.integers(1, 2))):
        arrivals = draw(st.sampled_from(["POISSON", "POISSON", "POISSON", "ONE_BY_ONE", "AT_ONCE"]))
        batch = draw(st.integers(1, 5))
        samples = 1 if arrivals == "AT_ONCE" else draw(st.integers(1, 3))
        count = 1 if arrivals == "AT_ONCE" else draw(st.integers(1, 3))
        for _ in range(count):
            plain = arrivals == "AT_ONCE" or draw(st.booleans())
            most = draw(st.integers(1, 4))
            # Equal transfers that begin at once would end at once, in an order that means nothing.
            pools.append(Pool(s, Leg() if plain else leg(1000.0, draw(st.integers(1, 3)) if samples == 1 else 1, most)))
            for _ in range(draw(st.integers(1, 2))):
                times = tuple(about(2e-3) + about(5e-4) * size for size in range(batch))
                buffers = draw(st.integers(1, 3))
                copy = leg(1000.0, draw(st.integers(1, 3)) if samples == 1 and (plain or most == 1) else 1)
                back = leg(100.0, 1)
                workers.append(Worker(len(pools) - 1, draw(st.integers(0, gpus - 1)), times, buffers, copy, back))
        services.append(
            Service(
                arrivals, rate=about(600.0), samples=samples,
                total=draw(st.integers(1, 60)), bound=about(1e-2), batch=batch,
                dispatch=draw(st.sampled_from(["LEAST", "ROUND_ROBIN"])),
                timeout=about(2e-3) if arrivals != "ONE_BY_ONE" and draw(st.booleans()) else 0.0,
            )
        )  # fmt: skip
    background: tuple[tuple[int, float, float, float], ...] = ()
    if draw(st.booleans()):
        classes.append(({0: 1.0}, about(1e6)))
        background = ((len(classes) - 1, about(5e3), about(1e-3), draw(st.sampled_from([0.0, 0.0137]))),)
    return Case(
        tuple(services), tuple(pools), tuple(workers), tuple(about(1.5e6) for _ in range(links)), tuple(classes),
        background, gpus, duration=0.1,
    )  # fmt: skip


@examples(300, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases(), st.integers(0, 2**63))
def test_every_time_of_every_batch_of_random_services(case, seed):
    compared(case, seed)


# Two services whose transfers share one link: which transfer a batch meets there hangs on when the last one ended, so a
# difference grows two or three times with each batch as long as the queues are full.
UNSTABLE = Case(
    services=(Service(rate=2765.0, batch=1), Service(rate=1702.0, samples=3, batch=1)),
    pools=(Pool(0), Pool(1, Leg(1, 959.0, setup=4.5e-4, latency=3e-4, most=2))),
    workers=(
        Worker(0, 0, (8e-4,), copy=Leg(0, 541.0)),
        Worker(1, 1, (1.5e-3,), back=Leg(2, 190.0)),
    ),
    capacities=(688e3,), classes=(({0: 1.88}, None), ({0: 0.585}, None), ({0: 0.739}, None)),
    gpus=2, duration=0.1,
)  # fmt: skip


def test_what_rounding_decides_is_compared_no_longer():
    outcome, batches = compared(UNSTABLE, seed=3)
    assert first_difference(outcome.trace, batches) < (math.inf, -1, "")


@pytest.mark.parametrize("change", [{"gpu": 0}, {"times": (1.5e-3 + 1e-6,)}, {"buffers": 2}], ids=str)
def test_a_wrong_core_is_not_excused_by_a_case_that_rounding_decides(change):
    wrong = replace(UNSTABLE, workers=(UNSTABLE.workers[0], replace(UNSTABLE.workers[1], **change)))
    with pytest.raises(AssertionError):
        reference(UNSTABLE, simulate(wrong, 3, trace=ALL))
