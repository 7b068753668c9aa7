"""Domains, volumes and policies: what lies over the devices and links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lanewise.errors import Contradiction, FormatError, Location, error_location, unknown_name
from lanewise.topology import speeds
from lanewise.topology.model import ENDPOINTS, Device, Domain, Kind, Link, LinkKind, Policies, Volume
from lanewise.topology.ranges import check_name
from lanewise.topology.words import PEER_SCOPES

if TYPE_CHECKING:
    from lanewise.topology.binding import StatedHosts
    from lanewise.topology.form import DomainForm, SystemForm, VolumeForm
    from lanewise.topology.scope import Scope


def read_domains(form: SystemForm, devices: Mapping[str, Device], scope: Scope) -> tuple[Domain, ...]:
    """The virtual domains; problems (no CPU as root, a device in two) go to the scope."""
    domains: list[Domain] = []
    owner: dict[str, str] = {}
    for name, entry in form.domains.items():
        with scope.problems.at(scope.location("domains", name)):
            check_name(name)
            domain = _domain(name, entry, devices, scope)
            for member in sorted(domain.devices):
                if member in owner:
                    cause = f"'{member}' is in two domains, {owner[member]} and {name}"
                    raise Contradiction(
                        cause, location=scope.location("domains", name, "devices"), hint="keep one of the two"
                    )
                owner[member] = name
            domains.append(domain)
    return tuple(domains)


def _domain(name: str, entry: DomainForm, devices: Mapping[str, Device], scope: Scope) -> Domain:
    root = scope.text(entry.root)
    at_root, at_devices = scope.location("domains", name, "root"), scope.location("domains", name, "devices")
    if _known(root, devices, at_root).kind is not Kind.CPU:
        cpus = ", ".join(cpu.name for cpu in devices.values() if cpu.kind is Kind.CPU)
        cause = f"the root of domain '{name}' is {root}, a {devices[root].kind}"
        raise Contradiction(cause, location=at_root, hint=f"the root is a CPU: {cpus or 'this system has none'}")
    members = scope.names(entry.devices)
    for member in members:
        device = _known(member, devices, at_devices)
        if device.kind not in ENDPOINTS:
            cause = f"'{member}' in domain '{name}' is a {device.kind}, not an endpoint"
            raise Contradiction(
                cause, location=at_devices, hint="name GPUs, network cards, drives and controllers only"
            )
    return Domain(name, root, frozenset(members), scope.location("domains", name))


def check_reach(domains: Sequence[Domain], reached: Mapping[str, list[str]], scope: Scope) -> None:
    """Collect a Contradiction for every domain whose root does not reach one of its devices."""
    for domain in domains:
        for member in sorted(domain.devices):
            if domain.root not in reached.get(member, []):
                cause = f"no PCIe or fabric link leads from {domain.root} to '{member}' of domain '{domain.name}'"
                hint = "add the link, or take the device out of the domain"
                scope.problems.add(Contradiction(cause, location=domain.location, hint=hint))


def check_bound(domains: Sequence[Domain], devices: Mapping[str, Device], stated: StatedHosts, scope: Scope) -> None:
    """Collect a Contradiction for every device of a domain that is stated to be bound elsewhere."""
    for domain in domains:
        host = devices[domain.root].host
        for member in sorted(domain.devices & stated.hosts):
            if devices[member].host != host:
                bound = f"bound to {devices[member].host}" if devices[member].host else "unbound"
                cause = f"'{member}' is {bound}, but its domain '{domain.name}' is rooted in {host}"
                hint = f"take host: out of '{member}', or take it out of the domain"
                scope.problems.add(Contradiction(cause, location=devices[member].location, hint=hint))


def read_volumes(form: SystemForm, devices: Mapping[str, Device], scope: Scope) -> dict[str, Volume]:
    """The logical volumes; problems (no drive, too few, an odd count) go to the scope."""
    volumes: dict[str, Volume] = {}
    for name, entry in form.volumes.items():
        location = scope.location("volumes", name)
        with scope.problems.at(location):
            check_name(name)
            if name in devices:
                raise Contradiction(f"'{name}' is a device and a volume", hint="rename one of the two")
            volumes[name] = _volume(name, entry, devices, scope)
    return volumes


def _volume(name: str, entry: VolumeForm, devices: Mapping[str, Device], scope: Scope) -> Volume:
    at_drives = scope.location("volumes", name, "drives")
    drives = scope.names(entry.drives)
    for drive in drives:
        _check_kind(drive, Kind.SSD, "a drive", devices, at_drives)
        if drives.count(drive) > 1:
            raise Contradiction(f"'{drive}' is given twice in volume '{name}'", location=at_drives, hint="name it once")
    count = len(drives)
    if count < (needed := {0: 1, 5: 3, 10: 4}[entry.raid]):
        cause = f"volume '{name}' has {count} drive{'s' * (count != 1)}; RAID-{entry.raid} needs {needed}"
        raise Contradiction(cause, location=at_drives, hint="add drives, or choose another level")
    if entry.raid == 10 and count % 2:
        cause = f"volume '{name}' has {count} drives; RAID-10 needs an even number"
        raise Contradiction(cause, location=at_drives, hint="add or take out one drive")
    controller = scope.text(entry.controller) if entry.controller else None
    if controller:
        _check_kind(controller, Kind.RAID, "a RAID controller", devices, scope.location("volumes", name, "controller"))
    with error_location(scope.location("volumes", name, "chunk")):
        chunk = speeds.read_positive(entry.chunk, "B") if entry.chunk is not None else None
    return Volume(name, entry.raid, tuple(drives), controller, chunk, scope.location("volumes", name))


def read_policies(form: SystemForm, devices: Mapping[str, Device], links: Sequence[Link], scope: Scope) -> Policies:
    """The policies; problems (an unknown scope, a switch that is none) go to the scope."""
    entry = form.policies
    policies = Policies()
    with scope.problems.at(scope.location("policies", "peers")):
        policies = Policies(peer_scope=_peers(entry.peers, devices, scope))
    redirect: frozenset[str] = frozenset()
    with scope.problems.at(scope.location("policies", "acs_redirect")):
        redirect = _redirect(entry.acs_redirect, devices, scope)
    cross = False
    with scope.problems.at(scope.location("policies", "cross_domain_p2p")):
        cross = bool(scope.whole(entry.cross_domain_p2p))
        if cross and not form.domains and not any(link.kind is LinkKind.FABRIC for link in links):
            hint = "add domains: or a fabric: link, or take cross_domain_p2p out"
            raise Contradiction("cross_domain_p2p is on, but the system has no domains and no fabric", hint=hint)
    staging: dict[str, str] = {}
    with scope.problems.at(scope.location("policies", "staging")):
        staging = _staging(scope.names(entry.staging), devices, scope.location("policies", "staging"))
    return Policies(policies.peer_scope, redirect, "off" if entry.iommu is False else entry.iommu, cross, staging)


def _staging(names: Sequence[str], devices: Mapping[str, Device], location: Location) -> dict[str, str]:
    """By host the CPU that these names have for it."""
    cpus: dict[str, str] = {}
    for name in names:
        _check_kind(name, Kind.CPU, "a CPU", devices, location)
        if (host := devices[name].host or "") in cpus:
            cause = f"'{cpus[host]}' and '{name}' of one host cannot both have the staging buffers"
            raise Contradiction(cause, location=location, hint="name one CPU of each host")
        cpus[host] = name
    return cpus


def _peers(stated: str | dict[str, str], devices: Mapping[str, Device], scope: Scope) -> dict[str, str]:
    """The peer scope of each CPU that states one; the others have that of their part, its `peer.scope`."""
    cpus = [device.name for device in devices.values() if device.kind is Kind.CPU]
    if isinstance(stated, str):
        return dict.fromkeys(cpus, _peer_scope(scope.text(stated), scope.location("policies", "peers")))
    scopes: dict[str, str] = {}
    for pattern, word in stated.items():
        location = scope.location("policies", "peers", pattern)
        for name in scope.names(pattern):
            _check_kind(name, Kind.CPU, "a CPU", devices, location)
            if name in scopes:
                raise Contradiction(
                    f"peers through '{name}' are stated twice", location=location, hint="keep one of the two"
                )
            scopes[name] = _peer_scope(scope.text(word), location)
    return scopes


def _peer_scope(word: str, location: Location) -> str:
    if word not in PEER_SCOPES:
        raise unknown_name("peer scope", word, PEER_SCOPES, location)
    return word


def _redirect(stated: bool | str | list[str], devices: Mapping[str, Device], scope: Scope) -> frozenset[str]:
    if isinstance(stated, str) and "{" in stated and (number := scope.text(stated).strip()).isdecimal():
        stated = int(number) != 0 if number not in devices else stated
    if isinstance(stated, str) and stated.lower() in ("yes", "no", "on", "off") and stated not in devices:
        raise FormatError(f"'{stated}' is neither true nor false", hint="write true for all switches, or name switches")
    if isinstance(stated, bool):
        return frozenset(device.name for device in devices.values() if stated and device.kind is Kind.SWITCH)
    location = scope.location("policies", "acs_redirect")
    names = scope.names(stated)
    for name in names:
        if _known(name, devices, location).kind not in (Kind.SWITCH, Kind.CPU):
            cause = f"'{name}' is a {devices[name].kind}; only switches and CPUs redirect peer traffic"
            raise Contradiction(cause, location=location, hint="name switches, or write true for all of them")
    return frozenset(names)


def _known(name: str, devices: Mapping[str, Device], location: Location) -> Device:
    if name not in devices:
        raise unknown_name("device", name, devices, location)
    return devices[name]


def _check_kind(name: str, kind: Kind, what: str, devices: Mapping[str, Device], location: Location) -> None:
    device = _known(name, devices, location)
    if device.kind is not kind:
        names = ", ".join(candidate.name for candidate in devices.values() if candidate.kind is kind)
        hint = f"{what} would be {names}" if names else f"the system has none; add one with {kind}:"
        raise Contradiction(f"'{name}' is a {device.kind}, not {what}", location=location, hint=hint)
