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
    """`count` identical flows; `uses` are (resource index, coefficient >= 0), `cap` is B/s for each flow.

    A resource named twice is loaded by the sum of its coefficients.
    """

    uses: tuple[tuple[int, float], ...]
    weight: float = 1.0
    cap: float = math.inf
    count: int = 1


@dataclass(frozen=True, slots=True)
class Shares:
    """What each class gets (`rates`, B/s for each of its flows) and why.

    `limits` holds the index of the resource that froze a class, None where its own cap did; of limits met at
    once the cap is named, else the resource of lowest index. `use` is load / capacity of each resource.
    """

    rates: tuple[float, ...]
    limits: tuple[int | None, ...]
    use: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """`size` bytes moved by one flow of class `flow_class` from `start` (seconds, >= 0) on."""

    flow_class: int
    size: float
    start: float = 0.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each transfer ends (s), and the per-flow rates (B/s) of the classes from each kept time on.

    A class without a flow has rate 0. `complete` is False when there were more changes of rates than were
    kept; `rates` then holds the first ones.
    """

    finishes: tuple[float, ...]
    rates: tuple[tuple[float, tuple[float, ...]], ...]
    complete: bool = True


def share(capacities: Sequence[float], classes: Sequence[FlowClass]) -> Shares:
    """Weighted max-min rates in B/s; InputError for figures out of range and classes that nothing bounds."""
    for index, flow_class in enumerate(classes):
        if flow_class.count < 1:
            raise InputError(
                f"flow class {index} has a count of {flow_class.count}", hint="leave out a class that has no flow"
            )
    with native_errors():
        network = network_of(capacities, classes)
        rates, limits, use = _native.share(network, [flow_class.count for flow_class in classes])
    return Shares(tuple(rates), tuple(None if r == _OWN_CAP else r for r in limits), tuple(use))


def run(
    capacities: Sequence[float],
    classes: Sequence[FlowClass],
    transfers: Sequence[Transfer],
    keep_rates: int = 1000,
) -> Timeline:
    """Run transfers to their ends, keeping at most `keep_rates` changes of rates; InputError as in `share`.

    The flows of a class are its transfers under way: `count` of the classes is not looked at.
    """
    finishes, rates, complete = _run(
        capacities,
        classes,
        [transfer.flow_class for transfer in transfers],
        [transfer.size for transfer in transfers],
        [transfer.start for transfer in transfers],
        keep_rates,
    )
    return Timeline(tuple(finishes.tolist()), tuple((time, tuple(now)) for time, now in rates), complete)


def finish_times(
    capacities: Sequence[float],
    classes: Sequence[FlowClass],
    flow_classes: ArrayLike,
    sizes: ArrayLike,
    starts: ArrayLike,
) -> NDArray[np.float64]:
    """Finish times (s) of transfers given as columns: class, bytes, start (s); InputError as in `share`."""
    return _run(capacities, classes, flow_classes, sizes, starts, 0)[0]


def _run(
    capacities: Sequence[float],
    classes: Sequence[FlowClass],
    flow_classes: ArrayLike,
    sizes: ArrayLike,
    starts: ArrayLike,
    keep_rates: int,
) -> tuple[NDArray[np.float64], list[tuple[float, list[float]]], bool]:
    if keep_rates < 0:
        raise InputError(f"cannot keep {keep_rates} changes of rates", hint="give 0 or more")
    with native_errors():
        return _native.run_flows(
            network_of(capacities, classes),
            _indices(flow_classes),
            np.ascontiguousarray(sizes, dtype=np.float64),
            np.ascontiguousarray(starts, dtype=np.float64),
            keep_rates,
        )


def network_of(capacities: Sequence[float], classes: Sequence[FlowClass]) -> _native.Network:
    """Checked resources and classes for the native core; call it under `native_errors`."""
    return _native.Network(
        list(capacities),
        [list(flow_class.uses) for flow_class in classes],
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
