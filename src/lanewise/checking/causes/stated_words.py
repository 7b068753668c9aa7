"""Causes that the words of two figures of plain text state: a condition or a size in which they differ."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise import late_re as re
from lanewise.checking.cause import Cause
from lanewise.checking.causes.conditions import CONDITIONS, FAR_DEVICE, FAR_NODE, MTU, SHARED
from lanewise.checking.references.texts import words_of
from lanewise.checking.symptom import value_text
from lanewise.results.observation import Observation

_WORD = re.compile(r"[^\W\d_]{3,}|\d")
_SIZE = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?: ?(bytes?|[kmg]i?b?|b)\b)?(?!/s| ?[a-z]*bit)", re.IGNORECASE)
_SCALE = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_WORK = re.compile(
    r"\b(?:threads?|jobs?|streams?|connections?|clients?|queues?|cores?|in flight|depth|qd|qps?)\b", re.I
)
_ALONE = re.compile(r"\b(?:alone|single|one|by itself|isolated|idle)\b", re.I)
_TOGETHER = re.compile(
    r"\b(?:at once|simultaneous\w*|concurrent\w*|in parallel|at the same time|together|each|all|both)\b|"
    r"\b(?:two|three|four|five|six|seven|eight|sixteen|[2-9]|1\d) (?!threads|streams|connections|jobs|cores)\w+", re.I,
)  # fmt: skip
_GPU = re.compile(r"\bgpus?\b|\b[ABH][123]00\b|\bV100\b", re.I)
_HOST_MEMORY = re.compile(r"(?<!gpu )\b(?:memory|buffers?|membind|numactl)\b", re.I)
_PACKETS = re.compile(r"\bpackets?|\bframes?", re.I)
# Words that lead on to a figure are before it: 'but the copy only reaches 1.2 Gb/s over 10GbE'.
_LEADS_ON = re.compile(
    r"\b(?:gets?|got|reach(?:es|ed)?|gives?|gave|shows?|is|was|are|were|only|just|about|at|to|of|has|have|had)$", re.I
)
# Requests of one size differ by less in what tools call it.
_LEAST_RATIO = 2


def stated_conditions(row: Observation, best: Observation) -> Iterator[Cause]:
    """The conditions that the words of a slow figure and of a faster one name and that differ, sizes first."""
    mine, theirs = own_words(row, best), own_words(best, row)
    evidence = f"'{theirs}' reached {value_text(best)}"
    yield from _smaller(mine, theirs, evidence)
    if _TOGETHER.search(mine) and _ALONE.search(theirs) and not _WORK.search(f"{mine} {theirs}"):
        yield SHARED.cause(evidence)
    words = " ".join(f"{words_of(each)} {each.how.get('after', '')}" for each in (row, best))
    place = FAR_DEVICE if _GPU.search(words) and not _HOST_MEMORY.search(words) else FAR_NODE
    for condition in (place, *(each for each in CONDITIONS if each is not FAR_NODE)):
        if condition.differs(mine, theirs):
            yield condition.cause(evidence)


def own_words(row: Observation, other: Observation) -> str:
    """The words that say what a figure is of: those behind it where the later of both has some there, else before it.

    Of '7.9 GB/s with 512 bytes, 45.2 with 4096' those of the second are 'with 4096', whatever stands before it.
    """
    behind, of_other = (each.how.get("after", "").strip(" ,;.:") for each in (row, other))
    later, between = (other, behind) if behind and behind in other.how.get("label", "") else (row, of_other)
    if _WORD.search(later.how.get("after", "")) and not _LEADS_ON.search(between):
        return behind
    return f"{row.how.get('heading', '')} {row.how.get('label', '')}".strip(" ,;.:")


def _smaller(mine: str, theirs: str, evidence: str) -> Iterator[Cause]:
    """Smaller requests or packets than those of the faster figure."""
    sizes = _sizes(mine, theirs)
    if sizes is not None and sizes[0] * _LEAST_RATIO <= sizes[1]:
        if _PACKETS.search(f"{mine} {theirs}"):
            yield MTU.cause(evidence)
            return
        what = "smaller requests: what each of them costs is the same, whatever its size"
        yield Cause(("requests",), what, "join them to pieces of 1 MiB and more, or put more in flight",
                    evidence=evidence)  # fmt: skip


def _sizes(mine: str, theirs: str) -> tuple[float, float] | None:
    """The sizes that two texts name, in bytes; one without a unit has that of the other."""
    found = [_SIZE.search(text) for text in (mine, theirs)]
    if found[0] is None or found[1] is None or not (found[0][2] or found[1][2]):
        return None
    units = [(match[2] or "").lower() for match in (found[0], found[1])]
    one, other = (float(match[1].replace(",", "")) * _SCALE[(unit or units[1 - at])[:1]]
                  for at, (match, unit) in enumerate(zip((found[0], found[1]), units, strict=True)))  # fmt: skip
    return one, other
