"""Whether what two rows are called says why one is less than the other on a sound machine."""

from __future__ import annotations

import re

from lanewise.results.figure_reasons import explained, other_work
from lanewise.results.observation import Observation

_IN_TURN = re.compile(
    r"\b(?:first|second|next|later|third) (?:writes?|runs?|pass|time|try|one)\b|\bagain\b|\bafterwards\b", re.IGNORECASE
)


# What a row may have several of, in a setting by a word of the asker's own, and how near to its share is in proportion.
_COUNTED = re.compile(
    r"(?:number of )?(?:cards|nics|hcas|ports|rails|links|lanes|channels|dimms|modules|drives|disks|gpus)"
)
_OF_SHARE = 0.75


def less_by_design(row: Observation, other: Observation) -> bool:
    """Whether the names and notes of two rows say why the first is the lesser: a cache, an older link, other work."""
    if _of_fewer(row, other):
        return True
    slower, faster = _words(row), _words(other)
    if slower.split() == faster.split():
        return False  # it explains nothing
    share = (row.value or 0.0) / other.value if other.value else 0.0
    return explained(slower, faster, share) or other_work(slower, faster)


def _of_fewer(row: Observation, other: Observation) -> bool:
    """Whether a row is of fewer cards, ports or the like, as its own settings count them, and less in proportion."""
    counted = [key for key in row.settings.keys() & other.settings.keys() if _COUNTED.fullmatch(key)]
    shares = [row.settings[key] / other.settings[key] for key in counted if other.settings[key]]
    share = (row.value or 0.0) / other.value if other.value else 0.0
    return any(each < 1 and share >= _OF_SHARE * each for each in shares)


def _words(row: Observation) -> str:
    """What somebody called a row, with what was noted of it; of writes not whether they were the first."""
    note = row.how.get("note", "")
    words = f"{row.scenario} {note}".strip() if note else row.scenario
    # What was read before lies in memory. A second write is no faster for it.
    writes = row.path == "storage" and row.flow.startswith("host")
    return _IN_TURN.sub(" ", words) if writes else words
