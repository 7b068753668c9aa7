"""Predicts the rates of concurrent flows over a system, each with its limit and its sources."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lanewise.errors import Unreachable
from lanewise.perf.flow import Flow
from lanewise.perf.plans import Planned, plan_all, staging_mode
from lanewise.perf.resources import Resource
from lanewise.perf.sharing import FlowClass, Shares, share
from lanewise.routes.model import Route
from lanewise.topology.model import System


@dataclass(frozen=True, slots=True)
class FlowRate:
    """One flow's predicted goodput in B/s, with its limit and the sources of that limit.

    `low` and `high` bound it where the prediction is an interval; `raw` is the largest rate in B/s that it puts
    on any wire it crosses; `doubt` is what a reader must know before trusting it.
    """

    flow: Flow
    routes: tuple[Route, ...]
    rate: float
    limit: str
    basis: str
    rests_on: tuple[str, ...]
    low: float
    high: float
    raw: float
    doubt: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """All flows together: rates, the use (0..1) of each shared resource, and goodput and raw B/s by link direction."""

    system: System
    flows: tuple[FlowRate, ...]
    use: Mapping[str, float]
    loads: Mapping[tuple[str, str], float]
    raw: Mapping[tuple[str, str], float]
    link_use: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def __repr__(self) -> str:
        flows = ", ".join(f"{flow.flow.name} {flow.rate / 1e9:.4g} GB/s" for flow in self.flows)
        return f"<Prediction on {self.system.name}: {flows}>"

    @property
    def total(self) -> float:
        """Sum of all flows' goodput in B/s."""
        return sum(flow.rate for flow in self.flows)


def predict(system: System, flows: Sequence[Flow]) -> Prediction:
    """The rates that `flows` reach together; Unreachable or UnknownName if one of them cannot run."""
    planned = plan_all(system, flows)
    resources, taken = compete(planned)
    solved = [_solve(planned, resources, taken, [staging_mode(item, planned) for item in planned])]
    if any(item.staging for item in planned):
        solved += [_solve(planned, resources, taken, [how] * len(planned)) for how in ("in_turn", "overlapped")]
    rates = [_flow_rate(item, i, solved, resources) for i, item in enumerate(planned)]
    return Prediction(
        system=system,
        flows=tuple(rates),
        use={resource.name: use for resource, use in zip(resources, solved[0].use, strict=True)},
        **_on_links(planned, rates, resources, solved[0]),
    )


def compete(planned: Sequence[Planned]) -> tuple[list[Resource], list[tuple[tuple[int, float], ...]]]:
    """All resources that flows compete for, each once, and for each flow (index, amount) of those it takes."""
    index: dict[tuple[str, ...], int] = {}
    resources: list[Resource] = []
    taken = []
    for item in planned:
        for use in item.uses:
            if use.resource.key not in index:
                index[use.resource.key] = len(resources)
                resources.append(use.resource)
        taken.append(tuple((index[use.resource.key], use.amount) for use in item.uses))
    return resources, taken


def _solve(
    planned: Sequence[Planned],
    resources: Sequence[Resource],
    taken: Sequence[tuple[tuple[int, float], ...]],
    modes: Sequence[str],
) -> Shares:
    classes = [
        FlowClass(uses, item.flow.weight, item.cap(how)) for item, uses, how in zip(planned, taken, modes, strict=True)
    ]
    _check_bounded(planned, classes)
    return share([resource.capacity for resource in resources], classes)


def _check_bounded(planned: Sequence[Planned], classes: Sequence[FlowClass]) -> None:
    for item, flow_class in zip(planned, classes, strict=True):
        if not flow_class.uses and math.isinf(flow_class.cap):
            raise Unreachable(
                f"nothing is known that would limit {item.flow.name}",
                hint="name the parts of its devices, or the speed of its links, in the description",
            )


def _flow_rate(item: Planned, i: int, solved: Sequence[Shares], resources: Sequence[Resource]) -> FlowRate:
    rate = solved[0].rates[i]
    possible = [shares.rates[i] for shares in solved]
    wires = [use.amount for use in item.uses if use.resource.key[0] == "link"]
    limit, basis, rests_on, doubt = _limit(item, solved[0].limits[i], resources)
    return FlowRate(
        flow=item.flow, routes=item.routes, rate=rate, limit=limit, basis=basis, rests_on=(rests_on,), doubt=doubt,
        low=min(possible), high=max(possible), raw=rate * max(wires, default=1.0),
    )  # fmt: skip


def _limit(item: Planned, index: int | None, resources: Sequence[Resource]) -> tuple[str, str, str, str]:
    """Name, basis, source and doubt of what froze a flow: a resource, its staging, or its own cap."""
    if index is not None:
        resource = resources[index]
        on_wire = resource.key[0] == "link" and resource.basis == "physics"
        doubt = resource.doubt or (item.doubt if on_wire else "")
        return resource.name, resource.basis, resource.rests_on, doubt
    staging = item.staging
    if staging is not None and item.flow.cap > staging.rate("overlapped"):
        return staging.name, staging.basis, staging.rests_on, ""
    return item.flow.cap_name or "its own cap", item.flow.cap_basis, item.flow.cap_rests_on, ""


def _on_links(
    planned: Sequence[Planned], rates: Sequence[FlowRate], resources: Sequence[Resource], shares: Shares
) -> dict[str, dict[tuple[str, str], float]]:
    loads: dict[tuple[str, str], float] = defaultdict(float)
    raw: dict[tuple[str, str], float] = defaultdict(float)
    for item, flow in zip(planned, rates, strict=True):
        for route, part in zip(item.routes, item.shares, strict=True):
            for hop in route.hops:
                loads[hop.start, hop.end] += flow.rate * part
        for use in item.uses:
            if use.resource.key[0] == "link":
                raw[use.resource.key[1], use.resource.key[2]] += flow.rate * use.amount
    used = {
        (resource.key[1], resource.key[2]): use
        for resource, use in zip(resources, shares.use, strict=True)
        if resource.key[0] == "link"
    }
    return {"loads": dict(loads), "raw": dict(raw), "link_use": used}
