"""Options of every measuring verb: where its samples and its run are written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.option import Options, option


@dataclass(frozen=True, slots=True)
class RecordOptions(Options):
    """The files of a measurement."""

    output: Path | None = option(None, "Write the run, for check, report and compare.", "-o --output",
                                 metavar="RUN.json")  # fmt: skip
    samples: Path | None = option(None, "Write each sample as it is taken, one JSON object a line.",
                                  metavar="FILE.jsonl")  # fmt: skip
