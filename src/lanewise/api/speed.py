"""How fast: flows, transfers, matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.api.loading import system_of
from lanewise.errors import InputError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lanewise.perf.flow import Flow
    from lanewise.perf.matrix import RateMatrix
    from lanewise.perf.predict import Prediction
    from lanewise.perf.transfers import FinishedTransfer
    from lanewise.topology.model import System


def predict(system: System | str | Path, flows: str | Sequence[Flow], p2p: bool = True) -> Prediction:
    """The rates that flows reach together: 'gpu0->gpu4, host0->gpu1' or Flow objects; InputError for finite ones."""
    from lanewise.perf.predict import predict as solve

    parsed = _flows(flows, p2p)
    for flow in parsed:
        if flow.size is not None:
            raise InputError(
                f"{flow.name} has a size, and rates are those of flows without an end",
                hint="leave the size out, or ask finish_times when each transfer ends",
            )
        if flow.start:
            raise InputError(
                f"{flow.name} has a start but no size",
                hint="leave the start out, or give every flow a size: gpu0->gpu1 1 GiB @10 ms",
            )
    return solve(system_of(system), parsed)


def finish_times(
    system: System | str | Path, flows: str | Sequence[Flow], p2p: bool = True
) -> tuple[FinishedTransfer, ...]:
    """When each of the finite transfers ends: 'gpu0->gpu1 1 GiB, gpu2->gpu3 4 GiB @10 ms'."""
    from lanewise.perf.transfers import finish_times as solve

    return solve(system_of(system), _flows(flows, p2p))


def matrix(
    system: System | str | Path,
    names: Sequence[str] | None = None,
    metric: str = "goodput",
    both_ways: bool = False,
    p2p: bool = True,
) -> RateMatrix:
    """A matrix over all pairs, each alone: metric goodput (B/s) or latency (s); UnknownName for another metric."""
    from lanewise.perf.matrix import bandwidth_matrix, latency_matrix

    if metric == "goodput":
        return bandwidth_matrix(system_of(system), names, both_ways, p2p)
    if metric == "latency" and both_ways:
        raise InputError("a latency is one way: both ways have no sum", hint="leave both ways out, or ask for goodput")
    if metric == "latency":
        return latency_matrix(system_of(system), names, p2p)
    raise unknown_name("metric", metric, ("goodput", "latency"))


def _flows(flows: str | Sequence[Flow], p2p: bool) -> Sequence[Flow]:
    from lanewise.perf.flow import parse_flows

    return parse_flows(flows, p2p) if isinstance(flows, str) else flows
