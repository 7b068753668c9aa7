"""The terminal: one console to stdout, and a table that gives up columns, and says which, before it wraps."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

PIPE_WIDTH = 160  # columns, where nobody watches: files and other programs want whole rows


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `keep` 0 is never dropped, higher numbers go first; `elastic` may shrink to 12 letters."""

    title: str
    number: bool = False
    keep: int = 0
    elastic: bool = False


@dataclass
class Sheet:
    """Rows of plain text under columns; a cell may carry a style as (text, style)."""

    columns: list[Column]
    rows: list[list[str | tuple[str, str]]] = field(default_factory=list)
    title: str = ""

    def add(self, *cells: str | tuple[str, str]) -> None:
        """One more row."""
        self.rows.append(list(cells))


def colours(stream: Any) -> bool:
    """Whether `stream` is a terminal that wants colours (NO_COLOR and TERM=dumb are honoured)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def make_console(file: TextIO | None = None, width: int | None = None) -> Console:
    """A console for data: stdout by default, no colour where NO_COLOR is set or nobody watches."""
    from rich.console import Console

    out = file or sys.stdout
    if width is None and not out.isatty() and not os.environ.get("COLUMNS"):
        width = PIPE_WIDTH
    return Console(file=out, width=width, highlight=False, emoji=False, markup=False)


def print_sheet(console: Console, sheet: Sheet) -> None:
    """Print a sheet in the width there is; dropped columns are named underneath."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    used = [i for i, _ in enumerate(sheet.columns) if any(_plain(row[i]) for row in sheet.rows)]
    kept, limits = fit(sheet, used, console.width)
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=None,
        show_edge=False,
        header_style="bold",
    )
    for index in kept:
        column = sheet.columns[index]
        table.add_column(
            Text(column.title),
            justify="right" if column.number else "left",
            max_width=limits.get(index),
            overflow="fold",
            no_wrap=column.number,
        )
    for row in sheet.rows:
        table.add_row(*(_styled(row[index]) for index in kept))
    if sheet.title:
        console.print(Text(sheet.title, style="bold"))
    console.print(table)
    left_out = [sheet.columns[index].title.replace("\n", " ") for index in used if index not in kept]
    if left_out:
        text = f"left out at {console.width} columns: {', '.join(left_out)}"
        console.print(Text(text, style="dim"))


def fit(sheet: Sheet, used: Sequence[int], width: int) -> tuple[list[int], dict[int, int]]:
    """Which columns fit into `width`, and how wide the elastic ones may be."""
    kept = list(used)
    while True:
        natural = {index: _widest(sheet, index) for index in kept}
        over = sum(natural.values()) + 2 * max(0, len(kept) - 1) - width
        if over <= 0:
            return kept, {}
        elastic = [index for index in kept if sheet.columns[index].elastic]
        slack = sum(max(0, natural[index] - 12) for index in elastic)
        droppable = [index for index in kept if sheet.columns[index].keep]
        if over <= slack or not droppable:
            return kept, _share(natural, elastic, over)
        kept.remove(max(droppable, key=lambda index: (sheet.columns[index].keep, index)))


def _share(natural: dict[int, int], elastic: list[int], over: int) -> dict[int, int]:
    limits = {index: natural[index] for index in elastic}
    while over > 0 and any(limit > 12 for limit in limits.values()):
        widest = max(limits, key=lambda index: limits[index])
        limits[widest] -= 1
        over -= 1
    return {index: limit for index, limit in limits.items() if limit < natural[index]}


def _widest(sheet: Sheet, index: int) -> int:
    texts = [*sheet.columns[index].title.split("\n"), *(_plain(row[index]) for row in sheet.rows)]
    return max(len(text) for text in texts)


def _plain(cell: str | tuple[str, str]) -> str:
    return cell if isinstance(cell, str) else cell[0]


def _styled(cell: str | tuple[str, str]) -> Text:
    from rich.text import Text

    return Text(cell) if isinstance(cell, str) else Text(cell[0], style=cell[1])


__all__ = ["Column", "Sheet", "colours", "fit", "make_console", "print_sheet"]
