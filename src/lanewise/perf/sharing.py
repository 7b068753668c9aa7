"""Links shared between flows: weighted max-min rates, and finite transfers over time (see native/sim).

A resource r has a capacity C_r > 0; one flow of class k running at x_k loads it with a_rk * x_k. All rates
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
class FlowClass:
    """`count` identical flows; `demands` are (resource index, coefficient >= 0), `cap` is B/s for each flow.

    A resource named twice is loaded by the sum of its coefficients.
    """

    demands: tuple[tuple[int, float], ...]
    weight: float = 1.0
    cap: float = math.inf
    count: int = 1


@dataclass(frozen=True, slots=True)
class Shares:
    """What each class gets (`rates`, B/s for each of its flows) and why.

    `limits` holds the index of the resource that froze a class, None where its own cap did; of limits met at
    once the cap is named, else the resource of lowest index. `utilization` is load / capacity of each resource.
    """

    rates: tuple[float, ...]
    limits: tuple[int | None, ...]
    utilization: tuple[float, ...]


def share(capacities: Sequence[float], classes: Sequence[FlowClass]) -> Shares:
    """Weighted max-min rates in B/s; InputError for figures out of range and classes that nothing bounds."""
    for index, flow_class in enumerate(classes):
        if flow_class.count < 1:
            raise InputError(
                f"flow class {index} has a count of {flow_class.count}", hint="leave out a class that has no flow"
            )
    with native_errors():
        network = network_of(capacities, classes)
        rates, limits, utilization = _native.share(network, [flow_class.count for flow_class in classes])
    return Shares(tuple(rates), tuple(None if r == _OWN_CAP else r for r in limits), tuple(utilization))


def finish_times(
    capacities: Sequence[float],
    classes: Sequence[FlowClass],
    flow_classes: ArrayLike,
    sizes: ArrayLike,
    starts: ArrayLike,
) -> NDArray[np.float64]:
    """Finish times (s) of transfers given as columns: class, bytes, start (s); InputError as in `share`.

    The flows of a class are its transfers under way: `count` of the classes is not looked at.
    """
    with native_errors():
        return _native.run_flows(
            network_of(capacities, classes),
            _indices(flow_classes),
            np.ascontiguousarray(sizes, dtype=np.float64),
            np.ascontiguousarray(starts, dtype=np.float64),
            0,
        )[0]


def network_of(capacities: Sequence[float], classes: Sequence[FlowClass]) -> _native.Network:
    """Checked resources and classes for the native core; call it under `native_errors`."""
    return _native.Network(
        list(capacities),
        [list(flow_class.demands) for flow_class in classes],
        [flow_class.weight for flow_class in classes],
        [flow_class.cap for flow_class in classes],
    )


def _indices(column: ArrayLike) -> NDArray[np.int32]:
    """Class indices as int32; a fraction or a number too large becomes no index silently."""
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
