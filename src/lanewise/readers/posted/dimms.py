"""The modules of a host's memory as `dmidecode -t memory` lists them, whole or cut down to some of its lines.

Source: dmidecode's own output (SMBIOS type 17): each "Memory Device" has a size, or none where the slot is empty, whose
speed is unknown. Lines that `sort | uniq -c` counted stand for as many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.readers.posted.links import NumberedLine
from lanewise.results.posted import Statement

_COUNTED = r"\s*(?:(?P<times>\d{1,3})\s{1,8})?"
_SIZE = re.compile(rf"{_COUNTED}Size: (?:(?P<size>\d{{1,6}} [GM]i?B)|No Module Installed|None)\s*$")
_SPEED = re.compile(rf"{_COUNTED}Configured (?:Memory|Clock) Speed: (?:(?P<speed>\d{{4,5}}) MT/s|Unknown)")
_TYPE = re.compile(rf"{_COUNTED}Type: DDR(?P<type>[345])\b")
# Without a line of its type: DDR4 ends at 3200 MT/s, modules of DDR5 begin at 4000 (JESD79-4 and -5).
_LAST_OF_DDR4, _FIRST_OF_DDR5 = 3200, 4000


def listed_modules(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """How many modules of which rate there are, and how many slots are empty."""
    sizes = [(number, match) for number, line in lines if (match := _SIZE.match(line))]
    speeds = [match for _, line in lines if (match := _SPEED.match(line))]
    types = {match["type"] for _, line in lines if (match := _TYPE.match(line))}
    filled = [(number, _times(match)) for number, match in sizes if match["size"]]
    rates = {int(match["speed"]) for match in speeds if match["speed"]}
    empty = max(sum(_times(match) for _, match in sizes if not match["size"]),
                sum(_times(match) for match in speeds if not match["speed"]))  # fmt: skip
    if not filled or len(rates) != 1 or len(types) > 1:
        return
    speed = rates.pop()
    kind = types.pop() if types else "4" if speed <= _LAST_OF_DDR4 else "5" if speed >= _FIRST_OF_DDR5 else ""
    if kind:
        value = f"{sum(times for _, times in filled)} x DDR{kind}-{speed}, {empty} slots empty"
        yield Statement("memory modules", value, f"{file}:{filled[0][0]}")


def _times(match: re.Match[str]) -> int:
    """For how many lines a matched one stands."""
    return int(match["times"] or 1)
