"""Where text goes: how wide it may be, and whether it takes colours."""

from __future__ import annotations

import os
import random
import shutil
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}
_DEFAULT_WIDTH = 80
# Stands for the escape character of our own colours until the text is printed: two letters without a meaning, chosen
# anew in each process, which no file can know.
ESCAPE = "".join(chr(0xF0000 + random.SystemRandom().randrange(65_000)) for _ in range(2))


@dataclass(frozen=True, slots=True)
class Screen:
    """`width` in columns, None for no limit; without `colour` no escape codes at all, bold included.

    `escape` starts an escape code.
    """

    width: int | None = None
    colour: bool = False
    escape: str = "\033"

    @classmethod
    def of(cls, stream: TextIO) -> Screen:
        """The terminal behind a stream; a pipe or a file has no width unless COLUMNS is set."""
        wide = stream.isatty() or os.environ.get("COLUMNS")
        width = shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns if wide else None
        return cls(width, True, ESCAPE) if colours(stream) else cls(width)

    def style(self, text: str, style: str) -> str:
        """The text in a style such as 'bold red'."""
        if not (self.colour and style and text):
            return text
        return f"{self.escape}[{';'.join(_CODES[word] for word in style.split())}m{text}{self.escape}[0m"

    def wrap(self, text: str, *, indent: int = 0) -> str:
        """The text in lines that fit, words unbroken; lines after the first are indented by `indent` blanks."""
        if self.width is None or len(text) <= self.width:
            return text
        lines = textwrap.wrap(text, max(self.width, indent + 20), subsequent_indent=" " * indent,
                              break_long_words=False, break_on_hyphens=False, drop_whitespace=True)  # fmt: skip
        return "\n".join(lines)

    def facts(self, rows: Iterable[tuple[str, str]], indent: int = 0, widest: int = 0) -> str:
        """One line a pair of name and text, texts below each other; names take `widest` letters at least."""
        pairs = [(name, text) for name, text in rows if text]
        hang = indent + max([widest - 1, *(len(name) for name, _ in pairs)]) + 2
        return "\n".join(self.wrap(f"{' ' * indent}{name}".ljust(hang) + text, indent=hang) for name, text in pairs)


PLAIN = Screen()  # no limit of width, no colours: what a pipe or a file gets


def colours(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that wants colours (NO_COLOR, FORCE_COLOR and TERM=dumb are honoured)."""
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
