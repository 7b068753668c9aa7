"""Highlighted routes: one coloured line each, at the left of the links it follows and through the boxes it passes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from lanewise.report import grid as g
from lanewise.report.levels import Levels
from lanewise.report.shapes import LineShape, MarkerShape, Shape, arrow_head
from lanewise.results.outline import Outline, OutlinePath

Point = tuple[float, float]
ROUTE_COLOURS = 6
_WIDTH = 2.6


def route_shapes(outline: Outline, out: Levels) -> list[Shape]:
    """The lines and end marks of all routes; a route whose boxes no link joins is left out."""
    shapes: list[Shape] = []
    for index, path in enumerate(outline.paths):
        points = _course(out, path, index)
        if len(points) < 2:
            continue
        css_class = f"route r{path.colour % ROUTE_COLOURS}"
        shapes.append(LineShape(tuple(points), f"{css_class} under", _WIDTH + 2.2))
        shapes.append(LineShape(tuple(points), css_class, _WIDTH, path.label))
        shapes.append(MarkerShape(*points[0], 0, 0, 3.4, css_class))
        shapes.append(arrow_head(points[-2], points[-1], 7.0, css_class))
    return shapes


def _course(out: Levels, path: OutlinePath, index: int) -> list[Point]:
    """The points of a route: each link's own course, moved aside, joined inside every box."""
    legs = []
    for start, end in pairwise(path.nodes):
        polyline = next((w for w in out.polylines if {w.line.a, w.line.b} == {start, end}), None)
        if polyline is None:
            return []
        points = polyline.points if polyline.line.a == start else polyline.points[::-1]
        legs.append(shifted(points, 6.0 + g.ROUTE * index))
    if not legs:
        return []
    legs[0][0] = _inside(out, path.nodes[0], legs[0][0])
    legs[-1][-1] = _inside(out, path.nodes[-1], legs[-1][-1])
    course: list[Point] = []
    for position, leg in enumerate(legs):
        if position:
            course.extend(_join(out, path.nodes[position], course[-1], leg[0], index))
        course.extend(leg)
    return [point for point, _ in groupby(course)]


def shifted(points: Sequence[Point], by: float) -> list[Point]:
    """A line of points moved aside by so many px, to the left of an upright one and above a level one."""
    if all(y == points[0][1] for _, y in points):
        return [(x, y - by) for x, y in points]
    return [(x - by, y - by if 0 < index < len(points) - 1 else y) for index, (x, y) in enumerate(points)]


def _rect(out: Levels, name: str) -> tuple[float, float, float, float]:
    if name in out.bars:
        bar = out.bars[name]
        return bar.x, bar.y, bar.w, bar.h
    cell = out.grid.cells[name]
    return cell.x, cell.y, cell.w, cell.h


def _turn_level(out: Levels, name: str, index: int) -> float:
    _, y, _, h = _rect(out, name)
    if name in out.bars:
        return y + h - 4 - g.ROUTE * index
    if name in out.mirrored:
        return y + 5 + g.ROUTE * index
    return y + h - 5 - g.ROUTE * index


def _inside(out: Levels, name: str, point: Point) -> Point:
    """Where a route ends: on the border of its box, so that its mark covers no name."""
    x, y, w, h = _rect(out, name)
    if not x < point[0] < x + w:
        return (x + w if point[0] >= x + w else x, point[1])
    return (point[0], y if abs(point[1] - y) < abs(point[1] - y - h) else y + h)


def _join(out: Levels, name: str, last: Point, first: Point, index: int) -> list[Point]:
    x, _, w, _ = _rect(out, name)
    level = _turn_level(out, name, index)
    sideways = [not x < point[0] < x + w for point in (last, first)]
    if all(sideways):
        return []
    if sideways[0]:
        return [(first[0], last[1])]
    if sideways[1]:
        return [(last[0], first[1])]
    return [(last[0], level), (first[0], level)]
