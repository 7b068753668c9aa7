"""The samples that the native system makes for itself where there is no data set, to compare what arrived with."""

from __future__ import annotations

from lanewise.errors import InputError
from lanewise.loadtest.spec import SampleSpec


class NativeSamples:
    """`count` samples of `size` bytes, as the native system makes them."""

    def __init__(self, count: int, size: int) -> None:
        self.spec = SampleSpec((size,), "uint8")
        self._count, self._size = count, size

    def __len__(self) -> int:
        return self._count

    def describe(self) -> dict[str, object]:
        """Which dataset."""
        return {"dataset": "synthetic", "samples": self._count, "sample": str(self.spec)}

    def sample(self, index: int) -> bytes:
        """The bytes of one sample; InputError outside 0 to the count."""
        from lanewise._native import synthetic_sample

        if not 0 <= index < self._count:
            raise InputError(f"there is no sample {index} of {self._count}", hint="count from 0")
        return synthetic_sample(index, self._size)

    def label(self, index: int) -> int | None:
        """None: nobody knows what noise shows."""
        return None
