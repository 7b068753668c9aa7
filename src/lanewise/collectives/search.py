"""How many channels of which rate NCCL's search makes of a topology (NCCL 2.30.7, src/graph/search.cc).

The search tries rates from high to low, keeps the most channels x rate that fit, doubles the channels at half the rate
where a channel is fast, and for trees and switches raises the rate within nodes afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.collectives.constants import channel_speeds
from lanewise.collectives.fabric import FabricKind, LocalFabric, NodeNetwork
from lanewise.collectives.model import Algorithm
from lanewise.collectives.ranks import RankSet

_DUPLICATED, _DUPLICATED_HOPPER, _FEW = 25e9, 50e9, 4
_ROUNDING = 1e-9
_SLOWEST_TRIED = 0.49  # of the first rate that fits
# The library runs rings and trees on twice the channels that the search finds (src/graph/connect.cc).
_CONNECTED, _MOST_CHANNELS = 2, 64
_LEAST_SWITCHED = 3  # ranks: the log of two H200 has 0 NVLS channels
_ALONE = 5000e9  # what NCCL plans with within a node of one GPU (LOC_BW)


@dataclass(frozen=True, slots=True)
class ChannelPlan:
    """Channels of one pattern with their planned rate (B/s) within a node and between nodes."""

    channels: int
    within: float
    between: float

    @property
    def connected(self) -> int:
        """The channels that calls can run on, as the library's log counts them."""
        return min(_CONNECTED * self.channels, _MOST_CHANNELS)


def channel_plan(
    algorithm: Algorithm, ranks: RankSet, fabric: LocalFabric, network: NodeNetwork | None
) -> ChannelPlan | None:
    """The plan for one algorithm; None where the fabric has no such pattern."""
    several = network is not None
    speeds = channel_speeds(ranks.capability, several)
    total = _total(fabric)
    if algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        if fabric.kind is not FabricKind.NVSWITCH or ranks.capability < 90 or ranks.least < _LEAST_SWITCHED:
            return None
        return _switch_plan(ranks, speeds, total, network)
    if network is None:
        return _duplicated(_most(speeds, total, total), ranks.capability)
    card = network.rate / network.cards
    most = [(min(network.cards, math.floor(total / speed + _ROUNDING)), speed)
            for speed in speeds if speed <= card * (1 + 0.02)]  # fmt: skip
    channels, speed = max(most or [(1, speeds[-1])], key=lambda pair: (pair[0] * pair[1], pair[1]))
    channels = max(channels, 1)
    plan = _duplicated(ChannelPlan(channels, speed, speed), ranks.capability)
    if algorithm is Algorithm.RING:
        return plan
    if fabric.kind is FabricKind.NONE:
        return ChannelPlan(plan.channels, 2 * plan.between, plan.between)
    faster = [rate for rate in speeds if rate < 2 * plan.between and rate * plan.channels <= total]
    return ChannelPlan(plan.channels, max([plan.within, *faster]), plan.between)


def _total(fabric: LocalFabric) -> float:
    """What NCCL plans a rank's links with: all its NVLinks, or its slowest step over PCIe."""
    if fabric.kind is FabricKind.NONE:
        return _ALONE
    return fabric.planning if fabric.kind is not FabricKind.PCIE else fabric.ring


def _most(speeds: list[float], total: float, fastest: float) -> ChannelPlan:
    fitting = [(math.floor(total / speed + _ROUNDING), speed) for speed in speeds if speed <= fastest]
    tried = [pair for pair in fitting if pair[1] > _SLOWEST_TRIED * fitting[0][1]]
    channels, speed = max(tried or [(1, speeds[-1])], key=lambda pair: (pair[0] * pair[1], pair[1]))
    return ChannelPlan(max(channels, 1), speed, speed)


def _duplicated(plan: ChannelPlan, capability: int) -> ChannelPlan:
    if plan.within < _DUPLICATED or (capability > 80 and plan.within < _DUPLICATED_HOPPER and plan.channels > _FEW):
        return plan
    return ChannelPlan(2 * plan.channels, plan.within / 2, plan.between / 2)


def _switch_plan(ranks: RankSet, speeds: list[float], total: float, network: NodeNetwork | None) -> ChannelPlan | None:
    """One channel for each head: every rank, or between nodes every rank with a card."""
    heads = ranks.least if network is None else min(ranks.least, network.cards)
    fitting = [speed for speed in speeds if heads * speed <= total * (1 + _ROUNDING)]
    if heads < 2 or not fitting:
        return None
    within = max(fitting)
    if network is None:
        return ChannelPlan(heads, within, within)
    card = network.rate / heads
    between = [speed for speed in speeds if speed <= min(card * 1.02, 2 * within)]
    return ChannelPlan(heads, within, max(between)) if between else None
