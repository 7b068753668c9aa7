"""Random systems for hypothesis: figures over the ranges that machines have, with ties made likely."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from hypothesis import strategies as st
from oracles.slow_maxmin import Flow
from sharing.timelines import Transfer

from lanewise.perf.sharing import SolverFlow

RELATIVE = 1e-9

_round_rates = st.sampled_from([1e9, 2e9, 12e9, 24e9])
_any_rates = st.floats(3, 12).map(lambda power: 10.0**power)
rates = st.one_of(_round_rates, _any_rates)
_factors = st.one_of(st.sampled_from([0.25, 0.5, 1.0, 1.0, 2.0]), st.floats(0.05, 20))
_caps = st.one_of(st.just(math.inf), rates)


@st.composite
def systems(draw, most_resources=6, most_classes=7, most_flows=4):
    """(capacities, classes): every class has a cap or a use, so all of them are bounded."""
    capacities = draw(st.lists(rates, min_size=1, max_size=most_resources))
    count = draw(st.integers(1, most_classes))
    classes = []
    for _ in range(count):
        used = draw(st.sets(st.integers(0, len(capacities) - 1), max_size=4))
        uses = tuple((r, draw(_factors)) for r in sorted(used))
        cap = draw(_caps if uses else rates)
        classes.append(SolverFlow(uses, draw(_factors), cap, draw(st.integers(1, most_flows))))
    return capacities, classes


@st.composite
def wide_systems(draw):
    """(capacities, classes): links, ports and one fabric, from ample to far too small; pairs of links exchange."""
    links, ports = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    port, fabric = draw(st.sampled_from([12e9, 24e9, 50e9])), draw(st.sampled_from([10e9, 36e9, 100e9, 1e12]))
    capacities = [draw(st.sampled_from([12e9, 24e9]))] * links + [port] * ports + [fabric]
    step = draw(st.integers(1, links - 1))
    load, weights = draw(st.sampled_from([1.0, 1.25])), draw(st.lists(_factors, min_size=1, max_size=3))
    classes = []
    for i in range(links):
        pull = ((i, load), (links + i % ports, 1.0), (links + ports, 1.0))
        pass_on = ((i, 1.0), ((i + step) % links, load), (links + ports, 1.0))
        classes += [SolverFlow(uses, weights[i % len(weights)], draw(_caps)) for uses in (pull, pass_on)]
    return capacities, classes


@st.composite
def hub_systems(draw):
    """(capacities, classes): like `wide_systems`, 48 to 72 classes on one fabric: many of them are solved as one."""
    links, like, rng = draw(st.integers(16, 24)), draw(st.booleans()), random.Random(draw(st.integers(0, 2**32)))
    factor = (lambda: 1.0) if like else (lambda: rng.choice([0.5, 1.0, rng.uniform(0.2, 3.0)]))
    fabric = links * draw(st.sampled_from([2e9, 8e9, 24e9, 48e9]))
    capacities = [rng.choice([12e9, 24e9]) for _ in range(links)] + [draw(st.sampled_from([30e9, 100e9])), fabric]
    classes = []
    for k in range(3 * links):
        path = [(k % links, factor()), (links + 1, factor())]
        path += [(links, factor())] if k < links else [((7 * k + 1) % links, factor())] if k % 10 else []
        capped = not like and rng.random() < 0.1
        merged = {r: sum(c for s, c in path if s == r) for r, _ in path}
        classes.append(SolverFlow(tuple(merged.items()), factor(), rng.uniform(1e8, 1e10) if capped else math.inf))
    return capacities, classes


@st.composite
def workloads(draw, most_transfers=9):
    """(capacities, classes, transfers) with sizes that make transfers overlap, some at once, some empty."""
    capacities, classes = draw(systems(most_resources=4, most_classes=4))
    sizes = st.one_of(st.just(0.0), st.sampled_from([1e6, 4e6, 64e6]), st.floats(1.0, 1e9))
    starts = st.one_of(st.sampled_from([0.0, 1e-3, 2e-3]), st.floats(0.0, 1.0))
    each = st.builds(Transfer, st.integers(0, len(classes) - 1), sizes, starts)
    return capacities, classes, draw(st.lists(each, min_size=1, max_size=most_transfers))


def oracle_flow(each: SolverFlow) -> Flow:
    """One flow of a class, in exact fractions, for the oracles."""
    uses: dict[int, Fraction] = {}
    for r, a in each.amounts:
        uses[r] = uses.get(r, Fraction(0)) + Fraction(a)
    return Flow(uses, Fraction(each.weight), None if math.isinf(each.cap) else Fraction(each.cap))
