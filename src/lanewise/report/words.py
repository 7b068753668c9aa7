"""Words that several verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise import units

if TYPE_CHECKING:
    from lanewise.topology.model import Link


def link_speed(link: Link) -> str:
    """'Gen4 x16', 'NVLink x12', 'socket x3' or the stated rate."""
    if link.gen and link.lanes:
        label = f"Gen{link.gen} x{link.lanes}"
    elif link.kind.value == "nvlink":
        label = f"NVLink x{link.count}"
    else:
        label = f"{link.kind} x{link.count}" if link.count > 1 else str(link.kind)
    return label if link.rate is None else f"{label}, {units.show(link.rate, 'GB/s', 3)}"
