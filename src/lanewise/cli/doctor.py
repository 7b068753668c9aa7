"""`lanewise doctor`: versions, the native core, and what optional pieces are here or missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.cli import terminal
from lanewise.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Callable

# What each optional piece is for. Measuring is not built yet, and doctor says so instead of promising it.
LATER = "nothing yet: no verb measures so far"


def doctor(as_json: Json = False) -> None:
    """Say what is installed, what is missing, and what a missing piece disables."""
    from lanewise import api

    facts = {"lanewise": terminal.version(), **api.machine()}
    pieces = [*_needed(), *_optional()]
    if as_json:
        names = ("piece", "found", "detail", "without_it")
        return terminal.out_json(
            {"versions": facts, "pieces": [dict(zip(names, piece, strict=True)) for piece in pieces]}
        )
    for name, value in facts.items():
        terminal.out(f"{name:10} {value}")
    rows = [
        (name, "yes" if found else "no", detail, "" if found else missing) for name, found, detail, missing in pieces
    ]
    terminal.out(f"\n{terminal.table(('piece', 'here', 'detail', 'without it'), rows)}")
    return None


Piece = tuple[str, bool, str, str]


def _needed() -> list[Piece]:
    """What verbs of today use."""
    return [
        ("native core", *_attempt(_native), "predict, study and calibrate do not run: reinstall Lanewise"),
        ("scipy", *_attempt(lambda: _module("scipy")), "no fits: calibrate and studies that fit do not run"),
        ("matplotlib", *_attempt(lambda: _module("matplotlib")), "no charts: report does not run"),
        ("SimGrid", *_attempt(_simgrid), "the benchmark against SimGrid is skipped; no verb needs it"),
    ]


def _optional() -> list[Piece]:
    """What measuring will use; its absence costs nothing today."""
    import os
    import sys

    ring = sys.platform == "linux" and os.path.exists("/proc/sys/kernel/io_uring_disabled")
    return [
        ("CUDA driver", *_attempt(lambda: _library("libcuda.so.1")), LATER),
        ("libibverbs", *_attempt(lambda: _library("libibverbs.so.1")), LATER),
        ("cuFile", *_attempt(lambda: _library("libcufile.so.0")), LATER),
        (
            "io_uring",
            ring,
            "" if not ring else "kernel has it" if _ring_allowed() else "switched off by sysctl",
            LATER,
        ),
    ]


def _attempt(look: Callable[[], str]) -> tuple[bool, str]:
    try:
        return True, look()
    except (ImportError, OSError, LookupError) as error:
        return False, str(error).split("\n")[0][:60] if isinstance(error, ImportError) else ""


def _native() -> str:
    from lanewise import _native as core

    return str(core.__file__).rpartition("/")[2]


def _module(name: str) -> str:
    from importlib.metadata import version

    __import__(name)
    return version(name)


def _library(name: str) -> str:
    import ctypes

    ctypes.CDLL(name)
    return name


def _simgrid() -> str:
    import ctypes.util

    found = ctypes.util.find_library("simgrid")
    if not found:
        raise LookupError
    return found


def _ring_allowed() -> bool:
    with open("/proc/sys/kernel/io_uring_disabled", encoding="ascii") as switch:
        return switch.read().strip() == "0"
