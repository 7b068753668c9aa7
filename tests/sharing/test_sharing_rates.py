"""Weighted max-min rates: closed forms, what holds for every system, and agreement with an exact oracle."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.slow_maxmin import OWN_CAP, max_min
from sharing.random_systems import RELATIVE, oracle_flow, systems

from lanewise.perf.sharing import SolverFlow, share


def close(value, rel=RELATIVE):
    return pytest.approx(value, rel=rel, abs=0)


def test_flows_on_one_link_get_equal_parts():
    # n x = C  =>  x = C / n
    shares = share([24e9], [SolverFlow(((0, 1.0),), count=8)])
    assert shares.rates == (3e9,)
    assert shares.limits == (0,)
    assert shares.utilization == (1.0,)


def test_a_long_flow_shares_every_link_with_a_short_one():
    # parking lot, C = (10, 30):  x0 + x1 <= 10,  x0 + x2 <= 30
    # link 0 fills first at x0 = x1 = 5; then x2 = 30 - 5 = 25
    shares = share([10.0, 30.0], [SolverFlow(((0, 1), (1, 1))), SolverFlow(((0, 1),)), SolverFlow(((1, 1),))])
    assert shares.rates == (5.0, 5.0, 25.0)
    assert shares.limits == (0, 0, 1)
    assert shares.utilization == (1.0, 1.0)


def test_what_a_capped_flow_leaves_goes_to_the_others():
    # x0 = 2 (cap), 2 x1 = 12 - 2  =>  x1 = 5
    shares = share([12.0], [SolverFlow(((0, 1.0),), cap=2.0), SolverFlow(((0, 1.0),), count=2)])
    assert shares.rates == (2.0, 5.0)
    assert shares.limits == (None, 0)


def test_weights_divide_a_link_in_proportion():
    # x0 / 1 = x1 / 3, x0 + x1 = 8  =>  x = (2, 6)
    shares = share([8.0], [SolverFlow(((0, 1.0),)), SolverFlow(((0, 1.0),), weight=3.0)])
    assert shares.rates == (2.0, 6.0)


def test_coefficients_count_load_not_rate():
    # 2 x0 + 0.5 x1 = 10 with x0 = x1  =>  x = 10 / 2.5 = 4
    shares = share([10.0], [SolverFlow(((0, 2.0),)), SolverFlow(((0, 0.5),))])
    assert shares.rates == (4.0, 4.0)


def test_a_window_of_bytes_in_flight_limits_rate_times_round_trip():
    # 3 flows, RTT = 1.2 us, W = 36 kB:  3 x RTT = W  =>  x = 10 GB/s, below the link's 63 / 3 = 21
    shares = share([36e3, 63e9], [SolverFlow(((0, 1.2e-6), (1, 1.0)), count=3)])
    assert shares.rates == (close(10e9),)
    assert shares.limits == (0,)
    assert shares.utilization[1] == close(30 / 63)


def test_a_flow_that_crosses_a_resource_twice_loads_it_twice():
    # x + x = 10  =>  x = 5
    assert share([10.0], [SolverFlow(((0, 1.0), (0, 1.0)))]).rates == (5.0,)


def test_a_coefficient_of_zero_is_no_use():
    shares = share([1.0, 5.0], [SolverFlow(((0, 0.0), (1, 1.0)))])
    assert shares.rates == (5.0,)
    assert shares.utilization == (0.0, 1.0)


def test_of_limits_met_together_the_cap_is_named_else_the_lowest_resource():
    assert share([5.0, 5.0], [SolverFlow(((1, 1.0), (0, 1.0)))]).limits == (0,)
    assert share([5.0], [SolverFlow(((0, 1.0),), cap=5.0)]).limits == (None,)
    # 3 * 0.1 and 0.3 differ by rounding alone, and must still be one level
    assert share([0.3, 0.1], [SolverFlow(((0, 3.0), (1, 1.0)))]).limits == (0,)


def test_nothing_to_share_gives_nothing():
    assert share([], []).rates == ()
    assert share([7.0], []).utilization == (0.0,)


@examples(600)
@given(systems())
def test_rates_and_limits_are_those_of_the_exact_oracle(system):
    capacities, classes = system
    flows = [oracle_flow(each) for each in classes for _ in range(each.count)]
    expected = iter(max_min([Fraction(c) for c in capacities], flows))
    shares = share(capacities, classes)
    for each, rate, limit in zip(classes, shares.rates, shares.limits, strict=True):
        for _ in range(each.count):
            exact = next(expected)
        assert rate == close(float(exact.rate))
        # Limits apart by less than rounding are one limit to the solver; the oracle tells them apart.
        name = OWN_CAP if limit is None else limit
        assert name in exact.limits or _binds(capacities, classes, shares, each, rate, limit)


@examples(300)
@given(systems(most_resources=12, most_classes=20, most_flows=10_000))
def test_no_resource_is_overloaded_and_every_flow_has_a_bottleneck(system):
    capacities, classes = system
    shares = share(capacities, classes)
    assert all(0 <= use <= 1 for use in shares.utilization)
    for each, rate, limit in zip(classes, shares.rates, shares.limits, strict=True):
        assert 0 < rate <= each.cap * (1 + RELATIVE)
        assert _binds(capacities, classes, shares, each, rate, limit)


def _binds(capacities, classes, shares, each, rate, limit) -> bool:
    """At its cap; or at a full resource that it uses and on which nobody has a larger rate / weight."""
    if limit is None:
        return rate == close(each.cap)
    largest = max(
        x / other.weight
        for other, x in zip(classes, shares.rates, strict=True)
        if any(r == limit and a > 0 for r, a in other.amounts)
    )
    used = any(r == limit and a > 0 for r, a in each.amounts)
    return used and shares.utilization[limit] == close(1.0) and rate / each.weight == close(largest)


@settings(deadline=None)
@given(systems(), st.floats(-6, 6).map(lambda power: 10.0**power))
def test_scaling_all_capacities_and_caps_scales_all_rates(system, factor):
    capacities, classes = system
    scaled = share([c * factor for c in capacities], [replace(each, cap=each.cap * factor) for each in classes])
    assert scaled.rates == close(tuple(x * factor for x in share(capacities, classes).rates))


@settings(deadline=None)
@given(systems(), st.randoms(use_true_random=False))
def test_the_order_of_classes_and_resources_changes_nothing(system, random):
    capacities, classes = system
    class_at, resource_at = list(range(len(classes))), list(range(len(capacities)))
    random.shuffle(class_at)
    random.shuffle(resource_at)
    place = {r: i for i, r in enumerate(resource_at)}
    moved = [replace(classes[k], amounts=tuple((place[r], a) for r, a in classes[k].amounts)) for k in class_at]
    shares, other = share(capacities, classes), share([capacities[r] for r in resource_at], moved)
    assert other.rates == close(tuple(shares.rates[k] for k in class_at))
    assert other.utilization == close(tuple(shares.utilization[r] for r in resource_at))


@settings(deadline=None)
@given(systems(most_flows=6))
def test_a_class_of_n_is_n_classes_of_one(system):
    capacities, classes = system
    split = [replace(each, count=1) for each in classes for _ in range(each.count)]
    whole = share(capacities, classes)
    singles = share(capacities, split)
    expected = [x for x, each in zip(whole.rates, classes, strict=True) for _ in range(each.count)]
    assert singles.rates == close(tuple(expected))
    assert singles.utilization == close(whole.utilization)


def test_a_small_flow_keeps_its_digits_beside_a_million_large_ones():
    # 1e6 flows at their cap of 9e-6 leave 10 - 9 = 1 of link 0, and link 1 holds the last flow to 1
    shares = share(
        [10.0, 1.0],
        [SolverFlow(((0, 1.0),), cap=9e-6, count=10**6), SolverFlow(((0, 1.0), (1, 1.0)), weight=1e-9)],
    )
    assert shares.rates == (close(9e-6), close(1.0))


def test_rates_do_not_depend_on_an_infinite_cap_being_written():
    assert share([4.0], [SolverFlow(((0, 1.0),), cap=math.inf)]) == share([4.0], [SolverFlow(((0, 1.0),))])
