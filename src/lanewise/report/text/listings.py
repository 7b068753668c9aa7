"""Systems, machines, parts, cases of measurement and dependencies as text: what there is, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lanewise import units
from lanewise.catalog import Figure, Part
from lanewise.installed import Dependency
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Footnotes, Table, TableCell, render_table
from lanewise.report.words import link_speed, part_word
from lanewise.topology.model import Device, Kind, System


def render_systems(systems: Sequence[System], screen: Screen = PLAIN) -> str:
    """One line a built-in system."""
    columns = [Column("system"), Column("GPUs", number=True), Column("parameters", drop_order=1, wrap=True),
               Column("title", wrap=True)]  # fmt: skip
    table = Table(columns)
    for system in systems:
        parameters = " ".join(f"{name}={parameter.default}" for name, parameter in system.parameters.items())
        table.add(system.name, str(len(system.of_kind(Kind.GPU))), parameters, system.title)
    return render_table(table, screen)


def render_system(system: System, screen: Screen = PLAIN) -> str:
    """Devices, links, domains, volumes and assumptions."""
    lines = [f"{system.name}: {system.title}" if system.title else system.name]
    lines += [f"source: {system.source}"] if system.source else []
    for name, entry in system.parameters.items():
        allowed = ", ".join(map(str, entry.values)) if entry.values else f"{entry.minimum} to {entry.maximum}"
        lines.append(f"parameter {name} = {system.settings.get(name, entry.default)} ({allowed}): {entry.help}")
    devices = Table([
        Column("device"), Column("kind"), Column("part"), Column("host", drop_order=2), Column("NUMA", drop_order=1),
        *([Column("in the OS", drop_order=3, wrap=True)] if system.os_names else []),
    ])  # fmt: skip
    for device in system.devices.values():
        names = [" ".join(device.os_names)] if system.os_names else []
        devices.add(device.name, str(device.kind), part_word(device.part or ""), device.host or "free", _numa(device), *names)
    several = {link.bridge for link in system.links if link.bridge != link.port}
    links = Table([Column("from"), Column("to"), Column("link"), *([Column("host bridge")] if several else [])])
    for link in system.links:
        links.add(link.a, link.b, link_speed(link), *([link.bridge] if several else []))
    facts = [f"domain {domain.name} at {domain.root}: {', '.join(sorted(domain.devices))}" for domain in system.domains]
    facts += [f"volume {v.name}: RAID {v.raid} over {', '.join(v.drives)}" for v in system.volumes.values()]
    facts += [f"part: {text}" for text in system.readings]
    facts += [f"assumed: {text}" for text in system.assumptions]
    parts = ["\n".join(screen.wrap(line, indent=2) for line in lines), render_table(devices, screen)]
    parts += [render_table(links, screen)] if links.rows else []
    return "\n\n".join([*parts, *(["\n".join(screen.wrap(text, indent=2) for text in facts)] if facts else [])])


def render_discovery(system: System, names: Mapping[str, str], screen: Screen = PLAIN) -> str:
    """Devices with the `names` that the dumps give them, links, volumes and assumptions."""
    devices = Table([Column("device"), Column("kind"), Column("part", drop_order=1), Column("NUMA", drop_order=2),
                     Column("in the dumps", wrap=True)])  # fmt: skip
    for device in system.devices.values():
        devices.add(device.name, str(device.kind), part_word(device.part or ""), _numa(device), names[device.name])
    links = Table([Column("from"), Column("to"), Column("link"), Column("root port", drop_order=1)])
    for link in system.links:
        links.add(link.a, link.b, link_speed(link), link.port)
    volumes = Table([Column("volume"), Column("level"), Column("drives", wrap=True)])
    for volume in system.volumes.values():
        volumes.add(volume.name, f"RAID-{volume.raid}", " ".join(volume.drives))
    assumed = "\n".join(screen.wrap(f"assumed: {text}", indent=2) for text in system.assumptions)
    tables = [render_table(table, screen) for table in (devices, links, volumes) if table.rows]
    return "\n\n".join(filter(None, [*tables, assumed]))


def _numa(device: Device) -> str:
    if device.numa is None:
        return ""
    return str(device.numa) if device.numa_nodes == 1 else f"{device.numa}-{device.numa + device.numa_nodes - 1}"


def render_doctor(versions: Mapping[str, str], pieces: Sequence[Dependency], screen: Screen = PLAIN) -> str:
    """Versions, and which optional dependencies are installed."""
    table = Table([Column("dependency"), Column("installed"), Column("detail", drop_order=1, wrap=True),
                   Column("without it", wrap=True)])  # fmt: skip
    for piece in pieces:
        installed = TableCell("yes", "good") if piece.found else TableCell("no", "off")
        table.add(piece.piece, installed, piece.detail, "" if piece.found else piece.without_it)
    return f"{screen.facts(versions.items())}\n\n{render_table(table, screen)}"


def render_parts(parts: Sequence[Part], screen: Screen = PLAIN) -> str:
    """One line a part."""
    table = Table([
        Column("part"), Column("kind"), Column("figures", number=True, drop_order=1), Column("title", wrap=True),
    ])  # fmt: skip
    for part in sorted(parts, key=lambda part: (part.kind, part.name)):
        table.add(part.name, part.kind, str(len(part.figures)), part.title)
    return render_table(table, screen)


def render_part(part: Part, screen: Screen = PLAIN) -> str:
    """Every figure of a part with its basis and source."""
    notes = Footnotes()
    table = Table([Column("figure"), Column("value"), Column("basis"), Column("source")])
    for key, figure in part.figures.items():
        machines = f"measured on {', '.join(figure.machines)}" if figure.machines else ""
        source = "; ".join(filter(None, (figure.source, figure.condition, machines)))
        table.add(key, _value(figure), figure.basis if figure.known else "", notes.mark([source]))
    lines = [screen.wrap(f"{part.name}: {part.title} ({part.kind})", indent=2)]
    lines += [screen.wrap(f"also called {', '.join(part.aliases)}", indent=2)] if part.aliases else []
    return "\n".join([*lines, "", render_table(table, screen), "", notes.render(screen)])


def _value(figure: Figure) -> str:
    if figure.value is None or isinstance(figure.value, str):
        return figure.value or "unknown"
    unit = {"B/s": "GB/s", "T/s": "GT/s", "1/s": "QPS"}.get(figure.unit, figure.unit)
    if figure.unit == "s":
        unit = "ns" if figure.value < 1e-6 else "us"
    if figure.unit == "B":
        unit = "B" if figure.value < 4096 else "GiB" if figure.value >= 2**30 else "KiB"
    whole = unit in ("1", "B", "GiB", "KiB") and units.from_si(figure.value, unit).is_integer()
    return units.show(figure.value, unit, len(str(int(units.from_si(figure.value, unit)))) if whole else 4)


def render_cases(cases: Sequence[Mapping[str, Any]], screen: Screen = PLAIN) -> str:
    """One line a case of `measure gpu`."""
    table = Table([Column("case"), Column("shows", wrap=True), Column("for", drop_order=2), Column("flows", wrap=True),
                   Column("same as", drop_order=1, wrap=True)])  # fmt: skip
    for case in cases:
        flows = ", ".join(text.format(a="A", b="B") for text in case["flows"])
        table.add(case["name"], case["shows"], str(case["scope"]), flows, case["tool"])
    return render_table(table, screen)
