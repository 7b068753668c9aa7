"""`lanewise measure` as text: the ready cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise.report.table import text_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def render_cases(cases: Sequence[Mapping[str, Any]]) -> str:
    """One line a ready case of `measure gpu`."""
    rows = [
        (c["name"], c["shows"], str(c["scope"]), ", ".join(text.format(a="A", b="B") for text in c["flows"]), c["tool"])
        for c in cases
    ]
    return text_table(("case", "shows", "for", "flows", "as in"), rows)
