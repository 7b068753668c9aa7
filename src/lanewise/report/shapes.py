"""The five things a drawing is made of. A prepared drawing is these, with every number decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lanewise.report.metrics import text_width


@dataclass(frozen=True, slots=True)
class BoxShape:
    """A rectangle (px); `css_class` is its class, `inside` names the box around it, `tip` is its tooltip."""

    x: float
    y: float
    w: float
    h: float
    css_class: str
    name: str = ""
    inside: str = ""
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


@dataclass(frozen=True, slots=True)
class GroupShape:
    """Shapes that belong together."""

    css_class: str
    shapes: tuple[Shape, ...]


Shape: TypeAlias = "BoxShape | LineShape | TextShape | MarkerShape | GroupShape"


@dataclass(frozen=True, slots=True)
class Canvas:
    """A drawing of `width` by `height` px, ready to be drawn in order."""

    width: float
    height: float
    title: str
    shapes: tuple[Shape, ...]

    def flat(self) -> Iterator[Shape]:
        """All shapes but groups, in drawing order."""
        yield from _flatten(self.shapes)


def _flatten(shapes: tuple[Shape, ...]) -> Iterator[Shape]:
    for shape in shapes:
        if isinstance(shape, GroupShape):
            yield from _flatten(shape.shapes)
        else:
            yield shape
