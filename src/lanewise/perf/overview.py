"""What every kind of path of a system delivers: like paths are grouped, and one of each group is predicted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, permutations

from lanewise.errors import Unreachable
from lanewise.perf.flow import Flow
from lanewise.perf.predict import FlowRate, Prediction, predict
from lanewise.routes.find import route
from lanewise.routes.model import Route
from lanewise.routes.paths import cpu_above
from lanewise.topology.model import Kind, System

MEMORY, FAR_MEMORY, GPU, CARD, DRIVE = "memory", "far memory", "GPU", "network card", "drive"
OTHER_MEMORY = "memory of another host"
_DEVICES = {Kind.GPU: GPU, Kind.NIC: CARD, Kind.SSD: DRIVE}
MOST_PATHS = 5000  # routes that are looked at: under a second
_Path = tuple[str, str, str, str]  # kinds and names of the two ends


@dataclass(frozen=True, slots=True)
class PathGroup:
    """Paths alike in class, links and parts: `count` of them from a `source` to a `target`, words such as "GPU".

    `flow` is one of them, `example` its route and `rate` what it reaches alone; None if it is unknown, see `reason`.
    """

    source: str
    target: str
    count: int
    flow: Flow
    example: Route
    rate: FlowRate | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PathOverview:
    """The `groups` of paths, each path alone, and flows that run `together`: each host's memory and all its GPUs.

    `missing` says of which kinds of ends some have no route, and why the first of them has none. `complete` is False if
    only the first MOST_PATHS paths of a large system were looked at.
    """

    system: System
    groups: tuple[PathGroup, ...]
    together: tuple[Prediction, ...]
    missing: tuple[str, ...] = ()
    complete: bool = True


def overview(system: System) -> PathOverview:
    """Every kind of path: between host memory, GPUs, network cards and drives, in both directions.

    Unreachable if the system has no two ends that a path joins.
    """
    paths = list(islice(_paths(system), MOST_PATHS + 1))
    alike: dict[Hashable, tuple[_Path, Route, int]] = {}
    missing: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in paths[:MOST_PATHS]:
        try:
            crossing = route(system, path[2], path[3])
        except Unreachable as error:
            missing[path[:2]].append(error.cause)
            continue
        key = (path[:2], _signature(system, crossing))
        first, example, count = alike.get(key, (path, crossing, 0))
        alike[key] = (first, example, count + 1)
    if not alike:
        cause = f"{system.name} has no path from host memory to a device, nor between two GPUs"
        raise Unreachable(cause, hint="describe a CPU, a GPU and the link between them")
    groups: dict[Hashable, PathGroup] = {}
    for path, example, count in alike.values():
        group = _group(system, path, example, count)
        outcome = _outcome(group)
        same = groups.get(outcome)
        groups[outcome] = replace(same, count=same.count + count) if same else group
    return PathOverview(
        system, tuple(groups.values()), tuple(_together(system)),
        tuple(f"{a} to {b}, {len(causes)} without a route: {causes[0]}" for (a, b), causes in missing.items()),
        len(paths) <= MOST_PATHS,
    )  # fmt: skip


def _paths(system: System) -> Iterator[_Path]:
    """Both directions of every pair of ends that data moves between."""
    for kind, device, memory, far in _to_memory(system):
        for word, end in ((MEMORY, memory), *((FAR_MEMORY, node) for node in far if kind == GPU)):
            yield word, kind, end, device
            yield kind, word, device, end
    for a, b in permutations(system.of_kind(Kind.GPU), 2):
        yield GPU, GPU, a, b
    for gpu in system.of_kind(Kind.GPU):
        host = system.device(gpu).host
        for card in system.of_kind(Kind.NIC, host=host):
            yield CARD, GPU, card, gpu
            yield GPU, CARD, gpu, card
        for drive in system.of_kind(Kind.SSD, host=host):
            yield DRIVE, GPU, drive, gpu
    for one, other in _networked(system):
        yield MEMORY, OTHER_MEMORY, one, other


def _networked(system: System) -> Iterator[tuple[str, str]]:
    """Pairs of hosts with network cards, one of them without a GPU: paths of GPUs do not tell what joins them."""
    with_cards = [host for host in system.hosts if system.of_kind(Kind.NIC, host=host)]
    for one, other in permutations(with_cards, 2):
        gpus = all(system.of_kind(Kind.GPU, host=host) for host in (one, other))
        if not gpus and all(system.of_kind(Kind.CPU, host=host) for host in (one, other)):
            yield one, other


def _to_memory(system: System) -> Iterator[tuple[str, str, str, list[str]]]:
    """Each bound device with its kind, the memory of its host, and that of each other socket of the host."""
    for device in system.devices.values():
        if device.host is None or device.kind not in _DEVICES:
            continue
        cpus = system.of_kind(Kind.CPU, host=device.host)
        try:
            own = cpu_above(system, device.name)
        except Unreachable:
            continue
        far = [f"{device.host}:{nodes[0]}" for cpu in cpus if cpu != own and (nodes := system.numa_nodes(cpu))]
        yield _DEVICES[device.kind], device.name, device.host, far


def _signature(system: System, crossing: Route) -> Hashable:
    """What makes two routes alike: the classes, links and parts on them, in order."""
    links = tuple(
        (hop.link.kind, hop.link.gen, hop.link.lanes, hop.link.rate, hop.link.count, hop.down, _part(system, hop.end))
        for hop in crossing.hops
    )
    return crossing.cls, crossing.via, _part(system, crossing.src), links


def _part(system: System, name: str) -> str | None:
    return system.device(name).part


def _group(system: System, path: _Path, example: Route, count: int) -> PathGroup:
    flow = Flow(*path[2:])
    try:
        return PathGroup(*path[:2], count, flow, example, predict(system, [flow]).rates[0])
    except Unreachable as error:
        return PathGroup(*path[:2], count, flow, example, None, f"{error.cause}: {error.hint}")


def _outcome(group: PathGroup) -> Hashable:
    """What two groups share that one line of a table can stand for."""
    rate = group.rate
    figures = (rate.rate, rate.low, rate.high, rate.basis) if rate is not None else (group.reason,)
    return group.source, group.target, group.example.cls, group.example.via, figures


def _together(system: System) -> Iterator[Prediction]:
    """Of each host with several GPUs: copies from its memory to all of them, and back."""
    for host in system.hosts:
        gpus = system.of_kind(Kind.GPU, host=host)
        for flows in ([Flow(host, gpu) for gpu in gpus], [Flow(gpu, host) for gpu in gpus]):
            try:
                if len(gpus) > 1:
                    yield predict(system, flows)
            except Unreachable:
                continue
