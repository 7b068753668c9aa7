"""What a dataset is."""

from __future__ import annotations

from typing import Protocol

from lanewise.loadtest.spec import SampleSpec


class Dataset(Protocol):
    """Samples by index, all of one spec."""

    @property
    def spec(self) -> SampleSpec:
        """One sample."""

    def __len__(self) -> int:
        """How many there are."""

    def describe(self) -> dict[str, object]:
        """Which dataset, how many samples, how they are made."""

    def sample(self, index: int) -> bytes:
        """The bytes that travel; FormatError names what is broken."""

    def label(self, index: int) -> int | None:
        """The class of a sample, None where nobody knows."""
