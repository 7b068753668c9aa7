"""Which of the three answers the options of a plan call for; and plan files, which hold the options in YAML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from lanewise.errors import InputError, LanewiseError, error_location, unknown_name
from lanewise.options.option import words
from lanewise.options.plan import GOALS, PlanOptions
from lanewise.perf.flow import Flow, names_of, parse_flows
from lanewise.planning.layouts import Ranking, rank_layouts
from lanewise.planning.patterns import pattern, pattern_flows
from lanewise.planning.pins import Pinning, pin
from lanewise.planning.place import Placement, place, place_within_bounds
from lanewise.planning.positions import default_devices, movables
from lanewise.planning.question import Question
from lanewise.planning.score import Score, by_model
from lanewise.planning.search import SearchLimits
from lanewise.planning.work import Tenant, TenantGpus, Work, parse_service, tenant, unique_tenants
from lanewise.serving.load import ServiceLoad
from lanewise.serving.workload import Workload, workload
from lanewise.topology.model import Kind, System
from lanewise.yaml_loader import load
from lanewise.yaml_positions import YamlNode

_KEYS = ("lanewise", "plan", "services", "flows", "pattern", "by", "move", "hosts", "at", "slots", "p2p")
_SERVICE = ("workload", "qps", "host", "from", "each", "mode")
_EXAMPLE = "shop: {workload: resnet50, qps: 170000}"

# Work and score of each system, or why it cannot run the work, in their order.
LayoutScores: TypeAlias = Callable[
    [Sequence[System], PlanOptions, Sequence[Tenant]], Sequence[tuple[Work, Score] | LanewiseError]
]


def answer(
    systems: Sequence[System], options: PlanOptions, find: Callable[[str], Workload] = workload,
    scores: LayoutScores | None = None,
) -> Placement | Ranking | Pinning:  # fmt: skip
    """Pins for `pin`, a ranking of several systems, else a placement; InputError for what cannot be planned together.

    `find` gives the workload of a name; `scores` scores the systems of a ranking in place of this process.
    """
    _check(systems, options)
    limits = SearchLimits(candidates=options.candidates)
    if options.pin is not None:
        return pin(systems[0], limits)
    services = [parse_service(text, find) if isinstance(text, str) else text for text in options.services]
    tenants = unique_tenants(services)
    for system in systems:
        for service in tenants:
            _check_tenant(system, service)
    if len(systems) > 1:
        if scores is None:
            return rank_layouts(systems, lambda system: score_layout(system, options, tenants))
        answers = iter(scores(systems, options, tenants))
        return rank_layouts(systems, lambda _: _raised(next(answers)))
    system = systems[0]
    flows = _flows(system, options)
    names = names_of(options.move) if options.move is not None else _worth_moving(system, flows, tenants)
    at = names_of(options.at) if options.at is not None else []
    for port in (*names, *options.slots):
        system.device(port)
    movable = movables(system, names, options.hosts, at)
    question = Question(system, movable, tenants, flows, _goal(options), options.slots)
    return place_within_bounds(question, limits)


def score_layout(system: System, options: PlanOptions, tenants: Sequence[Tenant]) -> tuple[Work, Score]:
    """What a system does of the work if nothing moves; LanewiseError where it cannot."""
    work = _as_it_stands(system, options, tenants)
    return work, by_model(system, work)


def _raised(answer: tuple[Work, Score] | LanewiseError) -> tuple[Work, Score]:
    if isinstance(answer, LanewiseError):
        raise answer
    return answer


def read_plan(text: str, file: str, find: Callable[[str], Workload] = workload) -> PlanOptions:
    """The options that a plan file states; InputError with file and line for anything that is no plan.

    `find` gives the workload of a name.
    """
    root = load(text, file, "docs/guides/plan.md").root
    if root["lanewise"].value != 1:
        hint = f"start it with 'lanewise: 1', then services: {{{_EXAMPLE}}}"
        raise root.error("this is no plan file", hint)
    root.check_fields(_KEYS, "a plan")
    return PlanOptions(
        services=tuple(_service(entry, find) for entry in root["services"].members(_EXAMPLE).values()),
        flows=_text(root["flows"]),
        pattern=_text(root["pattern"]),
        by=root["by"].choice(GOALS) if root["by"].given else None,
        move=_text(root["move"]),
        hosts=words(_text(root["hosts"]) or ""),
        at=_text(root["at"]),
        slots={port: count.integer(0) for port, count in root["slots"].members("slots: {sw0: 4}").items()},
        p2p=root["p2p"].flag(True),
    )


def _service(node: YamlNode, find: Callable[[str], Workload]) -> Tenant:
    node.check_fields(_SERVICE, f"service {node.name}", needed=("workload", "qps"), hint=_EXAMPLE)
    with error_location(node.key_location):
        load = ServiceLoad(
            find(node["workload"].needed()),
            node["qps"].quantity("1/s"),
            gpus=(node["host"].needed(),) if node["host"].given else (),
            frontend=node["from"].needed() if node["from"].given else None,
        )
        rate = node["each"].quantity("1/s") if node["each"].given else None
        return tenant(load, rate, node["mode"].text("server"), node.key)


def _text(node: YamlNode) -> str | None:
    """A text, or a list of texts joined by commas; None if nothing is given."""
    if not isinstance(node.value, (str, list, type(None))):
        raise node.error(f"{node.name} must be a text or a list of texts", f"for example {node.key}: 'gpu[0-3]'")
    if isinstance(node.value, list):
        return ", ".join(entry.needed() for entry in node.items())
    return node.value


def _check(systems: Sequence[System], options: PlanOptions) -> None:
    works = {"services": options.services, "flows": options.flows, "a pattern": options.pattern, "pins": options.pin}
    questions = [name for name, given in works.items() if given]
    if not questions:
        raise InputError(
            "nothing to plan for", hint="give --service 'resnet50 170000 QPS', --flows, --pattern scatter, or --pin nic"
        )
    if ("pins" in questions and len(questions) > 1) or {"flows", "a pattern"} <= set(questions):
        raise InputError(f"{' and '.join(questions)} cannot be planned together", hint="plan one after the other")
    if len(systems) > 1 and (options.pin or options.move or options.at or options.hosts or options.slots):
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


def _flows(system: System, options: PlanOptions) -> tuple[Flow, ...]:
    if options.pattern is not None:
        return pattern_flows(system, options.pattern, options.p2p)
    flows = tuple(parse_flows(options.flows, options.p2p) if isinstance(options.flows, str) else options.flows or ())
    for flow in flows:
        if flow.size is not None or flow.start or flow.after:
            raise InputError(f"{flow.name} has a size or a start; a plan is for flows without an end",
                             hint="leave them out, or ask lanewise predict when each ends")  # fmt: skip
    return flows


def _goal(options: PlanOptions) -> str:
    if options.by is not None:
        return options.by
    return pattern(options.pattern)[0].by if options.pattern is not None else "total"


def _worth_moving(system: System, flows: Sequence[Flow], tenants: Sequence[Tenant]) -> list[str]:
    """Where users name none: GPUs that another host can hold; without services only those that flows name."""
    ends = {end for flow in flows for end in (flow.src, flow.dst)}
    return [name for name in default_devices(system) if tenants or name in ends]


def _as_it_stands(system: System, options: PlanOptions, tenants: Sequence[Tenant]) -> Work:
    """The work of a system in which nothing moves; services get the GPUs that suit them best."""
    flows = _flows(system, options)
    if not tenants:
        return Work(flows, by=_goal(options))
    found = place(Question(system, (), tuple(tenants), flows, _goal(options)))
    return Work(flows, tuple(TenantGpus(each, found.best.serving[each.name]) for each in tenants), _goal(options))
