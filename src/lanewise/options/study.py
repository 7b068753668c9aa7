"""Options of `lanewise study`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.common import output_option, parts_option
from lanewise.options.option import Options, argument, option


@dataclass(frozen=True, slots=True)
class StudyOptions(Options):
    """The studies, and what they are compared with."""

    names: tuple[str, ...] = argument("STUDY...", "Built-in studies (lanewise study list), files, or all.",
                                      repeat=True, complete="studies")  # fmt: skip
    output: Path | None = option(None, "Write the report, one HTML page.", "-o --output", metavar="FILE")
    measured: tuple[str, ...] = option((), "Compare with a run of measure or loadtest as well; repeatable.",
                                       metavar="[SYSTEM=]RUN.json", repeat=True)  # fmt: skip
    check: bool = option(False, "Exit with 1 unless every conclusion holds.")
    rows: bool = option(False, "Show every row, not only those that are far off.")
    parts: tuple[Path, ...] = parts_option()


@dataclass(frozen=True, slots=True)
class NewStudyOptions(Options):
    """A study to start."""

    name: str = argument("NAME", "Letters, digits and '-'; the files are called NAME.yaml and NAME-system.yaml.")


@dataclass(frozen=True, slots=True)
class AccuracyOptions(Options):
    """A run and the page of its residuals."""

    run: Path = argument("RUN.json", "A run written by lanewise study run --json.")
    output: Path | None = output_option()
