"""Message sizes of a curve, from text."""

from __future__ import annotations

import re

from lanewise import units
from lanewise.errors import FormatError

MOST_SIZES = 128
_EXAMPLE = "write --sizes 8B:8GiB for factors of two, or a list: 1MiB,64MiB,1GiB"


def sizes_of(text: str) -> tuple[float, ...]:
    """The sizes (B) of 'FROM:TO', by factors of two, or of a list; FormatError for other text."""
    first, colon, last = text.partition(":")
    if not colon:
        sizes = tuple(_size(piece) for piece in text.split(","))
    else:
        low, high = _size(first), _size(last)
        if high < low:
            raise FormatError(f"the sizes '{text}' run backwards", hint=f"write {last.strip()}:{first.strip()}")
        count = int(high // low).bit_length()
        sizes = tuple(low * 2**power for power in range(count))
    if len(sizes) > MOST_SIZES:
        raise FormatError(f"'{text}' has {len(sizes)} sizes", hint=f"name {MOST_SIZES} at most")
    return sizes


def _size(text: str) -> float:
    written = text.strip()
    if re.fullmatch(r"[\d.]+[KMG]", written, re.IGNORECASE):  # of nccl-tests: 8G is 8 GiB
        written = f"{written[:-1]} {written[-1].upper()}iB"
    size = units.parse(written, "B")
    if size < 1:
        raise FormatError(f"'{text.strip()}' is no message size", hint=_EXAMPLE)
    return size
