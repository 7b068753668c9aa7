"""From a System to the text of a description that reads back as the same system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, takewhile
from typing import Any

from lanewise import units
from lanewise.errors import LanewiseError
from lanewise.topology import speeds
from lanewise.topology.binding import StatedHosts, default_bridge, name_ports, settle_hosts
from lanewise.topology.model import Device, Kind, Link, LinkKind, Parameter, Policies, System, Volume
from lanewise.topology.ranges import check_name, fold
from lanewise.topology.scope import Problems

Plain = dict[str, Any]
_WIDTH = 120


class FlowStyle(dict[str, Any]):
    """A mapping that is written on one line."""


def write_system(system: System) -> str:
    """The description of a system as YAML, ranges folded; FormatError for a name the format cannot hold.

    It describes the system at its current settings: parameters are fixed at their values.
    """
    import yaml  # here, so that importing the model stays cheap

    dumper: Any = type("Dumper", (getattr(yaml, "CSafeDumper", yaml.SafeDumper),), {})  # one of our own to add to

    def on_one_line(dumper: yaml.SafeDumper, data: FlowStyle) -> yaml.Node:
        return dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=True)

    dumper.add_representer(FlowStyle, on_one_line)
    dumper.ignore_aliases = lambda *_: True
    text: str = yaml.dump(_document(system), Dumper=dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text


def _document(system: System) -> Plain:
    document: Plain = {"lanewise": 1, "system": system.name, "title": system.title, "source": system.source}
    document["parts"] = list(system.part_files)
    document["parameters"] = {name: _parameter(parameter) for name, parameter in system.parameters.items()}
    document["settings"] = FlowStyle(system.settings) if system.parameters else None
    document["hosts"] = list(system.hosts) if system.hosts != ("host0",) else None
    document["devices"] = _devices(system)
    document["links"] = _links(system)
    document["domains"] = {
        domain.name: FlowStyle(root=domain.root, devices=_folded(_in_order(system, domain.devices)))
        for domain in system.domains
    }
    document["volumes"] = {name: _volume(volume) for name, volume in system.volumes.items()}
    document["policies"] = _policies(system, system.policies)
    document["assumptions"] = list(system.assumptions)
    return {key: value for key, value in document.items() if value or key in ("lanewise", "devices")}


def _parameter(parameter: Parameter) -> FlowStyle:
    entry = FlowStyle(default=parameter.default)
    if parameter.values:
        entry["values"] = list(parameter.values)
    if parameter.minimum:
        entry["min"] = parameter.minimum
    if parameter.maximum != Parameter("", 0).maximum:
        entry["max"] = parameter.maximum
    if parameter.help:
        entry["help"] = parameter.help
    return entry


def _devices(system: System) -> Plain:
    """Entries by name or range; hosts and NUMA nodes only where the cabling does not give them."""
    stated = _to_state(system)
    entries: list[tuple[str, FlowStyle]] = []
    for device in system.devices.values():
        check_name(device.name)
        entries.append((device.name, _device(system, device, stated)))
    patterns: Plain = {}
    for _, run in groupby(entries, key=lambda entry: repr(entry[1])):
        group = list(run)
        for pattern in fold([name for name, _ in group]):
            patterns[pattern] = group[0][1]
    return patterns


def _to_state(system: System) -> StatedHosts:
    """The devices whose host or NUMA node the reader would not settle as it is."""
    hosts = _unlike(system, StatedHosts(), "host")
    # The CPUs of a host are numbered together, so they state their NUMA nodes together.
    wrong = {system.devices[name].host for name in _unlike(system, StatedHosts(hosts), "numa") & _cpus(system)}
    cpus = frozenset(name for name in _cpus(system) if system.devices[name].host in wrong)
    stated, more = cpus, _unlike(system, StatedHosts(hosts, cpus), "numa")
    while more:  # below a switch with several uplinks the node that one device states settles those of others
        stated |= more
        more = _unlike(system, StatedHosts(hosts, stated), "numa")
    return StatedHosts(hosts, stated)


def _unlike(system: System, stated: StatedHosts, what: str) -> frozenset[str]:
    bare = {
        name: replace(
            device,
            host=device.host if device.kind is Kind.CPU or name in stated.hosts else None,
            numa=device.numa if name in stated.numas else None,
        )
        for name, device in system.devices.items()
    }
    settled = settle_hosts(bare, system.links, system.domains, stated, Problems())
    return frozenset(
        name for name, device in system.devices.items() if getattr(settled[name], what) != getattr(device, what)
    )


def _cpus(system: System) -> frozenset[str]:
    return frozenset(system.of_kind(Kind.CPU))


def _device(system: System, device: Device, stated: StatedHosts) -> FlowStyle:
    entry = FlowStyle({_word(system, device): device.part})
    many_hosts = device.kind is Kind.CPU and len(system.hosts) != 1
    if device.name in stated.hosts or many_hosts:
        entry["host"] = device.host
    if device.name in stated.numas:
        entry["numa"] = device.numa
    if device.numa_nodes > 1:
        entry["numa_nodes"] = device.numa_nodes
    if device.shared:
        entry["shared"] = True
    if device.power_limit is not None:
        entry["power_limit"] = units.exact(device.power_limit, "W")
    if device.os_names:
        entry["os_names"] = list(device.os_names)
    if device.partitions:
        entry["partitions"] = [fold(sorted(group)) for group in device.partitions]
    return entry


def _word(system: System, device: Device) -> str:
    if device.kind is Kind.SWITCH and device.part:
        try:
            return "adapter" if system.catalog.get(device.part).kind == "adapter" else "switch"
        except LanewiseError:
            return "switch"
    return device.kind.value


def _links(system: System) -> list[FlowStyle]:
    """Entries with neighbouring links alike folded into stars, from one end to many or from many to one."""
    silent = _silent_ports(system)
    entries = [(link.a, link.b, _link(system, link, link.a in silent)) for link in system.links]
    folded: list[FlowStyle] = []
    start = 0
    while start < len(entries):
        above, below, words = entries[start]
        down, up = (_alike(entries, start, end) for end in (0, 1))
        run = entries[start : start + max(down, up)]
        many = [entry[1] if down >= up else entry[0] for entry in run]
        ends = {"from": above, "to": _folded(many)} if down >= up else {"from": _folded(many), "to": below}
        folded.append(FlowStyle({**ends, **words}))
        start += len(run)
    return folded


def _alike(entries: Sequence[tuple[str, str, FlowStyle]], start: int, end: int) -> int:
    """How many entries from `start` on share that end and say the same."""
    first = entries[start]
    return len(list(takewhile(lambda entry: (entry[end], entry[2]) == (first[end], first[2]), entries[start:])))


def _silent_ports(system: System) -> set[str]:
    """The CPUs whose root ports have the names that the reader would give them."""
    bare = [replace(link, port="", bridge="") for link in system.links]
    named = name_ports(system.devices, bare, system.catalog, Problems())
    odd = {link.a for link, plain in zip(system.links, named, strict=True) if link.port != plain.port}
    return set(system.devices) - odd


def _link(system: System, link: Link, silent: bool) -> FlowStyle:
    entry = FlowStyle({link.kind.value: _speed(link)})
    if link.rate is not None and link.kind is not LinkKind.NETWORK:
        entry["rate"] = speeds.write_quantity(link.rate, "B/s")
    if link.port and not silent:
        entry["port"] = link.port
    if link.bridge and link.bridge != default_bridge(system.device(link.a), link.port, system.catalog):
        entry["bridge"] = link.bridge
    if link.max_payload is not None:
        entry["max_payload"] = speeds.write_quantity(link.max_payload, "B")
    if link.length is not None:
        entry["length"] = speeds.write_quantity(link.length, "m")
    return entry


def _speed(link: Link) -> str | int:
    if link.kind in (LinkKind.PCIE, LinkKind.FABRIC):
        return speeds.write_pcie(link.gen, link.lanes)
    if link.kind is LinkKind.NETWORK:
        return speeds.UNKNOWN if link.rate is None else speeds.write_network(link.rate, link.ethernet)
    return link.count if link.count_known else speeds.UNKNOWN


def _volume(volume: Volume) -> FlowStyle:
    entry = FlowStyle(raid=volume.raid, drives=_folded(list(volume.drives)))
    if volume.controller:
        entry["controller"] = volume.controller
    if volume.chunk is not None:
        entry["chunk"] = speeds.write_quantity(volume.chunk, "B")
    return entry


def _policies(system: System, policies: Policies) -> Plain:
    entry: Plain = {}
    if policies.peer_scope:
        entry["peers"] = FlowStyle(policies.peer_scope)
    if policies.acs_redirect:
        entry["acs_redirect"] = _folded(_in_order(system, policies.acs_redirect))
    if policies.iommu is not None:
        entry["iommu"] = policies.iommu
    if policies.cross_domain_p2p:
        entry["cross_domain_p2p"] = True
    if policies.staging:
        entry["staging"] = _folded(list(policies.staging.values()))
    return entry


def _in_order(system: System, names: frozenset[str]) -> list[str]:
    return [name for name in system.devices if name in names]


def _folded(names: list[str]) -> str | list[str]:
    patterns = fold(names)
    return patterns[0] if len(patterns) == 1 else patterns
