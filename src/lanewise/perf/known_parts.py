"""What the model takes for the part of a device: its own with typical figures where it has none, or a typical part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.catalog import Figure, Part
from lanewise.catalog.ports import is_chipset, port
from lanewise.catalog.typical import completed, typical_part
from lanewise.perf.uncertainty import Bound
from lanewise.topology.expand_links import DRIVE_LANES
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


def link_with_speed(system: System, link: Link, bound: Bound = "nominal") -> Link:
    """A PCIe link with the generation and lanes that its ends can do where the description has none, if they tell.

    Of a chipset that is not named the typical ones, or with `bound` the least or most that any has.
    """
    if link.gen is not None and link.lanes is not None:
        return link
    ports = [port(_named(system, part), is_upper) for end, is_upper in ((link.a, True), (link.b, False))
             if (part := system.part(end)) is not None]  # fmt: skip
    gen, lanes = (_least(figures, bound) for figures in zip(*ports, strict=True)) if ports else (None, None)
    ends = (system.device(end) for end in (link.a, link.b))
    if link.gen is not None and any(end.kind is Kind.SSD and end.part is None for end in ends):
        lanes = min(lanes or DRIVE_LANES, DRIVE_LANES)
    return replace(link, gen=link.gen or gen, lanes=link.lanes or lanes)


def settled_link(system: System, link: Link) -> Link:
    """A PCIe link with the speed that its ends settle where the description has none, else as it is."""
    least, most = (link_with_speed(system, link, bound) for bound in ("low", "high"))
    return least if (least.gen, least.lanes) == (most.gen, most.lanes) else link


def _named(system: System, part: Part) -> Part:
    return completed(system.catalog, part) if is_chipset(part) else part


def _least(figures: Sequence[Figure | None], bound: Bound) -> int | None:
    values = [_at(figure, bound) for figure in figures if figure is not None]
    return min((round(value) for value in values if value is not None), default=None)


def _at(figure: Figure, bound: Bound) -> float | None:
    end = {"low": figure.low, "nominal": None, "high": figure.high}[bound]
    return end if end is not None else figure.value if isinstance(figure.value, float) else None


def is_of_amd(part: Part) -> bool:
    """Whether AMD makes a part; one of the kind nvlink is Infinity Fabric between GPUs then."""
    return maker(part) == "AMD"


def maker(part: Part) -> str:
    """The first word of its title."""
    return part.title.partition(" ")[0]
