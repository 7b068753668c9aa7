"""This machine, for the record."""

from __future__ import annotations

import datetime
import os
import platform
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lanewise.installed import Piece


def doctor() -> tuple[Piece, ...]:
    """Every piece that Lanewise uses or will use: whether it is here, and what its absence costs."""
    from lanewise.installed import pieces

    return pieces()


def version() -> str:
    """The version of Lanewise."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as of

    try:
        return of("lanewise")
    except PackageNotFoundError:
        return "unknown"


def machine() -> dict[str, str]:
    """What this machine is, for the record beside results: no names, no addresses."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "cpu": platform.machine(),
        "cores": str(os.cpu_count()),
    }


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
