"""The four things a drawing is made of, every number of them decided, and how wide their text runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

# Advance widths in thousandths of the font size (Arial, and Liberation Sans, which has the same metrics).
_NARROW = {
    **dict.fromkeys("ijl|'", 222),
    **dict.fromkeys("fIt!,.:;/\\ []()`", 280),
    **dict.fromkeys("r-{}", 333),
}
_WIDE = {**dict.fromkeys("mM", 833), **dict.fromkeys("wW%@", 890), **dict.fromkeys("ABEKPSVXY&", 667)}
_MORE = {
    **dict.fromkeys("CDHNRUGOQ", 750),
    **dict.fromkeys("ckxyzsvJ", 500),
    **dict.fromkeys("→←↓↑↔×+=<>~", 600),
}
_ADVANCE = {**_NARROW, **_WIDE, **_MORE}
_MARGIN = 1.06


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The width of one line of text in px at a font size in px, on the safe side."""
    return _advance(text) / 1000 * size * _MARGIN * (1.06 if bold else 1.0)


@lru_cache(maxsize=4096)  # a drawing asks for the same names and rates again and again
def _advance(text: str) -> int:
    return sum(_ADVANCE.get(letter, 560) for letter in text)


def clip(text: str, size: float, width: float, bold: bool = False) -> str:
    """The text, cut with an ellipsis where it would run over `width` px."""
    if text_width(text, size, bold) <= width:
        return text
    while text and text_width(text + "…", size, bold) > width:
        text = text[:-1]
    return text.rstrip() + "…" if text else ""


def wrap(text: str, size: float, width: float, lines: int) -> list[str]:
    """The text broken at spaces into at most `lines` lines of `width` px, the last one clipped."""
    out: list[str] = []
    words = text.split()
    while words and len(out) < lines:
        line = words.pop(0)
        while words and text_width(f"{line} {words[0]}", size) <= width:
            line = f"{line} {words.pop(0)}"
        out.append(line)
    if words and out:
        out[-1] = " ".join([out[-1], *words])
    return [clip(line, size, width) for line in out]


def cut(text: str, size: float, width: float, lines: int) -> bool:
    """Whether `wrap` cannot show all of the text."""
    return any(line.endswith("…") for line in wrap(text, size, width, lines))


def px(value: float) -> str:
    """'12.5', '12': a length as an attribute of SVG."""
    return f"{value:.1f}".removesuffix(".0")


@dataclass(frozen=True, slots=True)
class BoxShape:
    """A rectangle (px) that represents the device or container `name`; `tip` is its tooltip."""

    x: float
    y: float
    w: float
    h: float
    css_class: str
    name: str = ""
    tip: str = ""


@dataclass(frozen=True, slots=True)
class LineShape:
    """A line through `points` (px), `width` px wide."""

    points: tuple[tuple[float, float], ...]
    css_class: str
    width: float
    tip: str = ""


@dataclass(frozen=True, slots=True)
class TextShape:
    """One line of text with its baseline at `y`; `anchor` is start, middle or end."""

    x: float
    y: float
    text: str
    size: float
    css_class: str = ""
    anchor: str = "start"
    bold: bool = False

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of the ink, px, on the safe side."""
        width = text_width(self.text, self.size, self.bold)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return (left, self.y - 0.76 * self.size, left + width, self.y + 0.22 * self.size)


@dataclass(frozen=True, slots=True)
class MarkerShape:
    """An arrow head pointing along (dx, dy), or a dot where both are zero."""

    x: float
    y: float
    dx: float
    dy: float
    size: float
    css_class: str


def arrow_head(start: tuple[float, float], end: tuple[float, float], size: float, css_class: str) -> MarkerShape:
    """The head at the end of an upright or level line from `start` to `end`."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = max(1e-6, abs(dx) + abs(dy))
    return MarkerShape(*end, dx / length, dy / length, size, css_class)


Shape: TypeAlias = BoxShape | LineShape | TextShape | MarkerShape


@dataclass(frozen=True, slots=True)
class GroupShape:
    """Shapes that belong together."""

    css_class: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Canvas:
    """A drawing of `width` by `height` px, ready to be drawn in the order of its groups."""

    width: float
    height: float
    title: str
    groups: tuple[GroupShape, ...]
