"""md arrays as volumes of the description, as far as it can say them: RAID-0, 5 and 10 over whole drives."""

from __future__ import annotations

from typing import Any

from lanewise.discovery.draft import SystemDraft
from lanewise.discovery.merge import Merged
from lanewise.discovery.sysfs_classes import VOLUME
from lanewise.topology.model import Kind

# The levels that a description knows, with the fewest drives of each.
_LEVELS = {"raid0": (0, 1), "raid5": (5, 3), "raid10": (10, 4)}


def volumes(merged: Merged, draft: SystemDraft) -> dict[str, dict[str, Any]]:
    """The volumes of the machine by name; what cannot be said is noted."""
    arrays = {}
    for about in merged.facts:
        if not about.startswith(VOLUME):
            continue
        name, level = about.removeprefix(VOLUME), merged.word(about, "level")
        members = merged.word(about, "members").split()
        drives = [draft.names.get(member, "") for member in members]
        why = _unfit(level, drives, merged.number(about, "disks"), draft)
        if why:
            draft.notes.append(f"{name} ({level or 'of unknown level'}) is left out: {why}")
            continue
        arrays[name] = {"raid": _LEVELS[level][0], "drives": drives}
        chunk = merged.number(about, "chunk")
        arrays[name] |= {"chunk": f"{chunk} B"} if chunk else {}
    return arrays


def _unfit(level: str, drives: list[str], disks: int | None, draft: SystemDraft) -> str:
    """Why a description cannot say this array, empty if it can."""
    if level not in _LEVELS:
        return "descriptions know RAID-0, 5 and 10"
    if not drives or any(not name or draft.devices[name].kind is not Kind.SSD for name in drives):
        return "a member of it is no drive on PCI that the dump names"
    if len(set(drives)) < len(drives):
        return "two members of it lie on one drive"
    if disks is not None and disks != len(drives):
        return f"{len(drives)} of its {disks} members are there"
    if len(drives) < _LEVELS[level][1] or (level == "raid10" and len(drives) % 2):
        return f"{len(drives)} drives are too few or odd for its level"
    return ""
