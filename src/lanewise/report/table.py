"""The table of every verb and of the page, and how the terminal shows it.

A table that is wider than the terminal first gives up columns, and names them; then it wraps texts between words.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lanewise.report.screen import PLAIN, Screen

GAP = 2  # blanks between columns
_COMFORT = 20  # letters that a text may have before columns are given up for it
_LONGEST_WORD = 26  # longer words may be broken
_NARROWEST = 8
# Of classes of routes.
_MATRIX_STYLES = {"PHB": "yellow", "NODE": "yellow", "SYS": "red", "NET": "magenta", "--": "dim"}
_STYLES = {"off": "yellow", "far": "bold red", "good": "green", "bad": "bold red", "quiet": "dim", "sum": "bold"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `unit` is a second line of its title.

    The columns with the highest `drop_order` are given up first where the terminal is too narrow; 0 is always shown.
    `wrap`: its texts may take several lines.
    """

    title: str
    unit: str = ""
    number: bool = False
    drop_order: int = 0
    wrap: bool = False

    @property
    def heading_lines(self) -> list[str]:
        """The title and, below it, the unit: one text a line of the heading."""
        return [*filter(None, [self.title, self.unit])] or [""]


@dataclass(frozen=True, slots=True)
class TableCell:
    """A text and how good it is: '', 'off' and 'far' of a residual, 'good' and 'bad' of a verdict, 'quiet', 'sum'.

    `href` is where it leads to on a page, `swatch` the colour that a chart gives to its row.
    """

    text: str
    grade: str = ""
    href: str = ""
    swatch: str = ""


@dataclass
class Table:
    """Rows of cells under columns."""

    columns: Sequence[Column]
    rows: list[Sequence[str | TableCell]] = field(default_factory=list)
    title: str = ""

    def add(self, *cells: str | TableCell) -> None:
        """One more row."""
        self.rows.append(cells)

    def filled(self) -> list[int]:
        """The indices of the columns that have any text."""
        return [i for i, _ in enumerate(self.columns) if any(cell_text(row[i]) for row in self.rows)]


def number_columns(*titles: str, unit: str = "", drop_order: int = 0) -> list[Column]:
    """Columns of numbers."""
    return [Column(title, unit, number=True, drop_order=drop_order) for title in titles]


def cell_text(cell: str | TableCell) -> str:
    """The text of a cell."""
    return (cell if isinstance(cell, str) else cell.text).rstrip()


def render_table(table: Table, screen: Screen = PLAIN) -> str:
    """The table in the width of the screen; columns without any text are left out, dropped ones named below."""
    filled = table.filled()
    kept, widths = _fit(table, filled, screen.width)
    titles = screen.wrap(table.title, indent=GAP).split("\n") if table.title else []
    lines = [screen.style(title, "bold") for title in titles]
    deepest = max((len(table.columns[i].heading_lines) for i in kept), default=0)
    for level in range(deepest):
        cells = [TableCell(_level(table.columns[i].heading_lines, level, deepest)) for i in kept]
        lines.append(screen.style(_line(table, kept, widths, cells, PLAIN), "bold"))
    for row in table.rows:
        lines += _row_lines(table, kept, widths, row, screen)
    dropped = [" ".join(table.columns[i].heading_lines) for i in filled if i not in kept]
    if dropped:
        note = f"not shown in {screen.width} columns: {', '.join(dropped)}"
        lines += [screen.style(line, "dim") for line in screen.wrap(note, indent=GAP).split("\n")]
    return "\n".join(lines)


def markdown_table(table: Table) -> str:
    """The table in Markdown; columns without any text are left out."""
    shown = table.filled()
    lines = [[" ".join(table.columns[i].heading_lines) for i in shown]]
    lines.append(["---:" if table.columns[i].number else "---" for i in shown])
    lines += [[cell_text(row[i]).replace("|", "\\|") for i in shown] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _level(titles: Sequence[str], level: int, deepest: int) -> str:
    """Titles end at the same line."""
    index = level - (deepest - len(titles))
    return titles[index] if index >= 0 else ""


def _row_lines(
    table: Table, kept: Sequence[int], widths: dict[int, int], row: Sequence[str | TableCell], screen: Screen
) -> list[str]:
    """A row, over several lines where texts wrap."""
    pieces = {i: _wrapped(cell_text(row[i]), widths[i]) for i in kept}
    grades = {i: cell.grade if isinstance(cell := row[i], TableCell) else "" for i in kept}
    height = max((len(texts) for texts in pieces.values()), default=0)
    return [
        _line(table, kept, widths, [TableCell(pieces[i][k] if k < len(pieces[i]) else "", grades[i]) for i in kept],
              screen)
        for k in range(height)
    ]  # fmt: skip


def _line(table: Table, kept: Sequence[int], widths: dict[int, int], cells: Sequence[TableCell], screen: Screen) -> str:
    """One line without blanks at its end."""
    line = ""
    blanks = 0
    for i, cell in zip(kept, cells, strict=True):
        padding = widths[i] - len(cell.text)
        before = padding if table.columns[i].number else 0
        if cell.text:
            line += " " * (blanks + before) + screen.style(cell.text, _STYLES.get(cell.grade, ""))
            blanks = padding - before + GAP
        else:
            blanks += widths[i] + GAP
    return line


def _fit(table: Table, filled: Sequence[int], width: int | None) -> tuple[list[int], dict[int, int]]:
    """Which columns are shown, and how wide each is."""
    kept = list(filled)
    texts = {i: [*table.columns[i].heading_lines, *(cell_text(row[i]) for row in table.rows)] for i in kept}
    natural = {i: max(map(len, texts[i])) for i in kept}
    if width is None:
        return kept, natural
    floors = {
        i: min(natural[i], max([len(word[:_LONGEST_WORD]) for text in texts[i] for word in text.split()] or [0]))
        if table.columns[i].wrap
        else natural[i]
        for i in kept
    }
    comfort = {i: max(floors[i], min(natural[i], _COMFORT)) for i in kept}
    while _total(comfort, kept) > width and any(table.columns[i].drop_order for i in kept):
        kept.remove(max(kept, key=lambda i: (table.columns[i].drop_order, i)))
    widths = {i: natural[i] for i in kept}
    _shrink(widths, floors, width)
    _shrink(widths, dict.fromkeys([i for i in kept if not table.columns[i].number], _NARROWEST), width)
    return kept, widths


def _total(widths: dict[int, int], kept: Sequence[int]) -> int:
    return sum(widths[i] for i in kept) + GAP * (len(kept) - 1)


def _shrink(widths: dict[int, int], floors: dict[int, int], width: int) -> None:
    """Take letters from the widest column that is above its floor, one by one, until the table fits."""
    while _total(widths, list(widths)) > width:
        above = [i for i in widths if i in floors and widths[i] > floors[i]]
        if not above:
            return
        widths[max(above, key=lambda i: widths[i])] -= 1


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width`: broken between words, in long words after punctuation, and only then anywhere."""
    if len(text) <= width:
        return [text.rstrip()]
    lines = []
    for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False):
        while len(line) > width:
            at = max((match.end() for match in re.finditer(r"[^\w ]+|_", line[:width])), default=width)
            lines.append(line[: at or width])
            line = line[at or width :]
        lines.append(line)
    return lines


def render_matrix(
    sources: Sequence[str],
    targets: Sequence[str],
    values: Sequence[Sequence[float | None]],
    title: str,
    screen: Screen = PLAIN,
) -> str:
    """A value from each source (row) to each target (column) under a title; None prints as a dash."""
    largest = max((value for row in values for value in row if value is not None), default=0.0)
    decimals = 0 if largest >= 1000 else 1 if largest >= 100 else 2
    cells = [["--" if value is None else f"{value:.{decimals}f}" for value in row] for row in values]
    lines = [screen.style(line, "bold") for line in screen.wrap(title, indent=2).split("\n")]
    return "\n".join([*lines, *matrix_lines(sources, targets, cells, {}, screen)])


def matrix_lines(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    extra: Mapping[str, Sequence[str]],
    screen: Screen,
) -> list[str]:
    """A matrix as lines: blocks of columns one below the other where the screen is too narrow for all of them."""
    wide = max(len(text) for text in (*columns, *(text for row in cells for text in row), "")) + 2
    first = max((len(name) for name in rows), default=0) + 1
    tail = {head: max(len(head), *(len(text) for text in texts)) + 2 for head, texts in extra.items()}
    width = screen.width or first + wide * len(columns) + sum(tail.values())
    step = max(1, (width - first) // wide)
    lines: list[str] = []
    for start in range(0, len(columns), step):
        block = range(start, min(start + step, len(columns)))
        fits = block.stop == len(columns) and first + wide * len(block) + sum(tail.values()) <= width
        ends = {head: length for head, length in tail.items() if fits}
        lines += [""] if start else []
        title = " " * first + "".join(f"{columns[j]:>{wide}}" for j in block)
        lines.append(screen.style(title + "".join(f"{head:>{length}}" for head, length in ends.items()), "bold"))
        for i, name in enumerate(rows):
            texts = [cells[i][j] for j in block]
            line = "".join(
                " " * (wide - len(text)) + screen.style(text, _MATRIX_STYLES.get(text, "")) for text in texts
            )
            line += "".join(f"{extra[head][i]:>{length}}" for head, length in ends.items())
            lines.append(screen.style(f"{name:<{first}}", "bold") + line)
    return lines


class Footnotes:
    """Long texts as numbers in a table and as lines below it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, texts: Iterable[str]) -> str:
        """'[1] [3]' for texts, each numbered when it first appears."""
        numbers = []
        for text in filter(None, texts):
            if text not in self.texts:
                self.texts.append(text)
            numbers.append(f"[{self.texts.index(text) + 1}]")
        return " ".join(numbers)

    def render(self, screen: Screen = PLAIN) -> str:
        """One line a text, the next lines of a long one indented."""
        return "\n".join(screen.wrap(f"[{i}] {text}", indent=len(str(i)) + 3) for i, text in enumerate(self.texts, 1))
