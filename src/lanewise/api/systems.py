"""Systems: compose, draw, plan them; the routes of data, and how fast flows, transfers and pairs are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lanewise.api.loading import as_system, load_workload
from lanewise.errors import InputError, unknown_name

if TYPE_CHECKING:
    from pathlib import Path

    from lanewise.options.plan import PlanOptions
    from lanewise.perf.flow import Flow
    from lanewise.perf.matrix import RateMatrix
    from lanewise.perf.predict import Prediction
    from lanewise.perf.transfers import FinishedTransfer
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.pins import Pinning
    from lanewise.planning.place import Placement
    from lanewise.routes.matrix import ClassMatrix as ClassMatrix
    from lanewise.routes.matrix import Peers
    from lanewise.routes.model import Route
    from lanewise.topology.model import System


def attach(system: System | str | Path, device: str, host: str, at: str | None = None) -> System:
    """The system with `device` bound to `host`; with `at`, its cable moves below that switch or CPU first."""
    from lanewise.topology.compose import attach as bind

    return bind(as_system(system), device, host, at)


def detach(system: System | str | Path, device: str) -> System:
    """The system with `device` bound to no host; its cable stays."""
    from lanewise.topology.compose import detach as unbind

    return unbind(as_system(system), device)


def draw(system: System | str | Path, flows: str | Sequence[Flow] | None = None) -> str:
    """A system as SVG; with flows, their load on every link and the first six routes."""
    from lanewise.report.draw import draw as svg
    from lanewise.results.outline import outline

    loaded = as_system(system)
    if flows is None:
        return svg(outline(loaded))
    prediction = predict(loaded, flows)
    routes = [(flow.flow.name, flow.routes[0].nodes) for flow in prediction.rates[:6]]
    return svg(outline(loaded, prediction.loads, prediction.link_utilization, routes))


def route(system: System | str | Path, src: str, dst: str, p2p: bool = True) -> Route:
    """The route that data takes from `src` to `dst`; Unreachable or UnknownName if there is none."""
    from lanewise.routes.find import route as find

    return find(as_system(system), src, dst, p2p)


def all_routes(system: System | str | Path, src: str, dst: str) -> tuple[Route, ...]:
    """Every sensible route from `src` to `dst`, best first, each with its class and whether it is allowed."""
    from lanewise.routes.find import routes as find

    return find(as_system(system), src, dst)


def class_matrix(system: System | str | Path, names: Sequence[str] | None = None) -> ClassMatrix:
    """The class of every pair of GPUs and NICs, as nvidia-smi topo -m shows it."""
    from lanewise.routes.matrix import class_matrix as make

    return make(as_system(system), names)


def peers(system: System | str | Path) -> tuple[Peers, ...]:
    """Every pair of GPUs: whether the two can be peers, and if not, why."""
    from lanewise.routes.matrix import peers as find

    return find(as_system(system))


def plan(
    systems: System | str | Path | Sequence[System | str | Path], options: PlanOptions | None = None, **keywords: Any
) -> Placement | Ranking | Pinning:
    """Rank several systems, place devices of one, or pin its cards (pin="nic"); keywords are those of PlanOptions.

    lanewise.plan("composable-server-two-hosts", services=["resnet50 170000 QPS each 43367 QPS"]); InputError for what
    cannot be planned.
    """
    from lanewise.options.plan import PlanOptions
    from lanewise.planning.answer import answer

    several = systems if isinstance(systems, Sequence) and not isinstance(systems, str) else [systems]
    return answer([as_system(system) for system in several], options or PlanOptions(**keywords), load_workload)


def predict(system: System | str | Path, flows: str | Sequence[Flow], p2p: bool = True) -> Prediction:
    """The rates that flows reach together: 'gpu0->gpu4, host0->gpu1' or Flow objects; InputError for finite ones.

    `p2p` is for flows given as a text; a Flow has its own.
    """
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
    return solve(as_system(system), parsed)


def finish_times(
    system: System | str | Path, flows: str | Sequence[Flow], p2p: bool = True
) -> tuple[FinishedTransfer, ...]:
    """When each of the finite transfers ends: 'gpu0->gpu1 1 GiB, gpu2->gpu3 4 GiB @10 ms'; `p2p` as for `predict`."""
    from lanewise.perf.transfers import finish_times as solve

    return solve(as_system(system), _flows(flows, p2p))


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
        return bandwidth_matrix(as_system(system), names, both_ways, p2p)
    if metric == "latency" and both_ways:
        raise InputError("a latency is one way: both ways have no sum", hint="leave both ways out, or ask for goodput")
    if metric == "latency":
        return latency_matrix(as_system(system), names, p2p)
    raise unknown_name("metric", metric, ("goodput", "latency"))


def _flows(flows: str | Sequence[Flow], p2p: bool) -> Sequence[Flow]:
    from lanewise.perf.flow import parse_flows

    if isinstance(flows, str):
        return parse_flows(flows, p2p)
    if not p2p:
        raise InputError("p2p=False has no effect on Flow objects", hint="give each its own: Flow(src, dst, p2p=False)")
    return flows
