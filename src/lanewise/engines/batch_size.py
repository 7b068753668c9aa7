"""How many items a batch has, from how long those before it took."""

from __future__ import annotations

TARGET = 1.0  # s that a batch should take: long compared with sending it, short to lose with a worker
_GROWTH = 4  # times the last size at most, as the first items may be the quick ones


class BatchSizer:
    """The size of the next batch, so that it takes about `target` seconds."""

    def __init__(self, target: float = TARGET) -> None:
        self._target = target
        self._items = 0
        self._seconds = 0.0
        self._largest = 1

    def add(self, items: int, seconds: float) -> None:
        """A batch has finished; older ones count less and less."""
        self._items = self._items // 2 + items
        self._seconds = self._seconds / 2 + seconds
        self._largest = max(self._largest, _GROWTH * items)

    def size(self, remaining: int, workers: int) -> int:
        """Items of the next batch: at most half a share of what remains, so that all workers end together."""
        fitting = int(self._target * self._items / self._seconds) if self._seconds else self._largest
        return max(1, min(fitting, self._largest, remaining // (2 * workers)))
