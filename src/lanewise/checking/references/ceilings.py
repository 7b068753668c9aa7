"""What no device of a kind exceeds: a row above it is of something else, a cache or a mistaken count."""

from __future__ import annotations

import re

from lanewise.checking.references.memory_modules import STATED_RATE, stated_rate
from lanewise.checking.references.parts import Reference
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
    elif row.path == "host memory":
        rate, source = stated_rate(posted)
        limit = STATED_RATE
    if not rate or row.value <= _ABOVE * rate:
        return None
    return Reference("parts", rate, _FROM * rate, 0.0, _ABOVE * rate, limit, source)
