"""Several errors at once: the first is raised, the others are in its hint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lanewise.errors import LanewiseError, Location, error_location

MAX_SHOWN = 4


class Problems:
    """Collects errors, in the order they are found."""

    def __init__(self) -> None:
        self.found: list[LanewiseError] = []

    def add(self, error: LanewiseError) -> None:
        """Keep an error for later, unless the same was kept before."""
        if str(error) not in {str(earlier) for earlier in self.found}:
            self.found.append(error)

    @contextmanager
    def at(self, location: Location) -> Iterator[None]:
        """Keep any error raised inside, with this location if it has none."""
        try:
            with error_location(location):
                yield
        except LanewiseError as error:
            self.add(error)

    def finish(self) -> None:
        """Raise the first error, if any, with the others in its hint."""
        if not self.found:
            return
        first, *further = self.found
        lines = [f"also:  {error}" for error in further[:MAX_SHOWN]]
        if len(further) > MAX_SHOWN:
            lines.append(f"also:  {len(further) - MAX_SHOWN} more")
        first.hint = "\n".join(line for line in (first.hint, *lines) if line)
        raise first
