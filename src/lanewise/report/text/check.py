"""What `lanewise check` shows people: a table, the worst first, then one paragraph for each finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.report.table import text_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.checking.checkup import Checkup
    from lanewise.checking.verdict import Judged

# A server with 16 GPUs has 240 pairs: what is fine and not shown is counted.
MOST_FINE = 12


def render_checkup(found: Checkup) -> str:
    """All that is not fine, the first of what is, findings, notes and a summary."""
    from lanewise.checking import words

    shown, hidden = _shown(found.rows)
    parts = []
    if shown:
        cells = text_table(words.HEADS, [words.cells(each) for each in shown], right=words.RIGHT)
        parts.append(f"{cells}\n... and {hidden} more that are fine" if hidden else cells)
    elif found.aside:
        heads = ("not judged", "scenario", "metric", "measured")
        parts.append(text_table(heads, words.aside(found)[: 2 * MOST_FINE], right=("measured",)))
    parts += [words.paragraph(finding) for finding in found.findings]
    if found.notes:
        parts.append("\n".join(f"note: {note}" for note in found.notes))
    parts.append(words.summary(found))
    return "\n\n".join(parts)


def _shown(rows: Sequence[Judged]) -> tuple[list[Judged], int]:
    from lanewise.checking.verdict import Verdict

    fine = [each for each in rows if each.verdict is Verdict.OK]
    kept = fine if len(fine) <= MOST_FINE + 1 else fine[:MOST_FINE]
    return [*(each for each in rows if each.verdict is not Verdict.OK), *kept], len(fine) - len(kept)
