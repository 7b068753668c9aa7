"""`lanewise parts` as text."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import units
from lanewise.catalog import Figure, Part
from lanewise.report.screen import PIPE, Screen
from lanewise.report.table import Column, Footnotes, Table, render_table


def render_parts(parts: Sequence[Part], screen: Screen = PIPE) -> str:
    """One line a part."""
    table = Table([Column("part"), Column("kind"), Column("figures", number=True, drop=1), Column("title", wrap=True)])
    for part in sorted(parts, key=lambda part: (part.kind, part.name)):
        table.add(part.name, part.kind, str(len(part.figures)), part.title)
    return render_table(table, screen)


def render_part(part: Part, screen: Screen = PIPE) -> str:
    """Every figure of a part with its basis and source."""
    notes = Footnotes()
    table = Table([Column("figure"), Column("value"), Column("basis"), Column("source")])
    for key, figure in part.figures.items():
        source = f"{figure.source}; {figure.condition}" if figure.condition else figure.source
        table.add(key, _value(figure), figure.basis if figure.known else "", notes.mark([source]))
    lines = [screen.wrap(f"{part.name}: {part.title} ({part.kind})", 2)]
    lines += [screen.wrap(f"also called {', '.join(part.aliases)}", 2)] if part.aliases else []
    return "\n".join([*lines, "", render_table(table, screen), "", notes.render(screen)])


def _value(figure: Figure) -> str:
    if figure.value is None or isinstance(figure.value, str):
        return figure.value or "unknown"
    unit = {"B/s": "GB/s", "T/s": "GT/s", "1/s": "QPS"}.get(figure.unit, figure.unit)
    if figure.unit == "s":
        unit = "ns" if figure.value < 1e-6 else "us"
    if figure.unit == "B":
        unit = "B" if figure.value < 4096 else "GiB" if figure.value >= 2**30 else "KiB"
    whole = unit in ("1", "B", "GiB", "KiB") and units.from_si(figure.value, unit).is_integer()
    return units.show(figure.value, unit, len(str(int(units.from_si(figure.value, unit)))) if whole else 4)
