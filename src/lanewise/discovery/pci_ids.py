"""PCI ids of CPUs, bridges and vendors, after the PCI ID repository (pci.ids of 2026-08-22)."""

from __future__ import annotations

from lanewise import late_re as re

NVIDIA, AMD, ATI, INTEL = 0x10DE, 0x1022, 0x1002, 0x8086
_IDS = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
# A name where the machine's own list did not know the device: NVIDIA Corporation Device 2330.
_UNNAMED = re.compile(r"(.{3,60}?) Device ([0-9a-f]{4})\b")
_VENDORS = {
    "NVIDIA Corporation": NVIDIA, "Mellanox Technologies": 0x15B3, "Intel Corporation": INTEL,
    "Advanced Micro Devices, Inc. [AMD]": AMD, "Advanced Micro Devices, Inc. [AMD/ATI]": ATI, "Broadcom / LSI": 0x1000,
    "PLX Technology, Inc.": 0x10B5, "Samsung Electronics Co Ltd": 0x144D, "KIOXIA Corporation": 0x1E0F,
    "Micron Technology Inc": 0x1344, "Broadcom Inc. and subsidiaries": 0x14E4, "Microchip Technology": 0x11F8,
    "SK hynix": 0x1C5C, "Amazon.com, Inc.": 0x1D0F, "ASMedia Technology Inc.": 0x1B21, "Western Digital": 0x1B96,
    "Sandisk Corp": 0x15B7, "Red Hat, Inc.": 0x1AF4, "IBM": 0x1014,
}  # fmt: skip

# CPUs by the ids of what only they have: root ports, host bridges, data fabric. Where several generations share them,
# each is named, the more common one first; the Threadrippers are last, and told by a chipset, which no EPYC has.
_INTEL_PORTS = (
    ((0x0E00, 0x0E0B), ("ivy-bridge-ep",)),
    ((0x2F00, 0x2F0B), ("haswell-ep",)),
    ((0x6F00, 0x6F0B), ("broadwell-ep",)),
    ((0x2020, 0x2020), ("skylake-sp", "cascade-lake-sp")),
    ((0x2030, 0x2034), ("skylake-sp", "cascade-lake-sp")),
    ((0x347A, 0x347D), ("ice-lake-sp",)),
    ((0x352A, 0x352D), ("sapphire-rapids", "emerald-rapids")),
    ((0x0DB0, 0x0DB9), ("granite-rapids", "granite-rapids-sp")),
)
_AMD_FABRICS = (
    ((0x1440, 0x1447), ("ryzen-am4",)),
    ((0x1490, 0x1497), ("rome", "threadripper-pro-3000")),
    ((0x1650, 0x1657), ("milan", "threadripper-pro-5000")),
    ((0x14AD, 0x14B4), ("genoa", "threadripper-pro-7000")),
    ((0x12C0, 0x12C7), ("turin", "threadripper-pro-9000")),
    ((0x14A4, 0x14AB), ("genoa", "threadripper-pro-7000")),
    ((0x153A, 0x153E), ("turin", "threadripper-pro-9000")),
    ((0x1480, 0x1484), ("rome", "milan", "threadripper-pro-3000", "threadripper-pro-5000", "ryzen-am4")),
)
_CPU_RANGES = {
    INTEL: _INTEL_PORTS,
    AMD: _AMD_FABRICS,
    NVIDIA: (((0x22B1, 0x22B9), ("grace",)),),  # on GH200 hosts
    0x1014: (((0x03DC, 0x03DC), ("power8",)), ((0x04C1, 0x04C1), ("power9",))),
}
# Of Skylake-E's functions, as Linux prints them on either CPU: (rev 04) and (rev 07).
_REVISIONS: dict[tuple[str, ...], dict[int, tuple[str, ...]]] = {
    ("skylake-sp", "cascade-lake-sp"): {4: ("skylake-sp",), 7: ("cascade-lake-sp",)},
}
# Switches of AMD's chipsets, which EPYC servers do not have: X570 (TRX40, WRX80) and the 600 series (TRX50, WRX90).
CHIPSETS = ((AMD, 0x57AD), (AMD, 0x43F4))
_CHIPSET_NAMES = re.compile(r"Matisse Switch Upstream|\d00 Series Chipset .*Switch")
_CPU_NAMES = (
    (r"Xeon E5 v2/", ("ivy-bridge-ep",)),
    (r"Xeon E5 v3/", ("haswell-ep",)),
    (r"Xeon E5 v4/", ("broadwell-ep",)),
    (r"Sky Lake-E (?:DMI3|PCI Express Root Port)", ("skylake-sp", "cascade-lake-sp")),
    (r"Ice Lake PCI Express Root Port", ("ice-lake-sp",)),
    (r"PCI Express Gen5 Port [A-D]", ("sapphire-rapids", "emerald-rapids")),
    (r"P-Cores Processors PCIe and CXL.io Root Port", ("granite-rapids", "granite-rapids-sp")),
    (r"Starship Device 24", ("rome", "threadripper-pro-3000")),
    (r"Milan Data Fabric", ("milan", "threadripper-pro-5000")),
    (r"Genoa(?:/Bergamo)? (?:Data Fabric|Root Complex)", ("genoa", "threadripper-pro-7000")),
    (r"Turin (?:Data Fabric|Root Complex)", ("turin", "threadripper-pro-9000")),
    (r"POWER8 Host Bridge", ("power8",)),
    (r"POWER9 Host Bridge", ("power9",)),
)
# Bridges inside a card, which are no switches of the machine: of Vega and Navi cards, and of Intel's data centre GPUs.
_IN_CARDS = {(AMD, 0x1470), (AMD, 0x1471), (INTEL, 0x4FA0), (INTEL, 0x4FA4)}
_IN_CARD_NAMES = re.compile(r"Vega 10 PCIe Bridge|\[AMD/ATI\].*PCI Express Switch")
_TUNNELS = {
    (INTEL, device)
    for device in (0x0B26, 0x1133, 0x1136, 0x156D, 0x1576, 0x1578, 0x15C0, 0x15D3, 0x15DA, 0x15E7, 0x15EA, 0x15EF)
}
_VIRTUAL_PORTS = {(0x1B36, 0x000C), (0x15AD, 0x07A0)}
_VIRTUAL_PORT_NAMES = re.compile(r"QEMU PCIe Root port|VMware PCI Express Root Port")
_VMD = {0x201D, 0x28C0, 0x467F, 0x9A0B, 0xA77F, 0x7D0B}
_NVSWITCHES = {0x1AC2, 0x1AF1, 0x22A3}


def ids_in(name: str) -> tuple[int, int] | None:
    """Vendor and device in a name, from its `[10de:2330]` or from `NVIDIA Corporation Device 2330`; None if neither."""
    ids = _IDS.findall(name)
    if ids:
        return int(ids[-1][0], 16), int(ids[-1][1], 16)
    unnamed = _UNNAMED.match(name)
    vendor = _VENDORS.get(unnamed[1]) if unnamed else None
    return (vendor, int(unnamed[2], 16)) if unnamed and vendor else None


def cpus_of(vendor: int | None, device: int | None, revision: int | None, name: str) -> tuple[str, ...]:
    """The parts of the CPUs that have this function, the more common first; empty if it tells none."""
    if vendor is not None and device is not None:
        ranges = _CPU_RANGES.get(vendor, ())
        parts = next((parts for (low, high), parts in ranges if low <= device <= high), ())
    else:
        parts = next((parts for pattern, parts in _CPU_NAMES if re.search(pattern, name)), ())
    return _REVISIONS.get(parts, {}).get(revision if revision is not None else -1, parts)


def is_chipset(vendor: int | None, device: int | None, name: str) -> bool:
    """Whether this is the switch of an AMD chipset."""
    return (vendor, device) in CHIPSETS or bool(_CHIPSET_NAMES.search(name))


def is_in_card(vendor: int | None, device: int | None, name: str) -> bool:
    """Whether a bridge lies inside a GPU's card."""
    return vendor == ATI or (vendor, device) in _IN_CARDS or bool(_IN_CARD_NAMES.search(name))


def is_tunnel(vendor: int | None, device: int | None, name: str) -> bool:
    """Whether this is an end of a Thunderbolt or USB4 tunnel, whose ports state Gen1 whatever the tunnel does."""
    return (vendor, device) in _TUNNELS or "Thunderbolt" in name or "USB4" in name


def is_virtual_port(vendor: int | None, device: int | None, name: str) -> bool:
    """Whether a port is one that a hypervisor makes up: its speed and lanes are settings, not those of a slot.

    Root ports of QEMU (x-speed and x-width of pcie-root-port, 16 GT/s and x32 if not set) and VMware; pci.ids.
    """
    return (vendor, device) in _VIRTUAL_PORTS or bool(_VIRTUAL_PORT_NAMES.search(name))


def is_vmd(vendor: int | None, device: int | None, name: str) -> bool:
    """Whether this is Intel's Volume Management Device, which hides the drives below it in a PCI domain of its own."""
    return (vendor == INTEL and device in _VMD) or "Volume Management Device" in name


def is_nvswitch(vendor: int | None, device: int | None, code: int | None, name: str) -> bool:
    """Whether this is an NVSwitch: a bridge of NVIDIA's to something that is no bus."""
    return (vendor == NVIDIA and (device in _NVSWITCHES or code == 0x0680)) or "NVSwitch" in name
