"""A figure of a text with the words around it."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise import late_re as re
from lanewise.readers.words import path_words
from lanewise.readers.words.quantities import TextQuantity

LETTERS = re.compile(r"[^\W\d_]{2}")
LONGEST = 160


@dataclass(frozen=True, slots=True)
class FigureWords:
    """The words of a figure's line: since the figure before it, up to the next, and all before it."""

    between: str
    after: str
    before: str
    suffixed: bool

    @property
    def label(self) -> str:
        """The words right before the figure, else those with which the line begins."""
        own = plain(self.between)
        first = re.match(r"\W{0,4}([\w ./()-]{1,60}?) ?:", self.before)
        if not LETTERS.search(own) or (first and ":" not in own and first[1] not in own):
            prefix = first[1] if first else plain(self.before)
            own = own if own.startswith(prefix) else f"{prefix}: {own}"
        return own[-LONGEST:]

    def way(self, heading: str) -> str:
        """'read', 'write' or nothing: by the word after the figure where the line writes it there."""
        if self.suffixed:
            return path_words.way_after(self.after)
        nearest = (self.between, self.before, heading)
        return next(filter(None, map(path_words.direction, nearest)), "")


@dataclass(frozen=True, slots=True)
class TextFigure:
    """A figure with its words, the heading above, and what it is (`role`); `crosses`: its own words name a network."""

    quantity: TextQuantity
    words: FigureWords
    heading: str
    line: int
    role: str
    path: str
    way: str
    copy: str = ""
    gpu: int = 0
    crosses: bool = False
    # Of a table: its number (the line of its heads), the label of the row, the head of the column and of the labels.
    table: int = 0
    row: str = ""
    head: str = ""
    first_head: str = ""
    expected: tuple[float, str] = (0.0, "")
    against: str = ""

    @property
    def name(self) -> str:
        """What the figure is called: the label and head of its cell, else the heading and the words before it."""
        if self.row or self.head:
            return ", ".join(filter(None, (self.row[:60], self.head[:40])))
        words = self.words.label[:60].strip(" :=")
        return ": ".join(filter(None, (self.heading[:50], words))) or f"line {self.line}"


def plain(words: str) -> str:
    """Words without bars, figures with a unit, and what ends a cell."""
    return re.sub(r"\s+", " ", words.replace("|", " ")).strip(" \t*`,;")
