"""Class matrices as text, and one cell of them."""

from __future__ import annotations

from lanewise.routes.matrix import APART, ClassMatrix


def cell(matrix: ClassMatrix, a: str, b: str) -> str:
    """The class between two of the names."""
    return matrix.cells[matrix.names.index(a)][matrix.names.index(b)]


def show(matrix: ClassMatrix) -> str:
    """The matrix as aligned text, with the CPU and NUMA affinity as its last columns."""
    rows = [["", *matrix.names, "CPU", "NUMA"]]
    for name, cells, cpu, numa in zip(matrix.names, matrix.cells, matrix.sockets, matrix.numa, strict=True):
        rows.append([name, *cells, cpu or APART, APART if numa is None else str(numa)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
