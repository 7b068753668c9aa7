"""What a text holds its figures against: what it expects of them, and other figures of the same thing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lanewise import late_re as re
from lanewise.readers.plain_text.figure import LETTERS, TextFigure, plain
from lanewise.readers.plain_text.lines import other_of_lines
from lanewise.readers.plain_text.tables import other_of_table
from lanewise.readers.plain_text.unlike import no_rate, of_other_things, one_way, perhaps_bits
from lanewise.readers.words import path_words
from lanewise.readers.words.devices import size_in
from lanewise.results.figure_reasons import explained
from lanewise.results.figure_words import OF_ONE_PATH, RANDOM, THINGS, count_in, work_in

# No row of a table is held against more than this, nor figures against each other that are farther off.
_MOST_OF_LINE, _NEAR = 40, 4
# What parts two figures of a list in words, and what a figure is of that stands after it.
_PARTED = re.compile(r"[,;:.(]|\b(?:and|but|while|whereas|where|vs\.?|versus|to)\b")
_CONDITION = re.compile(
    r"\W{0,3}(?:with|without|on|over|in|from|after|before|through|by|for|when|while|under|using|natively|later|"
    r"if|then)\b"
)
_WITH = re.compile(r"\W{0,3}(?:with|without|after|before|over|on|through|under|using|natively|later|when|if|where)\b")
# What a program prints: name=value, name: value.
_FIELD = re.compile(r"=\W*$|(?:^|[,;])\s*\w+:\W*$")
# Other work, which is no measure of this one.
_KINDS = re.compile(
    r"\b(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all\w*|triad|random|rand\w*|rnd\w*|seq\w*|"
    r"prefill|decode|prompt|generation|ttft|avg|average|mean|median|min|max|peak|p\d\d|stdev|theoretical|latency|"
    r"(?:fp|bf|int)\d{1,2}|pp\d+|tg\d+)\b",
    re.IGNORECASE,
)  # fmt: skip
_BREAK = re.compile(r"[,;(]\s?|\.\s|\b(?:and|but|while|whereas|where|vs\.?|versus)\b")
# Both directions of a link carry as much; what lies behind it, a half and more of it.
_OF_OTHER_WAY = 0.5
# Where nobody says what it is: no medium writes at a tenth of what it reads, caches aside.
_OF_ANY_OTHER_WAY = 0.1
_UNEVEN = re.compile(
    r"internet|cloud|\bwan\b|\bisp\b|speed ?test|wi-?fi|wireless|\blte\b|\b[45]g\b|dsl|modem|phone", re.I
)
# Lines to the internet carry a tenth up of what they carry down (DOCSIS 3.0, ADSL).
_UP_AND_DOWN = re.compile(r"\bdownload\w*\b.*\bupload|\bupload\w*\b.*\bdownload", re.IGNORECASE)
_OF_DOWNLOAD = 0.1
_SENTENCE_END = re.compile(r"[.!?]\s")
# The driver copies pageable memory through a buffer of its own (`references.paths.same_path` tolerates as much).
_PAGEABLE, _OF_PINNED = re.compile(r"\b(?:pageable|unpinned)\b(?!.*\bm(?:map|apped))", re.IGNORECASE), 0.2
_REST = " \u2026 "
_PREAMBLE = re.compile(r"^.*:(?=\s|$)")
_COLLECTIVE = re.compile(r"all_?|reduce_?scatter")
_BUT = re.compile(r"\b(?:but|while|whereas|only|yet|however)\b")
# What somebody else says it should be.
_SAID = re.compile(r"\b(?:says|said|states|claims|suggests)\b")


def with_expectations(figures: Sequence[TextFigure], measured: Sequence[TextFigure]) -> Iterator[TextFigure]:
    """The measured figures, each with what its line, or else a line that stands alone, expects of the same thing."""
    wanted = [figure for figure in figures if figure.role in ("expected", "nominal")][:_MOST_OF_LINE]
    measured_lines = {(figure.line, figure.quantity.si) for figure in measured}
    alone = [figure for figure in wanted if (figure.line, figure.quantity.si) not in measured_lines]
    headings = {figure.heading for figure in measured}
    for at, figure in enumerate(measured):
        same_line = [each for each in wanted if each.line == figure.line and _is_like(each, figure)]
        near = same_line or [
            each for each in alone if _is_like(each, figure) and each.heading not in headings - {figure.heading}
        ]
        if near:
            best = min(near, key=lambda each: (abs(each.line - figure.line), _distance(each, figure), each.role))
            if not perhaps_bits(figure, best):
                figure = replace(figure, expected=(one_way(figure, best), best.role))
        else:
            other = None if no_rate(figure) else _other_of_line(figure, measured[max(0, at - _NEAR) : at + _NEAR + 1])
            if not no_rate(figure):
                other = other or other_of_table(figure, measured) or other_of_lines(figure, measured)
            if other is not None and not _as_pageable(figure, other) and not perhaps_bits(figure, other):
                figure = replace(figure, expected=(other.quantity.value, "other"), against=other.name)
        yield figure


def _as_pageable(figure: TextFigure, other: TextFigure) -> bool:
    """Whether a copy of pageable memory has as much of another as a healthy machine gives it."""
    after = figure.words.after if figure.words.suffixed else _BREAK.split(figure.words.after, maxsplit=1)[0]
    words = f"{figure.words.between} {figure.row} {after}"
    return _PAGEABLE.search(words) is not None and figure.quantity.value >= _OF_PINNED * other.quantity.value


def _is_like(wanted: TextFigure, figure: TextFigure) -> bool:
    """Whether what was expected is of the figure's kind of quantity, path and direction as far as they are said."""
    return (
        wanted.quantity.si == figure.quantity.si
        and (not wanted.path or not figure.path or wanted.path == figure.path)
        and (not wanted.way or not figure.way or wanted.way == figure.way)
        # Data sheets give bytes a second of requests in order.
        and (wanted.role != "nominal" or wanted.quantity.si != "B/s" or _is_random(wanted) or not _is_random(figure))
    )


def _is_random(figure: TextFigure) -> bool:
    """Whether the words right before a figure say that requests were in no order."""
    return RANDOM.search(figure.words.between) is not None


def _distance(figure: TextFigure, other: TextFigure) -> tuple[bool, int]:
    """Whether a sentence ends between two figures of a line, and how far they are apart; nothing between lines."""
    if figure.line != other.line:
        return False, 0
    first, second = sorted((figure, other), key=lambda each: each.quantity.start)
    apart = max(0, second.quantity.start - first.quantity.end)
    return _SENTENCE_END.search(second.words.before[-apart:]) is not None, apart


def _other_of_line(figure: TextFigure, near: Sequence[TextFigure]) -> TextFigure | None:
    """Another figure of the sentence that holds this one against it: 'only', 'but', or both of the same thing."""
    like = [
        each for each in near
        if each is not figure and abs(figure.line - each.line) <= (figure.role == "only")
        and _held_against(figure, each)
    ]  # fmt: skip
    shortest = min if figure.quantity.si == "s" else max
    return shortest(like, key=lambda each: each.quantity.value, default=None)


def _held_against(figure: TextFigure, other: TextFigure) -> bool:
    """Whether a figure is of the same work on the same path as another, and the words between compare them."""
    first, second = sorted((figure, other), key=lambda each: (each.line, each.quantity.start))
    if figure.quantity.si != other.quantity.si:
        return False
    if "of" in (plain(first.words.between), plain(second.words.between)) and first.role != "only":
        return False  # what something is a share of is no measurement
    if figure.quantity.si == "s" and not (first.line == second.line and _in_one_sentence(first, second)):
        return False
    if first.line == second.line and _in_one_sentence(first, second):
        return _listed(first, second)
    symmetric = figure.path == other.path and figure.path in ("device", "network")
    words = [f"{each.words.label} {each.words.after if each.words.suffixed else ''}" for each in (figure, other)]
    only = figure.role == "only" and other.role != "only" and other.line <= figure.line
    line = f"{first.words.before} {second.words.between} {second.words.after}"
    return (
        (figure.way == other.way or (symmetric and only))
        and work_in(words[0]) == work_in(words[1])
        and not any(map(THINGS.search, words))
        and (only or (figure.line == other.line and path_words.is_contrast(second.words.between, line)))
    )


def _in_one_sentence(first: TextFigure, second: TextFigure) -> bool:
    """Whether two figures stand in one sentence, in clauses of their own, each with words of its own."""
    between = second.words.between
    own = [LETTERS.search(plain(each.words.between)) is not None for each in (first, second)]
    after = (own[0] or LETTERS.search(first.words.after)) and LETTERS.search(second.words.after) is not None
    return (
        _PARTED.search(between) is not None and bool(all(own) or after or _CONDITION.search(between))
        and "|" not in first.words.before + between + second.words.after and not _FIELD.search(between)
    )  # fmt: skip


def _listed(first: TextFigure, second: TextFigure) -> bool:
    """Whether a sentence lists two figures of one path, each with what it is of: 'iperf 940 Mb/s, Samba 60'."""
    words = _own_words(first, second)
    tail, _, rest = words[1].partition(_REST)
    both_named = LETTERS.search(_BREAK.split(second.words.between, maxsplit=1)[0]) and LETTERS.search(rest)
    if not (LETTERS.search(tail) or both_named or _WITH.match(rest)):
        return False
    less = (first.quantity.value < second.quantity.value) is (first.quantity.si != "s")
    slower, faster = words if less else words[::-1]
    counts = [count_in(each.partition(_REST)[0]) or count_in(each) for each in (slower, faster)]
    whole = f"{first.words.before} {words[0]}"
    sizes = [size_in(each) or size_in(whole if each is words[0] else "") for each in (slower, faster)]
    # More at once get no less together, nor larger pieces: fewer and smaller ones that do are as they should be.
    if (all(counts) and counts[0] < counts[1]) or (all(sizes) and sizes[0] < sizes[1]):
        return False
    if all(sizes) and sizes[0] > sizes[1] and (first.quantity.si == "s" or first.path == "service"):
        return False  # what is larger takes longer
    low, high = sorted((first.quantity.value, second.quantity.value))
    if explained(slower, faster, low / high if high else 0.0) or _SAID.search(second.words.between):
        return False
    of_one = len({first.way, second.way} - {""}) > 1 or all(sizes) or all(counts)
    if not of_one and not OF_ONE_PATH.search(f"{words[0]} {second.words.between} {second.words.after}"):
        return False
    if of_other_things(first, second, words):
        return False
    kinds = [frozenset(word.lower().rstrip("s") for word in _KINDS.findall(each)) for each in words]
    new = kinds[1] - kinds[0]
    held = not new or (_BUT.search(second.words.between) is not None and all(map(_COLLECTIVE.match, new)))
    return held and _one_path(first, second) and _alike_ways(first, second)


def _alike_ways(first: TextFigure, second: TextFigure) -> bool:
    """Whether two figures are of one direction, or of two that carry alike: a link's, or reads slower than writes."""
    # Before the first of a list no direction may stand, as its unit says it: '750,000 reads a second'.
    if first.way in (second.way, ""):
        return True
    slower, faster = sorted((first, second), key=lambda each: each.quantity.value)
    line = f"{second.words.before} {second.words.after}"
    if "storage" in (first.path, second.path):
        # A drive writes small requests in no order into its cache, and reads them from its medium.
        in_order = not (_is_random(first) or _is_random(second))
        return in_order and slower.way == "read" and faster.way == "write"
    if _UP_AND_DOWN.search(line) and slower.quantity.value >= _OF_DOWNLOAD * faster.quantity.value:
        return False
    least = _OF_OTHER_WAY if first.path in ("network", "device") else _OF_ANY_OTHER_WAY
    return slower.quantity.value < least * faster.quantity.value and _UNEVEN.search(line) is None


def _own_words(first: TextFigure, second: TextFigure) -> list[str]:
    """The words of each of two figures: those of its clause, before it and after, without what the list begins with."""
    between = second.words.between
    parted = _BREAK.search(between)
    ends, starts = (parted.start(), parted.end()) if parted else (0, 0)
    rest = _BREAK.split(second.words.after, maxsplit=1)[0]
    # What a list begins with is of all its figures, unless each has its own.
    before = plain(first.words.between)
    before = before if ":" in between[starts:] else _PREAMBLE.sub("", before)
    return [f"{before} {between[:ends]}".strip(), f"{plain(between[starts:])}{_REST}{rest}"]


def _one_path(first: TextFigure, second: TextFigure) -> bool:
    """Whether two figures may be of one path: volumes of a network are reached over it."""
    paths = {first.path, second.path}
    if len(paths) == 1 or "" in paths:
        return True
    shared = any(path_words.is_over_network(f"{each.words.before} {each.words.after}") for each in (first, second))
    return paths == {"network", "storage"} and shared
