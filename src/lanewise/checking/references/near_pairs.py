"""A collective of two GPUs below one bridge or switch beside the same of GPUs further apart, as their names say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.checking.references.parts import Reference, best_of, of_other_rows
from lanewise.results.figure_words import TABLE
from lanewise.results.observation import Observation

_NEAR = re.compile(r"\b(?:same|one|shared|common) (?:pcie )?(?:bridge|switch|plx)\b|\b(?-i:PIX|PXB)\b", re.IGNORECASE)
_FAR = re.compile(
    r"\b(?:other|another|different|two|across|between) (?:the )?(?:pcie )?(?:bridge|switch)(?:es)?\b|"
    r"\b(?:across|between|two|other) (?:the )?(?:sockets?|cpus?)\b|\b(?-i:PHB|NODE|SYS)\b",
    re.IGNORECASE,
)
_NVLINK = re.compile(r"nv-?link|\bNV\d", re.IGNORECASE)  # which may join two GPUs however far apart they are
_WORDS = re.compile(r"\ball_?(?:reduce|gather)|\breduce_?scatter|\bbroadcast|\bsend_?recv", re.IGNORECASE)
# The shorter way has every link of the longer one or fewer: rows of one path agree to a quarter (`paths._OF_PATH`).
_OF_FAR = 0.75


def fastest_far_pair(row: Observation, rows: Sequence[Observation]) -> Observation | None:
    """The fastest of the same collective of two other GPUs further apart; None if the row's are not near or none is."""
    if not is_of_near_pair(row):
        return None
    return best_of(
        each for each in rows
        if each.metric == row.metric and each.flow != row.flow and each.settings == row.settings
        and each.how.get("p2p") == row.how.get("p2p") and _FAR.search(each.scenario)
        and not (_NEAR.search(each.scenario) or _NVLINK.search(each.scenario)) and _collective(each) == _collective(row)
    )  # fmt: skip


def is_of_near_pair(row: Observation) -> bool:
    """Whether a typed row is a collective of two GPUs whose name says that one bridge or switch is above both."""
    typed = row.how.get("tool") in ("typed in", TABLE) and row.metric == "bus_bandwidth"
    two = row.settings.get("ranks", 2) == 2 and row.settings.get("hosts", 1) == 1
    return typed and two and _NEAR.search(row.scenario) is not None and not _FAR.search(row.scenario)


def of_far_pairs(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """What two GPUs further apart reach, which two with less between them must reach as well."""
    if (best := fastest_far_pair(row, rows)) is not None:
        yield of_other_rows(best.value or 0.0, _OF_FAR, f"'{best.scenario}', further apart")


def _collective(row: Observation) -> str:
    match = _WORDS.search(row.scenario)
    return match[0].lower().replace("_", "") if match else ""
