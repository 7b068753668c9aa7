"""Options of `lanewise report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.option import Options, argument, option


@dataclass(frozen=True, slots=True)
class ReportOptions(Options):
    """A run and the page that shows it."""

    run: Path = argument("RUN.json", "A run written by study run --json or measure -o.")
    output: Path = option(Path("report.html"), "Page to write.", "-o --output", metavar="FILE")
