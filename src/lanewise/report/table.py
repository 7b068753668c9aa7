"""Tables and footnotes as text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lanewise.report.terminal import colours

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lanewise.topology.model import System

_BOLD, _OFF = "\033[1m", "\033[0m"


def text_table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> str:
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

    def render(self) -> str:
        """One line a text."""
        return "\n".join(f"[{i}] {text}" for i, text in enumerate(self.texts, 1))


def heading(system: System) -> str:
    """The system's name with its settings."""
    chosen = ", ".join(f"{name} {value}" for name, value in system.settings.items())
    return f"{system.name} ({chosen})" if chosen else system.name
