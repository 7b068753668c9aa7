"""Options of `lanewise calibrate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.common import parts_option
from lanewise.options.option import Options, argument, option


@dataclass(frozen=True, slots=True)
class CalibrateOptions(Options):
    """The unknowns and the rows that they are fitted to."""

    studies: tuple[str, ...] = argument("STUDY...", "Built-in studies (lanewise study list), files, or all.",
                                        repeat=True, complete="studies")  # fmt: skip
    fit: tuple[str, ...] = option(..., "An unknown figure and its range: 'l40s engine.h2d.gen4 15..30 GB/s'; "
                                  "repeatable.", metavar="'PART FIGURE LOW..HIGH UNIT'", repeat=True)  # fmt: skip
    table: tuple[str, ...] = option((), "Fit to the rows of this table only; repeatable.", metavar="NAME", repeat=True)
    output: Path | None = option(None, "Write the fitted figures as a part file, for --parts.", "-o --output",
                                 metavar="FILE")  # fmt: skip
    parts: tuple[Path, ...] = parts_option()
