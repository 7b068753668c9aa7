"""Systems: compose, draw, plan them; the routes of data, and how fast flows, transfers and pairs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lanewise.api.loading import as_system, load_workload
from lanewise.errors import InputError, unknown_name

if TYPE_CHECKING:
    from pathlib import Path

    from lanewise.options.plan import PlanOptions
    from lanewise.perf.flow import Flow
    from lanewise.perf.matrix import RateMatrix
    from lanewise.perf.overview import PathOverview
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
    """The system with `device` bound to `host`. With `at`, its cable is first moved below that switch or CPU.

    Raises UnknownName for a host or device that does not exist, Contradiction for a device that is still bound or
    cannot be moved, and Unreachable if no link or partition joins it to the host.

    >>> system = lanewise.detach("composable-server-two-hosts", "gpu0")
    >>> lanewise.attach(system, "gpu0", "host1").device("gpu0").host
    'host1'
    """
    from lanewise.topology.compose import attach as bind

    return bind(as_system(system), device, host, at)


def detach(system: System | str | Path, device: str) -> System:
    """The system with `device` bound to no host; its cable stays where it is.

    Raises UnknownName for a device that does not exist and Contradiction for one that is bound to no host.

    >>> lanewise.detach("composable-server-two-hosts", "gpu0").device("gpu0").host is None
    True
    """
    from lanewise.topology.compose import detach as unbind

    return unbind(as_system(system), device)


def draw(system: System | str | Path, flows: str | Sequence[Flow] | None = None) -> str:
    """The system's topology as SVG text; with `flows`, each link shows its load and the first six routes are drawn.

    Raises what load_system raises, and what predict raises of the flows.

    >>> lanewise.draw("rack-16gpu", "gpu0->gpu4")[:4]
    '<svg'
    """
    from lanewise.report.draw import draw as svg
    from lanewise.report.paths import ROUTE_COLOURS
    from lanewise.results.outline import outline

    loaded = as_system(system)
    if flows is None:
        return svg(outline(loaded))
    prediction = predict(loaded, flows)
    routes = [(flow.flow.name, flow.routes[0].nodes) for flow in prediction.rates]
    picture = outline(loaded, prediction.loads, prediction.link_utilization, routes[:ROUTE_COLOURS])
    if (left_out := len(routes) - ROUTE_COLOURS) > 0:
        note = f"{left_out} of {len(routes)} routes are not drawn, their load is"
        picture = replace(picture, notes=(*picture.notes, note))
    return svg(picture)


def route(system: System | str | Path, src: str, dst: str, p2p: bool = True) -> Route:
    """The route of data from `src` to `dst`, with its class as nvidia-smi topo -m names it.

    `p2p` False: two GPUs exchange data through host memory.

    Raises UnknownName for an end that does not exist, InputError for one that holds no data, and Unreachable if no
    route joins the two or policy forbids every one.

    >>> lanewise.route("rack-16gpu", "gpu0", "gpu4").show()
    'gpu0 - sw0 - cpu0 - sw1 - gpu4'
    """
    from lanewise.routes.find import route as find

    return find(as_system(system), src, dst, p2p)


def all_routes(system: System | str | Path, src: str, dst: str) -> tuple[Route, ...]:
    """Every route from `src` to `dst` worth considering, best first, with those that policy forbids.

    Raises UnknownName for an end that does not exist, InputError for one that holds no data, and Unreachable if nothing
    joins the two.

    >>> [(route.cls, str(route.via)) for route in lanewise.all_routes("rack-16gpu", "gpu0", "gpu4")]
    [('NODE', 'pcie'), ('NODE', 'staged')]
    """
    from lanewise.routes.find import routes as find

    return find(as_system(system), src, dst)


def class_matrix(system: System | str | Path, names: Sequence[str] | None = None) -> ClassMatrix:
    """The route class of every pair of GPUs and network cards, as nvidia-smi topo -m prints it; `names` selects
    devices.

    Raises UnknownName for a device that does not exist.

    >>> lanewise.class_matrix("rack-16gpu", ["gpu0", "gpu1", "gpu4"]).cells[0]
    ('X', 'PIX', 'NODE')
    """
    from lanewise.routes.matrix import class_matrix as make

    return make(as_system(system), names)


def peers(system: System | str | Path) -> tuple[Peers, ...]:
    """For every pair of GPUs: whether CUDA peer access between them is possible, and if not, why. Raises what
    load_system raises.

    >>> lanewise.peers("rack-16gpu")[0]
    Peers(a='gpu0', b='gpu1', allowed=True, reason='')
    """
    from lanewise.routes.matrix import peers as find

    return find(as_system(system))


def plan(
    systems: System | str | Path | Sequence[System | str | Path], options: PlanOptions | None = None,
    on: str | None = None, **keywords: Any,
) -> Placement | Ranking | Pinning:  # fmt: skip
    """The best way to run work: one system's devices placed (Placement) or its GPUs pinned to network cards (Pinning,
    with pin="nic"), or several systems ranked (Ranking).

    Work is `services`, `flows` or `pattern`: keywords are the fields of PlanOptions, or give `options`. A Placement is
    simulated against the latency bounds before it is returned. `on` names the engine that scores the systems of a
    Ranking, such as "local:4" or "ray://HOST:10001".

    Raises FormatError for text that is not a service or a list of flows, InputError for work that is missing or cannot
    be planned, UnknownName for a name that does not exist, and Unreachable for flows without a route.

    >>> lanewise.plan(["composable-server-gen4", "tx2550-m7-l40s"], flows="host->gpu[0-3]").ranks[0].system.name
    'tx2550-m7-l40s'
    """
    from lanewise.api.layout_scores import scores_on
    from lanewise.options.plan import PlanOptions
    from lanewise.planning.answer import answer

    several = systems if isinstance(systems, Sequence) and not isinstance(systems, str) else [systems]
    if on is not None and len(several) < 2:
        raise InputError("--on has no effect with one system", hint="name several: their ranking runs on workers")
    scores = scores_on(on) if on is not None else None
    return answer([as_system(each) for each in several], options or PlanOptions(**keywords), load_workload, scores)


def predict(
    system: System | str | Path, flows: str | Sequence[Flow], p2p: bool = True, schedule: str = "together"
) -> Prediction:
    """The goodput (B/s) of flows that run at the same time, each with the resource that limits it.

    `flows` is text, 'gpu0->gpu4, host0->gpu1', or Flow objects; they share resources by max-min fairness. `p2p` False:
    the flows of a text between GPUs go through host memory; a Flow has its own `p2p`. `schedule` is the tool whose
    order of copies, and whose way to count them, is predicted: "pytorch", "null-stream",
    "one-by-one", "p2pmark", "p2pBandwidthLatencyTest", "nvbandwidth" or "TransferBench".

    Sizes of flows go with a schedule alone, and are equal.

    Raises FormatError for text that is not a list of flows, InputError for a flow with a size or a start (see
    finish_times), UnknownName for an end or a schedule that does not exist, and Unreachable for a flow without a route.

    >>> system = lanewise.load_system("rack-16gpu")
    >>> round(lanewise.predict(system, "gpu0->gpu4").rates[0].rate / 1e9, 1)  # GB/s
    22.5
    """
    from lanewise.perf.predict import predict as predict_flows
    from lanewise.perf.schedules import TOGETHER, schedule_named

    parsed = _as_flows(flows, p2p)
    together = schedule == TOGETHER.name
    if not together and len({flow.size for flow in parsed}) > 1:
        cause = f"copies in the order of {schedule} are all of one size"
        raise InputError(cause, hint="give every flow the same size, or none")
    for flow in parsed:
        if flow.size is not None and together:
            raise InputError(
                f"{flow.name} has a size, and rates are those of flows without an end",
                hint="leave the size out; finish_times, or lanewise predict --flows, says when each transfer ends",
            )
        if flow.start or flow.after:
            raise InputError(
                f"{flow.name} has {'a start' if flow.start else 'flows to wait for'} but no size",
                hint="leave the start out, or give every flow a size: gpu0->gpu1 1 GiB @10 ms",
            )
    return predict_flows(as_system(system), parsed, schedule_named(schedule))


def predict_paths(system: System | str | Path) -> PathOverview:
    """What every kind of path delivers (B/s, with its interval): host memory to GPU, peers by class, cards and drives,
    each path alone, and all GPUs of a host at once. Paths that are alike make one group.

    Raises Unreachable for a system without a path, and what load_system raises.

    >>> groups = lanewise.predict_paths("rack-16gpu").groups
    >>> [(group.source, group.target, group.count) for group in groups[:2]]
    [('memory', 'GPU', 16), ('GPU', 'memory', 16)]
    """
    from lanewise.perf.overview import overview

    return overview(as_system(system))


def finish_times(
    system: System | str | Path, flows: str | Sequence[Flow], p2p: bool = True
) -> tuple[FinishedTransfer, ...]:
    """When each transfer starts and ends (s), from a simulation of all of them together.

    `flows` is text, 'gpu0->gpu1 1 GiB, gpu2->gpu3 4 GiB @10 ms', or Flow objects with a `size` (B) and a `start` (s).
    One may wait for others: 'gpu0->gpu1 1 GiB as a, gpu1->gpu2 1 GiB after a'. `p2p` is that of predict.

    Raises FormatError for text that is not a list of flows, InputError for a flow without an end, UnknownName for an
    end that does not exist, and Unreachable for a flow without a route.

    >>> transfer = lanewise.finish_times("rack-16gpu", "gpu0->gpu4 1 GiB, gpu1->gpu5 4 GiB @10 ms")[0]
    >>> round(transfer.finish * 1e3, 1)  # ms
    47.7
    """
    from lanewise.perf.transfers import finish_times as simulate

    return simulate(as_system(system), _as_flows(flows, p2p))


def matrix(
    system: System | str | Path,
    names: Sequence[str] | None = None,
    metric: str = "goodput",
    both_ways: bool = False,
    p2p: bool = True,
) -> RateMatrix:
    """The goodput (B/s) or the latency (s) of a small copy for every ordered pair of GPUs, each pair alone.

    `names` selects devices, such as CPUs for their memory; `metric` is "goodput" or "latency". `both_ways` gives the
    sum of both directions at once; `p2p` False copies through host memory.

    Raises UnknownName for another metric or a device that does not exist, and InputError for the latency of both ways.

    >>> cells = lanewise.matrix("rack-16gpu", ["gpu0", "gpu1", "gpu4"]).cells
    >>> round(cells[0][2] / 1e9, 1)  # gpu0 to gpu4, GB/s
    22.5
    """
    from lanewise.perf.matrix import bandwidth_matrix, latency_matrix

    if metric == "goodput":
        return bandwidth_matrix(as_system(system), names, both_ways, p2p)
    if metric == "latency" and both_ways:
        raise InputError("a latency is one way: both ways have no sum", hint="leave both ways out, or ask for goodput")
    if metric == "latency":
        return latency_matrix(as_system(system), names, p2p)
    raise unknown_name("metric", metric, ("goodput", "latency"))


def _as_flows(flows: str | Sequence[Flow], p2p: bool) -> Sequence[Flow]:
    from lanewise.perf.flow import parse_flows

    if isinstance(flows, str):
        return parse_flows(flows, p2p)
    if not p2p:
        raise InputError("p2p=False has no effect on Flow objects", hint="give each its own: Flow(src, dst, p2p=False)")
    return flows
