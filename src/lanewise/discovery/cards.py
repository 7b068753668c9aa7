"""Which PCI functions make one card: its functions, the virtual ones, and the bridges that lie inside it."""

from __future__ import annotations

from collections import defaultdict

from lanewise.discovery.facts import MachineFacts
from lanewise.discovery.identify import kind_of
from lanewise.discovery.pci_ids import is_in_card, is_vmd
from lanewise.topology.model import Kind

_STORAGE = 0x01
_VIRTUAL = "Virtual Function"
# Functions of one bus: eight of 32 devices, or 256 where the routing id is read alternatively (ARI).
_FUNCTIONS = 256


def endpoints(merged: MachineFacts) -> dict[str, tuple[Kind, list[str]]]:
    """Devices of interest by their first function: kind and all functions of that kind in the slot.

    Below one root or switch port there is one card: whatever else is there of its kind and maker are functions of it.
    """
    virtual = _virtual_functions(merged)
    functions: dict[tuple[str, Kind, int | None], list[str]] = defaultdict(list)
    for bdf in merged.addresses():
        kind = None if bdf in virtual else _kind(bdf, merged)
        if kind:
            above = merged.word(bdf, "parent")
            port = above if merged.word(above, "port") in ("root", "down") else ""
            functions[port or bdf.rpartition(".")[0], kind, merged.number(bdf, "vendor") if port else None].append(bdf)
    return {addresses[0]: (kind, addresses) for (_, kind, _), addresses in functions.items()}


def ids(bdf: str, merged: MachineFacts) -> tuple[int | None, int | None, str]:
    """Vendor, device and name of a function."""
    return merged.number(bdf, "vendor"), merged.number(bdf, "device"), merged.word(bdf, "name")


def _kind(bdf: str, merged: MachineFacts) -> Kind | None:
    vendor, device, name = ids(bdf, merged)
    if merged.value(bdf, "port") or is_vmd(vendor, device, name):
        return None
    code = merged.number(bdf, "class")
    kind = kind_of(code, vendor, device, name)
    if kind is None and code is not None and code >> 8 == _STORAGE and merged.value(bdf, "block"):
        return Kind.SSD
    return kind


def _virtual_functions(merged: MachineFacts) -> set[str]:
    """The SR-IOV functions whose physical one is in the dumps: stated, by offset and stride, or by their name."""
    virtual: set[str] = set()
    physical: set[tuple[str, object]] = set()
    for bdf in merged.addresses():
        if merged.word(bdf, "physfn") in merged.facts:
            virtual.add(bdf)
        elif _VIRTUAL not in merged.word(bdf, "name"):
            physical.add((_place(bdf, merged), merged.value(bdf, "vendor")))
        offset, stride = merged.number(bdf, "vf_offset"), merged.number(bdf, "vf_stride")
        if offset and (stride or merged.number(bdf, "vfs") == 1):
            virtual.update(_of_physical(bdf, offset, stride or 0, merged.number(bdf, "vfs") or 0))
    for bdf in merged.addresses():
        if _VIRTUAL in merged.word(bdf, "name") and (_place(bdf, merged), merged.value(bdf, "vendor")) in physical:
            virtual.add(bdf)
    return virtual


def _place(bdf: str, merged: MachineFacts) -> str:
    return merged.word(bdf, "parent") or merged.word(bdf, "below") or bdf.rpartition(":")[0]


def _of_physical(bdf: str, offset: int, stride: int, number: int) -> set[str]:
    """The addresses of that many virtual functions of a physical one, of a bus or two at most."""
    domain, bus, rest = bdf.split(":")
    device, function = rest.split(".")
    routing_id = int(bus, 16) << 8 | int(device, 16) << 3 | int(function)
    places = [routing_id + offset + stride * each for each in range(min(number, 2 * _FUNCTIONS))]
    return {f"{domain}:{at >> 8:02x}:{at >> 3 & 31:02x}.{at & 7}" for at in places if at < 1 << 16}


def without_inner_bridges(chain: list[str], merged: MachineFacts) -> tuple[list[str], str]:
    """The bridges above a device but those in its card, and the end of the link at the card where there are such."""
    outer = list(chain)
    inner = ""
    while len(outer) > 1 and is_in_card(*ids(outer[-1], merged)):
        inner = outer.pop()
    return outer, inner
