"""A GPU behind NVSwitches sends to one GPU at a time, as far as copy engines copy: its flows take turns.

Two flows out of one GPU never load a port at the same time. A flow of another GPU to one of their destinations shares
that port only while it is its turn, and then the turn lasts longer: of three equal flows a->b, a->c and d->b over links
of rate C, those of a get C/3 each and d's 2C/3, where flows that run all the time get C/2. Where several GPUs take
turns it depends on the phases whether they meet: the interval reaches from always to never.

Here is who takes turns; what follows for rates and times is in perf/sharing.py and native/sim.

Source: sets of flows on three machines with four H200, writes and reads (decision 48). Kernels do not take turns, nor
do GPUs with links of their own for every pair (GH200 in fours, Instinct).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from lanewise.perf.flow import Flow
from lanewise.routes.model import Route, Via
from lanewise.topology.model import Kind, System

SOURCE = "copies out of a GPU behind NVSwitches take turns (measured on machines with four H200)"
NO_TURNS = ""  # of a flow that runs all the time


def sender_of(system: System, flow: Flow, route: Route) -> str:
    """The GPU whose copies to several others take turns, if the flow is such a copy; else NO_TURNS.

    A flow with a cap or a weight takes no turns: its program pauses, or decides how often each copy comes.
    """
    own_rate = flow.cap < math.inf or flow.weight != 1
    if route.via is not Via.NVLINK or flow.sm or own_rate or not route.hops:
        return NO_TURNS
    return route.src if system.device(route.hops[0].end).kind is Kind.NVSWITCH else NO_TURNS


def with_others(senders: Sequence[str], destinations: Sequence[str]) -> list[str]:
    """The senders of flows, of those who send to one GPU only NO_TURNS: its copies share the port all the time."""
    destinations_of: dict[str, set[str]] = defaultdict(set)
    for sender, destination in zip(senders, destinations, strict=True):
        destinations_of[sender].add(destination)
    return [sender if len(destinations_of[sender]) > 1 else NO_TURNS for sender in senders]
