"""What a user asks of planning, in the words of the command line, and which of the three answers it calls for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lanewise.errors import InputError, unknown_name
from lanewise.perf.flow import Flow, names_of, parse_flows
from lanewise.planning.bounds import place_within_bounds
from lanewise.planning.confirm import Confirm, by_simulation
from lanewise.planning.layouts import Ranking, rank_layouts
from lanewise.planning.patterns import pattern, pattern_flows
from lanewise.planning.pins import Pinning, pin
from lanewise.planning.place import Placement, place
from lanewise.planning.positions import default_devices, movables
from lanewise.planning.question import Question
from lanewise.planning.score import Evaluate, by_model
from lanewise.planning.search import SearchLimits
from lanewise.planning.work import Tenant, TenantGpus, Work, parse_service, unique_tenants
from lanewise.topology.model import Kind, System

GOALS = ("slowest", "total")


@dataclass(frozen=True, slots=True)
class Ask:
    """Services ('resnet50 170000 QPS' or Tenant), or flows or a pattern judged `by` slowest or total, or `pin` nic.

    `move` names the devices that may move ('gpu[0-3], ssd0'; None: those that another host can hold), `hosts` where to
    (None: all), `at` the switches and CPUs their cables may go to, `slots` how many of their cables a port takes.
    """

    services: Sequence[str | Tenant] = ()
    flows: str | Sequence[Flow] | None = None
    pattern: str | None = None
    by: str | None = None
    move: str | None = None
    hosts: Sequence[str] | None = None
    at: str | None = None
    slots: Mapping[str, int] = field(default_factory=dict)
    pin: str | None = None
    p2p: bool = True
    candidates: int = SearchLimits().candidates


def answer(
    systems: Sequence[System], ask: Ask, evaluate: Evaluate = by_model, confirm: Confirm = by_simulation
) -> Placement | Ranking | Pinning:
    """Pins for `pin`, a ranking of several systems, else a placement; InputError for what cannot be asked together."""
    _check(systems, ask)
    limits = SearchLimits(candidates=ask.candidates)
    if ask.pin is not None:
        return pin(systems[0], evaluate=evaluate, limits=limits)
    tenants = unique_tenants([parse_service(each) if isinstance(each, str) else each for each in ask.services])
    for system in systems:
        for tenant in tenants:
            _check_tenant(system, tenant)
    if len(systems) > 1:
        return rank_layouts(systems, lambda system: _as_it_stands(system, ask, tenants, evaluate), evaluate)
    system = systems[0]
    flows = _flows(system, ask)
    names = names_of(ask.move) if ask.move is not None else _worth_moving(system, flows, tenants)
    at = names_of(ask.at) if ask.at is not None else []
    for port in (*names, *ask.slots):
        system.device(port)
    question = Question(system, movables(system, names, ask.hosts, at), tenants, flows, _goal(ask), ask.slots)
    return place_within_bounds(question, evaluate, limits, confirm)


def _check(systems: Sequence[System], ask: Ask) -> None:
    asked = [
        name
        for name, given in (
            ("services", ask.services), ("flows", ask.flows), ("a pattern", ask.pattern), ("pins", ask.pin)
        )
        if given
    ]  # fmt: skip
    if not asked:
        raise InputError(
            "nothing to plan for", hint="give --service 'resnet50 170000 QPS', --flows, --pattern scatter, or --pin nic"
        )
    if ("pins" in asked and len(asked) > 1) or {"flows", "a pattern"} <= set(asked):
        raise InputError(f"{' and '.join(asked)} cannot be asked together", hint="ask one after the other")
    if ask.pin is not None and ask.pin != "nic":
        raise unknown_name("thing to pin", ask.pin, ("nic",))
    if ask.by is not None and ask.by not in GOALS:
        raise unknown_name("goal", ask.by, GOALS)
    if ask.candidates < 1:
        raise InputError(f"cannot judge {ask.candidates} candidates", hint="give 1 or more")
    if len(systems) > 1 and (ask.pin or ask.move or ask.at or ask.hosts or ask.slots):
        raise InputError("several systems are ranked as they stand", hint="give one system to move or pin its devices")
    if not systems:
        raise InputError("no system to plan for", hint="lanewise plan SYSTEM --pattern scatter")


def _check_tenant(system: System, tenant: Tenant) -> None:
    """UnknownName for a host or GPU of a tenant that the system does not have."""
    if tenant.load.frontend is not None and tenant.load.frontend not in system.hosts:
        raise unknown_name(f"host of {system.name}", tenant.load.frontend, system.hosts)
    known = (*system.hosts, *system.of_kind(Kind.GPU))
    for name in tenant.load.gpus:
        if name not in known:
            raise unknown_name(f"host or GPU of {system.name}", name, known)


def _flows(system: System, ask: Ask) -> tuple[Flow, ...]:
    if ask.pattern is not None:
        return pattern_flows(system, ask.pattern, ask.p2p)
    flows = tuple(parse_flows(ask.flows, ask.p2p) if isinstance(ask.flows, str) else ask.flows or ())
    for flow in flows:
        if flow.size is not None or flow.start:
            raise InputError(f"{flow.name} has a size or a start; a plan is for flows without an end",
                             hint="leave them out, or ask lanewise predict when each ends")  # fmt: skip
    return flows


def _goal(ask: Ask) -> str:
    if ask.by is not None:
        return ask.by
    return pattern(ask.pattern)[0].by if ask.pattern is not None else "total"


def _worth_moving(system: System, flows: Sequence[Flow], tenants: Sequence[Tenant]) -> list[str]:
    """Where users name none: GPUs that another host can hold; without services only those that flows name."""
    ends = {end for flow in flows for end in (flow.src, flow.dst)}
    return [name for name in default_devices(system) if tenants or name in ends]


def _as_it_stands(system: System, ask: Ask, tenants: Sequence[Tenant], evaluate: Evaluate) -> Work:
    """The work of a system in which nothing moves; services get the GPUs that suit them best."""
    flows = _flows(system, ask)
    if not tenants:
        return Work(flows, by=_goal(ask))
    found = place(Question(system, (), tuple(tenants), flows, _goal(ask)), evaluate)
    return Work(flows, tuple(TenantGpus(each, found.best.serving[each.name]) for each in tenants), _goal(ask))
