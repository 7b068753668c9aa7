"""What the parts at the two ends of a link can do: settles `auto`, and refuses what no part supports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from lanewise import units
from lanewise.catalog import Catalog, Figure, Part
from lanewise.catalog.ports import is_chipset, port
from lanewise.errors import Contradiction, FormatError
from lanewise.topology import speeds
from lanewise.topology.model import Device, Kind, Link, LinkKind
from lanewise.topology.scope import Problems

Ends = tuple["Part | None", "Part | None"]
_WIDEST = 16
_NVLINKS = ("nvlink.links", "NVLinks")


def whole_figure(part: Part | None, key: str) -> int | None:
    """A figure of a part as a whole number, None if there is no part or the figure is unknown."""
    return _whole(part.figure(key)) if part else None


def _whole(figure: Figure | None) -> int | None:
    return int(figure.value) if figure is not None and isinstance(figure.value, float) else None


def pcie_speed(link: Link, stated: speeds.Pcie, parts: Ends, most_lanes: int | None = None) -> Link:
    """The link with its generation and lanes; Contradiction if either part cannot train that high.

    `most_lanes` are those of an end whose part is unknown; what is stated may exceed them.
    """
    ports = [(part, *port(part, is_upper)) for part, is_upper in zip(parts, (True, False), strict=True) if part]
    gens = {part.name: gen for part, figure, _ in ports if (gen := _whole(figure))}
    widths = {part.name: width for part, _, figure in ports if (width := _whole(figure) or _width(part))}
    _check(stated.gen, gens, "Gen{}", "gen{}")
    _check(stated.lanes, widths, "x{}", "x{}")
    if most_lanes is not None:
        widths[""] = most_lanes
    is_open = any(is_chipset(part) and not figure.known for part, figure, _ in ports)  # a chipset that is not named
    return replace(
        link,
        gen=(None if is_open else min(gens.values(), default=None)) if stated.auto_gen else stated.gen,
        lanes=(None if is_open else min(widths.values(), default=None)) if stated.auto_lanes else stated.lanes,
    )


def _width(part: Part) -> int | None:
    lanes = whole_figure(part, "pcie.lanes")
    # The lanes of a CPU or a switch are those of all its ports together; one port has 16 at most.
    return None if lanes is None else min(lanes, _WIDEST)


def _check(stated: int | None, limits: Mapping[str, int], shown: str, written: str) -> None:
    for name, limit in limits.items():
        if stated is not None and stated > limit:
            cause = f"{name} is {shown.format(limit)}; the link cannot be {shown.format(stated)}"
            hint = f"write {written.format(limit)}, or leave it out: it then follows the parts"
            raise Contradiction(cause, hint=hint)


def network_speed(link: Link, stated: str, parts: Ends) -> Link:
    """The link with its data rate in B/s; Contradiction if a card's port is slower."""
    limits = {part.name: rate for part in parts if part and part.kind == "nic" and (rate := part.number("net.rate"))}
    if stated.strip() == speeds.UNKNOWN:
        return link
    if stated.strip().lower() == speeds.AUTO:
        return link if link.rate else replace(link, rate=min(limits.values(), default=None))
    if link.rate:
        raise Contradiction("the link states its rate twice", hint="write network: auto, or take out rate:")
    rate = speeds.read_network(stated)
    for name, limit in limits.items():
        # Vendors round the data rate of a port by up to 3 %.
        if rate > limit * 1.03:
            rates = f"{units.show(limit, 'Gb/s')}; the link cannot be {units.show(rate, 'Gb/s')}"
            raise Contradiction(f"a port of {name} does {rates}", hint="write network: auto to follow the parts")
    return replace(link, rate=rate, ethernet=speeds.is_ethernet(stated))


def nvlink_keys(part: Part | None) -> tuple[str, str]:
    """The figure that counts a GPU's links to a CPU, and their name: NVLink-C2C where it has that, else NVLink."""
    return ("c2c.links", "NVLink-C2C links") if part and part.figure("c2c.links").known else _NVLINKS


def bonded(link: Link, stated: int | None, parts: Ends) -> Link:
    """The link with its number of bonded links, None for all; Contradiction if the parts have fewer."""
    kind = "cpu" if link.kind is LinkKind.SOCKET else "gpu"
    having = [part for part in parts if part and part.kind == kind]
    to_cpu = any(part and part.kind == "cpu" for part in parts)
    key, word = ("intersocket.links", "inter-socket links")
    if link.kind is not LinkKind.SOCKET:
        key, word = _NVLINKS if not to_cpu else nvlink_keys(having[0] if having else None)
    limits = {part.name: count for part in having if (count := whole_figure(part, key)) is not None}
    if stated is None:
        if not limits and link.kind is LinkKind.SOCKET:
            return replace(link, count_known=False)
        if not limits:
            hint = f"write {link.kind}: <number>"
            raise FormatError(f"the parts do not say how many {word} they have", hint=hint)
        stated = min(limits.values()) // link.count  # link.count: among how many a mesh divides them
    if stated < 1:
        raise FormatError(f"a link of {stated} {word} is none", hint="take the link out, or write 1 or more")
    for name, limit in limits.items():
        if stated > limit:
            raise Contradiction(
                f"{name} has {limit} {word}; the link cannot bond {stated}", hint=f"write {limit} or less"
            )
    return replace(link, count=stated)


def check_sums(devices: Mapping[str, Device], links: Iterable[Link], catalog: Catalog, problems: Problems) -> None:
    """Collect a Contradiction for every device whose links need more lanes, links or ports than it has."""
    used: dict[tuple[str, str, str], list[tuple[Link, int]]] = defaultdict(list)
    for link in links:
        for end, other in ((link.a, link.b), (link.b, link.a)):
            counted = _counted(link, devices[end], devices[other], catalog)
            if counted:
                key, word, amount = counted
                used[end, key, word].append((link, amount))
    for (name, key, word), uses in used.items():
        part = catalog.get(part_name) if (part_name := devices[name].part) else None
        # An adapter and a RAID controller state the lanes of their host side only.
        limit = None if part is None or part.kind in ("adapter", "raid") else whole_figure(part, key)
        total = 0
        for link, amount in uses:
            total += amount
            if limit is not None and total > limit:
                cause = f"'{name}' ({part_name}) has {limit} {word}; its links need {sum(n for _, n in uses)}"
                hint = f"use fewer{' or narrower' * (key == 'pcie.lanes')} links at '{name}'"
                problems.add(Contradiction(cause, location=link.location, hint=hint))
                break


def _counted(link: Link, device: Device, other: Device, catalog: Catalog) -> tuple[str, str, int] | None:
    if link.kind in (LinkKind.PCIE, LinkKind.FABRIC) and device.kind not in (Kind.NVSWITCH, Kind.NETSWITCH):
        return "pcie.lanes", "PCIe lanes", link.lanes or 0
    if link.kind is LinkKind.NVLINK and device.kind is Kind.GPU:
        part = catalog.get(device.part) if device.part else None
        certain = link.count if link.count_known else 1
        return *(nvlink_keys(part) if other.kind is Kind.CPU else _NVLINKS), certain
    if link.kind is LinkKind.SOCKET:
        return "intersocket.links", "inter-socket links", link.count
    if link.kind is LinkKind.NETWORK and device.kind is Kind.NIC:
        return "net.ports", "network port(s)", 1
    return None
