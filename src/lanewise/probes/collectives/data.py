"""What ranks send, and what they must have afterwards: whole numbers, so that sums of floats are exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PERIOD = 1_048_573  # floats: a prime, so that no piece of a message begins where another does
_STEP = 7919  # between the data of two ranks
_VALUES = 61


@dataclass(frozen=True, slots=True)
class ExpectedPiece:
    """Floats `start` to `start + count` of a buffer are those of `pattern` from `phase` on, period after period."""

    start: int
    count: int
    pattern: NDArray[np.float32]
    phase: int


class RankData:
    """The data of the ranks, by rank, and their sum; each repeats after PERIOD floats."""

    def __init__(self, ranks: int) -> None:
        import numpy as np

        base = (np.arange(PERIOD, dtype=np.int64) * 2_654_435_761 % 2**32 % _VALUES).astype(np.float32)
        self.of_rank = [np.roll(base, rank * _STEP) for rank in range(ranks)]
        self.total = sum(self.of_rank[1:], self.of_rank[0]).astype(np.float32)

    def expected(self, operation: str, rank: int, count: int) -> Iterator[ExpectedPiece]:
        """What the receive buffer of a rank holds after an operation over `count` floats, as NCCL counts them."""
        ranks = len(self.of_rank)
        if operation == "all_reduce":
            yield ExpectedPiece(0, count, self.total, 0)
        elif operation == "reduce_scatter":
            yield ExpectedPiece(0, count, self.total, rank * count)
        elif operation == "broadcast":
            yield ExpectedPiece(0, count, self.of_rank[0], 0)
        elif operation == "sendrecv":
            yield ExpectedPiece(0, count, self.of_rank[(rank - 1) % ranks], 0)
        else:
            phase = rank * count if operation == "all_to_all" else 0
            yield from (ExpectedPiece(r * count, count, self.of_rank[r], phase) for r in range(ranks))
