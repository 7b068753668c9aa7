"""Measured collectives as nccl-tests prints them: a line a size, out of place and in place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lanewise import units
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Table, number_columns, render_table
from lanewise.results.observation import Observation

_IN_PLACE = " in place"
_HEADS = ("time us", "algbw", "busbw GB/s", "#wrong")


def render_collectives(rows: Iterable[Observation], screen: Screen = PLAIN) -> str:
    """A table for each operation and ring of ranks; what could not be measured says so below it."""
    tables: dict[tuple[str, str, str], dict[int, dict[str, Observation]]] = defaultdict(lambda: defaultdict(dict))
    notes: dict[str, None] = {}
    for row in rows:
        operation = row.scenario.removesuffix(_IN_PLACE)
        place = _IN_PLACE if row.scenario.endswith(_IN_PLACE) else ""
        sizes = tables[operation, row.flow, row.how.get("library", "")]
        sizes[row.settings["bytes"]][row.metric + place] = row
        if row.note:
            notes[f"{units.size(row.settings['bytes'])}{place}: {row.note}"] = None
    blocks = [_table(*key, sizes, screen) for key, sizes in tables.items()]
    return "\n\n".join(filter(None, [*blocks, "\n".join(notes)]))


def _table(operation: str, ring: str, library: str, sizes: dict[int, dict[str, Observation]], screen: Screen) -> str:
    gpus = [flow.split("->")[0] for flow in ring.split(", ")]
    in_place = any(metric.endswith(_IN_PLACE) for cells in sizes.values() for metric in cells)
    heads = [head + place for place in ("", _IN_PLACE)[: 1 + in_place] for head in _HEADS]
    table = Table(number_columns("size", *heads))
    for size, cells in sorted(sizes.items()):
        line = [cell for place in ("", _IN_PLACE)[: 1 + in_place] for cell in _cells(size, cells, place)]
        table.add(units.size(size), *line)
    head = f"{operation} of {len(gpus)} GPUs: {', '.join(gpus)}; {library}"
    return f"{screen.style(head, 'bold')}\n{render_table(table, screen)}"


def _cells(size: int, cells: dict[str, Observation], place: str) -> list[str]:
    rate, time = cells.get(f"bus_bandwidth{place}"), cells.get(f"time{place}")
    wrong = rate.how.get("wrong", "") if rate is not None else ""
    if rate is None or rate.value is None or time is None or not time.value:
        return ["–", "–", "–", wrong]
    return [f"{time.value * 1e6:.4g}", f"{size / time.value / 1e9:.4g}", f"{rate.value / 1e9:.4g}", wrong]
