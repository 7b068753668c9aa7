"""What PCI ids, names and class codes stand for: kinds of devices and parts of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lanewise.catalog import Catalog
from lanewise.catalog.cpu_models import generation_of
from lanewise.catalog.pci_parts import PARTS
from lanewise.topology.model import Kind

# The name that people use, in a line of lspci: GH100 [H100 SXM5 80GB].
_BRACKETS = re.compile(r"\[([\w -]{2,60})\]")
# How much of a device's name is looked at; none is longer.
_LONGEST = 300
_DISPLAY_ONLY = (0x1A03, 0x102B, 0x1013, 0x1234, 0x18CA, 0x1AF4)  # ASPEED, Matrox, and what virtual machines show
_VIRTIO_DISKS = ((0x1AF4, 0x1001), (0x1AF4, 0x1042))
_ATI_ES1000 = (0x1002, 0x515E)
_KINDS = {
    0x0302: Kind.GPU,
    0x0380: Kind.GPU,
    0x1200: Kind.GPU,
    0x0200: Kind.NIC,
    0x0207: Kind.NIC,
    0x0280: Kind.NIC,
    0x0C06: Kind.NIC,
    0x0108: Kind.SSD,
    0x0104: Kind.RAID,
}
_BY_NAME = (
    (r"Audio|USB|SATA|Host bridge|Root Port|PCIe Bridge|NVSwitch|ASPEED|Matrox|Non-Transparent", None),
    (r"NVMe RAID|RAID Controller|MegaRAID|Smart ?RAID", Kind.RAID),
    (r"NVMe|Non-Volatile|\bSSD\b", Kind.SSD),
    (r"ConnectX|BlueField|MT\d{5} Family|Ethernet|InfiniBand|Omni-Path|NetXtreme", Kind.NIC),
    (r"NVIDIA Corporation .*(\[|Device )", Kind.GPU),
    (r"\[AMD/ATI\].*Instinct", Kind.GPU),
)
# Controllers whose drives are known by another name, and bridges that lspci names without brackets.
_PART_NAMES = (
    (r"S4LV008\[Pascal\]", "samsung-990-pro"),
    (r"\bPEX ?(8747|8764|8796|9797)\b", r"pex\1"),
)


# The same by vendor, family and model number as CPUID tells them; 85 is Skylake's and Cascade Lake's.
_CPU_IDS = {
    "GenuineIntel 6 62": "ivy-bridge-ep", "GenuineIntel 6 63": "haswell-ep", "GenuineIntel 6 79": "broadwell-ep",
    "GenuineIntel 6 85": "skylake-sp", "GenuineIntel 6 106": "ice-lake-sp", "GenuineIntel 6 143": "sapphire-rapids",
    "GenuineIntel 6 207": "emerald-rapids", "GenuineIntel 6 173": "granite-rapids", "AuthenticAMD 23 49": "rome",
    "AuthenticAMD 25 1": "milan", "AuthenticAMD 25 17": "genoa", "AuthenticAMD 26 2": "turin",
}  # fmt: skip


def kind_of(code: int | None, vendor: int | None, device: int | None, name: str) -> Kind | None:
    """What a function is; None for what moves no bulk data: chipsets, consoles, sound."""
    if code is None:
        return _kind_by(name)
    if (vendor, device) in _VIRTIO_DISKS:
        return Kind.SSD
    if code == 0x0300:
        if vendor is None:
            return Kind.GPU if _kind_by(name) is Kind.GPU else None
        console = vendor in _DISPLAY_ONLY or (vendor, device) == _ATI_ES1000
        return None if console else Kind.GPU
    return _KINDS.get(code)


def _kind_by(name: str) -> Kind | None:
    return next((kind for pattern, kind in _BY_NAME if re.search(pattern, name[:_LONGEST])), None)


def part_of(kind: Kind, vendor: int | None, device: int | None, name: str, catalog: Catalog) -> str | None:
    """The part of the catalogue by PCI id, else by name; None if neither is known."""
    stated = PARTS.get(f"{vendor:04x}:{device:04x}", "") if vendor is not None and device is not None else ""
    kind_name = "switch" if kind is Kind.SWITCH else kind.value
    for part in (stated, _first_match(_PART_NAMES, name) or "", *_BRACKETS.findall(name[:_LONGEST])):
        if part in catalog and catalog.get(part).kind == kind_name:
            return catalog.get(part).name
    return None


def cpu_part(model: str, catalog: Catalog) -> str | None:
    """The part of a CPU by its model name, None if unknown."""
    part = generation_of(model)
    return part if part in catalog else None


def cpu_part_of_id(words: str, catalog: Catalog) -> str | None:
    """The part of a CPU by `vendor family model`, None if unknown."""
    part = _CPU_IDS.get(words, "")
    return part if part in catalog else None


def _first_match(table: Iterable[tuple[str, str]], text: str) -> str | None:
    """The words of the first pattern of a table that the text has, groups filled in."""
    matches = ((re.search(pattern, text[:_LONGEST]), words) for pattern, words in table)
    return next((match.expand(words) for match, words in matches if match), None)
