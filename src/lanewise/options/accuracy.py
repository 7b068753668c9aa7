"""Options of `lanewise accuracy`: measured machines that predictions are scored on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.option import Options, argument, option, parts_option


@dataclass(frozen=True, slots=True)
class EvidenceOptions(Options):
    """The machines, and what is shown of them."""

    machines: tuple[str, ...] = argument("[MACHINE...]", "Machines to score.", (), repeat=True, default_text="all")
    folder: Path | None = option(None, "Score the evidence files (*.yaml) of this folder.", "--from", metavar="DIR",
                                 default_text="those that come with Lanewise")  # fmt: skip
    rows: bool = option(False, "Show every row: predicted, interval, measured, error.")
    fitted: bool = option(False, "Keep figures that were measured on the machine itself; they are left out otherwise.")
    parts: tuple[Path, ...] = parts_option()
