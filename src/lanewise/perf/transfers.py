"""Finite transfers: who finishes when, with every link shared by max-min, in turns, at every moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.errors import InputError
from lanewise.perf.concurrent_flows import flow_demands, solver_input
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import FlowDemand
from lanewise.perf.latency import latency
from lanewise.perf.predict import predict
from lanewise.perf.sharing import SolverFlow
from lanewise.perf.sharing import finish_times as solve
from lanewise.routes.model import Route
from lanewise.topology.model import System


@dataclass(frozen=True, slots=True)
class FinishedTransfer:
    """One transfer: from `start` (of one after others: when it could begin) to `finish` in s, so at `rate` on average.

    Of that `delay` s passes before data flows: the API's time for a small copy where it is known, else the wire's
    alone. `limit`, `basis` and `rests_on` are those while all transfers run together; `routes` are the ones it takes.
    `why_unknown` is that of FlowRate: the times are then those of what such drives typically do.
    """

    flow: Flow
    start: float
    finish: float
    delay: float
    limit: str
    basis: str
    rests_on: tuple[str, ...]
    routes: tuple[Route, ...]
    why_unknown: str = ""

    @property
    def rate(self) -> float:
        """Average goodput in B/s; zero for an empty transfer."""
        took = self.finish - self.start
        return (self.flow.size or 0.0) / took if took > 0 else 0.0


def finish_times(system: System, flows: Sequence[Flow]) -> tuple[FinishedTransfer, ...]:
    """When each of `flows` ends; InputError if one has no size, or is after a label that no other flow has."""
    endless = next((flow for flow in flows if flow.size is None), None)
    if endless is not None:
        raise InputError(f"{endless.name} has no size, so it never ends", hint=f"write '{endless.name} 1 GiB'")
    repeated = next((flow for flow in flows if flow.every), None)
    if repeated is not None:
        raise InputError(f"{repeated.name} repeats, so it never ends", hint="leave 'every' to background traffic")
    demands = flow_demands(system, flows)
    resources, solver_flows = solver_input(demands)
    # Equal flows are given to the solver once: its cost depends on how many differ.
    index: dict[SolverFlow, int] = {}
    members = [index.setdefault(flow, len(index)) for flow in solver_flows]
    delays = [_delay(system, demand) for demand in demands]
    starts = [flow.start + delay for flow, delay in zip(flows, delays, strict=True)]
    sizes = [flow.size or 0.0 for flow in flows]
    waits = _waits(flows)
    ends = solve([resource.capacity for resource in resources], list(index), members, sizes, starts, waits).tolist()
    begins = [flow.start for flow in flows]
    for i, awaited in waits:
        begins[i] = max(begins[i], ends[awaited] + flows[i].start)
    together = predict(system, flows).rates
    return tuple(
        FinishedTransfer(flow, begin, end, delay, rate.limit, rate.basis, rate.rests_on, rate.routes, rate.why_unknown)
        for flow, begin, end, delay, rate in zip(flows, begins, ends, delays, together, strict=True)
    )


def _waits(flows: Sequence[Flow]) -> list[tuple[int, int]]:
    """Pairs of indices: a flow, and one whose end it waits for."""
    labelled: dict[str, list[int]] = defaultdict(list)
    for i, flow in enumerate(flows):
        if flow.label:
            labelled[flow.label].append(i)
    pairs = []
    for i, flow in enumerate(flows):
        for label in flow.after:
            awaited = [j for j in labelled.get(label, ()) if j != i]
            if not awaited:
                raise InputError(f"{flow.name} is after '{label}', and no other flow has that label",
                                 hint=f"give the flow that it waits for the label '{label}'")  # fmt: skip
            pairs += [(i, j) for j in awaited]
    return pairs


def _delay(system: System, demand: FlowDemand) -> float:
    """What passes before the first byte: the latency of a small copy over the flow's longest route."""
    latencies = [latency(system, route.src, route.dst, demand.flow.p2p) for route in demand.routes]
    return max(cell.api if cell.api is not None else cell.wire for cell in latencies)
