"""Options of `lanewise accuracy`: measured machines that predictions are scored on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.option import Options, argument, option, parts_option


@dataclass(frozen=True, slots=True)
class EvidenceOptions(Options):
    """The machines, and what is shown of them."""

    machines: tuple[str, ...] = argument("[MACHINE...]", "Machines to score.", (), repeat=True, default_text="all")
    folder: Path | None = option(None, "Score this evidence file, or those (*.yaml) of a folder.", "--from", metavar="PATH",
                                 default_text="those that come with Lanewise")  # fmt: skip
    rows: bool = option(False, "Show every row: predicted, interval, measured, error.")
    fitted: bool = option(False, "Keep figures that were measured on the machine itself; they are left out otherwise.")
    after_measurement: bool = option(
        False, "Score each machine again after one and after two measurements of it: ten seconds.",
    )  # fmt: skip
    services: bool = option(False, "Score published inference services too, simulated: some seconds.")
    output: Path | None = option(None, "Write a Markdown page, or to FILE.json the error of each basis.", "-o --output",
                                 metavar="FILE")  # fmt: skip
    studies: Path | None = option(None, "With -o: add a run written by lanewise study run --json.", metavar="RUN.json")
    history: Path | None = option(None, "With -o: add the scores that benchmarks/accuracy_run.py kept in this folder.",
                                  metavar="DIR")  # fmt: skip
    parts: tuple[Path, ...] = parts_option()
