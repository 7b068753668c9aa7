"""The checksum of a sample, made of wrapping 64-bit sums and products alone, so that a GPU computes it as easily.

A sample is padded with zeros to words of 8 bytes (little-endian) w0, w1, ...; its checksum is
bytes + sum of w_i * (2 i + 1), modulo 2^64. As every factor is odd, a change of one word always changes the sum;
exchanging words i and j changes it unless 2 (i - j) (w_i - w_j) is a multiple of 2^64. It finds errors, not forgeries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lanewise.loadtest.spec import Array

WORD = 8


def checksum(sample: bytes) -> int:
    """The checksum of one sample, 0 to 2^64 - 1."""
    return int(checksums(np.frombuffer(sample, np.uint8)[None, :])[0])


def checksums(samples: Array) -> NDArray[np.uint64]:
    """The checksum of each row of a batch (n, ...) of any numpy type."""
    rows = np.ascontiguousarray(samples).reshape(len(samples), -1).view(np.uint8)
    size = rows.shape[1]
    if size % WORD:
        rows = np.pad(rows, ((0, 0), (0, -size % WORD)))
    words = rows.view("<u8")
    factors = 2 * np.arange(words.shape[1], dtype=np.uint64) + np.uint64(1)
    sums: NDArray[np.uint64] = (words * factors).sum(axis=1, dtype=np.uint64) + np.uint64(size)
    return sums
