"""What is installed beside Lanewise, and what a missing piece disables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# What each optional piece is for. Measuring is not built yet, and doctor says so instead of promising it.
LATER = "nothing yet: no verb measures so far"


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece: whether it is here, a word about it, and what its absence costs."""

    piece: str
    found: bool
    detail: str
    without_it: str


def pieces() -> tuple[Piece, ...]:
    """Every piece, those that verbs need first."""
    return (*_needed(), *_optional())


def _needed() -> list[Piece]:
    """What verbs of today use."""
    return [
        Piece("native core", *_attempt(_native), "predict, study and calibrate do not run: reinstall Lanewise"),
        Piece("scipy", *_attempt(lambda: _module("scipy")), "no fits: calibrate and studies that fit do not run"),
        Piece("matplotlib", *_attempt(lambda: _module("matplotlib")), "no charts: report does not run"),
        Piece("SimGrid", *_attempt(_simgrid), "the benchmark against SimGrid is skipped; no verb needs it"),
    ]


def _optional() -> list[Piece]:
    """What measuring will use; its absence costs nothing today."""
    import os
    import sys

    ring = sys.platform == "linux" and os.path.exists("/proc/sys/kernel/io_uring_disabled")
    return [
        Piece(
            "CUDA driver",
            *_attempt(lambda: _library("libcuda.so.1")),
            "measure gpu does not run, nor storage into GPU memory: install NVIDIA's driver 520 or later",
        ),
        Piece("libibverbs", *_attempt(lambda: _library("libibverbs.so.1")), LATER),
        Piece("cuFile", *_attempt(lambda: _library("libcufile.so.0")), LATER),
        Piece(
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
