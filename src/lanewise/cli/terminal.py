"""What the terminal gets: data on stdout, progress and errors on stderr, plain tables, JSON."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lanewise.topology.model import System

_RED, _BOLD, _OFF = "\033[31m", "\033[1m", "\033[0m"


def out(text: str = "") -> None:
    """One piece of data, and a line end."""
    sys.stdout.write(f"{text}\n")


def out_json(data: Any) -> None:
    """The answer for other programs: SI units unless a `unit` stands beside a value."""
    import json

    out(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def note(text: str) -> None:
    """A line about what is going on."""
    _clear_status()
    _tell(f"{text}\n")


def fail(text: str) -> None:
    """The text of an error, its first word marked on a terminal."""
    _clear_status()
    if colours(sys.stderr) and text.startswith("error:"):
        text = f"{_RED}{_BOLD}error:{_OFF}{text[6:]}"
    _tell(f"{text}\n")


def overwrites() -> bool:
    """Whether progress is one line that is written over, and so may come often."""
    return sys.stderr.isatty()


def status(text: str) -> None:
    """Progress: on a terminal one line that is written over, else a line of its own."""
    if overwrites():
        width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
        _tell(f"\r\033[K{text[:width]}")
    else:
        note(text)


def done() -> None:
    """Take the progress line away."""
    _clear_status()


def colours(stream: Any) -> bool:
    """Whether `stream` is a terminal that wants colours (NO_COLOR and TERM=dumb are honoured)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> str:
    """Columns two blanks apart, those in `right` flush right; a column that is empty is left out."""
    lines = [list(row) for row in rows]
    kept = [i for i, _ in enumerate(heads) if any(line[i] for line in lines)]
    widths = {i: max(len(heads[i]), *(len(line[i]) for line in lines)) for i in kept}
    flush = {i for i in kept if heads[i] in set(right)}

    def layout(cells: Sequence[str]) -> str:
        made = [cells[i].rjust(widths[i]) if i in flush else cells[i].ljust(widths[i]) for i in kept]
        return "  ".join(made).rstrip()

    head = layout(heads)
    if colours(sys.stdout):
        head = f"{_BOLD}{head}{_OFF}"
    return "\n".join([head, *(layout(line) for line in lines)])


class Footnotes:
    """Long texts as numbers in a table and as lines below it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, texts: Iterable[str]) -> str:
        """'[1] [3]' for texts, each numbered when it first appears."""
        numbers = []
        for text in texts:
            if text and text not in self.texts:
                self.texts.append(text)
            if text:
                numbers.append(f"[{self.texts.index(text) + 1}]")
        return " ".join(numbers)

    def show(self) -> str:
        """One line a text."""
        return "\n".join(f"[{i}] {text}" for i, text in enumerate(self.texts, 1))


def heading(system: System) -> str:
    """The system's name with its settings."""
    chosen = ", ".join(f"{name} {value}" for name, value in system.settings.items())
    return f"{system.name} ({chosen})" if chosen else system.name


def version() -> str:
    """The version of Lanewise, without loading any of it."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as of

    try:
        return of("lanewise")
    except PackageNotFoundError:
        return "unknown (not installed)"


def _clear_status() -> None:
    if sys.stderr.isatty():
        _tell("\r\033[K")


def _tell(text: str) -> None:
    # Nobody to tell (the window was closed, the log's disk is full) is no reason to stop a measurement.
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
