"""The rows of host_batches.py: copies that the GPU times, and transfers on the CPU's clock."""

from __future__ import annotations

import os
from dataclasses import dataclass

TOTAL = int(os.environ.get("TOTAL", 1 << 30))
KIB, PEAK_PIECE = 1 << 10, min(64 << 20, TOTAL // 4)
HUGE = "registered huge pages"
KINDS = (HUGE, "registered 4 KiB pages", "cuMemHostAlloc", "write-combined", "cuMemCreate")


@dataclass(frozen=True)
class Gated:
    """Copies that the GPU times; `order` of the places: at the source, at the destination."""

    name: str
    size: int = 128 * KIB
    counts: tuple[int, int] = (128, 512)
    direction: str = "d2h"
    order: tuple[str, str] = ("scattered", "scattered")
    memory: str = HUGE
    software: str = "batch"
    calls: int = 256
    flags: int = 0
    access: int = 1


@dataclass(frozen=True)
class Whole:
    """A transfer of TOTAL to the host: `share` of the pieces by a kernel of `blocks`, the others in batches.

    Before they are cut into calls, each `window` of pieces is sorted by their places on the host (0: none), untimed.
    """

    name: str
    size: int = 128 * KIB
    share: float = 0.0
    kernel: str = "pieces"
    blocks: int = 264
    memory: str = HUGE
    streams: int = 1
    contexts: int = 1
    calls: int = 256
    window: int = 0


GATED = (
    Gated("long copies", PEAK_PIECE, (1, 3), software="call"),
    Gated("base"),
    *(Gated(f"calls of {calls}", calls=calls) for calls in (32, 64, 512)),
    Gated("source in sequence", order=("sequence", "scattered")),
    Gated("destination in sequence", order=("scattered", "sequence")),
    Gated("both in sequence", order=("sequence", "sequence")),
    Gated("destination of 8 MiB", order=("scattered", "window")),
    *(Gated(memory, memory=memory) for memory in KINDS[1:]),
    Gated("prefer overlap", flags=1),
    Gated("any access order", access=3),
    Gated("overlap, any order", flags=1, access=3),
    Gated("cuMemcpyDtoHAsync", counts=(64, 256), software="call"),
    Gated("cuMemcpyDtoDAsync", counts=(64, 256), software="dtod"),
    Gated("cuMemcpy2DAsync", software="2d", order=("sequence", "sequence")),
    Gated("two streams", software="two streams", calls=32),
    Gated("batch beside DtoD", counts=(64, 256), software="batch beside dtod"),
    *(Gated(f"{kib} KiB", kib * KIB, counts) for kib, counts in
      ((4, (512, 2048)), (16, (512, 2048)), (64, (256, 1024)), (256, (64, 256)), (1024, (16, 64)))),
    Gated("to the GPU, long copies", PEAK_PIECE, (1, 3), "h2d", software="call"),
    Gated("to the GPU", direction="h2d"),
    Gated("to the GPU, 4 KiB", 4 * KIB, (512, 2048), "h2d"),
    Gated("to the GPU, 16 KiB", 16 * KIB, (512, 2048), "h2d"),
)  # fmt: skip
SHARES = ((32, 1), (16, 1), (16, 2), (8, 1), (8, 2), (4, 2), (4, 4), (4, 8), (2, 264))  # one in so many pieces, blocks
WHOLE = (
    Whole("long copies", PEAK_PIECE, calls=1),
    Whole("base"),
    *(Whole(f"calls of {calls}", calls=calls) for calls in (64, 1024)),
    *(Whole(memory, memory=memory) for memory in KINDS[1:]),
    Whole("two streams", streams=2, calls=64),
    Whole("two contexts", contexts=2),
    Whole("kernel", share=1.0),
    *(Whole(f"kernel of {blocks} blocks", share=1.0, blocks=blocks) for blocks in (1, 2, 4, 8, 16, 66)),
    *(Whole(f"1/{one_in} by {blocks} blocks", share=1 / one_in, blocks=blocks) for one_in, blocks in SHARES),
    *(Whole(f"{kib} KiB: {name}", kib * KIB, share, "pieces", blocks) for kib in (32, 64, 256)
      for name, share, blocks in (("base", 0.0, 264), ("1/8 by 1 blocks", 1 / 8, 1), ("1/8 by 2 blocks", 1 / 8, 2))),
    *(Whole(f"{kib} KiB: {name}", kib * KIB, window=window) for kib in (64, 128, 256)
      for name, window in (("sorted", TOTAL), ("sorted in windows of 2048", 2048), ("sorted in each call", 256))),
    Whole("sorted, calls of 64", calls=64, window=TOTAL),
    Whole("sorted, registered 4 KiB pages", memory=KINDS[1], window=TOTAL),
    Whole("sorted, cuMemHostAlloc", memory=KINDS[2], window=TOTAL),
)  # fmt: skip
BULK = (
    Whole("long copies", PEAK_PIECE, calls=1),
    Whole("base"),
    *(Whole(f"bulk kernel of {blocks} blocks", share=1.0, kernel="bulk", blocks=blocks) for blocks in (16, 66, 132)),
    *(Whole(f"1/{round(1 / share)} by {blocks} bulk blocks", share=share, kernel="bulk", blocks=blocks)
      for share, blocks in ((1 / 16, 1), (1 / 8, 2), (1 / 4, 4))),
)  # fmt: skip
