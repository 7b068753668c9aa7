"""Options of every measuring verb: when it has enough samples, and where they are written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.option import Options, option


@dataclass(frozen=True, slots=True)
class SamplingRule:
    """At least `least` samples, then until the median's interval is within `width` (relative), or `most` samples.

    The interval is distribution-free (order statistics), so a row needs six samples before 95 % can be said at all;
    fewer are accepted only where all lie within `width` of each other. `confidence` is nominal: that of independent
    samples looked at once, while these may drift together and are looked at after each.
    """

    least: int = 5
    most: int = 25
    width: float = 0.005
    confidence: float = 0.95


DEFAULT_RULE = SamplingRule(most=15)


@dataclass(frozen=True, slots=True)
class RecordOptions(Options):
    """The files of a measurement."""

    output: Path | None = option(None, "Write the run, for check, report and compare.", "-o --output",
                                 metavar="RUN.json")  # fmt: skip
    samples_file: Path | None = option(None, "Write each sample as it is taken, one JSON object a line.", "--samples",
                                       metavar="FILE.jsonl")  # fmt: skip
