"""`lanewise system` and `lanewise discover --table` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.report.table import text_table
from lanewise.report.words import link_speed
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lanewise.topology.model import Device, System


def render_systems(systems: Sequence[System]) -> str:
    """One line a ready system."""
    rows = [
        (
            s.name,
            str(len(s.of_kind(Kind.GPU))),
            " ".join(f"{n}={p.default}" for n, p in s.parameters.items()),
            s.title,
        )
        for s in systems
    ]
    return text_table(("system", "GPUs", "parameters", "title"), rows, right=("GPUs",))


def render_system(system: System) -> str:
    """Devices, links, domains, volumes and assumptions."""
    lines = [f"{system.name}: {system.title}" if system.title else system.name]
    lines += [f"source: {system.source}"] if system.source else []
    for name, entry in system.parameters.items():
        allowed = ", ".join(map(str, entry.values)) if entry.values else f"{entry.minimum} to {entry.maximum}"
        lines.append(f"parameter {name} = {system.settings.get(name, entry.default)} ({allowed}): {entry.help}")
    devices = [(d.name, str(d.kind), d.part or "", d.host or "free", _numa(d)) for d in system.devices.values()]
    lines += ["", text_table(("device", "kind", "part", "host", "NUMA"), devices)]
    links = [(link.a, link.b, link_speed(link)) for link in system.links]
    lines += ["", text_table(("from", "to", "link"), links)]
    lines += ["", *(f"domain {d.name} at {d.root}: {', '.join(sorted(d.devices))}" for d in system.domains)]
    lines += [f"volume {v.name}: RAID {v.raid} over {', '.join(v.drives)}" for v in system.volumes.values()]
    lines += [f"assumed: {text}" for text in system.assumptions]
    return "\n".join(lines).rstrip()


def render_discovery(system: System, names: Mapping[str, str]) -> str:
    """Devices with the `names` that the dumps give them, links, volumes and assumptions."""
    devices = [(d.name, str(d.kind), d.part or "", _numa(d), names[d.name]) for d in system.devices.values()]
    links = [(link.a, link.b, link_speed(link), link.port) for link in system.links]
    lines = [text_table(("device", "kind", "part", "NUMA", "in the dumps"), devices), ""]
    lines += [text_table(("from", "to", "link", "root port"), links), ""] if links else []
    volumes = [(v.name, f"RAID-{v.raid}", " ".join(v.drives)) for v in system.volumes.values()]
    lines += [text_table(("volume", "level", "drives"), volumes), ""] if volumes else []
    lines += [f"assumed: {text}" for text in system.assumptions]
    return "\n".join(lines).rstrip()


def _numa(device: Device) -> str:
    return "" if device.numa is None else str(device.numa)
