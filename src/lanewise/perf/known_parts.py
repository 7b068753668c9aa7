"""What the model takes for the part of a device: its own with typical figures where it has none, or a typical part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.catalog import Part
from lanewise.catalog.typical import completed, typical_part
from lanewise.topology.model import Kind, Link, LinkKind, System

_TYPICAL = (Kind.CPU, Kind.GPU, Kind.SWITCH)


def part_of(system: System, device: str) -> Part | None:
    """The part of a device with no figure missing that other parts tell; None for a NIC or drive without a part."""
    part = system.part(device)
    if part is not None:
        return completed(system.catalog, part)
    kind = system.device(device).kind
    if kind not in _TYPICAL:
        return None
    gens = [link.gen for link in system.links_at(device) if link.gen is not None]
    sockets = 1 + sum(link.kind is LinkKind.SOCKET for link in system.links_at(device)) if kind is Kind.CPU else 1
    return typical_part(system.catalog, kind.value, max(gens, default=None), min(sockets, 2))


def number_of(system: System, device: str, key: str) -> float | None:
    """The figure `key` of that part as an SI number, None where unknown."""
    part = part_of(system, device)
    return part.number(key) if part is not None else None


def link_with_speed(system: System, link: Link) -> Link:
    """A PCIe link with the generation and lanes that its ends can do where the description has none, if they tell."""
    if link.gen is not None and link.lanes is not None:
        return link
    parts = [part for end in (link.a, link.b) if (part := system.part(end)) is not None]
    # The lanes of a CPU or switch are those of all its ports.
    ends = [part for part in parts if part.kind not in ("cpu", "switch")]
    return replace(link, gen=link.gen or _least(parts, "pcie.gen"), lanes=link.lanes or _least(ends, "pcie.lanes"))


def _least(parts: Sequence[Part], key: str) -> int | None:
    return min((round(value) for part in parts if (value := part.number(key)) is not None), default=None)
