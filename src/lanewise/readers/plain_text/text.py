"""Figures of a text that no known tool wrote: what a question says in words, in lists and in tables of its own.

Every rate, count a second and latency is a row, named by the words before it and by the nearest heading above. What
moves from where to where is left open, so that `checking.text_references` compares such rows only with what the text
itself puts beside them: what was expected, a nominal value, or the same thing under another condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lanewise import late_re as re
from lanewise import units
from lanewise.readers.plain_text import tables
from lanewise.readers.plain_text.comparisons import with_expectations
from lanewise.readers.plain_text.figure import LETTERS, LONGEST, FigureWords, TextFigure
from lanewise.readers.tool_results import ImportedResults
from lanewise.readers.words import devices, path_words
from lanewise.readers.words.clauses import bare_quantities
from lanewise.readers.words.gpus import gpus_counted, gpus_in, number_of, same_gpu
from lanewise.readers.words.quantities import NO_RESULT, TIME_UNIT, UNIT, TextQuantity, columns, in_a_cell, quantities
from lanewise.results.figure_words import PLAIN_TEXT
from lanewise.results.observation import Observation, Source

# More figures than this nobody weighs one by one.
MOST_FIGURES = 400
# Nor does a sentence or a row of a table have more than this, nor hold figures against each other that are farther off.
_MOST_OF_LINE = 40
# A line that carries so much payload is full (`references.lines`: fine from there on).
_FILLED, _TOO_MUCH = 0.7, 1.2
_LOCAL = re.compile(r"\blocal|\bcache|\bdis[ck]s?\b|\bdrives?\b|\bmemory\b", re.IGNORECASE)
# Data that stays within a host does not take the line that a text states of its network.
_WITHIN_ONE = re.compile(
    r"\b(?:inside|within|in|on) (?:one|a single|the same|each) (?:node|host|machine|server|box)\b|\bintra-?node\b",
    re.IGNORECASE,
)
_LONGEST_HEADING = 120
_FLOWS = {
    "network": {"": "host0->host1", "write": "host0->host1", "read": "host1->host0"},
    "storage": {"": "drive->host0", "write": "host0->drive", "read": "drive->host0"},
    "device": {"": "device->host0", "write": "host0->device", "read": "device->host0"},
    "host memory": {"": "host0->host0", "write": "host0->host0", "read": "host0->host0"},
    "service": {"": "client->service", "write": "client->service", "read": "client->service"},
    "": {"": "source->target", "write": "source->target", "read": "source->target"},
}
# A line of a log, of code or a rule is no heading.
_NO_HEADING = re.compile(r"^\W*$|^\d{4}-\d\d|^\d\d:\d\d|^[-=_*#|+ ]+$")
_ALGORITHM = re.compile(r"\balg(?:o|orithm)?[ _.-]?(?:bw|bandwidth)\b", re.IGNORECASE)
_BUS = re.compile(r"\b(?:bus|nw)[ _.-]?(?:bw|bandwidth)\b", re.IGNORECASE)
_METRICS = {"B/s": "goodput", "1/s": "iops", "s": "latency"}


@dataclass
class _Reading:
    """The state of a reading from line to line: the heading, the heads of a table, the ports that were named."""

    heading: str = ""
    heads: list[tuple[int, str]] = field(default_factory=list)
    table: int = 0
    only: str = ""
    gpus: list[str] = field(default_factory=list)
    ports: set[str] = field(default_factory=set)
    drive: str = ""
    figures: list[TextFigure] = field(default_factory=list)


def read_text(lines: Sequence[str]) -> ImportedResults:
    """A row for each figure of a text, with what the text expects of it; no rows where it has none."""
    reading = _read(lines)
    measured = _of_the_bus([figure for figure in reading.figures if figure.role in ("", "only")])
    if not measured:
        return ImportedResults("", ())
    rows = tuple(_row(figure, _port(reading), reading.drive) for figure in with_expectations(reading.figures, measured))
    return ImportedResults(PLAIN_TEXT, rows, notes=(_note(rows, len(reading.figures)),))


def _of_the_bus(figures: list[TextFigure]) -> list[TextFigure]:
    """The figures without the rates of a collective's algorithm where its bus bandwidth, a multiple, is stated too."""
    if not any(_BUS.search(figure.words.between) for figure in figures):
        return figures
    return [
        figure for figure in figures
        if _BUS.search(figure.words.between) or not _ALGORITHM.search(figure.words.between)
    ]  # fmt: skip


def claims_of(lines: Sequence[str]) -> tuple[list[TextFigure], str, str]:
    """The figures of a text with their roles, the only port that it names, and the only drive."""
    reading = _read(lines)
    return reading.figures, _port(reading), reading.drive


def _read(lines: Sequence[str]) -> _Reading:
    """The figures of a text, with the ports, GPUs and the drive that it names."""
    whole = "\n".join(lines)[:20_000]
    everything, gpus = path_words.paths_in(whole), gpus_in(whole)
    everything |= {"device"} if gpus and not everything - {"service"} else set()
    reading = _Reading(only=everything.pop() if len(everything) == 1 else "", gpus=gpus)
    reading.drive = devices.drive_in(lines[:MOST_FIGURES])
    reading.only = reading.only or ("storage" if reading.drive and not everything else "")
    for number, line in enumerate(lines, 1):
        if line.strip() and not NO_RESULT.search(line):
            _read_line(reading, line, number)
        if len(reading.figures) >= MOST_FIGURES:
            break
    return reading


def _read_line(reading: _Reading, line: str, number: int) -> None:
    """Add the figures of a line; without one it is a heading, perhaps of a table."""
    reading.ports.update(path_words.lines_in(line))
    bits = (path_words.path_in(line) or path_words.path_in(reading.heading) or reading.only) == "network"
    found = [(quantity, line[: quantity.start]) for quantity in _all_quantities(line, bits=bits)]
    cells = list(columns(line))
    found = found or [*_bare_cells(reading, cells, bits=bits)]
    if not found:
        if len(cells) > 1 and ("|" in line or _has_unit(line)) and LETTERS.search(line):
            reading.heads, reading.table = cells, number if "|" in line else 0
        if LETTERS.search(line) and not _NO_HEADING.match(line.strip()):
            reading.heading = line.strip(" \t#*>:`")[:_LONGEST_HEADING]
        return
    figures = _figures(reading, line, number, found[:_MOST_OF_LINE])
    reading.figures += _in_table(reading, cells, figures) if "|" in line and reading.table else figures


def _in_table(
    reading: _Reading, cells: Sequence[tuple[int, str]], figures: Iterator[TextFigure]
) -> Iterator[TextFigure]:
    """The figures of a row of a table, each with its label and head."""
    heads = [text for _, text in reading.heads]
    labelled = len(heads) == len(cells)
    for figure in figures:
        row, head = tables.position(cells, heads, figure.quantity.start)
        first = heads[0] if labelled else ""
        yield replace(figure, table=reading.table, row=row, head=head, first_head=first)


def _all_quantities(line: str, *, bits: bool) -> list[TextQuantity]:
    """The figures of a line, those without a unit of their own too, in order."""
    found = quantities(line, bits=bits)
    return sorted([*found, *bare_quantities(line, found, bits=bits)], key=lambda quantity: quantity.start)


def _figures(
    reading: _Reading, line: str, number: int, found: Sequence[tuple[TextQuantity, str]]
) -> Iterator[TextFigure]:
    """The figures of a line, each with the words since the one before it and up to the next."""
    starts = [quantity.start for quantity, _ in found]
    ends = [0, *(quantity.end for quantity, _ in found)]
    between = [
        line[end:start] if end <= start else before
        for end, start, (_, before) in zip(ends, starts, found, strict=False)
    ]
    after = [line[end:start] for end, start in zip(ends[1:], [*starts[1:], len(line)], strict=True)]
    suffixed = not path_words.direction(between[0]) and bool(path_words.way_after(after[0]))
    crosses = "network" in path_words.paths_in(line)
    for at, (quantity, before) in enumerate(found):
        before = before if len(before) <= 2 * LONGEST else f"{before[:LONGEST]} {before[-LONGEST:]}"
        words = FigureWords(between[at][-2 * LONGEST :], after[at][:LONGEST], before, suffixed)
        falls = at + 1 < len(found) and path_words.falls(between[at], between[at + 1])
        yield _figure(reading, quantity, words, number, crosses, falls=falls)


def _figure(
    reading: _Reading, quantity: TextQuantity, words: FigureWords, number: int, crosses: bool, *, falls: bool
) -> TextFigure:
    """A figure with the path and direction that the nearest words say."""
    path = path_words.path_in(f"{words.between} {words.after}") or path_words.path_in(f"{words.before} {words.after}")
    path = path or path_words.path_in(reading.heading) or ("" if quantity.si == "s" else reading.only)
    role = path_words.role(words.between, words.after, is_bits=quantity.unit.endswith("b/s"))
    role = path_words.line_of(words.before, words.after, quantity.value, quantity.unit) or role
    if role == "line":
        reading.ports.add(units.show(quantity.value, "Gb/s"))
    role = "expected" if falls or (role == "" and path_words.heads_expectation(reading.heading)) else role
    crosses = crosses or quantity.unit.endswith("b/s")
    line = f"{words.before} {words.after}"
    crosses = crosses and _WITHIN_ONE.search(words.between) is None
    near = (path == "network" and crosses) or (path == "storage" and path_words.is_over_network(line))
    own = f"{words.between} {words.after if words.suffixed else ''}"
    clause = devices.clause_of(words.before, words.after)
    said = (own, f"{own} {clause}" if clause else "", words.before + words.after, reading.heading)
    copy = devices.copy_of(said) if path == "device" else ""
    named = gpus_in(own, spoken=True) or gpus_in(words.before, spoken=True) or gpus_in(words.after, spoken=True)
    gpu = next((at for at, name in enumerate(reading.gpus) if named and same_gpu(name, named[-1])), 0)
    if len(reading.gpus) < 2 and (spoken := number_of(words.between, words.after)) is not None:
        gpu = spoken
    way = words.way(reading.heading)
    return TextFigure(quantity, words, reading.heading, number, role, path, way, copy, gpu, crosses=near)


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
    # 'tokens/s | before | after': the head above the labels says the unit of all.
    of_all = _unit(heads[0]) if not any(map(_unit, heads[1:])) else ""
    if of_row and (match := re.search(r"\s(\d[\d.,]{0,15})$", first)):
        first = first[: match.start()]
        cells = [(cells[0][0] + match.start() + 1, match[1]), *cells[1:]]
    for (start, cell), head in zip(cells, heads, strict=True):
        unit = of_row or _unit(head) or of_all
        quantity = (
            in_a_cell(
                re.sub(r"[* ]{0,4}\(.{0,120}\)$| ?(?:\u00b1|\+/-) ?[\d.]{1,12}$", "", cell),
                unit,
                (start, start + len(cell)),
                bits=bits,
            )
            if unit
            else None
        )
        if quantity is not None:
            words = [text for _, text in cells if LETTERS.search(text)][:4] if not of_row else [first]
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


def _port(reading: _Reading) -> str:
    """The data rate of the network if the text names just one."""
    return next(iter(reading.ports)) if len(reading.ports) == 1 else ""


def _row(figure: TextFigure, port: str, drive: str) -> Observation:
    """A figure as a row, of what its words say of it."""
    metric, unit = _METRICS[figure.quantity.si], figure.quantity.unit
    label = figure.words.label
    how = {"tool": PLAIN_TEXT, "heading": figure.heading, "label": label, "about": figure.path, "way": figure.way}
    how |= {"after": figure.words.after.strip()[:60]} if LETTERS.search(figure.words.after) else {}
    if port and figure.crosses and figure.quantity.si == "B/s" and _by_its_line(figure, units.parse(port, "B/s")):
        how["line"] = port
    elif figure.expected[0]:
        how |= {"expected": units.show(figure.expected[0], unit), "expectation": figure.expected[1]}
        how |= {"against": figure.against} if figure.against else {}
    elif port and figure.crosses and figure.quantity.si == "B/s":
        how["line"] = port
    flow, path = _FLOWS[figure.path][figure.way], "" if figure.path == "device" else figure.path
    if figure.copy and metric == "goodput":
        flow, path = devices.flow_of(figure.copy, figure.gpu), figure.copy
        how |= {"flows": flow} | devices.how_of(path, f"{label} {figure.words.after}")
    # What stands beyond a comma is of the next figure.
    words = f"{figure.heading} {figure.words.between} {re.split('[,;]', figure.words.after)[0]}"
    if path == "storage" and metric == "goodput" and "expected" not in how and (bus := devices.bus_of(words)):
        how |= {"expected": bus, "expectation": "bus"}
    kind = devices.collective_of(words, f"{figure.heading} {figure.words.before} {figure.words.after}")
    if kind and figure.path == "device" and metric == "goodput" and not figure.copy:
        ranks = gpus_counted(f"{figure.heading} {figure.words.before}")
        flow, path, metric = devices.ring_of(ranks), "peer", "bus_bandwidth"
        how |= {"flows": flow, "collective": kind}
    if drive and path == "storage" and devices.is_one_drive(f"{figure.heading} {figure.words.before} {label}"):
        how["device"] = drive
    size = devices.size_in(f"{label} {figure.words.after}") or devices.size_in(figure.heading)
    settings = {"bytes": size} if size and path else {}
    return Observation(
        figure.name, flow, metric, figure.quantity.value, unit, Source.MEASURED, settings=settings, path=path, how=how,
    )  # fmt: skip


def _by_its_line(figure: TextFigure, line: float) -> bool:
    """Whether a line says more of a figure than another figure does: it is full, or carries less than the figure."""
    if figure.expected[1] != "other":
        return False
    share = figure.quantity.value / line
    local = _LOCAL.search(f"{figure.words.between} {figure.words.after}") is not None
    return _FILLED <= share <= 1 or (share > _TOO_MUCH and not local)


def _note(rows: Sequence[Observation], count: int) -> str:
    """What was read, and what to write to have more judged."""
    first = rows[0]
    more = f", the first {count} figures" if count >= MOST_FIGURES else ""
    return (
        f"read as plain text: {len(rows)} figure{'s' if len(rows) > 1 else ''}{more}, such as "
        f"{units.show(first.value, first.display_unit)} ('{first.scenario[:40]}'); compared only with what the text "
        "expects of them. For more write them as figures typed in (lanewise-rows: 1) with their flows"
    )
