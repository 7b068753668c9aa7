"""`lanewise doctor` as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lanewise.installed import Dependency
from lanewise.report.screen import PIPE, Screen
from lanewise.report.table import Column, Table, TableCell, render_table


def render_doctor(versions: Mapping[str, str], pieces: Sequence[Dependency], screen: Screen = PIPE) -> str:
    """Versions, and which optional dependencies are installed."""
    table = Table([Column("dependency"), Column("installed"), Column("detail", drop=1, wrap=True),
                   Column("without it", wrap=True)])  # fmt: skip
    for piece in pieces:
        installed = TableCell("yes", "good") if piece.found else TableCell("no", "off")
        table.add(piece.piece, installed, piece.detail, "" if piece.found else piece.without_it)
    return f"{screen.facts(versions.items())}\n\n{render_table(table, screen)}"
