"""The tree of errors, and how one is shown.

LanewiseError
├── InputError            what the user gave is wrong: file, line, cause, hint
│   ├── FormatError       not readable as the format it should be (YAML, JSON, a quantity)
│   ├── UnknownName       a part, device, parameter, system or study that does not exist
│   └── Contradiction     two statements that cannot both hold
├── Unreachable           no route joins two devices, or policy forbids every one
├── CannotMeasure         this machine does not let that be measured: no permission, no room, no such device
├── EngineFailure         what carries work (lanewise.engines) cannot be started or reached, or has ended
└── MissingDependency     an optional piece that is not installed
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

EXIT_BAD_INPUT = 2
# C0 but tab and line feed, DEL, C1, other ends of lines, bidirectional controls, halves of a letter, no letters.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def printable(text: str) -> str:
    """The text without control characters, which a file or a peer may have put there for a terminal to obey."""
    return CONTROLS.sub("", text)


@dataclass(frozen=True, slots=True)
class Location:
    """A position in a file: `line` and `column` count from 1, 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


def shorten(text: str, most: int = 80) -> str:
    """The text, cut to so many characters for a message."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


class LanewiseError(Exception):
    """Base of all errors: one cause, one location if known, one hint what to do next."""

    def __init__(self, cause: str, *, location: Location | None = None, hint: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.location = location
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        return f"{where}{self.cause}"

    def show(self) -> str:
        """The text for the terminal: an `error:` line and, if there is one, a `hint:` line."""
        text = f"error: {str(self).replace(chr(10), ' ')}"
        return f"{text}\nhint:  {self.hint}" if self.hint else text


class InputError(LanewiseError):
    """What the user gave is wrong."""


class FormatError(InputError):
    """Not readable as the format it should be."""


class UnknownName(InputError):
    """A name that nothing bears."""


class Contradiction(InputError):
    """Two statements that cannot both hold."""


class Unreachable(LanewiseError):
    """No route joins two devices, or policy forbids every one."""


class MissingDependency(LanewiseError):
    """An optional piece that is not installed."""


def import_extra(module: str, extra: str, cause: str) -> Any:
    """A module that `pip install 'lanewise[extra]'` installs; MissingDependency as import_optional raises it."""
    return import_optional(module, f"'lanewise[{extra}]'", cause)


def import_optional(module: str, requirements: str, cause: str) -> Any:
    """The module; MissingDependency, with `pip install requirements`, where it is not installed or does not load."""
    try:
        return import_module(module)
    except ImportError as error:
        why = "is not installed" if isinstance(error, ModuleNotFoundError) else f"does not load: {error}"
        raise MissingDependency(f"{cause}, which {why}", hint=f"pip install {requirements}") from error


class CannotMeasure(LanewiseError):
    """This machine does not let that be measured."""


class EngineFailure(LanewiseError):
    """What carries work cannot be started or reached, or has ended."""


@contextmanager
def error_location(location: Location | None) -> Iterator[None]:
    """Give every LanewiseError raised inside this location, unless it has one."""
    try:
        yield
    except LanewiseError as error:
        error.location = error.location or location
        raise


def unknown_name(kind: str, name: str, known: Iterable[str], location: Location | None = None) -> UnknownName:
    """An UnknownName for `kind` whose hint offers the `known` names that share its words, else the closest ones."""
    names = sorted(known)
    close = _with_words_of(name, names) or get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    else:
        hint = f"known: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}" if names else ""
    return UnknownName(f"unknown {kind} '{name}'", location=location, hint=hint)


def most_shared_words(name: str, others: Iterable[str]) -> int:
    """How many of its words the name of `others` has that shares most of them."""
    return max((_shared_words(name, other) for other in others), default=0)


def _with_words_of(name: str, names: list[str]) -> list[str]:
    """The few names that share most of its words, at least half of them: "A100 80GB" shares one with each A100."""
    most = most_shared_words(name, names)
    alike = [other for other in names if _shared_words(name, other) == most]
    return alike if 2 * most >= len(_words(name)) and len(alike) <= _ALIKE else []


def _shared_words(name: str, other: str) -> int:
    return len(_words(name) & _words(other))


def _words(name: str) -> set[str]:
    return set(_WORD_ENDS.split(name.lower()))


_WORD_ENDS = re.compile(r"[\s_-]+")
_ALIKE = 6  # names that a hint offers; more share a word such as rtx that tells nothing
