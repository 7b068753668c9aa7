"""Figures of a text that no known tool wrote: what a question says in words, in lists and in tables of its own.

Every rate, count a second and latency is a row, named by the words before it and by the nearest heading above. What
moves from where to where is left open, so that `checking.text_references` compares such rows only with what the text
itself puts beside them: what was expected, a nominal value, or the same thing under another condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lanewise import units
from lanewise.readers import text_words
from lanewise.readers.text_quantities import NO_RESULT, TIME_UNIT, UNIT, TextQuantity, columns, in_a_cell, quantities
from lanewise.readers.tool_results import ImportedResults
from lanewise.results.figure_words import THINGS, work_in
from lanewise.results.observation import Observation, Source

TOOL = "plain text"
# More figures than this nobody weighs one by one.
MOST_FIGURES = 400
# Nor does a sentence or a row of a table have more than this, nor hold figures against each other that are farther off.
_MOST_OF_LINE, _NEAR = 40, 4
_LONGEST, _LONGEST_HEADING = 160, 120
_FLOWS = {
    "network": {"": "host0->host1", "write": "host0->host1", "read": "host1->host0"},
    "storage": {"": "drive->host0", "write": "host0->drive", "read": "drive->host0"},
    "device": {"": "device->host0", "write": "host0->device", "read": "device->host0"},
    "host memory": {"": "host0->host0", "write": "host0->host0", "read": "host0->host0"},
    "service": {"": "client->service", "write": "client->service", "read": "client->service"},
    "": {"": "source->target", "write": "source->target", "read": "source->target"},
}
_LETTERS = re.compile(r"[^\W\d_]{2}")
_LONE_NUMBERS = re.compile(r"\d[\d.,:]*")
# A line of a log, of code or a rule is no heading.
_NO_HEADING = re.compile(r"^\W*$|^\d{4}-\d\d|^\d\d:\d\d|^[-=_*#|+ ]+$")
_SENTENCE_END = re.compile(r"[.!?]\s")
_METRICS = {"B/s": ("goodput", "GB/s"), "1/s": ("iops", "1/s"), "s": ("latency", "us")}


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a figure's line: since the figure before it, up to the next, and all before it."""

    between: str
    after: str
    before: str
    suffixed: bool

    @property
    def label(self) -> str:
        """The words right before the figure, else those with which the line begins."""
        own = _plain(self.between)
        first = re.match(r"\W{0,4}([\w ./()-]{1,60}?) ?:", self.before)
        if not _LETTERS.search(own) or (first and ":" not in own and first[1] not in own):
            prefix = first[1] if first else _plain(self.before)
            own = own if own.startswith(prefix) else f"{prefix}: {own}"
        return own[-_LONGEST:]

    def way(self, heading: str) -> str:
        """'read', 'write' or nothing: by the word after the figure where the line writes it there."""
        if self.suffixed:
            return text_words.way_after(self.after)
        nearest = (self.between, self.before, heading)
        return next(filter(None, map(text_words.direction, nearest)), "")


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure with its words, the heading above, and what it is (`role`); `crosses`: its own words name a network."""

    quantity: TextQuantity
    words: _Words
    heading: str
    line: int
    role: str
    path: str
    way: str
    crosses: bool = False
    expected: tuple[float, str] = (0.0, "")


@dataclass
class _Reading:
    """The state of a reading from line to line: the heading, the heads of a table, the ports that were named."""

    heading: str = ""
    heads: list[tuple[int, str]] = field(default_factory=list)
    ports: set[str] = field(default_factory=set)
    figures: list[_Figure] = field(default_factory=list)


def read_text(lines: Sequence[str]) -> ImportedResults:
    """A row for each figure of a text, with what the text expects of it; no rows where it has none."""
    everything = text_words.paths_in("\n".join(lines)[:20_000])
    only = everything.pop() if len(everything) == 1 else ""
    reading = _Reading()
    for number, line in enumerate(lines, 1):
        if line.strip() and not NO_RESULT.search(line):
            _read_line(reading, line, number, only)
        if len(reading.figures) >= MOST_FIGURES:
            break
    measured = [figure for figure in reading.figures if figure.role in ("", "only")]
    if not measured:
        return ImportedResults("", ())
    rows = tuple(_row(figure, _port(reading)) for figure in _with_expectations(reading.figures, measured))
    return ImportedResults(TOOL, rows, notes=(_note(rows, len(reading.figures)),))


def _read_line(reading: _Reading, line: str, number: int, only: str) -> None:
    """Add the figures of a line; without one it is a heading, perhaps of a table."""
    reading.ports.update(text_words.lines_in(line))
    bits = (text_words.path_in(line) or text_words.path_in(reading.heading) or only) == "network"
    found = [(quantity, line[: quantity.start]) for quantity in quantities(line, bits=bits)]
    cells = list(columns(line))
    found = found or [*_bare_cells(reading, cells, bits=bits)]
    if not found:
        if len(cells) > 1 and ("|" in line or _has_unit(line)) and _LETTERS.search(line):
            reading.heads = cells
        if _LETTERS.search(line) and not _NO_HEADING.match(line.strip()):
            reading.heading = line.strip(" \t#*>:`")[:_LONGEST_HEADING]
        return
    reading.figures += _figures(reading, line, number, found[:_MOST_OF_LINE], only)


def _figures(
    reading: _Reading, line: str, number: int, found: Sequence[tuple[TextQuantity, str]], only: str
) -> Iterator[_Figure]:
    """The figures of a line, each with the words since the one before it and up to the next."""
    starts = [quantity.start for quantity, _ in found]
    ends = [0, *(quantity.end for quantity, _ in found)]
    between = [
        line[end:start] if end <= start else before
        for end, start, (_, before) in zip(ends, starts, found, strict=False)
    ]
    after = [line[end:start] for end, start in zip(ends[1:], [*starts[1:], len(line)], strict=True)]
    suffixed = not text_words.direction(between[0]) and bool(text_words.way_after(after[0]))
    crosses = "network" in text_words.paths_in(line)
    for at, (quantity, before) in enumerate(found):
        before = before if len(before) <= 2 * _LONGEST else f"{before[:_LONGEST]} {before[-_LONGEST:]}"
        words = _Words(between[at][-2 * _LONGEST :], after[at][:_LONGEST], before, suffixed)
        falls = at + 1 < len(found) and text_words.falls(between[at], between[at + 1])
        yield _figure(reading, quantity, words, number, crosses, only, falls=falls)


def _figure(
    reading: _Reading, quantity: TextQuantity, words: _Words, number: int, crosses: bool, only: str, *, falls: bool
) -> _Figure:
    """A figure with the path and direction that the nearest words say."""
    path = text_words.path_in(f"{words.between} {words.after}") or text_words.path_in(f"{words.before} {words.after}")
    path = path or text_words.path_in(reading.heading) or ("" if quantity.si == "s" else only)
    role = text_words.role(words.between, words.after, is_bits=quantity.unit.endswith("b/s"))
    if role == "line":
        reading.ports.add(units.show(quantity.value, "Gb/s"))
    role = "expected" if falls else role
    near = crosses or quantity.unit.endswith("b/s")
    return _Figure(quantity, words, reading.heading, number, role, path, words.way(reading.heading), crosses=near)


def _bare_cells(
    reading: _Reading, cells: Sequence[tuple[int, str]], *, bits: bool
) -> Iterator[tuple[TextQuantity, str]]:
    """Numbers of a table whose units stand in the heads, or in the first cell of their row."""
    if len(cells) < 2:
        return
    heads = [text for _, text in reading.heads]
    missing = len(cells) - len(heads)
    # Heads that one blank parts are read as one; the last ones stand above the last cells.
    heads = ["", "", ""][:missing] + heads if 0 <= missing <= 2 else [""] * len(cells)
    first = cells[0][1]
    of_row = _unit(first)
    if of_row and (match := re.search(r"\s(\d[\d.,]{0,15})$", first)):
        first = first[: match.start()]
        cells = [(cells[0][0] + match.start() + 1, match[1]), *cells[1:]]
    for (start, cell), head in zip(cells, heads, strict=True):
        unit = of_row or _unit(head)
        quantity = in_a_cell(cell, unit, (start, start + len(cell)), bits=bits) if unit else None
        if quantity is not None:
            words = [text for _, text in cells if _LETTERS.search(text)][:4] if not of_row else [first]
            words = words or [first]
            yield quantity, " ".join([*words, head]).strip()


def _unit(words: str) -> str:
    """The unit that a head or a row's name gives; MiB beside BW is of a second."""
    if match := UNIT.search(words):
        return match[0]
    if (match := re.search(r"\b([KMGT]i?B)\b", words)) and re.search(r"\bBW\b|bandwidth", words, re.IGNORECASE):
        return f"{match[1]}/s"
    match = TIME_UNIT.search(words)
    return match[0] if match and re.search(r"latenc|rtt", words, re.IGNORECASE) else ""


def _has_unit(line: str) -> bool:
    return UNIT.search(line) is not None or TIME_UNIT.search(line) is not None


def _plain(words: str) -> str:
    """Words without bars, figures with a unit, and what ends a cell."""
    return re.sub(r"\s+", " ", words.replace("|", " ")).strip(" \t*`,;")


def _with_expectations(figures: Sequence[_Figure], measured: Sequence[_Figure]) -> Iterator[_Figure]:
    """The measured figures, each with what its line, or else a line that stands alone, expects of the same thing."""
    wanted = [figure for figure in figures if figure.role in ("expected", "nominal")][:_MOST_OF_LINE]
    measured_lines = {(figure.line, figure.quantity.si) for figure in measured}
    alone = [figure for figure in wanted if (figure.line, figure.quantity.si) not in measured_lines]
    for at, figure in enumerate(measured):
        same_line = [each for each in wanted if each.line == figure.line and _is_like(each, figure)]
        near = same_line or [each for each in alone if _is_like(each, figure)]
        if near:
            best = min(near, key=lambda each: (abs(each.line - figure.line), _distance(each, figure), each.role))
            figure = replace(figure, expected=(best.quantity.value, best.role))
        elif (other := _other_of_line(figure, measured[max(0, at - _NEAR) : at + _NEAR + 1])) is not None:
            figure = replace(figure, expected=(other.quantity.value, "other"))
        yield figure


def _is_like(wanted: _Figure, figure: _Figure) -> bool:
    """Whether what was expected is of the figure's kind of quantity, path and direction as far as they are said."""
    return (
        wanted.quantity.si == figure.quantity.si
        and (not wanted.path or not figure.path or wanted.path == figure.path)
        and (not wanted.way or not figure.way or wanted.way == figure.way)
        # Data sheets give bytes a second of requests in order.
        and (wanted.role != "nominal" or wanted.quantity.si != "B/s" or _is_random(wanted) or not _is_random(figure))
    )


def _is_random(figure: _Figure) -> bool:
    """Whether the words right before a figure say that requests were in no order."""
    return text_words.RANDOM.search(figure.words.between) is not None


def _distance(figure: _Figure, other: _Figure) -> tuple[bool, int]:
    """Whether a sentence ends between two figures of a line, and how far they are apart; nothing between lines."""
    if figure.line != other.line:
        return False, 0
    first, second = sorted((figure, other), key=lambda each: each.quantity.start)
    apart = max(0, second.quantity.start - first.quantity.end)
    return _SENTENCE_END.search(second.words.before[-apart:]) is not None, apart


def _other_of_line(figure: _Figure, near: Sequence[_Figure]) -> _Figure | None:
    """Another figure of the sentence that holds this one against it: 'only', 'but', or both of the same thing."""
    like = [
        each for each in near
        if each is not figure and abs(figure.line - each.line) <= (figure.role == "only")
        and _held_against(figure, each)
    ]  # fmt: skip
    return max(like, key=lambda each: each.quantity.value, default=None)


def _held_against(figure: _Figure, other: _Figure) -> bool:
    """Whether a figure is of the same work on the same path as another, and the words between compare them."""
    first, second = sorted((figure, other), key=lambda each: (each.line, each.quantity.start))
    symmetric = figure.path == other.path and figure.path in ("device", "network")
    words = [f"{each.words.label} {each.words.after if each.words.suffixed else ''}" for each in (figure, other)]
    only = figure.role == "only" and other.role != "only" and other.line <= figure.line
    line = f"{first.words.before} {second.words.between} {second.words.after}"
    return (
        figure.quantity.si == other.quantity.si != "s"
        and (figure.way == other.way or (symmetric and only))
        and work_in(words[0]) == work_in(words[1])
        and not any(map(THINGS.search, words))
        and (only or (figure.line == other.line and text_words.is_contrast(second.words.between, line)))
    )


def _port(reading: _Reading) -> str:
    """The data rate of the network if the text names just one."""
    return next(iter(reading.ports)) if len(reading.ports) == 1 else ""


def _row(figure: _Figure, port: str) -> Observation:
    metric, shown = _METRICS[figure.quantity.si]
    label = figure.words.label
    name = ": ".join(filter(None, (figure.heading[:50], label[:60].strip(" :=")))) or f"line {figure.line}"
    how = {"tool": TOOL, "heading": figure.heading, "label": label, "about": figure.path, "way": figure.way}
    if figure.expected[0]:
        unit = figure.quantity.unit
        how |= {"expected": units.show(figure.expected[0], unit), "expectation": figure.expected[1]}
    elif port and figure.path == "network" and figure.crosses and figure.quantity.si == "B/s":
        how["line"] = port
    unit = figure.quantity.unit if metric != "iops" else shown
    return Observation(
        name, _FLOWS[figure.path][figure.way], metric, figure.quantity.value, unit, Source.MEASURED,
        path="" if figure.path == "device" else figure.path, how=how, note="",
    )  # fmt: skip


def _note(rows: Sequence[Observation], count: int) -> str:
    """What was read, and what to write to have more judged."""
    first = rows[0]
    more = f", the first {count} figures" if count >= MOST_FIGURES else ""
    return (
        f"read as plain text: {len(rows)} figure{'s' if len(rows) > 1 else ''}{more}, such as "
        f"{units.show(first.value, first.display_unit)} ('{first.scenario[:40]}'); compared only with what the text "
        "expects of them. For more write them as figures typed in (lanewise-rows: 1) with their flows"
    )
