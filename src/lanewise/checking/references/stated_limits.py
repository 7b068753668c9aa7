"""Rows that are no measurements: what somebody typed in as the limit that the others are to be compared with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from lanewise.checking.expectation import too_short
from lanewise.checking.references.cards import of_card
from lanewise.checking.references.parts import Reference, best_of
from lanewise.results.figure_words import TABLE
from lanewise.results.observation import Observation

NO_MEASUREMENT = "its name says that it is a limit, no measurement; the other rows are compared with it"
STATED_LIMIT = "the other row, called a limit"
# A rate of pins or wires, of which copies reach 0.75 to 0.95 (PCIe Gen3 x16: 12.2 of 15.75, Gen4: 25 of 31.5).
_OF_WIRES = re.compile(
    r"\b(?:theor\w*|nominal|rated|spec(?:s|ifications?|ified)?|data ?sheet|advertised|announced|"
    r"raw (?:rate|line|link|bandwidth|wires?|speed))\b",
    re.IGNORECASE,
)
_REACHABLE = re.compile(
    r"\b(?:attainable|achievable|expected|expectation|should be|roofline|published(?! on)|claimed)\b", re.IGNORECASE
)
# Figures that a program plans or was told, which nobody measured and nothing is compared with.
_ASSUMED = re.compile(r"\bplanning\b|\bplanned\b|\bassum\w+|\btopology (?:file|xml)\b|\bhard-?coded\b", re.IGNORECASE)
# What a layer may cost: a volume over ublk had 1.4 of 1.5 million requests a second (openebs/mayastor#2044).
_OF_NATIVE = 0.9
_NATIVE = re.compile(
    r"\b(?:native(?:ly)?|bare[ -]?metal|raw (?:device|drive|disk)|(?:drive|disk|host) (?:itself|alone)|"
    r"without (?:a )?vm)\b", re.IGNORECASE,
)  # fmt: skip
# Of models, sizes and workloads: what a limit is of.
_NUMBERED = re.compile(r"(?<!\S)(?=\S*\d)[\w.-]+(?=[\s,]|$)")
_FINE = {True: 0.72, False: 0.75}
_SLOW = {True: 0.6, False: 0.7}
# Twice what somebody expects is another path or count; nothing exceeds its wires but for a rounded figure.
_ABOVE = {True: 1.1, False: 2.0}
# Drives exceed the requests a second of their data sheets: eight rated at 13.6 million together did 16.5 (NVIDIA's
# kernels for Grace, issue 182).
_ABOVE_REQUESTS = 1.5


def names_limit(row: Observation) -> bool:
    """Whether a row that was typed in, or of a table that somebody made, is called a limit or an expectation."""
    return row.how.get("tool") in ("typed in", TABLE) and _is_called_a_limit(row.scenario)


@lru_cache(maxsize=2**14)
def _is_called_a_limit(name: str) -> bool:
    return bool(_OF_WIRES.search(name) or _REACHABLE.search(name) or _ASSUMED.search(name))


def measured(rows: Sequence[Observation]) -> list[Observation]:
    """The rows that are no limits."""
    return [row for row in rows if not names_limit(row)]


def of_stated_count(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """What somebody expects of a count a second: the row of the same flow and work that is called so."""
    named = frozenset(_NUMBERED.findall(row.scenario))
    yield from of_stated_limit(row, [each for each in rows if each.flow == row.flow and each.path == row.path
                                     and frozenset(_NUMBERED.findall(each.scenario)) == named])  # fmt: skip


def of_expected_collective(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """What somebody expects of a collective: no rate of wires, which several ranks of a host share."""
    yield from of_stated_limit(row, [each for each in rows if each.flow == row.flow and each.path == row.path
                                     and _REACHABLE.search(each.scenario)])  # fmt: skip


def of_short_requests(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The limit of a path beside short requests: fine if they reach it, slow if not where it is of cards or their size.

    A drive's and a network's short requests are slower by design than long ones.
    """
    same_size = [each for each in rows if each.settings.get("bytes") == row.settings.get("bytes")]
    of_size = list(of_stated_limit(row, same_size)) if row.path == "network" else []
    for reference in of_size or of_stated_limit(row, rows):
        yield reference if of_size or of_card(row) else replace(reference, slow_below=0.0)


def of_native(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """What lies above a drive or host is fine with nine tenths of what a row called native or bare metal has."""
    if (
        _NATIVE.search(row.scenario)
        or row.how.get("tool") != "typed in"
        or row.metric not in ("goodput", "total", "iops")
    ):
        return
    native = [
        each for each in rows
        if _NATIVE.search(each.scenario) and each.flow == row.flow and each.metric == row.metric and each.value
        and each.settings == row.settings and each.path == row.path
    ]  # fmt: skip
    if (best := best_of(native)) is not None:
        nominal = best.value or 0.0
        yield Reference("same path", nominal, _OF_NATIVE * nominal, 0.0, None, f"'{best.scenario}'", "the other row")


def of_stated_limit(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The limit that another row of the same path is called."""
    limits = [
        each for each in rows
        if names_limit(each) and each is not row and not _ASSUMED.search(each.scenario)
        and each.metric == row.metric and each.value
        and each.settings.get("bytes", 0) in (0, row.settings.get("bytes", 0))
    ]  # fmt: skip
    if (best := best_of(limits)) is not None:
        nominal, wires = best.value or 0.0, _OF_WIRES.search(best.scenario) is not None
        short = row.path == "storage" and too_short(row)
        high = (_ABOVE_REQUESTS if wires and short else _ABOVE[wires]) * nominal
        yield Reference("same path", nominal, _FINE[wires] * nominal, _SLOW[wires] * nominal, high,
                        f"'{best.scenario}'", STATED_LIMIT)  # fmt: skip
