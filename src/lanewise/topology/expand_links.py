"""From the `links:` entries to links: chains, stars, pairs and meshes, with the speeds they state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING

from lanewise.errors import Contradiction, FormatError, error_location, unknown_name
from lanewise.topology import speeds
from lanewise.topology.limits import bonded, network_speed, pcie_speed
from lanewise.topology.model import FORWARDING, Device, Kind, Link, LinkKind
from lanewise.topology.words import MEDIA, SHAPES

if TYPE_CHECKING:
    from lanewise.catalog import Part
    from lanewise.topology.form import LinkForm, SystemForm
    from lanewise.topology.scope import Scope

DRIVE_LANES = 4  # of U.2, M.2 and E3.S drives; wider ones are parts that say so
# What manuals and `nvidia-smi topo -m` print where a number of links is meant: 3 UPI, 4x xGMI links, x3, NV12.
_LINK_WORDS = r"(?:nvlinks?|upi|qpi|xgmi|x-?bus|infinity fabric)"
_COUNT = re.compile(rf"(?:x|nv|{_LINK_WORDS}\s*x)?\s*(\d+)\s*x?\s*{_LINK_WORDS}?(?:\s*links?)?", re.IGNORECASE)
_NO_COUNT = re.compile(r"[a-zA-Z?]+|[a-zA-Z]+\s+[\w.]+|\d+\s*[a-zA-Z].*")
# A number of links between sockets that nobody knows, be their kind known or not.
_UNKNOWN_COUNT = (speeds.UNKNOWN, f"x{speeds.UNKNOWN}", "unknown", "upi", "qpi", "xgmi", "x-bus", "infinity fabric")
_UNKNOWN_NVLINKS = (speeds.UNKNOWN, "unknown", f"nv{speeds.UNKNOWN}", f"x{speeds.UNKNOWN}")
_CPU, _GPU, _NV, _NIC, _NET = Kind.CPU, Kind.GPU, Kind.NVSWITCH, Kind.NIC, Kind.NETSWITCH
# Which kinds of device each medium may end at, and what to write where it may not.
ENDS: dict[LinkKind, tuple[frozenset[Kind], str]] = {
    LinkKind.FABRIC: (frozenset({Kind.SWITCH}), "fabric: joins two switches; elsewhere write pcie:"),
    LinkKind.SOCKET: (frozenset({_CPU}), "socket: joins two CPUs"),
    LinkKind.NVLINK: (frozenset({_GPU, _NV, _CPU}), "nvlink: joins GPUs, NVSwitches and CPUs"),
    LinkKind.NETWORK: (frozenset({_NIC, _NET}), "network: joins network cards and network switches"),
    LinkKind.PCIE: (
        frozenset({_CPU, _GPU, _NIC, Kind.SWITCH, Kind.SSD, Kind.RAID}),
        "pcie: joins CPUs, switches and endpoints; for a network write network:, for NVSwitches nvlink:",
    ),
}

# The sizes that the device control register can hold (PCI Express base specification 7.5.3.4).
PAYLOADS = (128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0)


def read_links(form: SystemForm, devices: Mapping[str, Device], scope: Scope) -> list[Link]:
    """All links in the order of the description, `auto` settled from the parts; problems go to the scope."""
    links: list[Link] = []
    for index, entry in enumerate(form.links):
        with scope.problems.at(scope.document.location("links", index)):
            if scope.included(entry.when):
                kind = LinkKind(_only(entry, MEDIA, "says no speed", "pcie: gen4 x16"))
                shared = _shared(entry, index, kind, scope)
                ends = ends_of(entry, index, scope)
                if entry.mesh is not None and kind is LinkKind.NVLINK:
                    shared = replace(shared, count=max(len({name for pair in ends for name in pair}) - 1, 1))
                for a, b in ends:
                    _check_ends(a, b, kind, devices)
                    with error_location(scope.document.location("links", index, kind.value)):
                        links.append(_link(replace(shared, a=a, b=b), getattr(entry, kind.value), devices, scope))
    return links


def _only(entry: LinkForm, names: Iterable[str], lacking: str, example: str) -> str:
    stated = [name for name in names if name in entry.model_fields_set]
    words = [name.removesuffix("_") for name in stated]
    if len(stated) != 1:
        what = f"has both {' and '.join(words)}" if stated else lacking
        options = ", ".join(name.removesuffix("_") for name in names)
        raise FormatError(f"the link {what}", hint=f"state one of {options}, such as {example}")
    return stated[0]


def ends_of(entry: LinkForm, index: int, scope: Scope) -> list[tuple[str, str]]:
    """The pairs of devices that an entry joins; FormatError or Contradiction where it does not say."""
    shape = _only(entry, SHAPES, "does not say what it joins", "from: cpu0, to: gpu0")
    if (shape == "from_") != (entry.to is not None):
        raise FormatError("'from' and 'to' go together", hint="write from: cpu0, to: gpu0")
    if entry.pairs and shape != "from_":
        raise FormatError("'pairs' goes with 'from' and 'to'", hint="write from: 'a[0-3]', to: 'b[0-3]', pairs: true")
    if shape == "chain":
        return list(pairwise(scope.names(entry.chain or [])))
    if shape == "mesh":
        return list(combinations(scope.names(entry.mesh or []), 2))
    above, below = scope.names(entry.from_ or []), scope.names(entry.to or [])
    if not entry.pairs:
        return list(product(above, below))
    each, left_over = divmod(len(below), len(above)) if above else (0, len(below))
    if left_over or (above and not each):
        cause = f"pairs need as many ends below as above, or a multiple of it: {len(above)} and {len(below)}"
        hint = "make the ranges equal, or write one link for each end above"
        raise Contradiction(cause, location=scope.document.location("links", index, "to"), hint=hint)
    return [(above[number // each], end) for number, end in enumerate(below)]


def _check_ends(a: str, b: str, kind: LinkKind, devices: Mapping[str, Device]) -> None:
    for end in (a, b):
        if end not in devices:
            raise unknown_name("device", end, devices)
    if a == b:
        hint = "name two devices; a range all with all, as GPUs of a bridge over four cards, is mesh: 'gpu[0-3]'"
        raise Contradiction(f"'{a}' is linked to itself", hint=hint)
    legal, hint = ENDS[kind]
    for end in (a, b):
        if devices[end].kind not in legal:
            raise Contradiction(f"a {kind} link cannot end at '{end}', a {devices[end].kind}", hint=hint)
    kinds = {devices[a].kind, devices[b].kind}
    if kind is LinkKind.PCIE and not kinds & {Kind.CPU, *FORWARDING}:
        hint = "put a switch or a CPU between them"
        hint += " (of a card at a GPU's own die: switch: null, with both below it)" if Kind.NIC in kinds else ""
        raise Contradiction(f"'{a}' and '{b}' are both endpoints", hint=hint)
    if kind is LinkKind.PCIE and kinds == {Kind.CPU}:
        raise Contradiction(f"'{a}' and '{b}' are both CPUs", hint="join CPUs with socket:")
    if kind is LinkKind.SOCKET and devices[a].host != devices[b].host:
        cause = f"'{a}' is in {devices[a].host} and '{b}' in {devices[b].host}"
        raise Contradiction(f"{cause}: no socket link joins them", hint="join hosts with network: or fabric:")


def _shared(entry: LinkForm, index: int, kind: LinkKind, scope: Scope) -> Link:
    """What one entry says about all its links, but for their ends and their speed."""

    def quantity(name: str, unit: str) -> float | None:
        stated = getattr(entry, name)
        if stated is None:
            return None
        with error_location(scope.document.location("links", index, name)):
            return speeds.read_positive(scope.text(stated) if isinstance(stated, str) else stated, unit)

    payload = quantity("max_payload", "B")
    if payload is not None and payload not in PAYLOADS:
        location = scope.document.location("links", index, "max_payload")
        sizes = ", ".join(f"{size:.0f}" for size in PAYLOADS)
        raise FormatError(f"PCIe has no max payload of {payload:g} B", location=location, hint=f"one of {sizes} B")
    return Link(
        a="",
        b="",
        kind=kind,
        rate=quantity("rate", "B/s"),
        port=scope.text(entry.port or ""),
        bridge=scope.text(entry.bridge or ""),
        max_payload=payload,
        length=quantity("length", "m"),
        location=scope.location("links", index),
    )


def _link(link: Link, stated: int | str | None, devices: Mapping[str, Device], scope: Scope) -> Link:
    """The link with the speed or the count that is stated; Contradiction where its ends do not allow it."""
    word = speeds.UNKNOWN if stated is None else str(stated).strip().lower()
    if link.kind is LinkKind.SOCKET and word in _UNKNOWN_COUNT:
        return replace(link, count_known=False)
    if stated is None:
        raise FormatError(f"'{link.kind}' says nothing", hint=f"write {link.kind}: auto where it is not known")
    a, b = devices[link.a], devices[link.b]
    at_cpu = link.kind is LinkKind.PCIE and Kind.CPU in (a.kind, b.kind)
    if (link.port or link.bridge) and not at_cpu:
        cause = f"'{link.a}' to '{link.b}' has no root port"
        hint = "port: and bridge: go with a PCIe link at a CPU; take them out"
        raise Contradiction(cause, location=link.location, hint=hint)
    parts = (_part(a, scope), _part(b, scope))
    if link.kind is LinkKind.NVLINK and word in _UNKNOWN_NVLINKS:
        return replace(bonded(link, None, parts), count_known=False)
    if link.kind in (LinkKind.PCIE, LinkKind.FABRIC):
        unknown_drive = any(end.kind is Kind.SSD and end.part is None for end in (a, b))
        most_lanes = DRIVE_LANES if unknown_drive else None
        return pcie_speed(link, speeds.read_pcie(scope.text(str(stated))), parts, most_lanes)
    if link.kind is LinkKind.NETWORK:
        return network_speed(link, scope.text(str(stated)), parts)
    if isinstance(stated, str) and stated.strip().lower() == speeds.AUTO:
        return bonded(link, None, parts)
    if isinstance(stated, str) and (count := _COUNT.fullmatch(stated.strip())):
        stated = int(count[1])
    if isinstance(stated, str) and _NO_COUNT.fullmatch(stated.strip()):
        hint = f"write {link.kind}: 3, auto to follow the parts, or '{speeds.UNKNOWN}' where nobody knows"
        raise FormatError(f"'{stated}' is not a number of links", hint=hint)
    return bonded(replace(link, count=1), scope.whole(stated), parts)


def _part(device: Device, scope: Scope) -> Part | None:
    return scope.catalog.get(device.part) if device.part else None
