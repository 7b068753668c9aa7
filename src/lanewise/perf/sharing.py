"""Resources of any kind shared between flows: weighted max-min rates, and finite transfers over time (native/sim).

A resource r has a capacity C_r > 0; one flow k running at x_k loads it with a_rk * x_k. All rates
rise together, each in proportion to its weight, until a flow meets its cap or a resource it uses is full; the
others go on.
Source: Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

import lanewise._native as _native
from lanewise.errors import InputError

_OWN_CAP = -1


@dataclass(frozen=True, slots=True)
class SolverFlow:
    """`count` identical flows; `amounts` are (resource index, coefficient >= 0), `cap` is B/s for each flow.

    A resource named twice is loaded by the sum of its coefficients.
    """

    amounts: tuple[tuple[int, float], ...]
    weight: float = 1.0
    cap: float = math.inf
    count: int = 1


@dataclass(frozen=True, slots=True)
class Shares:
    """What each flow gets (`rates`, B/s for each of its `count`) and why.

    `limits` holds the index of the resource that froze a flow, None where its own cap did; of limits met at
    once the cap is named, else the resource of lowest index. `utilization` is load / capacity of each resource.
    """

    rates: tuple[float, ...]
    limits: tuple[int | None, ...]
    utilization: tuple[float, ...]


def share(capacities: Sequence[float], flows: Sequence[SolverFlow]) -> Shares:
    """Weighted max-min rates in B/s; InputError for figures out of range and flows that nothing bounds."""
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
    waits = _indices(after).reshape(-1, 2)
    with native_errors():
        return _native.run_flows(
            network_of(capacities, flows),
            _indices(flow_indices),
            np.ascontiguousarray(sizes, dtype=np.float64),
            np.ascontiguousarray(starts, dtype=np.float64),
            0,
            _indices(queues),
            np.ascontiguousarray(waits[:, 0]),
            np.ascontiguousarray(waits[:, 1]),
        )[0]


def network_of(capacities: Sequence[float], flows: Sequence[SolverFlow]) -> _native.Network:
    """Checked resources and flows for the native core; call it under `native_errors`."""
    return _native.Network(
        list(capacities),
        [list(flow.amounts) for flow in flows],
        [flow.weight for flow in flows],
        [flow.cap for flow in flows],
    )


def _indices(column: ArrayLike) -> NDArray[np.int32]:
    """Indices of flows as int32; a fraction or a number too large becomes no index silently."""
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
