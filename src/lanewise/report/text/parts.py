"""`lanewise parts` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise import units
from lanewise.report.table import Footnotes, text_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.catalog import Figure, Part


def render_parts(parts: Sequence[Part]) -> str:
    """One line a part."""
    rows = [(p.name, p.kind, str(len(p.figures)), p.title) for p in sorted(parts, key=lambda p: (p.kind, p.name))]
    return text_table(("part", "kind", "figures", "title"), rows, right=("figures",))


def render_part(part: Part) -> str:
    """Every figure of a part with its basis and source."""
    notes = Footnotes()
    rows = [
        (key, _value(figure), figure.basis if figure.known else "", notes.mark([_source(figure)]))
        for key, figure in part.figures.items()
    ]
    lines = [f"{part.name}: {part.title} ({part.kind})"]
    lines += [f"also called {', '.join(part.aliases)}"] if part.aliases else []
    return "\n".join([*lines, "", text_table(("figure", "value", "basis", "source"), rows), "", notes.render()])


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


def _source(figure: Figure) -> str:
    return f"{figure.source}; {figure.condition}" if figure.condition else figure.source
