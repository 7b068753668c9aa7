"""Who shares a corridor: tracks for links that run level between columns, and for the brackets of volumes."""

from __future__ import annotations

from lanewise.report import grid as g
from lanewise.report.grid import Grid, GridCell
from lanewise.report.shapes import text_width
from lanewise.results.outline import Outline, OutlineLine, OutlineSpan


class Tracks:
    """Which links need a track of their own, and in which corridor or zone it runs."""

    def __init__(self, outline: Outline, grid: Grid) -> None:
        self.grid = grid
        self.level = set(g.lateral(outline, grid))
        self.track: dict[OutlineLine, tuple[str, int, int]] = {}
        self._below: dict[str, list[OutlineLine]] = {}
        self.spans = {0: 0, 1: 0}
        self.brackets: list[tuple[OutlineSpan, list[GridCell], int, int]] = []
        self._assign(outline)
        self._assign_spans(outline)

    def parallel(self, line: OutlineLine) -> list[OutlineLine]:
        """The links from a box to one below it that join the same two, this one among them."""
        return [link for link in self._below.get(line.a, ()) if link.tree and (link.a, link.b) == (line.a, line.b)]

    def below(self, cell: GridCell) -> list[OutlineLine]:
        """The links whose label stands under a cell."""
        return self._below.get(cell.box.name, [])

    def bottoms(self, cell: GridCell) -> list[OutlineLine]:
        """The links that leave a leaf downward, in the order of their ports."""
        return [line for line in self.below(cell) if not (line.tree and line.a == cell.box.name)]

    def count(self, kind: str, row: int) -> int:
        """How many tracks a corridor needs."""
        used = [track for where, at, track in self.track.values() if (where, at) == (kind, row)]
        return 1 + max(used, default=-1)

    def _assign(self, outline: Outline) -> None:
        busy: dict[tuple[str, int], list[tuple[float, float, int]]] = {}
        for line in outline.lines:
            ends = [self.grid.cells[end] for end in (line.a, line.b) if end in self.grid.cells]
            if line in self.level or not ends:
                continue
            upper = min(ends, key=lambda cell: cell.row)
            for cell in ends:
                if cell is upper or cell.row == upper.row:
                    self._below.setdefault(cell.box.name, []).append(line)
            if line.tree or len(ends) < 2:
                continue
            where = self._where(line, ends)
            left, right = sorted(cell.drop_at.get(line, cell.port) for cell in ends)
            half = text_width("  ".join(g.label_lines(line, "→", "←")), g.LABEL, bold=True) / 2 + 4
            middle = (left + right) / 2
            span = (min(left, middle - half), max(right, middle + half))
            track = free_track(busy.setdefault(where, []), *span)
            self.track[line] = (*where, track)

    def _where(self, line: OutlineLine, ends: list[GridCell]) -> tuple[str, int]:
        low = max(cell.row for cell in ends)
        if line.kind == "nvlink":
            return ("zone", 1 if any(cell.pooled for cell in ends) else 0)
        if ends[0].row == ends[1].row:
            return ("row", low)
        return ("gap", low) if low == self.grid.first_pool_row else ("row", low - 1)

    def _assign_spans(self, outline: Outline) -> None:
        busy: dict[tuple[str, int], list[tuple[float, float, int]]] = {}
        for span in outline.spans:
            cells = sorted((self.grid.cells[m] for m in span.members if m in self.grid.cells), key=lambda c: c.x)
            if not cells:
                continue
            tier = 1 if cells[0].pooled else 0
            half = text_width(span.label, g.LABEL, bold=True) / 2 + 3
            left, right = cells[0].x, cells[-1].x + cells[-1].w
            middle = (left + right) / 2
            ends = (min(left, middle - half), max(right, middle + half))
            track = free_track(busy.setdefault(("span", tier), []), *ends)
            self.brackets.append((span, cells, tier, track))
            self.spans[tier] = max(self.spans[tier], track + 1)


def free_track(busy: list[tuple[float, float, int]], left: float, right: float) -> int:
    """The lowest track where nothing overlaps `left` to `right`; it is taken from then on."""
    taken = {track for start, end, track in busy if start < right + 4 and end > left - 4}
    track = next(index for index in range(len(taken) + 1) if index not in taken)
    busy.append((left, right, track))
    return track
