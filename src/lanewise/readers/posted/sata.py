"""The links of SATA drives as the kernel's log and smartctl show them.

Sources: libata's messages (drivers/ata/libata-core.c and libata-eh.c: "SATA link up 3.0 Gbps", "limiting SATA link
speed to 1.5 Gbps" after errors), smartctl's "SATA Version is: SATA 3.2, 6.0 Gb/s (current: 3.0 Gb/s)".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.readers.posted.links import NumberedLine
from lanewise.results.posted import Statement

_UP = re.compile(r"\b(ata\d{1,3}): SATA link up ([136]\.[05]) Gbps")
_LIMITING = re.compile(r"\b(ata\d{1,3})(?:\.\d\d)?: limiting SATA link speed to ([13]\.[05]) Gbps")
_SMARTCTL = re.compile(r"SATA Version is: .{1,40}?\b([136]\.[05]) Gb/s \(current: ([136]\.[05]) Gb/s\)")


def sata_links(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """Links that errors made the kernel slow down ("sata errors"), and links below what their drives can."""
    best: dict[str, float] = {}
    now: dict[str, tuple[float, int]] = {}
    limited: dict[str, tuple[float, int]] = {}
    for number, line in lines:
        if match := _LIMITING.search(line):
            limited[match[1]] = now[match[1]] = (float(match[2]), number)
        elif match := _UP.search(line):
            now[match[1]] = (float(match[2]), number)
            best[match[1]] = max(best.get(match[1], 0.0), float(match[2]))
        elif match := _SMARTCTL.search(line):
            best["the drive"], now["the drive"] = float(match[1]), (float(match[2]), number)
    for port, (rate, number) in limited.items():
        most = best.get(port, 0.0)
        can = f" of {most:g}" if most > rate else ""
        yield Statement("sata errors", f"{port} at {rate:g}{can} Gb/s", f"{file}:{number}")
    for port, (rate, number) in now.items():
        if port in limited or rate < best.get(port, rate):
            yield Statement("sata link", f"{rate:g} Gb/s", f"{file}:{number}")
