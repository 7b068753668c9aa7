"""Transfers run one by one through the native core, with the rates that it keeps on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lanewise import _native
from lanewise.perf.sharing import SolverFlow, native_errors, network_of


@dataclass(frozen=True, slots=True)
class Transfer:
    """`size` bytes moved by one flow of class `flow_class` from `start` (seconds, >= 0) on.

    It begins `start` seconds after all transfers of the indices `after` have ended, when its `queue` is free.
    """

    flow_class: int
    size: float
    start: float = 0.0
    after: tuple[int, ...] = ()
    queue: int = -1


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
    waits = np.array([(i, j) for i, transfer in enumerate(transfers) for j in transfer.after], dtype=np.int32)
    waiting, awaited = waits.reshape(-1, 2).T.copy()
    with native_errors():
        finishes, rates, complete = _native.run_flows(
            network_of(capacities, classes),
            np.array([transfer.flow_class for transfer in transfers], dtype=np.int32),
            np.array([transfer.size for transfer in transfers], dtype=np.float64),
            np.array([transfer.start for transfer in transfers], dtype=np.float64),
            keep_rates,
            np.array([transfer.queue for transfer in transfers], dtype=np.int32),
            waiting,
            awaited,
        )
    return Timeline(tuple(finishes.tolist()), tuple((time, tuple(now)) for time, now in rates), complete)
