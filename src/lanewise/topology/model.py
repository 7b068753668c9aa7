"""A system: devices and links, with the domains, volumes and policies over them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from lanewise.catalog import Catalog, Part
from lanewise.errors import Location, unknown_name


class Kind(StrEnum):
    """The kind of a device; a CPU is its whole socket: root complexes, memory controllers and memory."""

    CPU = "cpu"
    GPU = "gpu"
    SWITCH = "switch"
    NVSWITCH = "nvswitch"
    NIC = "nic"
    SSD = "ssd"
    RAID = "raid"
    NETSWITCH = "netswitch"


ENDPOINTS = frozenset({Kind.GPU, Kind.NIC, Kind.SSD, Kind.RAID})
# Volume controllers forward to the drives cabled below them.
FORWARDING = frozenset({Kind.SWITCH, Kind.RAID})


class LinkKind(StrEnum):
    """What joins two devices."""

    PCIE = "pcie"
    FABRIC = "fabric"
    SOCKET = "socket"
    NVLINK = "nvlink"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Device:
    """One device; `host` is the host it is bound to (None: unbound in its box), `numa` counts within a host.

    `os_names` are its names in the operating system: PCI address, mlx5_0, nvme0n1.
    `numa_nodes` (CPUs only) is how many NUMA nodes the socket has (NPS, SNC), `numa` then the first of them.
    `shared` (CPUs only): other tenants use its socket too, as where a virtual machine has some of the socket's GPUs.
    `power_limit` (GPUs only) is the power in W that it is set to, None: as delivered.
    `partitions` (switches only) are groups of neighbour names that the chip joins; empty means one group.
    """

    name: str
    kind: Kind
    part: str | None = None
    host: str | None = None
    numa: int | None = None
    partitions: tuple[frozenset[str], ...] = ()
    numa_nodes: int = 1
    shared: bool = False
    power_limit: float | None = None
    os_names: tuple[str, ...] = ()
    location: Location | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """The NUMA nodes of a CPU, or the one of another device; () if unknown."""
        return () if self.numa is None else tuple(range(self.numa, self.numa + self.numa_nodes))

    def joins(self, a: str, b: str) -> bool:
        """Whether this switch forwards between its neighbours `a` and `b`."""
        return not self.partitions or any(a in group and b in group for group in self.partitions)

    def groups(self, links: Sequence[Link]) -> tuple[frozenset[int], ...]:
        """For each of this switch's links the numbers of the partitions it is in; number 0 where there are none.

        A neighbour that as many partitions name as it has links is in the first with its first link, and so on.
        """
        if not self.partitions:
            return (frozenset({0}),) * len(links)
        neighbours = [link.far_end(self.name) for link in links]
        groups = []
        for index, neighbour in enumerate(neighbours):
            naming = [number for number, group in enumerate(self.partitions) if neighbour in group]
            if len(naming) == neighbours.count(neighbour):
                naming = [naming[neighbours[:index].count(neighbour)]]
            groups.append(frozenset(naming))
        return tuple(groups)


@dataclass(frozen=True, slots=True)
class Link:
    """A full-duplex link between devices `a` and `b`; for PCIe `a` is the upstream end.

    gen and lanes apply to PCIe; `rate` is the raw rate of one direction in B/s where it is stated outright;
    `count` is the number of bonded links (NVLink, UPI); where it is not known (`count_known`) 1 between sockets, and
    of NVLinks as many as the parts have. `port` and `bridge`
    name the root port and the host bridge (root complex) at a CPU, '' elsewhere. `max_payload` (B) and `length` (m) are
    None when unknown.
    """

    a: str
    b: str
    kind: LinkKind
    gen: int | None = None
    lanes: int | None = None
    rate: float | None = None
    count: int = 1
    count_known: bool = True
    port: str = ""  # topology.binding.name_ports fills in what a description leaves out
    bridge: str = ""  # likewise
    max_payload: float | None = None
    length: float | None = None
    ethernet: bool = False  # a network that is said to be Ethernet: 100gbe
    location: Location | None = None

    @property
    def name(self) -> str:
        """The name shown to people, upstream end first."""
        return f"{self.a}--{self.b}"

    def far_end(self, end: str) -> str:
        """The end that is not `end`."""
        return self.b if end == self.a else self.a


@dataclass(frozen=True, slots=True)
class Domain:
    """A virtual PCIe domain: the endpoints that the root port at CPU `root` sees as one plain tree."""

    name: str
    root: str
    devices: frozenset[str]
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Volume:
    """A logical volume over drives; `raid` is 0, 5 or 10, `chunk` the stripe unit in bytes."""

    name: str
    raid: int
    drives: tuple[str, ...]
    controller: str | None = None
    chunk: float | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Policies:
    """What is allowed: peer scope by CPU (none, root-complex, socket, system; absent: the CPU part's own),
    switches and CPUs whose ACS redirects peer traffic upstream, IOMMU mode (None: not stated), peers across
    virtual domains, and by host the CPU in whose memory copies between its GPUs are staged (absent: see
    routes.rules.staging_socket)."""

    peer_scope: Mapping[str, str] = field(default_factory=dict)
    acs_redirect: frozenset[str] = frozenset()
    iommu: str | None = None
    cross_domain_p2p: bool = False
    staging: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that a study may sweep; `values` lists the allowed ones (empty: minimum to maximum)."""

    name: str
    default: int
    values: tuple[int, ...] = ()
    minimum: int = 0
    maximum: int = 4096
    help: str = ""


class RouteCacheKey:
    """What the routes of a system are kept under (`routes.paths.memoized`), compared by identity, without content.

    Systems that differ only in figures of their parts share one, see `System.with_catalog`; what depends on the cables
    alone is kept under another, which systems share that differ in who is bound to whom.
    """


@dataclass(frozen=True, slots=True)
class MeasuredFactor:
    """A capacity of this machine as a factor of the model's own, and the measurement that tells it ('' if none does).

    `least` is what measurements loaded it with, in its own unit (B/s; B of a window).
    """

    factor: float = 1.0
    rests_on: str = ""
    least: float = 0.0


@dataclass(frozen=True, eq=False)
class System:
    """Hosts, devices, links, domains, volumes and policies, with the catalogue of their parts.

    `readings` says what names that several parts have were taken as, `part_files` are those that the description
    names, as written: paths from its own folder. `measured` has what was measured on this machine, by class of capacity
    (perf.measured_capacity).
    """

    name: str
    devices: Mapping[str, Device]
    links: tuple[Link, ...]
    catalog: Catalog
    title: str = ""
    source: str = ""
    hosts: tuple[str, ...] = ()
    domains: tuple[Domain, ...] = ()
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    policies: Policies = field(default_factory=Policies)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    settings: Mapping[str, int] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    part_files: tuple[str, ...] = ()
    measured: Mapping[tuple[str, ...], MeasuredFactor] = field(default_factory=dict)

    def __repr__(self) -> str:
        values = "".join(f" {name}={value}" for name, value in self.settings.items())
        return f"<System {self.name}{values}: {len(self.devices)} devices, {len(self.links)} links>"

    def with_iommu(self, mode: str | None) -> System:
        """The system with its IOMMU in that mode: off, passthrough, translate or None (not stated)."""
        return replace(self, policies=replace(self.policies, iommu=mode))

    def device(self, name: str) -> Device:
        """The device of that name; UnknownName with the nearest names otherwise."""
        try:
            return self.devices[name]
        except KeyError:
            raise unknown_name(f"device of {self.name}", name, [*self.devices, *self.volumes]) from None

    def part(self, name: str) -> Part | None:
        """The catalogue part of a device, as it is on its host; None where the description names none."""
        device = self.device(name)
        if not device.part:
            return None
        part = self.catalog.get(device.part)
        return self._tenants_parts.setdefault(part.name, part.on_shared_socket) if self._is_shared(device) else part

    def _is_shared(self, device: Device) -> bool:
        return bool(self._shared_hosts) and device.host in self._shared_hosts

    def number(self, name: str, key: str) -> float | None:
        """The figure `key` of a device's part as an SI number, None where unknown."""
        part = self.part(name)
        return part.number(key) if part else None

    def of_kind(self, *kinds: Kind, host: str | None = None) -> list[str]:
        """Names of the devices of those kinds, in the order of the description; of one host if given."""
        return [d.name for d in self.devices.values() if d.kind in kinds and (host is None or d.host == host)]

    def numa_nodes(self, cpu: str) -> tuple[int, ...]:
        """The NUMA nodes of a CPU socket, each with an equal share of its memory channels; () if unknown."""
        return self.device(cpu).nodes

    def numa_node(self, name: str) -> int | None:
        """The NUMA node of a device, None if unknown, and for a CPU that has several."""
        device = self.device(name)
        return device.numa if device.numa_nodes == 1 else None

    def links_at(self, name: str) -> tuple[Link, ...]:
        """The links that end at a device, in the order of the description."""
        return self._adjacent.get(name, ())

    def forwards(self, switch: str, one: Link, other: Link) -> bool:
        """Whether a switch passes data between two of its links: any two, or two of one partition."""
        if not self.devices[switch].partitions:
            return True
        groups = self._groups[switch]
        return bool(groups[id(one)] & groups[id(other)])

    def gpu_forwards(self, gpu: str) -> bool:
        """Whether a GPU passes data on between its links to other GPUs (`nvlink.forwards` of their part)."""
        part = self.part(gpu)
        link = part.figure("nvlink.part").value if part is not None and part.kind == "gpu" else None
        return isinstance(link, str) and self.catalog.get(link).figure("nvlink.forwards").value == "yes"

    def links_between(self, a: str, b: str) -> tuple[Link, ...]:
        """The links whose two ends are these devices."""
        return tuple(link for link in self.links_at(a) if link.far_end(a) == b)

    def domain_of(self, name: str) -> Domain | None:
        """The explicit virtual domain that holds a device, None if the system states none for it."""
        return self._domains.get(name)

    def with_catalog(self, catalog: Catalog) -> System:
        """The same system with another catalogue; cached routes stay valid unless a peer scope differs."""
        system = replace(self, catalog=catalog)
        if system._peer_words == self._peer_words:
            system.__dict__["route_cache_key"] = self.route_cache_key
        system.__dict__["cabling_key"] = self.cabling_key
        return system

    def with_measured(self, measured: Mapping[tuple[str, ...], MeasuredFactor]) -> System:
        """The same system with other factors of capacities; routes stay as they are."""
        system = replace(self, measured=measured)
        system.__dict__["route_cache_key"], system.__dict__["cabling_key"] = self.route_cache_key, self.cabling_key
        return system

    @cached_property
    def route_cache_key(self) -> RouteCacheKey:
        """A new key for this system; its copies with the same routes get the same one."""
        return RouteCacheKey()

    @cached_property
    def cabling_key(self) -> RouteCacheKey:
        """A new key for the cables of this system; its copies with the same devices and links get the same one."""
        return RouteCacheKey()

    @cached_property
    def os_names(self) -> Mapping[str, str]:
        """The devices by their names in the operating system, as far as one device alone has the name."""
        devices: dict[str, set[str]] = defaultdict(set)
        for device in self.devices.values():
            for name in device.os_names:
                devices[name].add(device.name)
        return {name: next(iter(having)) for name, having in devices.items() if len(having) == 1}

    @cached_property
    def _shared_hosts(self) -> frozenset[str | None]:
        """The hosts one of whose sockets other tenants use too."""
        return frozenset(device.host for device in self.devices.values() if device.shared)

    @cached_property
    def _tenants_parts(self) -> dict[str, Part]:
        """Parts as they are on such hosts, by name, each made when it is asked for."""
        return {}

    @cached_property
    def _peer_words(self) -> tuple[object, ...]:
        """The parts' words that routes depend on."""
        keys = {Kind.CPU: "peer.scope", Kind.GPU: "peer.access"}
        figures = [(self.part(d.name), keys[d.kind]) for d in self.devices.values() if d.kind in keys]
        forwards = [self.gpu_forwards(gpu) for gpu in self.of_kind(Kind.GPU)]
        return (*(part and part.figure(key).value for part, key in figures), *forwards)

    @cached_property
    def _adjacent(self) -> dict[str, tuple[Link, ...]]:
        table: dict[str, list[Link]] = defaultdict(list)
        for link in self.links:
            table[link.a].append(link)
            table[link.b].append(link)
        return {name: tuple(links) for name, links in table.items()}

    @cached_property
    def _groups(self) -> dict[str, dict[int, frozenset[int]]]:
        """Of each partitioned switch, the partitions of its links, by the link's identity."""
        divided = {device.name: self.links_at(device.name) for device in self.devices.values() if device.partitions}
        return {
            name: dict(zip(map(id, links), self.devices[name].groups(links), strict=True))
            for name, links in divided.items()
        }

    @cached_property
    def _domains(self) -> dict[str, Domain]:
        return {device: domain for domain in self.domains for device in domain.devices}
