"""Figures of one table in a text held against each other: its rows or columns are settings of one thing.

Two cells of a column are compared if the labels of their rows differ in a setting, a version or a way of doing it; two
cells of a row if the heads of their columns do. Other tests, sizes, numbers and devices are no measure of each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.readers.plain_text.figure import LETTERS, TextFigure
from lanewise.readers.words.devices import size_in
from lanewise.readers.words.gpus import gpus_in
from lanewise.readers.words.quantities import UNIT
from lanewise.results.figure_reasons import explained
from lanewise.results.figure_words import CONDITION, THINGS, count_in, work_in

# What the head above the labels says where they are settings.
_SETTINGS = re.compile(
    r"sett?ing|config|mode|method|backend|driver|version|kernel|variant|schedul|option|engine|source|transport|"
    r"protocol|case|scenario|setup|environment|\bos\b|tool|client|before|after|build|image|policy|profile|framework|"
    r"librar|implementation|change|status|state|measure|test config|approach|strategy|way|how|path|storage ?class|"
    r"mount|interface|header|^\W*$", re.IGNORECASE,
)  # fmt: skip
_PRODUCT = re.compile(r"\b(?!(?:QD?|T|RAID|MTU|NFSV?|V|TLS|IPV|H2|HTTP)\d)[A-Z]{1,4}-?\d{2,5}[A-Za-z]{0,3}\b")
# Columns of one test: what was computed of it.
_STATISTIC = re.compile(
    r"\b(?:avg|average|mean|median|min\w*|max\w*|peak|best|worst|p\d\d|std\w*|total|sum|per|each|expected|theor\w*|"
    r"spec|rated|limit|ceiling|target|baseline \W|change|diff|delta|ratio|speed-?up|gain)\b|%", re.IGNORECASE,
)  # fmt: skip
# Heads that name what was measured, not how.
_QUANTITY = re.compile(r"bus ?bw|alg ?bw|\bbw\b|bandwidth|throughput|\brate\b|iops|ops\b|latency|time|size|count", re.I)
_TEST = re.compile(
    r"\b(?:copy|scale|add|triad|read\w*|writ\w*|rand\w*|rnd\w*|seq\w*|\d*rw|send|recv|receive|upload|download|h2d|d2h|d2d|"
    r"htod|dtoh|p2p|all_?\w+|reduce\w*|broadcast|prefill|decode|prompt|generat\w*|pp\d*|tg\d*|udp|tcp|tx|rx|mixed|"
    r"(?:fp|bf|int|q)\d{1,2}\w*|hdd|ssd|nvme|sata|ram|tmpfs|local|remote|get|put|list|stat|create|delete)\b",
    re.IGNORECASE,
)
_MOST = 40


def position(cells: Sequence[tuple[int, str]], heads: Sequence[str], start: int) -> tuple[str, str]:
    """The label of a figure's row and the head of its column, each empty where there is none."""
    at = max((index for index, (begin, _) in enumerate(cells) if begin <= start), default=0)
    label = " ".join(text for _, text in cells[:at] if LETTERS.search(text) and not UNIT.search(text))
    missing = len(cells) - len(heads)
    return label, heads[at - missing] if 0 <= missing <= 2 and 0 <= at - missing < len(heads) else ""


def other_of_table(figure: TextFigure, figures: Sequence[TextFigure]) -> TextFigure | None:
    """The best figure of the table that differs from this one in a setting alone; None if none is better."""
    if not figure.table:
        return None
    like = [
        each for each in figures
        if each.table == figure.table and each.quantity.si == figure.quantity.si != "s" and each.way == figure.way
        and each.quantity.value > figure.quantity.value and _differ_in_a_setting(figure, each)
    ]  # fmt: skip
    return max(like[:_MOST], key=lambda each: each.quantity.value, default=None)


def _differ_in_a_setting(slower: TextFigure, faster: TextFigure) -> bool:
    """Whether just one of label and head differs, and as a setting does."""
    if slower.head == faster.head and slower.row != faster.row:
        return _is_setting(slower.row, faster.row, slower.first_head)
    if slower.row == faster.row and slower.head != faster.head:
        heads = [UNIT.sub(" ", each.head) for each in (slower, faster)]
        if any(map(_STATISTIC.search, heads)) or any(map(_QUANTITY.search, heads)):
            return False
        return _is_setting(heads[0], heads[1], "" if slower.row else "?")
    return False


def _is_setting(slower: str, faster: str, said: str) -> bool:
    """Whether two names of rows or columns are settings of one thing; more of it at once may well get less."""
    own = [" ".join(word for word in names if word not in others) for names, others in _pairs(slower, faster)]
    if (
        not any(own)
        or any(map(THINGS.search, own))
        or any(map(_PRODUCT.search, own))
        or any(map(_STATISTIC.search, own))
    ):
        return False
    if explained(own[0], own[1]):
        return False
    tests = [frozenset(word.lower().rstrip("s") for word in _TEST.findall(words)) for words in own]
    counts, sizes = [count_in(words) for words in own], [size_in(words) for words in own]
    if tests[0] != tests[1] or any(sizes) or (counts[0] != counts[1] and counts[0] <= counts[1]):
        return False
    if (work_in(own[0]) != work_in(own[1]) and not counts[0]) or any(gpus_in(words, spoken=True) for words in own):
        return False
    return _SETTINGS.search(said) is not None or any(map(CONDITION.search, own))


def _pairs(first: str, second: str) -> tuple[tuple[list[str], list[str]], tuple[list[str], list[str]]]:
    return (first.split(), second.split()), (second.split(), first.split())
