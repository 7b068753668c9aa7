"""Transfers run one by one through the native core, with the rates that it keeps on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lanewise import _native
from lanewise.perf.sharing import SolverFlow, native_errors, network_of


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


def run(
    capacities: Sequence[float], classes: Sequence[SolverFlow], transfers: Sequence[Transfer], keep_rates: int = 1000
) -> Timeline:
    """Run transfers to their ends, keeping at most `keep_rates` changes of rates; InputError as in `share`."""
    with native_errors():
        finishes, rates, complete = _native.run_flows(
            network_of(capacities, classes),
            np.array([transfer.flow_class for transfer in transfers], dtype=np.int32),
            np.array([transfer.size for transfer in transfers], dtype=np.float64),
            np.array([transfer.start for transfer in transfers], dtype=np.float64),
            keep_rates,
        )
    return Timeline(tuple(finishes.tolist()), tuple((time, tuple(now)) for time, now in rates), complete)
