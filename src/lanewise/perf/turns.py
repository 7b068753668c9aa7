"""A GPU behind NVSwitches sends to one GPU at a time, as far as copy engines copy: its flows take turns.

Two flows out of one GPU never load a port at the same time. A flow of another GPU to one of their destinations shares
that port only while it is its turn, and then the turn lasts longer: of three equal flows a->b, a->c and d->b over links
of rate C, those of a get C/3 each and d's 2C/3, where flows that run all the time get C/2. Where several GPUs take
turns it depends on the phases whether they meet: the interval reaches from always to never.

Source: sets of flows on three machines with four H200, writes and reads (decision 48). Kernels do not take turns, nor
do GPUs with links of their own for every pair (GH200 in fours, Instinct).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lanewise.perf.flow_demand import FlowDemand
from lanewise.perf.sharing import Shares, SolverFlow, finish_times
from lanewise.routes.model import Via
from lanewise.topology.model import Kind, System

SOURCE = "copies out of a GPU behind NVSwitches take turns (measured on machines with four H200)"
ALONE = ""  # of a flow that takes no turns
_ROUNDS, _MOST_COPIES = 60, 6000  # copies of each flow, fewer of many; more change a rate by less than 1 %
_FIRST = 4  # whose order the starts decide
_MOST_FLOWS = 500  # of which 12 copies each are left
_SAME = 0.02  # what the start of the copies changes
_APART = 0.6180339887  # the golden ratio's fraction spreads the starts


def senders_of(system: System, demands: Sequence[FlowDemand]) -> tuple[str, ...]:
    """The GPU that sends each flow, if it sends to another GPU too over the same links; else ALONE.

    A flow with a cap or a weight takes no turns: its program pauses, or decides how often each copy comes.
    """
    senders = [_sender(system, demand) for demand in demands]
    destinations: dict[str, set[str]] = defaultdict(set)
    for sender, demand in zip(senders, demands, strict=True):
        destinations[sender].add(demand.routes[0].dst)
    return tuple(sender if len(destinations[sender]) > 1 else ALONE for sender in senders)


def _sender(system: System, demand: FlowDemand) -> str:
    route, flow = demand.routes[0], demand.flow
    own_rate = flow.cap < math.inf or flow.weight != 1
    if route.via is not Via.NVLINK or flow.sm or own_rate or not route.hops:
        return ALONE
    return route.src if system.device(route.hops[0].end).kind is Kind.NVSWITCH else ALONE


def in_turns(
    together: Shares,
    capacities: Sequence[float],
    flows: Sequence[SolverFlow],
    senders: Sequence[str],
    end: Literal["", "low", "high"] = "",
) -> Shares:
    """The rates of flows that got those of `together` as long as flows of one of `senders` did not take turns.

    Where several take turns, they always meet at the low end of the interval, and never at the high one. Limits are
    None where no resource of the flow is full any more: it waits for its turn.
    """
    several = len(set(senders) - {ALONE}) > 1
    if not any(senders) or len(flows) > _MOST_FLOWS or (several and end == "high"):
        return together
    rates = _rates(together, capacities, flows, senders, 0.0 if several and end == "low" else _APART)
    if all(abs(rate / before - 1) < _SAME for rate, before in zip(rates, together.rates, strict=True)):
        return together
    used = [0.0] * len(capacities)
    for rate, flow in zip(rates, flows, strict=True):
        for resource, amount in flow.amounts:
            used[resource] += rate * amount / capacities[resource]
    limits = tuple(
        None if limit is None or (sender and rate < before and used[limit] < 1 - _SAME) else limit
        for limit, sender, rate, before in zip(together.limits, senders, rates, together.rates, strict=True)
    )
    return Shares(rates, limits, tuple(min(each, 1.0) for each in used))


def _rates(
    together: Shares,
    capacities: Sequence[float],
    flows: Sequence[SolverFlow],
    senders: Sequence[str],
    apart: float,
) -> tuple[float, ...]:
    """Bytes over time from the end of each flow's first copies to its last one before any flow had no more."""
    count = len(flows)
    rounds = min(_ROUNDS, _MOST_COPIES // count)
    sizes = _sizes(together.rates, senders)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(filter(None, senders)))}
    queues = np.tile([numbers.get(sender, -1) for sender in senders], rounds)
    starts = np.zeros(count * rounds)
    starts[:count] = np.arange(count) * apart % 1.0
    waits = [(copy, copy - count) for copy in range(count, count * rounds)]
    ends = finish_times(
        capacities, flows, np.tile(np.arange(count), rounds), np.tile(sizes, rounds), starts, waits, queues
    ).reshape(rounds, count)
    whole = (ends <= ends[-1].min()).sum(axis=0)
    if whole.min() <= _FIRST:
        return together.rates
    last = ends[whole - 1, np.arange(count)]
    return tuple(float(rate) for rate in (whole - _FIRST) * sizes / (last - ends[_FIRST - 1]))


def _sizes(rates: Sequence[float], senders: Sequence[str]) -> NDArray[np.float64]:
    """Bytes of a copy: a second's worth, of flows of one sender the same."""
    of_sender: dict[str, list[float]] = defaultdict(list)
    for sender, rate in zip(senders, rates, strict=True):
        of_sender[sender].append(rate)
    return np.array([fmean(of_sender[sender]) if sender else rate for sender, rate in zip(senders, rates, strict=True)])
