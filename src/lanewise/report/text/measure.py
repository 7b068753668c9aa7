"""`lanewise measure` as text: the built-in cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lanewise.report.screen import PIPE, Screen
from lanewise.report.table import Column, Table, render_table


def render_cases(cases: Sequence[Mapping[str, Any]], screen: Screen = PIPE) -> str:
    """One line a case of `measure gpu`."""
    table = Table([Column("case"), Column("shows", wrap=True), Column("for", drop=2), Column("flows", wrap=True),
                   Column("same as", drop=1, wrap=True)])  # fmt: skip
    for case in cases:
        flows = ", ".join(text.format(a="A", b="B") for text in case["flows"])
        table.add(case["name"], case["shows"], str(case["scope"]), flows, case["tool"])
    return render_table(table, screen)
