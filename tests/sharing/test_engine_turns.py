"""Classes that take turns in the flow engine: event by event as a slow record of queues and turns says."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

import pytest
from example_counts import examples
from hypothesis import given
from hypothesis import strategies as st

from lanewise import _native
from lanewise.perf.sharing import SolverFlow, share

TURN, APART = 1.0, 0.375
# Each class from one of three senders' ports to one of three receivers'; sender -1 takes no turns.
CLASSES = st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 2)), min_size=1, max_size=6)
SIZES, STARTS = st.sampled_from([0.25, 1.0, 2.5, 7.0]), st.sampled_from([0.0, 0.5, 3.0])
TRANSFERS = st.lists(st.tuples(st.integers(0, 5), SIZES, STARTS), min_size=1, max_size=10)
Classes: TypeAlias = list[tuple[int, int]]
Transfers: TypeAlias = list[tuple[int, float, float]]


def uses(sender: int, receiver: int) -> tuple[tuple[int, float], ...]:
    return ((3 + receiver, 1.0),) if sender < 0 else ((sender, 1.0), (3 + receiver, 1.0))


@dataclass
class SlowTurns:
    """All transfers of a class run at its rate; of the classes of a sender the first in its queue has its turn."""

    classes: Classes
    left: dict[int, list[float]] = field(default_factory=dict)  # of each class its transfers: bytes left
    queues: dict[int, deque[int]] = field(default_factory=dict)
    turn_left: dict[int, float] = field(default_factory=dict)  # of each sender, bytes

    def begin(self, which: int, size: float) -> None:
        sender, first = self.classes[which][0], not self.left.get(which)
        self.left.setdefault(which, []).append(size)
        if sender >= 0 and first:
            queue = self.queues.setdefault(sender, deque())
            queue.append(which)
            if len(queue) == 2:
                self.turn_left[sender] = TURN * (1 - APART * sender % 1)

    def running(self) -> dict[int, float]:
        """The rate of each class that has its turn."""
        has = [k for k, sizes in self.left.items() if sizes]
        on = [k for k in has if self.classes[k][0] < 0 or self.queues[self.classes[k][0]][0] == k]
        flows = [SolverFlow(uses(*self.classes[k]), count=len(self.left[k])) for k in on]
        return dict(zip(on, share([1.0] * 6, flows).rates, strict=True)) if on else {}

    def next_event(self, rates: dict[int, float]) -> float:
        waits = [min(self.left[k]) / rate for k, rate in rates.items()]
        waits += [self.turn_left[s] / rate for k, rate in rates.items() if (s := self.classes[k][0]) in self.turn_left]
        return min(waits, default=math.inf)

    def pass_time(self, rates: dict[int, float], seconds: float) -> int:
        """How many transfers end; turns end with them."""
        ended = 0
        for k, rate in rates.items():
            sender, moved = self.classes[k][0], rate * seconds
            left = [size - moved for size in self.left[k]]
            self.left[k] = [size for size in left if size > 1e-9]
            ended += len(left) - len(self.left[k])
            if sender in self.turn_left:
                self.turn_left[sender] -= moved
            if sender >= 0 and (not self.left[k] or self.turn_left.get(sender, 1.0) <= 1e-9):
                self._pass_turn(sender, k)
        return ended

    def _pass_turn(self, sender: int, k: int) -> None:
        queue = self.queues[sender]
        queue.popleft()
        queue += [k] if self.left[k] else []
        self.turn_left.pop(sender, None)
        if len(queue) > 1:
            self.turn_left[sender] = TURN


def slow_ends(classes: Classes, transfers: Transfers) -> list[float]:
    """When transfers end, ascending."""
    slow, now, ends = SlowTurns(classes), 0.0, []
    coming = deque(sorted(transfers, key=lambda each: each[2]))
    while coming or any(slow.left.values()):
        rates = slow.running()
        wait = slow.next_event(rates)
        if coming and coming[0][2] < now + wait - 1e-9:
            slow.pass_time(rates, coming[0][2] - now)
            now = coming[0][2]
            while coming and coming[0][2] == now:
                slow.begin(*coming.popleft()[:2])
        else:
            ends += [now + wait] * slow.pass_time(rates, wait)
            now += wait
    return ends


def engine_of(classes: Classes) -> _native.FlowEngine:
    count, senders = len(classes), [min(sender, len(classes) - 1) for sender, _ in classes]
    return _native.FlowEngine(_native.Network(
        [1.0] * 6, [uses(*each) for each in classes], [1.0] * count, [math.inf] * count, senders, TURN, APART
    ))  # fmt: skip


def ended(engine: _native.FlowEngine) -> list[float]:
    count = len(engine.advance())
    return [engine.now] * count


def ends_of(engine: _native.FlowEngine, transfers: Transfers) -> list[float]:
    ends: list[float] = []
    for number, (which, size, start) in enumerate(sorted(transfers, key=lambda each: each[2])):
        while engine.active and engine.next_event_time() <= start + 1e-9:
            ends += ended(engine)
        engine.advance_to(max(engine.now, start))
        engine.add(which, size, number)
    while engine.active:
        ends += ended(engine)
    return ends


@examples(300)
@given(CLASSES, TRANSFERS)
def test_turns_are_those_of_a_slow_record(classes: Classes, transfers: Transfers) -> None:
    classes += [(-1, 0)] * 2  # as many classes as senders at least
    transfers = [(which % len(classes), size, start) for which, size, start in transfers]
    assert ends_of(engine_of(classes), transfers) == pytest.approx(slow_ends(classes, transfers), rel=1e-6)


def test_rounding_leaves_nothing_of_a_transfer_at_the_end_of_a_turn() -> None:
    network = _native.Network(
        [1.0 / 3] * 2, [[(0, 1.0)], [(1, 1.0)]], [1.0] * 2, [math.inf] * 2, [0, 0], 1.0 / 3, 0.0
    )
    engine = _native.FlowEngine(network)
    for number in range(2):
        engine.add(number, 64 / 3, number)
    turns = 0
    while engine.active:
        engine.advance()
        turns += 1
    assert turns == 2 * 64


def test_rounding_leaves_nothing_of_a_transfer_that_came_during_the_turn() -> None:
    turn = 0.3  # the class's clock reads 0.1 when the third transfer comes, and 0.1 + 0.2 > 0.3 as floats
    network = _native.Network([1.0], [[(0, 1.0)]] * 2, [1.0] * 2, [math.inf] * 2, [0, 0], turn, 0.0)
    transfers = [(0, 0.25, 0.0), (1, 1.0, 0.0), (0, 0.2, 0.1)]
    assert ends_of(_native.FlowEngine(network), transfers) == pytest.approx([0.4, 0.45, 1.45])


def test_a_transfer_that_ends_with_the_turn_is_not_cut_in_two() -> None:
    classes = [(1, 0), (1, 0), (-1, 0), (-1, 0)]
    transfers = [(1, 0.25, 0.0), (1, 0.25, 0.0), (1, 1.0, 0.0), (0, 0.25, 0.5), (0, 1.0, 0.5)]
    transfers += [(1, 7.0, 0.5), (0, 7.0, 3.0), (1, 7.0, 3.0)]
    by_hand = [5 / 6, 5 / 6, 29 / 12, 10 / 3, 95 / 24, 535 / 24, 275 / 12, 95 / 4]
    assert ends_of(engine_of(classes), transfers) == pytest.approx(by_hand)
