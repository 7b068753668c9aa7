"""Attach and detach: which host a device is bound to, and where its cable goes, always as a new System."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.errors import Contradiction, LanewiseError, Unreachable, unknown_name
from lanewise.topology import speeds
from lanewise.topology.binding import HostReach, default_bridge, next_port
from lanewise.topology.limits import check_sums, pcie_speed
from lanewise.topology.model import ENDPOINTS, FORWARDING, Device, Domain, Kind, Link, LinkKind, System
from lanewise.topology.scope import Problems
from lanewise.topology.trees import PCIE_AND_FABRIC, Graph, shortest_path

Paths = dict[str, tuple[str, ...]]


def attach(system: System, device: str, host: str, at: str | None = None) -> System:
    """The system with `device` bound to `host`; with `at`, its PCIe link moves below that switch or CPU.

    UnknownName for a name that does not exist, Contradiction if it is bound already or cannot be moved,
    Unreachable, naming what is in the way, if no PCIe or fabric path joins them.
    """
    target = _endpoint(system, device, "attached")
    if host not in system.hosts:
        raise unknown_name(f"host of {system.name}", host, system.hosts)
    if target.host is not None:
        already = "already" if target.host == host else "still"
        hint = f"detach '{device}' first" if target.host != host or at else "nothing is left to do for that host"
        raise Contradiction(f"'{device}' is {already} bound to {target.host}", location=target.location, hint=hint)
    moved = system if at is None else _recable(system, device, at)
    paths = _paths(moved, device, host)
    if not paths:
        raise _blocked(moved, device, host)
    domains, root = _join(moved, device, host, paths)
    numa = _cabling(moved).hosts.numa(device, host, root, moved.devices)
    bound = replace(moved.devices[device], host=host, numa=numa)
    return _same_cabling(moved, replace(moved, devices={**moved.devices, device: bound}, domains=domains))


def detach(system: System, device: str) -> System:
    """The system with `device` bound to no host and out of every domain; its cable stays.

    UnknownName if there is no such device, Contradiction if it is not bound.
    """
    target = _endpoint(system, device, "detached")
    if target.host is None:
        hint = f"attach it to one of {', '.join(system.hosts)}"
        raise Contradiction(f"'{device}' is bound to no host", location=target.location, hint=hint)
    domains = tuple(
        replace(domain, devices=domain.devices - {device}) if device in domain.devices else domain
        for domain in system.domains
    )
    free = replace(target, host=None, numa=None)
    return _same_cabling(system, replace(system, devices={**system.devices, device: free}, domains=domains))


def reached_from(system: System, host: str) -> frozenset[str]:
    """The devices that a host's CPUs reach over PCIe and fabric; the first question about a host takes longest."""
    cabling = _cabling(system)
    return frozenset(name for cpu in system.of_kind(Kind.CPU, host=host) for name in cabling.paths(cpu))


class Cabling:
    """What follows from the links alone, whoever is bound to whom: the paths from each CPU, the CPUs of each device."""

    def __init__(self, system: System) -> None:
        self._graph = Graph(system.devices, system.links, PCIE_AND_FABRIC)
        self._paths: dict[str, dict[str, tuple[str, ...]]] = {}
        self.hosts = HostReach(system.devices, system.links)
        self.cpus = {host: system.of_kind(Kind.CPU, host=host) for host in system.hosts}

    def paths(self, cpu: str) -> dict[str, tuple[str, ...]]:
        """Every device that a CPU reaches over PCIe and fabric, with the devices on a shortest path."""
        if cpu not in self._paths:
            self._paths[cpu] = self._graph.reach(cpu)
        return self._paths[cpu]


def _cabling(system: System) -> Cabling:
    """The cabling of a system, computed once for it and for every system made of it by binding devices."""
    if "cabling" not in system.__dict__:
        system.__dict__["cabling"] = Cabling(system)
    cabling: Cabling = system.__dict__["cabling"]
    return cabling


def _same_cabling(before: System, after: System) -> System:
    """The system `after`, of which only bindings differ from `before`."""
    if "cabling" in before.__dict__:
        after.__dict__["cabling"] = before.__dict__["cabling"]
    after.__dict__["cabling_key"] = before.cabling_key
    return after


def _endpoint(system: System, name: str, verb: str) -> Device:
    device = system.device(name)
    if device.kind not in ENDPOINTS:
        cause = f"'{name}' is a {device.kind} and cannot be {verb}"
        raise Contradiction(cause, location=device.location, hint="name a GPU, a network card, a drive or a controller")
    return device


def _paths(system: System, device: str, host: str) -> Paths:
    """For every CPU of the host that reaches the device over PCIe and fabric, the devices on the path."""
    cabling = _cabling(system)
    paths: Paths = {}
    for cpu in cabling.cpus[host]:
        path = cabling.paths(cpu).get(device)
        if path:
            paths[cpu] = path
    return paths


def _join(system: System, device: str, host: str, paths: Paths) -> tuple[tuple[Domain, ...], str | None]:
    """The domains with the device in the nearest one of the host, and its root; None if none are stated."""
    if not system.domains:
        return system.domains, None
    fitting = [domain for domain in system.domains if domain.root in paths]
    if not fitting:
        cause = f"{host} has no domain that could hold '{device}', and {system.name} states its domains"
        hint = f"add one to the description: {host}: {{root: {next(iter(paths))}, devices: []}}"
        raise Contradiction(cause, location=system.domains[0].location, hint=hint)
    nearest = min(fitting, key=lambda domain: len(paths[domain.root]))
    joined = replace(nearest, devices=nearest.devices | {device})
    return tuple(joined if domain is nearest else domain for domain in system.domains), nearest.root


def _recable(system: System, name: str, at: str) -> System:
    above = system.device(at)
    if above.kind not in (Kind.SWITCH, Kind.CPU):
        switches = ", ".join(system.of_kind(Kind.SWITCH)) or "none"
        cause = f"'{at}' is a {above.kind}; nothing can be cabled below it"
        raise Contradiction(cause, location=above.location, hint=f"name a CPU or a switch; switches: {switches}")
    cables = [link for link in system.links_at(name) if link.kind is LinkKind.PCIE]
    if len(cables) != 1:
        cause = f"'{name}' has {len(cables)} PCIe links; only a device with one can be moved"
        raise Contradiction(cause, location=system.device(name).location, hint="change the description instead")
    old = cables[0]
    for switch in (above, system.device(old.a)):
        if switch.partitions:
            cause = f"'{switch.name}' is partitioned, and a cable does not say which partition '{name}' joins"
            raise Contradiction(cause, location=switch.location, hint="change its partitions in the description")
    new = _cable(system, old, above, system.device(name))
    links = tuple(new if link is old else link for link in system.links)
    problems = Problems()
    check_sums(system.devices, links, system.catalog, problems)
    problems.raise_if_any()
    return replace(system, links=links)


def _cable(system: System, old: Link, above: Device, below: Device) -> Link:
    """The link between its new ends, as fast as both parts train, or as before where neither part says."""
    bare = replace(old, a=above.name, b=below.name, port="", bridge="", length=None)
    fast = pcie_speed(bare, speeds.Pcie(), (system.part(above.name), system.part(below.name)))
    new = replace(fast, gen=fast.gen or old.gen, lanes=fast.lanes or old.lanes)
    if above.kind is not Kind.CPU:
        return new
    used = {link.port for link in system.links_at(above.name) if link is not old}
    port = next_port(used)
    return replace(new, port=port, bridge=default_bridge(above, port, system.catalog))


def _blocked(system: System, device: str, host: str) -> LanewiseError:
    """The error that names the obstacle between a device and a host."""
    cpus = system.of_kind(Kind.CPU, host=host)
    location = system.device(device).location
    if not cpus:
        return Unreachable(
            f"{host} has no CPU, so it cannot reach '{device}'", location=location, hint=f"add a CPU to {host}"
        )
    paths = [path for path in (_any_path(system, cpu, device) for cpu in cpus) if path]
    hint = f"move its cable too, with --at {_free_port(system, cpus)}"
    if not paths:
        return Unreachable(f"no cable joins '{device}' and {host}", location=location, hint=hint)
    path = min(paths, key=len)
    cause = f"no PCIe or fabric path leads from {host} to '{device}': {_obstacle(system, path)} is in the way"
    return Unreachable(f"{cause} ({' - '.join(path)})", location=location, hint=hint)


def _free_port(system: System, cpus: Sequence[str]) -> str:
    """The switch furthest below these CPUs that takes a cable, or else the first of the CPUs."""
    graph = Graph(system.devices, system.links, PCIE_AND_FABRIC)
    depths = {name: len(path) for cpu in cpus for name, path in graph.reach(cpu).items()}
    switches = [name for name in depths if system.devices[name].kind is Kind.SWITCH]
    # An adapter takes cables as a switch does, but belongs to its host.
    own = [name for name in switches if (part := system.part(name)) is None or part.kind == "switch"]
    free = [name for name in own or switches if not system.devices[name].partitions]
    return max(reversed(free), key=depths.__getitem__, default=cpus[0])


def _any_path(system: System, start: str, goal: str) -> list[str]:
    """The devices on a shortest path over links of any kind and through any device, empty if there is none."""
    return shortest_path(lambda name: [link.far_end(name) for link in system.links_at(name)], start, goal)


def _obstacle(system: System, path: Sequence[str]) -> str:
    for index, name in enumerate(path[:-1]):
        after = path[index + 1]
        device = system.devices[name]
        if index and device.kind not in FORWARDING:
            return f"the {device.kind} {name}"
        if index and not device.joins(path[index - 1], after):
            return f"a partition of {name}"
        kinds = {link.kind for link in system.links_between(name, after)}
        if not kinds & set(PCIE_AND_FABRIC):
            return f"the {min(kinds)} link {name}--{after}"
    return "nothing known"
