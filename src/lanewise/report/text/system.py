"""`lanewise system` and `lanewise discover --table` as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lanewise.report.screen import PIPE, Screen
from lanewise.report.table import Column, Table, render_table
from lanewise.report.words import link_speed
from lanewise.topology.model import Device, Kind, System


def render_systems(systems: Sequence[System], screen: Screen = PIPE) -> str:
    """One line a built-in system."""
    columns = [Column("system"), Column("GPUs", number=True), Column("parameters", drop=1, wrap=True),
               Column("title", wrap=True)]  # fmt: skip
    table = Table(columns)
    for system in systems:
        parameters = " ".join(f"{name}={parameter.default}" for name, parameter in system.parameters.items())
        table.add(system.name, str(len(system.of_kind(Kind.GPU))), parameters, system.title)
    return render_table(table, screen)


def render_system(system: System, screen: Screen = PIPE) -> str:
    """Devices, links, domains, volumes and assumptions."""
    lines = [f"{system.name}: {system.title}" if system.title else system.name]
    lines += [f"source: {system.source}"] if system.source else []
    for name, entry in system.parameters.items():
        allowed = ", ".join(map(str, entry.values)) if entry.values else f"{entry.minimum} to {entry.maximum}"
        lines.append(f"parameter {name} = {system.settings.get(name, entry.default)} ({allowed}): {entry.help}")
    devices = Table([Column("device"), Column("kind"), Column("part"), Column("host", drop=2), Column("NUMA", drop=1)])
    for device in system.devices.values():
        devices.add(device.name, str(device.kind), device.part or "", device.host or "free", _numa(device))
    links = Table([Column("from"), Column("to"), Column("link")])
    for link in system.links:
        links.add(link.a, link.b, link_speed(link))
    facts = [f"domain {domain.name} at {domain.root}: {', '.join(sorted(domain.devices))}" for domain in system.domains]
    facts += [f"volume {v.name}: RAID {v.raid} over {', '.join(v.drives)}" for v in system.volumes.values()]
    facts += [f"assumed: {text}" for text in system.assumptions]
    parts = ["\n".join(screen.wrap(line, 2) for line in lines), render_table(devices, screen)]
    parts += [render_table(links, screen)] if links.rows else []
    return "\n\n".join([*parts, *(["\n".join(screen.wrap(text, 2) for text in facts)] if facts else [])])


def render_discovery(system: System, names: Mapping[str, str], screen: Screen = PIPE) -> str:
    """Devices with the `names` that the dumps give them, links, volumes and assumptions."""
    devices = Table([Column("device"), Column("kind"), Column("part", drop=1), Column("NUMA", drop=2),
                     Column("in the dumps", wrap=True)])  # fmt: skip
    for device in system.devices.values():
        devices.add(device.name, str(device.kind), device.part or "", _numa(device), names[device.name])
    links = Table([Column("from"), Column("to"), Column("link"), Column("root port", drop=1)])
    for link in system.links:
        links.add(link.a, link.b, link_speed(link), link.port)
    volumes = Table([Column("volume"), Column("level"), Column("drives", wrap=True)])
    for volume in system.volumes.values():
        volumes.add(volume.name, f"RAID-{volume.raid}", " ".join(volume.drives))
    assumed = "\n".join(screen.wrap(f"assumed: {text}", 2) for text in system.assumptions)
    tables = [render_table(table, screen) for table in (devices, links, volumes) if table.rows]
    return "\n\n".join(filter(None, [*tables, assumed]))


def _numa(device: Device) -> str:
    return "" if device.numa is None else str(device.numa)
