"""`lanewise doctor` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.report.table import text_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lanewise.installed import Piece


def render_doctor(versions: Mapping[str, str], pieces: Sequence[Piece]) -> str:
    """Versions, and which optional dependencies are installed."""
    width = max(map(len, versions))
    lines = [f"{name:{width}}  {value}" for name, value in versions.items()]
    rows = [(p.piece, "yes" if p.found else "no", p.detail, "" if p.found else p.without_it) for p in pieces]
    return "\n".join([*lines, "", text_table(("piece", "here", "detail", "without it"), rows)])
