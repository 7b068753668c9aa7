"""Options of the verbs about studies and saved runs: study, calibrate, report, compare."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.check import devices
from lanewise.options.option import Options, argument, option, output_option, parts_option


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


@dataclass(frozen=True, slots=True)
class ReportOptions(Options):
    """A run and the page that shows it."""

    run: Path = argument("RUN.json", "A run written by study run --json or measure -o.")
    output: Path = option(Path("report.html"), "Page to write.", "-o --output", metavar="FILE")


@dataclass(frozen=True, slots=True)
class CompareOptions(Options):
    """Two runs, two sources or systems of one run, or the runs of a history."""

    left: Path | None = argument("[RUN.json]", "A run written by study run --json or measure -o.", None)
    right: Path | None = argument("[OTHER.json]", "A second run.", None)
    sources: tuple[str, str] | None = option(
        None, "Two sources of the run: published, predicted, measured, extrapolated.", metavar="SOURCE SOURCE"
    )
    systems: tuple[str, str] | None = option(None, "Two systems of the run with the same rows.",
                                             metavar="SYSTEM SYSTEM")  # fmt: skip
    history: str = option("", "Folder, or fsspec address (s3://...), of runs: how each row drifted, when it changed. "
                          "RUN.json counts as the latest.", metavar="ADDRESS")  # fmt: skip
    machine: str | None = option(None, "With --history: this machine alone.", metavar="NAME", default_text="all")
    devices: dict[str, str] = option(
        dict, "Device that a word in the rows means: model.safetensors=weights; repeatable.", "--as",
        metavar="WORD=DEVICE", repeat=True, parse=devices,
    )  # fmt: skip
