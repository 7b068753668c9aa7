"""What no device of a kind exceeds: a row above it is of something else, a cache or a mistaken count."""

from __future__ import annotations

import re

from lanewise import units
from lanewise.checking.references.parts import Reference
from lanewise.errors import LanewiseError
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

# The fastest hard disks, of two actuators, carry 554 MB/s (Seagate Exos 2X18, data sheet).
_HARD_DISK = re.compile(r"^hdd\d*$", re.IGNORECASE)
_FASTEST_DISK, _ABOVE = 554e6, 1.1
# HS400: eight bits, 200 MHz, both edges (JEDEC JESD84-B51).
_EMMC, _FASTEST_EMMC = re.compile(r"^emmc\d*$", re.IGNORECASE), 400e6
# From where on a row of such a device would be no surprise: what a mistaken unit is tried against.
_FROM = 0.1


def ceiling(row: Observation, posted: PostedFacts) -> Reference | None:
    """The ceiling that a row is above; None where it is below, or no ceiling is known."""
    if row.metric != "goodput" or row.value is None:
        return None
    ends = [end.strip() for end in row.flow.split("->")]
    rate, limit, source = 0.0, "", ""
    if row.path == "storage" and any(map(_HARD_DISK.match, ends)):
        rate, limit, source = _FASTEST_DISK, "the fastest hard disk", "its data sheet"
    elif row.path == "storage" and any(map(_EMMC.match, ends)):
        rate, limit, source = _FASTEST_EMMC, "the bus of an eMMC", "JESD84-B51"
    elif row.path == "host memory" and not posted.devices:
        rate, source = _stated_memory(posted)
        limit = "the stated rate of the memory"
    if not rate or row.value <= _ABOVE * rate:
        return None
    return Reference("parts", rate, _FROM * rate, 0.0, _ABOVE * rate, limit, source)


def _stated_memory(posted: PostedFacts) -> tuple[float, str]:
    """The memory rate that somebody stated, in B/s, and where; 0 if none."""
    for statement in posted.stated("memory rate")[:1]:
        try:
            return units.parse(statement.value, "B/s"), statement.source
        except LanewiseError:
            break
    return 0.0, ""
