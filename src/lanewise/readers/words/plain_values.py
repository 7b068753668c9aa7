"""Figures as people write them in a hurry, brought to a number and its unit: up to 9 GB/s, 9 +/- 0.2 GB/s, 9,5 GB/s."""

from __future__ import annotations

from lanewise import late_re as re

_NUMBER = r"\d[\d,_]*(?:\.\d+)?"
LONGEST = 100  # characters; nobody writes a figure with more
# Words before a figure that change nothing of it; what is compared allows for more than 'about' and 'up to' do.
_BEFORE = re.compile(
    r"^\s*(?:(?:[~≈<>≤≥=]=?|up to|about|around|approx(?:\.|imately)?|roughly|circa|ca\.?|nearly|almost|close to|only|"
    r"just|at (?:most|least|best)|(?:no |not )?(?:more|less|fewer) than|over|above|below|under|exceed(?:s|ing)|"
    r"max(?:imum|\.)?(?: of)?|peak(?:s|ed)?(?: (?:at|of))?|avg\.?|average|"
    r"mean|median|best|stable(?: at)?|constant)(?:\s?:)?\s{0,2}){1,4}(?=[\d.])",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\s*\(?(?:up to|at (?:most|best|least)|or (?:so|more|less|higher|above)|and (?:more|above|up)|"
    r"(?:can|should|could|would|is|are)(?: to)? be (?:expected|reached|possible)|"
    r"(?:is |are )?(?:expected|possible))\)?\s*$",
    re.IGNORECASE,
)
_ABOVE = re.compile(r"^\s*(?:>(?!=)|(?<!no )(?<!not )more than|over|above|exceed(?:s|ing))", re.IGNORECASE)
# Each step in turn: what is written, what is meant.
_STEPS = tuple(
    (re.compile(written), meant)
    for written, meant in (
        ("\u03bc", "\u00b5"),  # the Greek letter for the sign of micro
        (r"(?<=\d)['\u2009\u202f](?=\d{3}(?!\d))|(?<=\d) (?=\d{3}\b)", ""),  # 9'500, 9 500
        # A decimal comma: groups of thousands have three digits, and none begins with 0.
        (r"^(\s*)(\d+(?=,(?:\d{1,2}|\d{4,})(?!\d))|0+),(\d+)(?![\d,.])", r"\1\2.\3"),
        (rf"({_NUMBER}) ?(?:±|\+/?-) ?{_NUMBER}", r"\1"),
        (rf"({_NUMBER} ?\S+) ?(?:±|\+/?-) ?{_NUMBER}(?: ?\S+)?$", r"\1"),
        (r"(?<=\d) ?\+(?= ?[A-Za-z])", " "),
        (rf"(?i)^\s*(?:from|between) ({_NUMBER})(?: ?([A-Za-z/]+))? (?:and|to) ({_NUMBER} ?(?(2)\2$|))", r"\1 - \3"),
        (rf"^\s*({_NUMBER}) ?([A-Za-z/]+) ?(?:-|–|to) ?({_NUMBER} ?\2)$", r"\1 - \3"),
        (r"(?<=[A-Za-z]) / (?=s(?:ec(?:ond)?)?\b)", "/"),
        (r"(?i)\bgigabytes?(?= ?(?:/|per\b))", "GB"), (r"(?i)\bmegabytes?(?= ?(?:/|per\b))", "MB"),
        (r"(?i)\bgigabits?(?= ?(?:/|per\b))", "Gb"), (r"(?i)\bmegabits?(?= ?(?:/|per\b))", "Mb"),
        (r"(?i)(?<=\d) ?(?:mill?isec(?:ond)?s?|msecs?)$", " ms"),
        (r"(?i)(?<=\d) ?(?:microsec(?:ond)?s?|usecs?|\u00b5secs?)$", " us"),
        (r"(?i)(?<=\d) ?(?:nanosec(?:ond)?s?|nsecs?)$", " ns"), (r"(?i)(?<=\d) ?(?:seconds?|secs?)$", " s"),
        (r"(?i)(?<=\d) ?(?:minutes?|mins)$", " min"),
        (r"(?i)(?<=\d) ?million(?= )", "M"), (r"(?i)(?<=\d) ?(?:thousand|k)(?= ?IOPS)", "k"),
        (r"(?i)^\s*iops:? ?(\d[\d.,]* ?[kM]?)$", r"\1 IOPS"),
    )
)  # fmt: skip


def is_above(text: str) -> bool:
    """Whether a figure is given as less than what was measured: more than 900 GB/s."""
    return _ABOVE.match(text) is not None


def plain(text: str) -> str:
    """A figure without words of how sure it is, its spread, and by the units that `spellings` knows."""
    if len(text) > LONGEST:
        return text
    text = _AFTER.sub("", _BEFORE.sub("", text))
    for written, meant in _STEPS:
        text = written.sub(meant, text)
    return text
