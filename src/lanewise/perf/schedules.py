"""Schedules of benchmarks: in which order a tool runs its copies, and what it counts.

A tool that issues copies one after another does not have them all in flight: copies of one stream run in order, one
into a GPU may wait for another into the same GPU, and a copy engine takes one at a time. The rate that such a tool
prints is total bytes over the time until the last copy has ended.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lanewise.errors import unknown_name
from lanewise.perf.duplex import Copier
from lanewise.perf.flow import Flow
from lanewise.perf.sharing import Shares, SolverFlow, finish_times, share
from lanewise.perf.staging import Opposite
from lanewise.perf.uncertainty import Bound

_SIZE = 2.0**28  # B; rates do not depend on it
_SEED = 1  # of orders that nobody knows; another one changes the rate of 100 rounds by less than 1 %
FULL = 0.97  # a resource used more than this all the time limits the flows, not their order


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a tool runs flows: every flow copies the same size in each of `rounds`, issued in the order of the flows.

    Copies of one flow run in order. With `in_order_from` so do all copies out of one source, with `in_order_into` all
    into one destination; copies that may run take turns on the engine of their `engine_at` end: the one that could
    begin first, or with `any_order` whichever, as one engine serves the queues of its streams. With `one_by_one` a copy
    begins when the one before has ended. A schedule of no rounds has all flows running all the time. `first_only`
    counts only the first flow: the others are there to disturb it.
    `opposite` says how copies of both directions of a pair are issued, `copied_by` what moves the data.
    """

    name: str
    what: str
    source: str
    rounds: int = 0
    in_order_from: bool = False
    in_order_into: bool = False
    engine_at: Literal["source", "destination"] | None = None
    any_order: bool = False
    one_by_one: bool = False
    first_only: bool = False
    opposite: Opposite = Opposite.AFTER
    copied_by: Copier = "engines"


TOGETHER = Schedule("together", "all flows run all the time", "")
# The rounds of the PyTorch scripts are those of github.com/voipmonitor/rtx6kpro, scripts/; a larger number changes the
# rate by less than 1 %.
SCHEDULES = {
    schedule.name: schedule
    for schedule in (
        TOGETHER,
        Schedule(
            "pytorch",
            "Tensor.copy_ between GPUs, a stream of the source for each flow: copies into one destination run in "
            "order, copies from one source take turns on its engine",
            "PyTorch, aten/src/ATen/native/cuda/Copy.cu: barrier with the destination's current stream",
            rounds=100, in_order_into=True, engine_at="source",
        ),
        Schedule(
            "null-stream",
            "peer copies on the default stream of each source: copies from one source run in order",
            "CUDA C++ programming guide, default stream",
            rounds=100, in_order_from=True,
        ),
        Schedule(
            "one-by-one",
            "each copy begins when the one before has ended: a program waits for it, or as Tensor.copy_ on the default "
            "streams of two GPUs it holds both streams, so that opposite copies take turns whatever joins the GPUs",
            "PyTorch, aten/src/ATen/native/cuda/Copy.cu: barriers with both current streams",
            rounds=100, one_by_one=True,
        ),
        Schedule(
            "p2pmark",
            "reads between GPUs, a stream of the GPU that reads for each: its streams take turns on its engine in no "
            "particular order",
            "github.com/lukealonso/p2pmark, p2pmark.cu, test of all GPUs at once: 100 rounds",
            rounds=100, engine_at="destination", any_order=True,
        ),
        Schedule(
            "p2pBandwidthLatencyTest",
            "all flows copy the same size at once; counted is all of it over the time until the last one ended",
            "CUDA samples, p2pBandwidthLatencyTest.cu, outputBidirectionalBandwidthMatrix",
            rounds=1, opposite=Opposite.SAMPLE,
        ),
        Schedule(
            "p2pBandwidthLatencyTest-cuda9",
            "as p2pBandwidthLatencyTest; both directions are issued copy by copy in turns",
            "CUDA samples until CUDA 9; github.com/uuudown/Tartan has one",
            rounds=1, opposite=Opposite.IN_TURNS,
        ),
        Schedule(
            "nvbandwidth",
            "the first flow is measured while the others run",
            "nvbandwidth, testcases_ce.cpp: the disturbing copy is twice as large",
            first_only=True,
        ),
        Schedule(
            "TransferBench",
            "as nvbandwidth, but kernels of a GPU send its data, and the CPU's cores store that of host memory",
            "ROCm/TransferBench, preset p2p with GPU executors GFX: each source sends",
            first_only=True, copied_by="cores",
        ),
    )
}  # fmt: skip


def schedule_named(name: str) -> Schedule:
    """The schedule of that name; UnknownName for another."""
    if name not in SCHEDULES:
        raise unknown_name("schedule", name, SCHEDULES)
    return SCHEDULES[name]


def share_in_order(
    schedule: Schedule,
    capacities: Sequence[float],
    flows: Sequence[Flow],
    solver_flows: Sequence[SolverFlow],
    end: Bound = "nominal",
) -> Shares:
    """As `share`, with the flows in the order of a schedule; rates and utilization are means until the last copy ends.

    What limits a flow is the resource of its own that is used most, None where that is used less than the flow's
    order allows.
    """
    if not schedule.rounds:
        return share(capacities, solver_flows, end)
    rate = _rate(schedule, capacities, flows, solver_flows)
    used = [0.0] * len(capacities)
    for flow in solver_flows:
        for resource, amount in flow.amounts:
            used[resource] += rate * amount / capacities[resource]
    busiest = [max((used[r], -r) for r, _ in flow.amounts) if flow.amounts else (0.0, 0) for flow in solver_flows]
    limits = tuple(-r if use > FULL else None for use, r in busiest)
    return Shares((rate,) * len(flows), limits, tuple(used))


def _rate(
    schedule: Schedule, capacities: Sequence[float], flows: Sequence[Flow], solver_flows: Sequence[SolverFlow]
) -> float:
    """The rate (B/s) of every flow: its bytes over the time until the last copy of all has ended."""
    index: dict[SolverFlow, int] = {}
    members = [index.setdefault(flow, len(index)) for flow in solver_flows]
    order = _order(schedule, flows)
    ends = finish_times(
        capacities, list(index), [members[number] for number in order], [_SIZE] * len(order),
        [0.0] * len(order), _waits(schedule, flows, order), _queues(schedule, flows, order),
    )  # fmt: skip
    return schedule.rounds * _SIZE / float(ends.max())


def _order(schedule: Schedule, flows: Sequence[Flow]) -> list[int]:
    """The flow of each copy in the order of issue, or in one in which an engine may take them up."""
    order = list(range(len(flows))) * schedule.rounds
    if schedule.any_order:
        random.Random(_SEED).shuffle(order)
    return order


def _queues(schedule: Schedule, flows: Sequence[Flow], order: Sequence[int]) -> list[int]:
    """The engine of each copy as a number; -1 where copies do not take turns, or `_waits` says in which order."""
    if schedule.engine_at is None or schedule.any_order:
        return [-1] * len(order)
    engines: dict[str, int] = {}
    numbers = [engines.setdefault(_engine(schedule, flow), len(engines)) for flow in flows]
    return [numbers[number] for number in order]


def _engine(schedule: Schedule, flow: Flow) -> str:
    return flow.src if schedule.engine_at == "source" else flow.dst


def _waits(schedule: Schedule, flows: Sequence[Flow], order: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of copies in that order: one, and an earlier one whose end it waits for."""
    latest: dict[tuple[str, ...], int] = {}
    waits = []
    for copy, number in enumerate(order):
        flow = flows[number]
        chains: list[tuple[str, ...]] = [("flow", str(number))]
        chains += [("from", flow.src)] if schedule.in_order_from else []
        chains += [("into", flow.dst)] if schedule.in_order_into else []
        chains += [("all",)] if schedule.one_by_one else []
        chains += [("engine", _engine(schedule, flow))] if schedule.any_order else []
        waits += [(copy, earlier) for earlier in sorted({latest[chain] for chain in chains if chain in latest})]
        latest |= dict.fromkeys(chains, copy)
    return waits
