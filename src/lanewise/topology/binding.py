"""Root ports, host bridges and hosts: what a description need not say because the cabling does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lanewise.catalog import Catalog
from lanewise.errors import Contradiction
from lanewise.topology.model import ENDPOINTS, Device, Domain, Kind, Link, LinkKind
from lanewise.topology.scope import Problems
from lanewise.topology.trees import COHERENT, TREE, Graph, uplink

ONE_BRIDGE = "rc0"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class StatedHosts:
    """The devices whose host or NUMA node the description states, be it as null."""

    hosts: frozenset[str] = frozenset()
    numas: frozenset[str] = frozenset()


def name_ports(
    devices: Mapping[str, Device], links: Sequence[Link], catalog: Catalog, problems: Problems
) -> list[Link]:
    """The links with a root port and a host bridge named at every CPU; collects a port that is used twice."""
    used: dict[str, set[str]] = defaultdict(set)
    for link in links:
        if link.port:
            if link.port in used[link.a]:
                cause = f"root port '{link.port}' of {link.a} has two links"
                hint = "a root port has one link; leave port: out to have them numbered"
                problems.add(Contradiction(cause, location=link.location, hint=hint))
            used[link.a].add(link.port)
    return [_named(link, devices, used, catalog) for link in links]


def _named(link: Link, devices: Mapping[str, Device], used: dict[str, set[str]], catalog: Catalog) -> Link:
    cpu = devices[link.a]
    if link.kind is not LinkKind.PCIE or cpu.kind is not Kind.CPU:
        return link
    port = link.port or next_port(used[cpu.name])
    used[cpu.name].add(port)
    return replace(link, port=port, bridge=link.bridge or default_bridge(cpu, port, catalog))


def next_port(used: Collection[str]) -> str:
    """The first of rp0, rp1, ... that is free."""
    number = 0
    while f"rp{number}" in used:
        number += 1
    return f"rp{number}"


def default_bridge(cpu: Device, port: str, catalog: Catalog) -> str:
    """The host bridge that a root port belongs to, as the CPU part groups them; one per socket by default."""
    part = catalog.get(cpu.part) if cpu.part else None
    return port if part and part.text("cpu.host_bridges") == "per-port" else ONE_BRIDGE


def settle_hosts(
    devices: Mapping[str, Device],
    links: Sequence[Link],
    domains: Sequence[Domain],
    stated: StatedHosts,
    problems: Problems,
) -> dict[str, Device]:
    """The devices, host and NUMA node settled from domains and cabling; collects hosts that do not reach."""
    roots = {name: domain.root for domain in domains for name in domain.devices}
    reach = HostReach(devices, links)
    numbered = _number_cpus(devices, stated)
    _check_overlap(numbered, problems)
    settled = dict(numbered)
    for name, device in devices.items():
        if device.kind in (Kind.CPU, Kind.NETSWITCH):
            continue
        host = device.host
        cpus = [roots[name]] if name in roots else reach.reached.get(name, [])
        if name not in stated.hosts:
            host = _single({devices[cpu].host for cpu in cpus})
        settled[name] = replace(device, host=host)
        if host is not None:
            _check_host(settled[name], reach, problems)
            if name not in stated.numas:
                settled[name] = replace(settled[name], numa=reach.numa(name, host, roots.get(name), numbered))
            else:
                _check_node(settled[name], reach, settled, problems)
    _bind_nvswitches(settled, links, stated)
    return settled


def _check_host(device: Device, reach: HostReach, problems: Problems) -> None:
    hosts = sorted({str(reach.devices[cpu].host) for cpu in reach.reached.get(device.name, [])})
    if hosts and device.kind in ENDPOINTS and device.host not in hosts:
        reachable = " and ".join(hosts)
        cause = f"'{device.name}' is bound to {device.host}, but only {reachable} reaches it"
        hint = f"write host: {hosts[0]}, or cable it to {device.host}"
        problems.add(Contradiction(cause, location=device.location, hint=hint))


def _check_node(device: Device, reach: HostReach, settled: Mapping[str, Device], problems: Problems) -> None:
    """Collect a Contradiction for a stated NUMA node that the sockets above, divided into nodes, do not have."""
    above = [settled[cpu] for cpu in reach.trees.get(device.name, []) if settled[cpu].host == device.host]
    nodes = {node for cpu in above for node in cpu.nodes}
    divided = [cpu.name for cpu in above if cpu.numa_nodes > 1]
    if device.kind in ENDPOINTS and device.numa is not None and divided and device.numa not in nodes:
        shown = ", ".join(map(str, sorted(nodes)))
        cause = f"'{device.name}' is at NUMA node {device.numa}, but {' and '.join(divided)} above it has {shown}"
        problems.add(Contradiction(cause, location=device.location, hint=f"write numa: one of {shown}"))


class HostReach:
    """Which CPUs reach which devices, over plain PCIe trees and over everything coherent."""

    def __init__(self, devices: Mapping[str, Device], links: Sequence[Link]) -> None:
        self.devices = devices
        self.links = links
        self._tree: Graph | None = None
        self.reached = reached_by(devices, links, COHERENT)
        self.trees = reached_by(devices, links, TREE)

    def numa(self, name: str, host: str, root: str | None, numbered: Mapping[str, Device]) -> int | None:
        """The NUMA node of a device bound to `host`: its domain root's, else that of its tree's CPU."""
        if root is not None:
            return _only_node(numbered[root])
        for table in (self.trees, self.reached):
            own = [cpu for cpu in table.get(name, []) if self.devices[cpu].host == host]
            if own:
                cpus = self._over_uplink(name, own, numbered) if len(own) > 1 and table is self.trees else own
                return _single({_only_node(numbered[cpu]) for cpu in cpus})
        return None

    def _over_uplink(self, name: str, cpus: list[str], numbered: Mapping[str, Device]) -> list[str]:
        """Of several CPUs above one switch that a device hangs below, the one that its uplink leads to; else all."""
        if self._tree is None:
            self._tree = Graph(self.devices, self.links, TREE)
        _, switch, *rest = self._tree.reach(cpus[0])[name]
        links = [link for link in self.links if switch in (link.a, link.b)]
        if not rest or not set(cpus) <= {link.far_end(switch) for link in links}:
            return cpus
        return [uplink(numbered, links, switch, rest[0], name, cpus).far_end(switch)]


def reached_by(devices: Mapping[str, Device], links: Sequence[Link], kinds: Sequence[LinkKind]) -> dict[str, list[str]]:
    """For every device the CPUs that reach it over links of these kinds."""
    graph = Graph(devices, links, kinds)
    reached: dict[str, list[str]] = defaultdict(list)
    for cpu, device in devices.items():
        if device.kind is Kind.CPU:
            for name in graph.reach(cpu):
                reached[name].append(cpu)
    return reached


def _only_node(cpu: Device) -> int | None:
    """The NUMA node of what hangs below a CPU, None where it has several."""
    return cpu.numa if cpu.numa_nodes == 1 else None


def _single(values: set[_T]) -> _T | None:
    return next(iter(values)) if len(values) == 1 else None


def _number_cpus(devices: Mapping[str, Device], stated: StatedHosts) -> dict[str, Device]:
    """The devices, with CPUs numbered as NUMA nodes of their host where none of its CPUs states one."""
    numbered = dict(devices)
    by_host: dict[str | None, list[Device]] = defaultdict(list)
    for device in devices.values():
        if device.kind is Kind.CPU:
            by_host[device.host].append(device)
    for cpus in by_host.values():
        if all(cpu.name not in stated.numas for cpu in cpus):
            first = 0
            for cpu in cpus:
                numbered[cpu.name] = replace(cpu, numa=first)
                first += cpu.numa_nodes
    return numbered


def _check_overlap(devices: Mapping[str, Device], problems: Problems) -> None:
    """Collect a Contradiction for two sockets of a host that state the same NUMA nodes, one of them several."""
    owners: dict[tuple[str | None, int], Device] = {}
    for cpu in (device for device in devices.values() if device.kind is Kind.CPU):
        for node in cpu.nodes:
            owner = owners.setdefault((cpu.host, node), cpu)
            if owner is not cpu and max(owner.numa_nodes, cpu.numa_nodes) > 1:
                cause = f"'{owner.name}' and '{cpu.name}' both have NUMA node {node}"
                hint = "leave numa: out of the CPUs to have their nodes numbered, or state the first node of each"
                problems.add(Contradiction(cause, location=cpu.location, hint=hint))
                break


def _bind_nvswitches(settled: dict[str, Device], links: Sequence[Link], stated: StatedHosts) -> None:
    """Give every NVSwitch the host of the GPUs it joins, if they have one in common."""
    hosts: dict[str, set[str | None]] = defaultdict(set)
    for link in links:
        if link.kind is LinkKind.NVLINK:
            hosts[link.a].add(settled[link.b].host)
            hosts[link.b].add(settled[link.a].host)
    for name, device in list(settled.items()):
        if device.kind is Kind.NVSWITCH and name not in stated.hosts:
            settled[name] = replace(device, host=_single(hosts[name]))
