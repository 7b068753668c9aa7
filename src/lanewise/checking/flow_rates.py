"""Predicted rates of flows as what a measured row should show: their basis, and the interval that is fine."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise.checking.expectation import Expectation, expectation
from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.tolerances import TOLERANCES
from lanewise.perf.copy_engines import ENGINE_DOUBT
from lanewise.results.observation import Observation
from lanewise.routes.model import LinkDirection, Route, Via
from lanewise.topology.model import Kind, LinkKind, System

if TYPE_CHECKING:
    from lanewise.perf.predict import FlowRate

# What copies reach of a link where no figure of their engine is known (perf.copy_engines.ENGINE_DOUBT).
ENGINE_SHARE = 0.84
# Medians of repeated runs lie within 1 to 2 % of each other (H200); forums post single ones.
NOISE = 0.03
# Copies through host memory may be this much below their interval: nobody says on which node the driver's buffer is. Of
# 108 rates of healthy machines none is below; the nearest is a P100's, 9 % above.
STAGED_NOISE = 0.10
# What a root complex forwards between peers was measured on few hosts: others give from 0.82 of it.
ROOT_COMPLEX_SHARE = 0.9
# Headers of 24 B a packet of 512 B: no copy gets more of a link.
WIRE_SHARE = 0.955


def fine_interval(rate: FlowRate) -> tuple[float, float]:
    """The rates in B/s that a measurement of a predicted flow may show and be judged fine."""
    relative = TOLERANCES[_basis(rate)].relative
    low, high = _interval(rate, relative)
    return low * (1 - relative), high * (1 + relative)


def _interval(rate: FlowRate, relative: float) -> tuple[float, float]:
    """The ends that a tolerance of `relative` widens to what is fine: the prediction's own interval and its noise, or
    the rate with that tolerance, whichever is wider.
    """
    # Of a link whose rate is stated outright no copy was measured either.
    no_engine = rate.doubt == ENGINE_DOUBT or "stated rate" in rate.limit
    share = ENGINE_SHARE if no_engine else 1.0
    forwarded = any(_between_root_ports(route) for route in rate.routes)
    share = min(share, ROOT_COMPLEX_SHARE) if forwarded else share
    noise = STAGED_NOISE if _staged(rate) else 1 - ROOT_COMPLEX_SHARE if forwarded else NOISE
    low = min(rate.rate * share, rate.low * (1 - noise) / (1 - relative))
    return low, max(rate.rate, rate.high * (1 + NOISE) / (1 + relative))


def basis_together(rates: tuple[FlowRate, ...]) -> str:
    """The basis that takes the place of a flow's own where others run at the same time; empty for a lone flow."""
    pairs = {frozenset((rate.flow.src, rate.flow.dst)) for rate in rates}
    return "" if len(rates) < 2 else "both ways" if len(pairs) == 1 else "several flows"


def of_rate(rate: FlowRate, row: Observation, together: str = "") -> Expectation:
    """What a row of one flow should show; `together` is the basis where others run at the same time."""
    basis = _basis(rate)
    # perftest sends nothing but payload; NFS and libraries have messages and copies of their own on the line.
    if basis != "staged" and row.how.get("tool") != "perftest" and _over(rate, LinkKind.NETWORK):
        basis = "line"
    elif basis not in ("staged", "planning"):
        basis = {"SM": "SM copy", "CPU": "CPU copy"}.get(row.how.get("engine", ""), together or basis)
    interval = _interval(rate, TOLERANCES[basis].relative)
    return expectation(
        row, basis=basis, value=rate.rate, interval=interval, limit=rate.limit, rests_on=rate.rests_on,
        note=rate.doubt,
    )  # fmt: skip


def up_to_the_wire(expectation: Expectation, rates: tuple[FlowRate, ...]) -> Expectation:
    """A lone copy, or the sum of both ways of a pair, is too fast only above what the wires carry.

    Other GPUs may be better than those measured.
    """
    expected, tolerance = expectation.expected, expectation.tolerance
    wires = [_pcie_wires(rate) for rate in rates]
    if not all(wires) or tolerance is None or expected.high is None:
        return expectation
    # Both ways of a copy through host memory may cross one wire in the same direction: it carries their sum.
    shared = [rate for direction, rate in wires[0].items() if all(direction in other for other in wires)]
    carried = min([*shared, math.fsum(min(each.values()) for each in wires)])
    highest = max(expected.high, WIRE_SHARE * carried / (1 + tolerance.relative))
    return replace(expectation, expected=replace(expected, high=highest))


def _pcie_wires(rate: FlowRate) -> dict[LinkDirection, float]:
    """What each PCIe link that a flow crosses carries in its direction, B/s; links of unknown width are left out."""
    hops = [hop for route in rate.routes for hop in route.hops if hop.link.kind is LinkKind.PCIE]
    return {
        hop.direction: hop.link.rate or raw_rate(hop.link.gen or 0, hop.link.lanes or 0)
        for hop in hops if hop.link.rate or hop.link.lanes
    }  # fmt: skip


def of_all_rates(rates: tuple[FlowRate, ...], row: Observation) -> Expectation:
    """What the sum of several flows should show."""
    parts = [of_rate(rate, row, basis_together(rates)) for rate in rates]
    order = (
        "physics", "calibrated", "carried over", "typical", "fitted", "SM copy", "both ways", "several flows",
        "CPU copy", "planning", "line", "staged",
    )  # fmt: skip
    bases = [part.tolerance.basis for part in parts if part.tolerance is not None]
    expected = [part.expected for part in parts]
    low, high = math.fsum(part.low or 0.0 for part in expected), math.fsum(part.high or 0.0 for part in expected)
    return expectation(
        row, basis=max(bases, key=order.index), value=math.fsum(rate.rate for rate in rates), interval=(low, high),
        limit=" and ".join(dict.fromkeys(part.limit for part in expected)),
        rests_on=tuple(dict.fromkeys(text for part in expected for text in part.rests_on)),
        note="; ".join(dict.fromkeys(part.note for part in expected if part.note)),
    )  # fmt: skip


def _basis(rate: FlowRate) -> str:
    """The row of the table of tolerances that a prediction belongs to."""
    if _staged(rate):
        return "staged"
    carried = any("carried over" in text or "scaled by" in text for text in rate.rests_on)
    return "carried over" if carried and rate.basis == "calibrated" else rate.basis


def _over(rate: FlowRate, kind: LinkKind) -> bool:
    return any(hop.link.kind is kind for route in rate.routes for hop in route.hops)


def crosses_to_far_memory(system: System, rate: FlowRate) -> bool:
    """Whether a flow goes between one GPU and host memory behind a socket link."""
    gpus = {end for end in (rate.flow.src, rate.flow.dst) if end in system.of_kind(Kind.GPU)}
    return len(gpus) == 1 and not _staged(rate) and _over(rate, LinkKind.SOCKET)


def _between_root_ports(route: Route) -> bool:
    """Whether a route goes up from one device to a root complex and down to another, or over sockets (POWER9)."""
    pcie = route.via is Via.PCIE and route.cls in ("PHB", "NODE", "SYS")
    through = route.hops and (pcie or any(hop.link.kind is LinkKind.SOCKET for hop in route.hops))
    return bool(through) and not route.hops[0].down and route.hops[-1].down


def _staged(rate: FlowRate) -> bool:
    return any(route.via is Via.STAGED for route in rate.routes)
