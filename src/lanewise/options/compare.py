"""Options of `lanewise compare`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.option import Options, argument, option


@dataclass(frozen=True, slots=True)
class CompareOptions(Options):
    """Two runs, or two sources or systems of one run."""

    left: Path = argument("RUN.json", "A run written by study run --json or measure -o.")
    right: Path | None = argument("[OTHER.json]", "A second run.", None)
    sources: tuple[str, str] | None = option(
        None, "Two sources of the run: published, predicted, measured, extrapolated.", metavar="SOURCE SOURCE"
    )
    systems: tuple[str, str] | None = option(None, "Two systems of the run with the same rows.",
                                             metavar="SYSTEM SYSTEM")  # fmt: skip
