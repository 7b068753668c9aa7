"""Options that choose a system: its name or file, its parameters, the user's parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.option import Options, argument, option
from lanewise.options.parse import settings


@dataclass(frozen=True, slots=True)
class PartsOptions(Options):
    """Part files that override the catalogue."""

    parts: tuple[Path, ...] = option((), "Part file that overrides the catalogue; repeatable.", metavar="FILE",
                                     repeat=True)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SystemOptions(Options):
    """A system by name or file, with its parameters and parts."""

    system: str = argument("SYSTEM", "A built-in system (lanewise system list) or a description file.",
                           complete="systems")  # fmt: skip
    settings: dict[str, int] = option(dict, "Set a parameter of the system; repeatable.", "--set",
                                      metavar="NAME=NUMBER", repeat=True, parse=settings)  # fmt: skip
    parts: tuple[Path, ...] = option((), "Part file that overrides the catalogue; repeatable.", metavar="FILE",
                                     repeat=True)  # fmt: skip
