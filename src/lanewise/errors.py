"""The tree of errors, and how one is shown.

LanewiseError
├── InputError            what the user gave is wrong: file, line, cause, hint
│   ├── FormatError       not readable as the format it should be (YAML, JSON, a quantity)
│   ├── UnknownName       a part, device, parameter, system or study that does not exist
│   └── Contradiction     two statements that cannot both hold
├── Unreachable           no route joins two devices, or policy forbids every one
├── CannotMeasure         this machine does not let that be measured: no permission, no room, no such device
└── MissingDependency     an optional piece that is not installed
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches

EXIT_BAD_INPUT = 2


@dataclass(frozen=True, slots=True)
class Location:
    """A position in a file: `line` and `column` count from 1, 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


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
        text = f"error: {self}"
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


class CannotMeasure(LanewiseError):
    """This machine does not let that be measured."""


@contextmanager
def error_location(location: Location | None) -> Iterator[None]:
    """Give every LanewiseError raised inside this location, unless it has one."""
    try:
        yield
    except LanewiseError as error:
        error.location = error.location or location
        raise


def unknown_name(kind: str, name: str, known: Iterable[str], location: Location | None = None) -> UnknownName:
    """An UnknownName for `kind` whose hint offers the closest of the `known` names."""
    names = sorted(known)
    close = get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    else:
        hint = f"known: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}" if names else ""
    return UnknownName(f"unknown {kind} '{name}'", location=location, hint=hint)
