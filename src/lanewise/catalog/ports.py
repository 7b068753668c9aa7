"""Which PCIe generation and how many lanes one port of a part has: a chipset's link up is not like its slots."""

from __future__ import annotations

from lanewise.catalog.model import Figure, Part

CHIPSET_KEYS = ("switch.uplink_gen", "switch.uplink_lanes", "switch.slot_gen", "switch.slot_lanes")


def is_chipset(part: Part) -> bool:
    """Whether a part is a chipset: a switch whose link to the CPU is stated apart from its slots."""
    return part.kind == "switch" and any(key in part.figures for key in CHIPSET_KEYS)


def port(part: Part, is_upper: bool) -> tuple[Figure, Figure | None]:
    """PCIe generation and lanes of the port of `part` at the upper or lower end of a link.

    No lanes for CPUs and switches, which state those of all their ports.
    """
    if is_chipset(part):
        gen, lanes = CHIPSET_KEYS[2:] if is_upper else CHIPSET_KEYS[:2]
        return part.figure(gen), part.figure(lanes)
    return part.figure("pcie.gen"), None if part.kind in ("cpu", "switch") else part.figure("pcie.lanes")
