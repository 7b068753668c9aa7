"""What a text says of memory: a host's modules, a GPU's rated bandwidth or deviceQuery's clock and width of the bus.

Source of the product: NVIDIA/cuda-samples (deviceQuery prints the clock of cudaDeviceProp in MHz) and NVIDIA's blog on
performance metrics: memory moves twice a clock, 2 x clock x width / 8 (H100: 2 x 2619 MHz x 5120 bit = 3352 GB/s).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.readers.posted.links import NumberedLine
from lanewise.results.posted import MODULES, Statement

_RATED = re.compile(
    r"\b(?:max(?:imum)?|theoretical|peak|rated)(?: (?:theoretical|peak|global|device|gpu)){0,3} memory bandwidth"
    r"\s{0,4}(?:\((?P<head>[GT]B/s)\))?\s{0,12}[:=]\s{0,4}(?P<rate>\d{1,6}(?:\.\d{1,6})?)(?: ?(?P<unit>[GT]B/s))?",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"\s*Memory Clock rate:\s+(\d{2,6}(?:\.\d{1,3})?) Mhz", re.IGNORECASE)
_WIDTH = re.compile(r"\s*Memory Bus Width:\s+(\d{2,5})-bit", re.IGNORECASE)


def memory_rates(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """The rated bandwidth of each line that says one, or of each clock with the width below it."""
    clock = 0.0
    for number, line in lines:
        if match := _RATED.search(line):
            unit = match["unit"] or match["head"] or "GB/s"
            yield Statement("memory rate", f"{match['rate']} {unit[0].upper()}B/s", f"{file}:{number}")
        elif match := _CLOCK.match(line):
            clock = float(match[1]) * 1e6
        elif clock and (match := _WIDTH.match(line)):
            rate = 2 * clock * int(match[1]) / 8 / 1e9
            yield Statement("memory rate", f"{rate:.4g} GB/s", f"{file}:{number}")
            clock = 0.0


def memory_modules(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """The modules of the host's memory if the lines name one kind and number: those of several are of several hosts."""
    found = {(match["count"], match["rate"]): (number, match[0]) for number, line in reversed(lines)
             for match in MODULES.finditer(line)}  # fmt: skip
    if len(found) == 1:
        number, text = next(iter(found.values()))
        yield Statement("memory modules", text, f"{file}:{number}")
