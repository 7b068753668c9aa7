"""Quantities in a line of plain text: rates, counts a second, and times that the line calls a latency.

A line is searched once by each pattern, and none of them can try a letter twice: the time grows with the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from lanewise import late_re as re
from lanewise import units
from lanewise.errors import LanewiseError
from lanewise.readers.words.spellings import rate_or_time

_NUMBER = r"\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,9})?(?![\d.])|\d{1,15}(?:[.,]\d{1,9})?"
_SECOND = r"(?:ps|/ ?s(?:ec(?:onds?)?)?| ?per ?sec(?:ond)?| a second)"
_THINGS = (
    r"tok(?:en)?s?|req(?:uest)?s?|infer(?:ence)?s?|samples?|im(?:a)?ge?s?|frames?|op(?:eration)?s?|transactions|"
    r"pkts?|packets|msgs?|messages|quer(?:y|ies)|files|io(?:s)?|it(?:er(?:ation)?s?)?|"
    r"(?:random |sequential |small )?(?:reads|writes|blocks|requests)(?: of \d{1,4} ?[kKM]?i?B)?|calls|copies|steps"
)
_AS_OPERATIONS = re.compile(
    r"(?:random |sequential |small )?(?:reads|writes|blocks|requests|calls|copies|steps)(?: of \S{1,8} ?\S{1,3})? ?"
    rf"{_SECOND}$",
    re.IGNORECASE,
)
_KIND_OF_IOPS = re.compile(r"([kKM]? ?)(?:(?:random|seq\w{0,7}) )?(?:read |write )IOPS", re.IGNORECASE)
_RATE = rf"(?:[kKmMgGtT]i?)?(?:[bB]its?|[bB]ytes?|[bB]){_SECOND}"
_IOPS = r"(?:(?:random|seq\w{0,7}) )?(?:read |write )?IOPS"
_COUNT = rf"[kKM]? ?(?:{_IOPS}|[MKGk]?pps|[qrtf]ps|QPS|(?-i:t/s)|(?:{_THINGS}) ?{_SECOND})"
_TIME = r"(?:[nuµμm]s(?:ec(?:onds?)?)?|microseconds?|milliseconds?)"
UNIT = re.compile(rf"(?<![A-Za-z])(?:{_RATE}|{_COUNT})(?![A-Za-z/])", re.IGNORECASE)
TIME_UNIT = re.compile(rf"(?<![A-Za-z]){_TIME}(?![A-Za-z/])")
_QUANTITY = re.compile(
    rf"(?<![\w.,+])(?<!\d[eE]-)(?:(?P<low>\d{{1,9}}(?:\.\d{{1,6}})?) ?(?:-|–|to) ?)?(?P<number>{_NUMBER})\s{{0,2}}"
    rf"(?P<unit>{_RATE}|{_COUNT}|{_TIME})(?![A-Za-z/])",
    re.IGNORECASE,
)
# fio 2, YCSB and others write the count's name first.
_NAMED = re.compile(rf"\b(?P<unit>iops|qps|tps) ?[=:] ?(?P<number>{_NUMBER})(?P<scale>[kM]?)\b", re.IGNORECASE)
_BARE = re.compile(rf"~? ?(?P<number>{_NUMBER})(?P<scale>[kM]?)$")
_SMALL_BITS = re.compile(r"([kKmMgG])b/s(?:ec)?$")
# What copies files counts bytes, however small its b is: rsync, Explorer, Finder, Blackmagic's disk test.
_OF_FILES = re.compile(
    r"\b(?:smb|cifs|samba|nfs|afp|ftp|sftp|scp|rsync|robocopy|explorer|finder|files?|cop(?:y|ies|ying)|disks?|"
    r"blackmagic)\b", re.IGNORECASE,
)  # fmt: skip
# A sentence that says how long something takes.
_TAKES = re.compile(r"\btakes?\b|\btook\b|\bneeds?\b|\btaking\b", re.I)
LATENCY = re.compile(
    r"latenc|\brtt\b|round.?trip|\bping\b|\bttft\b|\btpot\b|\bitl\b|\b[tp]\d\d\b|response time|sockperf|"
    r"_rr\b|ping-?pong", re.I,
)  # fmt: skip
# What a link could carry, a clock or a setting is no measured rate.
NO_RESULT = re.compile(
    r"Lnk(?:Cap|Sta)|GT/s|MT/s|available PCIe|\bcapacity\b|\bSpeed: ?\d|\b[Rr]ate: ?\d{1,4} Gb/sec|clock:|"
    r"\blink (?:detected|speed|at)\b|^\s*Link \d{1,2}:",
)
_CHANGES = re.compile(r"\bfrom (?:about |around |~ ?)?$")
_PER_SECOND = ("B/s", "1/s")


@dataclass(frozen=True, slots=True)
class TextQuantity:
    """A quantity of a line: where it stands, its SI `value`, the `unit` to show and the SI unit (`si`)."""

    start: int
    end: int
    value: float
    unit: str
    si: str


def quantities(line: str, *, bits: bool) -> list[TextQuantity]:
    """The rates, counts a second and latencies of a line, in order; `bits`: of a network, where mb/s counts bits."""
    # Two times that something takes are a comparison, one alone is none.
    spoken = line.count("|") < 2 and _TAKES.search(line) is not None
    spoken = spoken and sum(re.fullmatch(_TIME, match["unit"]) is not None for match in _QUANTITY.finditer(line)) > 1
    times = LATENCY.search(line) is not None or spoken
    found: list[TextQuantity] = []
    for match in _QUANTITY.finditer(line):
        # 'from 27 to 10 GB/s' are two figures, '8 to 10 GB/s' is one.
        changes = match["low"] and _CHANGES.search(line, max(0, match.start() - 60), match.start("low"))
        low, start = ("", match.start("number")) if changes else (match["low"] or "", match.start())
        of_bits = bits and not _OF_FILES.search(line, found[-1].end if found else 0, start)
        quantity = parsed(match["number"], match["unit"], (start, match.end()), bits=of_bits, low=low)
        if quantity is not None and (quantity.si in _PER_SECOND or times):
            found.append(quantity)
    taken = {quantity.start for quantity in found}
    for match in _NAMED.finditer(line):
        quantity = parsed(match["number"] + match["scale"], match["unit"], match.span(), bits=bits)
        if quantity is not None and quantity.start not in taken:
            found.append(quantity)
    return sorted(found, key=lambda quantity: quantity.start)


def times_in(line: str) -> list[tuple[int, int]]:
    """Where a line has times, which are no numbers without a unit: '1.5 to 3 us'."""
    return [match.span() for match in _QUANTITY.finditer(line) if re.fullmatch(_TIME, match["unit"])]


def in_a_cell(cell: str, unit: str, span: tuple[int, int], *, bits: bool) -> TextQuantity | None:
    """The quantity of a cell that is a bare number, in the unit of its head or its row; None for other cells."""
    match = _BARE.match(cell)
    return parsed(match["number"] + match["scale"], unit, span, bits=bits) if match else None


def parsed(number: str, unit: str, span: tuple[int, int], *, bits: bool, low: str = "") -> TextQuantity | None:
    """A number with its unit as people write them; None for what is no quantity."""
    unit = _KIND_OF_IOPS.sub(r"\1IOPS", unit)
    unit = _AS_OPERATIONS.sub("ops/s", unit.replace("/ s", "/s").replace("μ", "µ").strip())
    unit = {"t/s": "tokens/s", "1/s": "ops/s"}.get(unit, unit.replace(" a second", "/s"))
    if bits and (small := _SMALL_BITS.match(unit)):
        unit = f"{small[1].upper() if small[1] not in 'kK' else 'k'}b/s"
    with suppress(LanewiseError, ValueError, KeyError):
        scale = {"k": 1e3, "M": 1e6}.get(number[-1:], 1.0)
        value = _number(number.rstrip("kM")) * scale
        value = (value + _number(low)) / 2 if low and _number(low) < value else value
        return _in_si(value, unit, span, bits=bits)
    return None


def _number(text: str) -> float:
    """A number with a decimal comma or point, or with commas between thousands."""
    whole = re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text)
    return float(text.replace(",", "") if whole else text.replace(",", "."))


def _in_si(value: float, unit: str, span: tuple[int, int], *, bits: bool) -> TextQuantity | None:
    if re.fullmatch(_TIME, unit):
        unit = {"n": "ns", "u": "us", "µ": "us", "m": "ms"}[unit[0]] if "micro" not in unit else "us"
    text, _ = rate_or_time(f"{value:.12g} {unit}", bits)
    number, _, name = text.partition(" ")
    si = units.si_unit(name)
    if si not in (*_PER_SECOND, "s"):
        return None
    return TextQuantity(*span, units.to_si(float(number.replace(",", "")), name), name, si)


def columns(line: str) -> Iterator[tuple[int, str]]:
    """The cells of a line, between bars, tabs or runs of blanks, with where each starts."""
    pattern = r"[^|]+" if "|" in line else r"[^\t ]+(?: [^\t ]+)*"
    for match in re.finditer(pattern, line):
        if cell := match[0].strip(" \t*`_"):
            yield match.start(), cell
