"""The modules of a host's memory as `dmidecode -t memory` lists them, whole or cut down to some of its lines.

Source: dmidecode's own output (SMBIOS type 17): each "Memory Device" has a size, or none where the slot is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.readers.posted.links import NumberedLine
from lanewise.results.posted import Statement

_SIZE = re.compile(r"\s*Size: (?:(\d{1,6} [GM]i?B)|No Module Installed|None)\s*$")
_SPEED = re.compile(r"\s*Configured (?:Memory|Clock) Speed: (\d{4,5}) MT/s")
_TYPE = re.compile(r"\s*Type: DDR([345])\b")
# Without a line of its type: DDR4 ends at 3200 MT/s, modules of DDR5 begin at 4000 (JESD79-4 and -5).
_LAST_OF_DDR4, _FIRST_OF_DDR5 = 3200, 4000


def listed_modules(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """How many modules of which rate there are, and how many slots are empty."""
    sizes = [(number, match[1]) for number, line in lines if (match := _SIZE.match(line))]
    speeds = {int(match[1]) for _, line in lines if (match := _SPEED.match(line))}
    types = {match[1] for _, line in lines if (match := _TYPE.match(line))}
    filled = [number for number, size in sizes if size]
    if not filled or len(speeds) != 1 or len(types) > 1:
        return
    speed = speeds.pop()
    kind = types.pop() if types else "4" if speed <= _LAST_OF_DDR4 else "5" if speed >= _FIRST_OF_DDR5 else ""
    if kind:
        value = f"{len(filled)} x DDR{kind}-{speed}, {len(sizes) - len(filled)} slots empty"
        yield Statement("memory modules", value, f"{file}:{filled[0]}")
