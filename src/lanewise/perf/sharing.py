"""Resources of any kind shared between flows: weighted max-min rates, and finite transfers over time (native/sim).

Everybody who needs rates asks here, and so flows that take turns (perf/turns.py) take them everywhere.

A resource r has a capacity C_r > 0; one flow k running at x_k loads it with a_rk * x_k. All rates
rise together, each in proportion to its weight, until a flow meets its cap or a resource it uses is full; the
others go on. Of flows of one sender, one runs at a time: a turn is the same number of bytes for all.
Source: Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lanewise._native as _native
from lanewise.errors import InputError
from lanewise.perf.uncertainty import Bound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

_OWN_CAP = -1
COPY = 2.0**28  # bytes of a turn where no transfer says how long it is: the copies of `measure gpu`
_ENDLESS = 1e30  # bytes
_ROUNDS, _FIRST = 60, 4  # turns of each flow, and those that do not count for its rate; more change it by 2 %
_TURNS = 64  # of the largest transfer; more change its time by 1 %
_SAME = 0.02  # what the start of the copies changes
_APART = 0.6180339887  # the golden ratio's fraction spreads the phases of the senders


@dataclass(frozen=True, slots=True)
class SolverFlow:
    """`count` identical flows; `amounts` are (resource index, coefficient >= 0), `cap` is B/s for each flow.

    A resource named twice is loaded by the sum of its coefficients. Flows of one `sender` take turns, but for "".
    """

    amounts: tuple[tuple[int, float], ...]
    weight: float = 1.0
    cap: float = math.inf
    count: int = 1
    sender: str = ""


@dataclass(frozen=True, slots=True)
class Shares:
    """What each flow gets (`rates`, B/s for each of its `count`) and why.

    `limits` holds the index of the resource that froze a flow, None where its own cap did; of limits met at
    once the cap is named, else the resource of lowest index. None is also that of a flow that waits for its turn while
    no resource of its own is full. `utilization` is load / capacity of each resource.
    """

    rates: tuple[float, ...]
    limits: tuple[int | None, ...]
    utilization: tuple[float, ...]


def share(capacities: Sequence[float], flows: Sequence[SolverFlow], end: Bound = "nominal") -> Shares:
    """Weighted max-min rates in B/s, in turns; InputError for figures out of range and flows that nothing bounds.

    Where several senders' flows take turns, they always meet at the low end of the interval, and never at the high one.
    """
    together = _max_min(capacities, flows)
    by_sender = Counter(flow.sender for flow in flows if flow.sender)
    in_turns = [count for count in by_sender.values() if count > 1]
    if not in_turns or (len(in_turns) > 1 and end == "high"):
        return together
    rates = _rates_in_turns(capacities, flows, sum(in_turns), 0.0 if end == "low" else _APART)
    if all(abs(rate / before - 1) < _SAME for rate, before in zip(rates, together.rates, strict=True)):
        return together
    used = [0.0] * len(capacities)
    for rate, flow in zip(rates, flows, strict=True):
        for resource, amount in flow.amounts:
            used[resource] += rate * flow.count * amount / capacities[resource]
    limits = tuple(
        None if limit is None or (flow.sender and rate < before and used[limit] < 1 - _SAME) else limit
        for limit, flow, rate, before in zip(together.limits, flows, rates, together.rates, strict=True)
    )
    return Shares(tuple(rates), limits, tuple(min(each, 1.0) for each in used))


def _rates_in_turns(
    capacities: Sequence[float], flows: Sequence[SolverFlow], in_turns: int, apart: float
) -> list[float]:
    """The rates of endless flows, `in_turns` of which take turns, over some rounds but for the first ones."""
    with native_errors():
        engine = _native.FlowEngine(network_of(capacities, flows, apart=apart))
    for number, flow in enumerate(flows):
        for _ in range(flow.count):
            engine.add(number, _ENDLESS, number)
    moments = []
    for rounds in (_FIRST, _ROUNDS - _FIRST):
        for _ in range(rounds * in_turns):
            engine.advance()
        moments.append((engine.now, [engine.moved(number) for number in range(len(flows))]))
    (begin, before), (end, after) = moments
    return [(b - a) / (end - begin) / flow.count for a, b, flow in zip(before, after, flows, strict=True)]


def _max_min(capacities: Sequence[float], flows: Sequence[SolverFlow]) -> Shares:
    for index, flow in enumerate(flows):
        if flow.count < 1:
            raise InputError(
                f"flow class {index} has a count of {flow.count}", hint="leave out a class that has no flow"
            )
    with native_errors():
        network = network_of(capacities, flows)
        rates, limits, utilization = _native.share(network, [flow.count for flow in flows])
    return Shares(tuple(rates), tuple(None if r == _OWN_CAP else r for r in limits), tuple(utilization))


def finish_times(
    capacities: Sequence[float],
    flows: Sequence[SolverFlow],
    flow_indices: ArrayLike,
    sizes: ArrayLike,
    starts: ArrayLike,
    after: Sequence[tuple[int, int]] = (),
    queues: ArrayLike = (),
) -> NDArray[np.float64]:
    """Finish times (s) of transfers given as columns: index of a flow, bytes, start (s); InputError as in `share`.

    `after` are pairs of transfers of which the first begins its start (s) after the second has ended. Of the transfers
    of one number in `queues` one runs at a time, in the order in which they could begin; those of -1 do not queue.
    Each transfer runs as its flow says; `count` of the flows is not looked at.
    """
    import numpy as np  # late: who asks for rates alone needs no columns

    waits, indices = _indices(after).reshape(-1, 2), _indices(flow_indices)
    sizes = np.ascontiguousarray(sizes, dtype=np.float64)
    with native_errors():
        return _native.run_flows(
            network_of(capacities, flows, _turn(flows, indices, sizes)),
            indices,
            sizes,
            np.ascontiguousarray(starts, dtype=np.float64),
            0,
            _indices(queues),
            np.ascontiguousarray(waits[:, 0]),
            np.ascontiguousarray(waits[:, 1]),
        )[0]


def _turn(flows: Sequence[SolverFlow], indices: NDArray[np.int32], sizes: NDArray[np.float64]) -> float:
    """Bytes of a turn: so small a part of the largest transfer that takes any that rates are those of `share`."""
    taking = {index for index, flow in enumerate(flows) if flow.sender}
    if not taking:
        return COPY
    largest = max((size for index, size in zip(indices, sizes, strict=False) if index in taking), default=0.0)
    return largest / _TURNS if 0.0 < largest < math.inf else COPY


def network_of(
    capacities: Sequence[float], flows: Sequence[SolverFlow], turn: float = COPY, apart: float = _APART
) -> _native.Network:
    """Checked resources and flows for the native core; call it under `native_errors`.

    A turn is so many bytes; those of different senders are that part of one `apart`.
    """
    senders = dict.fromkeys(flow.sender for flow in flows if flow.sender)
    numbers = {sender: number for number, sender in enumerate(senders)}
    return _native.Network(
        list(capacities),
        [list(flow.amounts) for flow in flows],
        [flow.weight for flow in flows],
        [flow.cap for flow in flows],
        [numbers.get(flow.sender, -1) for flow in flows] if numbers else [],
        turn,
        apart,
    )


def _indices(column: ArrayLike) -> NDArray[np.int32]:
    """Indices of flows as int32; a fraction or a number too large becomes no index silently."""
    import numpy as np

    values = np.asarray(column)
    with np.errstate(invalid="ignore"):  # the comparison below finds what does not fit
        indices = values.astype(np.int32, order="C")
    if not np.array_equal(indices, values):
        raise InputError("flow classes of transfers must be whole numbers", hint="classes count from 0")
    return indices


@contextmanager
def native_errors() -> Iterator[None]:
    """Turns what the native core refuses into an InputError with its hint."""
    try:
        yield
    except _native.BadInput as error:
        cause, hint = error.args
        raise InputError(cause, hint=hint) from None
