"""The batch sizes that an engine prepares: a batch is padded up to the next, as a new size has to be prepared."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL = 8  # powers of two up to here, and so many steps to the largest


def steps(largest: int) -> list[int]:
    """1, 2, 4, 8, then every eighth of `largest`: 64 gives 1 2 4 8 16 24 ... 64, 128 gives 1 2 4 8 16 32 48 ... 128.

    Powers of two alone would pad 33 to 64, at nearly twice the cost. Where an eighth is more than 8, powers of two go
    on until there: a batch is padded to less than twice itself, and by less than an eighth of the largest.
    """
    step = -(-largest // SMALL)
    powers = [1 << power for power in range(max(SMALL, step).bit_length())]
    eighths = [size for size in range(step, largest, step) if size > SMALL]
    return sorted({size for size in (*powers, *eighths) if size < largest} | {largest})


def fitting(sizes: Sequence[int], n: int) -> int:
    """The smallest of the prepared `sizes` (ascending) that holds `n` samples; `n` itself where none are prepared."""
    return sizes[bisect_left(sizes, n)] if sizes else n
