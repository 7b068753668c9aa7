"""Finite transfers over shared links: closed forms, conservation, agreement with a plain exact event loop."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from example_counts import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import slow_flowsim
from sharing.random_systems import RELATIVE, oracle_flow, workloads
from sharing.timelines import Transfer, run

from lanewise import _native
from lanewise.perf.sharing import SolverFlow, finish_times

LINK = SolverFlow(((0, 1.0),))


def close(value, rel=RELATIVE):
    return pytest.approx(value, rel=rel, abs=0)


def test_one_transfer_takes_its_size_over_the_capacity():
    # t = start + S / C
    assert run([25e9], [LINK], [Transfer(0, 100e9, 1.0)]).finishes == (5.0,)


def test_equal_transfers_end_together_after_n_times_as_long():
    # t = n S / C
    timeline = run([10.0], [LINK], [Transfer(0, 5.0)] * 4)
    assert timeline.finishes == (2.0,) * 4
    assert timeline.rates == ((0.0, (2.5,)), (2.0, (0.0,)))


def test_the_shorter_transfer_leaves_its_share_to_the_longer():
    # C = 10, S = (10, 30): both at 5 until t = 2; then 30 - 10 = 20 left at 10  =>  t = 4
    timeline = run([10.0], [LINK], [Transfer(0, 10.0), Transfer(0, 30.0)])
    assert timeline.finishes == (2.0, 4.0)


def test_staggered_arrivals_by_hand():
    # C = 12. A 24 B at 0, B 12 B at 1, C 4 B at 2.
    # 0..1: A at 12, 12 left. 1..2: A and B at 6: A 6, B 6 left. From 2 on three at 4: C ends at 3;
    # A and B have 2 left.
    # Then A and B at 6: both end at 3 + 2 / 6.
    timeline = run([12.0], [LINK], [Transfer(0, 24.0), Transfer(0, 12.0, 1.0), Transfer(0, 4.0, 2.0)])
    assert timeline.finishes == (close(3 + 1 / 3), close(3 + 1 / 3), close(3.0))


def test_parking_lot_in_time():
    # C = (10, 30): long 10 B, short0 5 B, short1 50 B. Rates (5, 5, 25): short0 ends at 1, long has 5 left.
    # Then long has link 0 alone and shares link 1: x_long = 10, x_short1 = 20; long ends at 1.5, when
    # short1 has 15 left.
    # Then short1 at 30: ends at 1.5 + 15 / 30 = 2
    classes = [SolverFlow(((0, 1.0), (1, 1.0))), SolverFlow(((0, 1.0),)), SolverFlow(((1, 1.0),))]
    timeline = run([10.0, 30.0], classes, [Transfer(0, 10.0), Transfer(1, 5.0), Transfer(2, 50.0)])
    assert timeline.finishes == (close(1.5), close(1.0), close(2.0))


def test_caps_and_weights_hold_over_time():
    # C = 12: capped flow at 2, weights 1 and 4 share 10 as 2 and 8. Sizes 8, 8, 8:
    # the heavy one ends at 1; then the light one gets 10: 8 - 2 = 6 left, ends at 1.6;
    # the capped one ends at 8 / 2 = 4
    classes = [SolverFlow(((0, 1.0),), cap=2.0), LINK, SolverFlow(((0, 1.0),), weight=4.0)]
    timeline = run([12.0], classes, [Transfer(0, 8.0), Transfer(1, 8.0), Transfer(2, 8.0)])
    assert timeline.finishes == (close(4.0), close(1.6), close(1.0))


def test_a_transfer_of_nothing_ends_when_it_starts_and_disturbs_nobody():
    timeline = run([10.0], [LINK], [Transfer(0, 10.0), Transfer(0, 0.0, 0.5), Transfer(0, 0.0, 7.0)])
    assert timeline.finishes == (1.0, 0.5, 7.0)
    assert timeline.rates == ((0.0, (10.0,)), (1.0, (0.0,)))


def test_no_transfers_is_an_empty_timeline():
    assert run([10.0], [LINK], []).finishes == ()


def test_the_timeline_says_when_it_was_cut():
    transfers = [Transfer(0, 10.0, float(i)) for i in range(5)]
    whole, cut = run([10.0], [LINK], transfers), run([10.0], [LINK], transfers, keep_rates=1)
    assert whole.complete
    assert not cut.complete
    assert cut.rates == whole.rates[:1]
    assert cut.finishes == whole.finishes


def test_columns_give_the_same_as_a_list():
    transfers = [Transfer(i % 2, 1.0 + i, 0.1 * i) for i in range(50)]
    classes = [LINK, SolverFlow(((0, 2.0),))]
    by_list = run([10.0], classes, transfers).finishes
    columns = finish_times([10.0], classes, [t.flow_class for t in transfers], [t.size for t in transfers],
                           [t.start for t in transfers])  # fmt: skip
    assert columns.tolist() == list(by_list)


def test_a_long_run_keeps_its_digits():
    # One class that is never empty for 40,000 ends; sizes in 1/8 B and C = 1 make the sum exact:
    # the link is never idle, so the last end is the sum of all sizes.
    sizes = [1.0 + (i % 7) / 8 for i in range(40_000)]
    starts = [0.5 * i for i in range(40_000)]
    ends = finish_times([1.0], [LINK], np.zeros(40_000, int), sizes, starts)
    assert ends.max() == close(sum(sizes), rel=1e-12)


def test_a_transfer_waits_for_all_that_it_names():
    # C = 10: 10 B and 20 B share, ending at 2 and 3; the third begins 0.5 s after the later one and takes 1 s.
    transfers = [Transfer(0, 10.0), Transfer(0, 20.0), Transfer(0, 10.0, 0.5, after=(0, 1))]
    assert run([10.0], [LINK], transfers).finishes == (2.0, 3.0, 4.5)


def test_transfers_of_one_queue_run_one_at_a_time_in_the_order_in_which_they_could_begin():
    # C = 10 each. The queue has 2, which could begin at 0, then 1 (at 0.5): 0 is on the other link alone.
    other = SolverFlow(((1, 1.0),))
    transfers = [Transfer(1, 30.0), Transfer(0, 10.0, 0.5, queue=0), Transfer(0, 20.0, queue=0)]
    assert run([10.0, 10.0], [LINK, other], transfers).finishes == (3.0, 3.0, 2.0)


def test_a_transfer_of_nothing_takes_its_turn():
    transfers = [Transfer(0, 10.0, queue=1), Transfer(0, 0.0, queue=1), Transfer(0, 10.0, after=(1,), queue=1)]
    assert run([10.0], [LINK], transfers).finishes == (1.0, 1.0, 2.0)


@settings(deadline=None)
@given(workloads(most_transfers=7), st.data())
def test_dependent_and_queued_transfers_end_as_in_the_exact_event_loop(workload, data):
    capacities, classes, alike = workload
    transfers = [replace(transfer, size=transfer.size + 1000 * i) for i, transfer in enumerate(alike, start=1)]
    awaited = [data.draw(st.sets(st.integers(0, i - 1), max_size=2)) if i else set() for i in range(len(transfers))]
    queues = data.draw(st.lists(st.integers(-1, 1), min_size=len(transfers), max_size=len(transfers)))
    exact = slow_flowsim.finishes(
        [Fraction(c) for c in capacities],
        [(oracle_flow(classes[t.flow_class]), Fraction(t.size), Fraction(t.start)) for t in transfers],
        [sorted(each) for each in awaited],
        queues,
    )
    # What could begin at about the same time may queue in either order once times are rounded.
    times = sorted({Fraction(0), *exact, *(Fraction(t.start) for t in transfers)})
    assume(all(b - a > b / 10**9 for a, b in itertools.pairwise(times)))
    ordered = [
        replace(transfer, after=tuple(sorted(each)), queue=queue)
        for transfer, each, queue in zip(transfers, awaited, queues, strict=True)
    ]
    assert run(capacities, classes, ordered).finishes == close(tuple(float(end) for end in exact))


@examples(500)
@given(workloads())
def test_finish_times_are_those_of_the_exact_event_loop(workload):
    capacities, classes, transfers = workload
    exact = slow_flowsim.finishes(
        [Fraction(c) for c in capacities],
        [(oracle_flow(classes[t.flow_class]), Fraction(t.size), Fraction(t.start)) for t in transfers],
    )
    assert run(capacities, classes, transfers).finishes == close(tuple(float(end) for end in exact))


@examples(200)
@given(workloads(most_transfers=60))
def test_bytes_delivered_are_the_integral_of_the_rates(workload):
    capacities, classes, transfers = workload
    timeline = run(capacities, classes, transfers)
    assert timeline.complete
    times = [time for time, _ in timeline.rates]
    assert all(a < b for a, b in itertools.pairwise(times))
    for transfer, end in zip(transfers, timeline.finishes, strict=True):
        assert end >= transfer.start
        moved = 0.0
        for (time, rates), then in zip(timeline.rates, [*times, math.inf][1:], strict=True):
            moved += rates[transfer.flow_class] * max(0.0, min(then, end) - max(time, transfer.start))
        # Rounding of absolute times limits what can be seen: one part in 1e15 of `end`, at the highest rate.
        fastest = max((rates[transfer.flow_class] for _, rates in timeline.rates), default=0.0)
        noise = 1e-15 * len(times) * end * fastest
        assert moved == pytest.approx(transfer.size, rel=1e-9, abs=noise)


@settings(deadline=None)
@given(workloads(most_transfers=30))
def test_links_twice_as_fast_for_transfers_twice_as_large_change_no_time(workload):
    capacities, classes, transfers = workload
    doubled = run(
        [2 * c for c in capacities],
        [replace(each, cap=2 * each.cap) for each in classes],
        [replace(each, size=2 * each.size) for each in transfers],
    )
    assert doubled.finishes == run(capacities, classes, transfers).finishes


@settings(deadline=None)
@given(workloads(most_transfers=30))
def test_stepping_gives_the_same_as_running(workload):
    capacities, classes, transfers = workload
    network = _native.Network(
        capacities, [list(c.amounts) for c in classes], [c.weight for c in classes], [c.cap for c in classes]
    )
    engine = _native.FlowEngine(network)
    arrivals = sorted(range(len(transfers)), key=lambda i: (transfers[i].start, i))
    finishes, clock = [math.nan] * len(transfers), 0.0
    while arrivals or engine.active:
        if engine.next_event_time() <= (transfers[arrivals[0]].start if arrivals else math.inf):
            ended = engine.advance()
            assert ended == sorted(ended)
            for i in ended:
                finishes[i] = engine.now
        else:
            engine.advance_to(transfers[arrivals[0]].start)
            while arrivals and transfers[arrivals[0]].start == engine.now:
                i = arrivals.pop(0)
                engine.add(transfers[i].flow_class, transfers[i].size, i)
        assert engine.now >= clock
        clock = engine.now
    assert tuple(finishes) == run(capacities, classes, transfers).finishes
    assert engine.next_event_time() == math.inf
    assert engine.advance() == []


def test_a_flow_replaced_at_the_instant_it_ends_keeps_the_rates():
    # C = 10, two flows at 5: one of 5 B ends at 1 and a like one follows; the other and the new one end at 2.
    engine = _native.FlowEngine(_native.Network([10.0], [[(0, 1.0)]], [1.0], [math.inf]))
    engine.add(0, 5.0, 1)
    engine.add(0, 10.0, 2)
    assert engine.advance() == [1]
    engine.add(0, 5.0, 3)
    assert engine.rate(0) == 5.0
    assert engine.advance() == [2, 3]
    assert engine.now == 2.0
