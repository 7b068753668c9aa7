"""Matrices of measured pairs for people: medians, rows from where, columns to where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.results.observation import Observation

_SHOWN = ("goodput", "latency", "chase_latency")


def matrices(rows: Sequence[Observation]) -> str:
    """One for each case and metric over hosts and GPUs, and one of queries by batch; '' where there is none."""
    groups: dict[tuple[str, str, str], dict[tuple[str, str], Observation]] = {}
    for row in rows:
        src, _, dst = row.flow.partition("->")
        if row.metric not in _SHOWN or "," in row.flow or "->" in row.scenario:
            continue
        title, cell = (row.scenario, row.metric, row.unit), (src, dst)
        if "batch" in row.settings:
            title, cell = (f"queries, {row.flow}", row.metric, row.unit), (row.scenario, str(row.settings["batch"]))
        groups.setdefault(title, {})[cell] = row
    sizes = {(row.scenario, row.settings.get("bytes")) for row in rows if row.metric == "goodput"}
    swept = len({scenario for scenario, _ in sizes}) < len(sizes)
    return "" if swept else "\n\n".join(_matrix(title, cells) for title, cells in groups.items())


def _matrix(title: tuple[str, str, str], cells: dict[tuple[str, str], Observation]) -> str:
    from lanewise import units

    scenario, metric, unit = title
    tops = sorted({column for _, column in cells}, key=_natural)
    sides = sorted({row for row, _ in cells}, key=_natural)
    lines = []
    for side in sides:
        values = [cells[side, top].value if (side, top) in cells else None for top in tops]
        lines.append([side, *("–" if value is None else units.number(value) for value in values)])
    heads = ["batch" if scenario.startswith("queries,") else "from \\ to", *tops]
    return f"{scenario}, {metric} in {unit}\n{terminal.table(heads, lines, right=tops)}"


def _natural(name: str) -> tuple[str, int]:
    digits = name[len(name.rstrip("0123456789")) :]
    return name.removesuffix(digits), int(digits or 0)
