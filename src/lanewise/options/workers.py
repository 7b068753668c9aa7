"""Options of verbs that run scenarios on workers: which ones, and where finished scenarios are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.option import Options, option


@dataclass(frozen=True, slots=True)
class EngineChoice(Options):
    """Where scenarios run."""

    on: str | None = option(None, "Run on several processes: local:4, ray:4 (a Ray of this machine), or "
                            "ray://HOST:10001 (any Ray).", metavar="ENGINE", default_text="this process")  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkerOptions(EngineChoice):
    """The same, and the folder of scenarios that are finished."""

    results: Path | None = option(None, "Keep finished scenarios in this folder, as Parquet; the same command again "
                                  "resumes.", metavar="FOLDER")  # fmt: skip
