"""Figures that a sentence writes without their unit: 'with it 3.1 GB/s, without 12.4', '200 of 400 Gb/s'.

A bare number takes the unit of the sentence's other figures where it ends a clause or begins one: names of products,
versions and counts stand elsewhere, or have a unit of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.readers.words.gpus import spans_of_parts
from lanewise.readers.words.path_words import line_of
from lanewise.readers.words.quantities import TextQuantity, parsed, times_in

# What parts the clauses of a sentence. A comma between digits is none.
_BREAK = re.compile(r"[;:(),]\s+|\s(?:and|but|while|whereas|where|vs\.?|versus)\s|\.\s|[.,;:)]$|\s\(", re.IGNORECASE)
_BARE = r"(?:about |around |only |just |some |~ ?)?(?P<number>\d{1,3}(?:,\d{3})+|\d{1,7}(?:\.\d{1,4})?)(?P<scale>[kM]?)"
_RANGE = r"(?: ?(?:to|-|\u2013) ?(?P<high>\d{1,7}(?:\.\d{1,4})?)[kM]?)?"
_ENDS = re.compile(
    rf"(?<![\w.,/=:#-]){_BARE}{_RANGE}(?: (?:each|only|there|now|again|together|before|earlier|later))?\W*$"
)
# Of a clause that begins with its figure the rest says under which condition.
_BEGINS = re.compile(
    rf"\W*{_BARE}{_RANGE}(?= (?:with|without|on|over|in(?! flight)|from|to|after|before|through|by|for|when|while|at|"
    r"under|using|expected|others?|elsewhere|if|inside|outside|natively|back|without it|pinned|alone|later)\b|\W*$)"
)
# 'where more than 40 are expected'
_WANTED = re.compile(rf"(?<![\w.,/=:#-]){_BARE}{_RANGE}(?= (?:is|are|was|were|would be) (?:expected|normal|reached)\b)")
_PAIR = re.compile(
    r"(?<![\w.,/=:#-])(?P<number>\d{1,7}(?:\.\d{1,4})?)(?P<scale>[kM]?)(?= (?:of|to|out of|instead of) $)"
)
# '3.3 Gb/s of 10', '1.5 GB/s instead of 3.5', '6 Gb/s over a card of 10', 'reads 40'
_AFTER = re.compile(
    r"\s(?:of|out of|instead of|rather than|over an? (?:\w+ )?(?:of )?|of an? (?:\w+ )?of|where|but|not) ?"
    r"(?:the |about |around |~ ?)?(?P<number>\d{1,7}(?:\.\d{1,4})?)(?P<scale>[kM]?)"
    r"(?=\W*$|[,;.)]\s| (?:is|was|were|are|we|i|it|that|as|or|expected)\b)"
)
_VERB = re.compile(
    r"\b(?:reads|writes|gets|has|have|reaches|shows|achieves|sends|receives|sees|moves|gives|stops|only|just) (?:at )?"
    r"(?:about |around |only |just |no more than |~ ?)?(?P<number>\d{1,7}(?:\.\d{1,4})?)(?P<scale>[kM]?)"
    r"(?=\W*$|[,;.)]\s| (?:over|with|without|on|from|to|through|under|by|for|when|while|after|before)\b)"
)
# Words before a number that is a version, model or count.
_NAMES = re.compile(
    r"(?:version|kernel|driver|cuda|python|linux|ubuntu|debian|windows|centos|rhel|release|gen|pcie|usb|sata|raid|port|"
    r"node|host|gpu|rank|xeon|gold|silver|epyc|ryzen|core|rtx|gtx|rx|radeon|quadro|tesla|vega|titan|arc|pi|thunderbolt|"
    r"connectx|mtu|size|depth|batch|page|step|line|socket|numa|cpu|channel|level|layer|tag|issue|pr|#|v|mode|bs|qd|"
    r"samsung(?: ssd)?|intel(?: ssd)?|micron|crucial|optane|"
    r"threads?|jobs?|clients?|streams?|width|table|figure|fig|section|chapter|acceptance|n-max|x)[ =:#.-]*$",
    re.IGNORECASE,
)
# Counts in a row: 'by 1, 2, 4 and 8 threads', 'when GPUs increase from 4 to 5, 6, 7, and 8'.
_THINGS = (
    r"(?:threads?|jobs?|clients?|streams?|cores?|ranks?|gpus?|cards?|nodes?|hosts?|servers?|machines?|drives?|disks?|"
    r"ssds?|bits?|process(?:es)?|workers?|queues?|connections?|users?|flows?|vms?|pods?|lanes?|ports?|nics?|files?)"
)
_INTEGERS = r"\d{1,5}(?:,? (?:(?:and|or|to) )?\d{1,5})"
_COUNTED = re.compile(
    rf"(?<![\w.,]){_INTEGERS}{{0,16}}(?= {_THINGS}\b)|\b{_THINGS} (?:\w{{2,12}} ){{0,2}}from {_INTEGERS}{{1,16}}"
    r"(?![\d.]| ?[kKMGT]?i?[bB](?:ps|/s))",
    re.IGNORECASE,
)
# A count's own name: 'the maximum IOPS around 190' is no rate of bytes.
_OF_COUNTS = re.compile(r"\b(?:iops|pps|qps|tps)\b[^\d,;.:]{0,24}$", re.IGNORECASE)
# The number of an item of a list; a share.
_ITEM, _SHARE = re.compile(r"\W*\d{1,3}[.)] "), re.compile(r"\s*%")
# What a command or a file of the system says is no figure of the sentence: cat /proc/sys/kernel/numa_balancing gives 1.
_OF_A_FILE = re.compile(r"(?<!\S)/(?:proc|sys|etc|dev)/\w")
# Figures of one sentence are of one kind: nobody compares what differs more.
_FAR = 2000.0
_MOST_CLAUSES = 24


def bare_quantities(line: str, found: Sequence[TextQuantity], *, bits: bool) -> list[TextQuantity]:
    """The numbers of a line that take the unit of its other figures, in order of their places."""
    rates = [quantity for quantity in found if quantity.si != "s"]
    # The rate of a port is said in bits, whatever the others are said in.
    rates = [
        each for each in rates if not line_of(line[: each.start], line[each.end :], each.value, each.unit)
    ] or rates
    if not rates or len(line) > 1000 or line.count("|") > 1:
        return []
    bare: list[TextQuantity] = []
    for start, end in _clauses(line):
        held = [quantity for quantity in rates if start <= quantity.start < end]
        if held:
            matches = (_AFTER.match(line, held[-1].end, end), _VERB.search(line, held[-1].end, end))
            for one in filter(None, matches):
                bare += _like(one, rates, bits=bits)
            continue
        if any(start <= quantity.start < end for quantity in found) or _OF_A_FILE.search(line, start, end):
            continue
        # 'gemm 8192: 5.2 ms': what its figures are of
        if line.startswith(":", end) and any(quantity.start > end for quantity in found):
            continue
        match = _BEGINS.match(line, start, end) or _WANTED.search(line, start, end)
        match = match or _ENDS.search(line, start, end) or _VERB.search(line, start, end)
        if match and not _NAMES.search(line[start : match.start("number")]) and not _ITEM.match(line, start):
            bare += _like(match, rates, bits=bits)
    for quantity in rates:
        before = line[: quantity.start]
        pair = _PAIR.search(before, max(0, len(before) - 40))
        if pair and not _NAMES.search(before[: pair.start("number")]):
            bare += _like(pair, [quantity], bits=bits)
    taken = {quantity.start for quantity in found}
    counted = [*(match.span() for match in _COUNTED.finditer(line)), *spans_of_parts(line), *times_in(line)]
    bare = [
        each for each in bare
        if each.start not in taken and not _SHARE.match(line, each.end) and not line.startswith("-", each.end)
        and not any(start <= each.start < end for start, end in counted)
        and not (each.si == "B/s" and _OF_COUNTS.search(line[max(0, each.start - 40) : each.start]))
    ]  # fmt: skip
    return sorted({each.start: each for each in bare}.values(), key=lambda each: each.start)


def _clauses(line: str) -> Iterator[tuple[int, int]]:
    """The clauses of a line, each from its first place to the one after its last."""
    start = 0
    for number, match in enumerate(_BREAK.finditer(line)):
        if number >= _MOST_CLAUSES:
            return
        yield start, match.start()
        start = match.end()
    yield start, len(line)


def _like(match: re.Match[str], rates: Sequence[TextQuantity], *, bits: bool) -> Iterator[TextQuantity]:
    """The number in the unit of the nearest figure, if it is of that order at all."""
    nearest = min(rates, key=lambda quantity: abs(quantity.start - match.start()))
    high = match.groupdict().get("high") or ""
    low, number = (match["number"], high) if high else ("", match["number"])
    span = (match.start("number"), match.end("high") if high else match.end("scale"))
    quantity = parsed(number + match["scale"], nearest.unit, span, bits=bits, low=low)
    if quantity is not None and _near(quantity, nearest):
        yield quantity


def _near(quantity: TextQuantity, other: TextQuantity) -> bool:
    low, high = sorted((quantity.value, other.value))
    return low > 0 and high / low < _FAR
