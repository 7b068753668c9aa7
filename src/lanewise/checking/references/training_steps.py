"""Steps of training: a loop whose steps wait for data is slow by its own figures, whatever carries the data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.checking.references.parts import Reference
from lanewise.results.observation import Observation

_WAITS = re.compile(r"([\d.e+-]+) of ([\d.e+-]+) s")
# Half of each step or more is spent on waiting; a tenth is what the loader's own first batches cost.
_WAITING, _FINE = 0.5, 0.9
# As of rows of one path (TOLERANCES).
_SLOW = 0.75


def waiting_share(row: Observation) -> float:
    """The share of a training step that it waits for data; 0 for other rows."""
    match = _WAITS.fullmatch(row.how.get("waits", ""))
    return min(1.0, float(match[1]) / float(match[2])) if match else 0.0


def of_waiting(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The steps a second without waiting, at most those of a run of the same loop that hardly waits.

    GPUs work on while a loop waits, so that a step's own time may be longer than the rest of it.
    """
    if not row.how.get("waits") or not row.value:
        return
    without = row.value / max(1e-3, 1 - waiting_share(row))
    others = [each.value or 0.0 for each in rows if each.how.get("waits") and waiting_share(each) <= 1 - _FINE]
    nominal = min([without, *(each for each in others if each >= row.value)])
    slow = _SLOW * nominal if waiting_share(row) > _WAITING else 0.0
    yield Reference("same path", nominal, _FINE * nominal, slow, None, "steps that wait for no data", "the row")
