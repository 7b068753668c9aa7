"""Figures of two lines of a text held against each other: few that the text is about, or lines of one form."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.readers.plain_text.figure import LETTERS, TextFigure, plain
from lanewise.readers.words.devices import size_in
from lanewise.readers.words.gpus import gpus_in
from lanewise.results.figure_reasons import explained
from lanewise.results.figure_words import THINGS, VERSION, count_in, work_in

# A text that has no more figures of one kind than this is about them.
_FEW = 3
_LABEL = re.compile(r"\s*[-*\u2022>]{0,3}\s*(?P<label>[^:=|]{2,60}?)\s*[:=\u2192]")
_SENTENCE = re.compile(r"\W{0,3}[A-Z][^:=|]{8,140}$")
_WORD = re.compile(r"[A-Za-z]{4,}")
_NUMBER = re.compile(r"\d+")
_WHEN = re.compile(
    r"\b(?:yesterday|today|now|before|after|earlier|later|since|then|previous(?:ly)?|originally|initially|last|old|new)\b",
    re.I,
)
_STATISTIC = re.compile(
    r"\b(?:avg|average|mean|median|min\w*|max\w*|peak|p\d\d|std\w*|total|sum|aggregate|each|per|copy|scale|add|triad|"
    r"rand\w*|rnd\w*|seq\w*|udp|tcp|h2d|d2h|d2d|htod|dtoh|p2p|duplex|bi\w*dir\w*|uni\w*dir\w*|all_?\w+|reduce\w*|"
    r"prefill|decode|prompt|generat\w*|eval|memory|network|disk|drive|gpu|cpu|pcie|nvlink|link|hdd|ssd|local|remote|"
    r"pageable|pinned|host|device|upload|download|sender|receiver|in-?place|out-of-place)\b", re.IGNORECASE,
)  # fmt: skip


def other_of_lines(figure: TextFigure, figures: Sequence[TextFigure]) -> TextFigure | None:
    """The best figure of another line that this one is held against, if any is better."""
    if figure.table or figure.quantity.si != "B/s":
        return None
    like = [
        each for each in figures
        if each.quantity.si == figure.quantity.si and not each.table and each.line != figure.line
        and each.way == figure.way and each.path == figure.path and each.heading == figure.heading
    ]  # fmt: skip
    few = len(figures) <= _FEW
    better = [
        each for each in like
        if each.quantity.value > figure.quantity.value
        and (_of_one_form(figure, each) or (few and _labelled(figure, each)))
    ]  # fmt: skip
    return max(better, key=lambda each: each.quantity.value, default=None)


def _of_one_form(slower: TextFigure, faster: TextFigure) -> bool:
    """Whether two lines give figures of the same name, each line below a label of its own: 'Baseline: A = 3 GB/s'."""
    names = [plain(each.words.between).rpartition(":")[2].strip(" =") for each in (slower, faster)]
    return bool(LETTERS.search(names[0])) and names[0] == names[1] and _labelled(slower, faster)


def _labels(*figures: TextFigure) -> list[str]:
    """The labels with which the lines of figures begin, empty where there is none."""
    return [match["label"] if (match := _LABEL.match(each.words.before)) else "" for each in figures]


def _said_of_one(first: str, second: str) -> bool:
    """Whether two sentences speak of one thing: a word of both, or words that say when."""
    words = [{word.lower() for word in _WORD.findall(each)} for each in (first, second)]
    return bool(words[0] & words[1]) or all(map(_WHEN.search, (first, second)))


def _labelled(slower: TextFigure, faster: TextFigure) -> bool:
    """Whether the labels with which two lines begin differ, and not in a device, a test, a size or a number."""
    if all(map(_SENTENCE.match, (slower.words.before, faster.words.before))):
        labels = [each.words.before for each in (slower, faster)]
        if not _said_of_one(*labels):
            return False
    else:
        labels = _labels(slower, faster)
    if not all(map(LETTERS.search, labels)) or labels[0] == labels[1]:
        return False
    own = [
        " ".join(word for word in label.split() if word not in other.split())
        for label, other in (labels, labels[::-1])
    ]  # fmt: skip
    # Rows of a list: 'GPU 1 -> GPU 0', 'GPU 2 -> GPU 0'.
    if len({_NUMBER.sub("", label) for label in labels}) == 1 and not any(map(VERSION.search, own)):
        return False
    counts = [count_in(words) for words in labels]
    if explained(labels[0], labels[1]):
        return False
    return (
        any(own) and not any(pattern.search(words) for pattern in (THINGS, _STATISTIC) for words in own)
        and not any(size_in(words) or gpus_in(words, spoken=True) for words in labels)
        and (not all(counts) or counts[0] == counts[1]) and work_in(labels[0]) == work_in(labels[1])
    )  # fmt: skip
