"""Sizes, times and rates in what a program of one's own prints, as far as units and keys tell them apart.

A unit stands behind its number (256 MB, 4.9 ms, 52 GB/s), or in the key before it (nbytes=, "seconds":, gb_per_s:), or
in the head of its column. GBps counts bytes, Gbps bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lanewise import late_re as re

_NUMBER = r"(?P<number>\d{1,15}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,3})?)"
_GROUPED = r"(?P<grouped>\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,9})?)"
_BEHIND = re.compile(
    rf"(?<![\w.,:-])(?:{_GROUPED}|{_NUMBER}) ?(?P<unit>(?:[kKMGT]i?)?[bB](?:/s(?:ec)?|ps)?|"
    r"[kMG]?[bB]ytes(?:/s(?:ec)?)?|[mnu\u00b5]?s|sec|seconds)\b"
    r"(?:/(?:iter(?:ation)?|it|copy|call|op|rep|run|pass)\b)?(?![/=]| ?per\b)"
)
_BEFORE = re.compile(
    rf"(?P<key>[A-Za-z_][\w /()]{{0,40}}?[\w)])[\"']?(?:\{{[^}}]{{0,80}}\}})? ?(?:[=:] ?|(?<=\}}) )[\"']?"
    rf"{_NUMBER}(?![\w.-])"
)
_BETWEEN = re.compile(r"[=:}]")  # most lines have none, and no key
_RATE = re.compile(
    r"(?:^|[^A-Za-z])(?P<prefix>[kKmMgGtT]?)(?P<binary>i?)(?P<b>[bB])(?:/s(?:ec)?|ps|_?per_?s(?:ec(?:ond)?)?|_?s)[)\]]?$|"
    r"bytes_per_sec(?:ond)?s?$"
)
_BARE_RATE = re.compile(r"(?:^|_)(?:rate|throughput|bandwidth|(?:bus|alg)?bw)$", re.IGNORECASE)
_TIME = re.compile(r"(?:^|[^A-Za-z])(?P<unit>[mnu]?s|seconds?|secs?|dt|elapsed)[)\]]?$", re.IGNORECASE)
_SIZE = re.compile(
    r"(?:^|[^A-Za-z])(?:(?P<prefix>[kKMGmg])(?P<binary>i?)[bB]|(?P<whole>n?bytes|size|elements|numel|items|kilobytes|"
    r"megabytes|gigabytes))[)\]]?$", re.IGNORECASE,
)  # fmt: skip
# Sizes that count something else than bytes.
_NO_BYTES = re.compile(r"(?:world|batch|group|pool|vocab|hidden|queue|grid|page)[ _]?size[)\]]?$", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_WHOLE = {"kilobytes": 1e3, "megabytes": 1e6, "gigabytes": 1e9}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "ms": 1e-3}
# A GPU by its number, and what is on or off, as programs and heads write them: cuda:1, gpu_id=1, pinned=False.
_NUMBERED_GPU = re.compile(
    r"\b(?:(?:cuda|hip|xpu):|(?:gpu|device)(?:[ _-]?(?:id|index|idx|no))?[\"']?(?: ?[:=#] ?|[ _]?)[\"']?)0?(\d{1,2})\b"
    r"(?:[\"'](?!\w))?(?!:[0-9a-f]{2}\b|\.\d| ?[%x\u00d7*]| (?:devices?|hosts?)\b)",
    re.IGNORECASE,
)
_SWITCH = re.compile(
    r"\b(?:(?P<pinned>(?:is_)?pin(?:ned|_?memory)?)|(?P<peers>p2p|peer(?:s|[ _]?access)?))[\"']?"
    r"(?: ?[=:] ?[\"']?(?P<value>true|false|yes|no|on|off|1|0)|[ ](?P<word>true|false))\b[\"']?",
    re.IGNORECASE,
)
_ON = ("true", "yes", "on", "1")
# How often a thing of one size was done in the time of a line: '64 MiB x 100', '100 iterations of 64 MiB'.
_REPEATS = re.compile(
    r"(?:\bx|\u00d7|\*) ?(\d{1,6})\b|\b(\d{1,6}) ?(?:x\b|\u00d7|\*|(?:iterations|iters|times|copies|reps|repeats|runs|"
    r"transfers|passes)\b)|\b(?:iterations|iters|reps|repeats|copies)[\"']?[=:] ?(\d{1,6})\b",
    re.IGNORECASE,
)
_RANKS = re.compile(
    r"\b(?:world[ _]?size|(?:n|num_|nr_)?ranks|(?:n|num_|nr_)gpus)[\"']?(?: ?[=:] ?| )(\d{1,5})\b(?!\.\d)",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"(?<![A-Za-z])\d|\d(?![A-Za-z])")
_HEAD, _CELL = re.compile(r"[A-Za-z]"), re.compile(r"[\w.+-]{1,30}")
_BARS = "|\u2502\u2503"  # also those that tabulate and rich draw
# A line of a block: 'Bandwidth: 52.3 GB/s', 'size_mb: 256'.
_NAMED = re.compile(r"\s{0,8}(?:- )?[A-Za-z_][\w ()/-]{0,30}:\s{1,12}\S.{0,60}$")
# The head of a block: 'gpu1:', '- gpu: 1'. What is indented deeper is of it.
_HEAD_OF_BLOCK = re.compile(r" {0,8}(?:(?P<key>[A-Za-z_][\w :-]{0,30}):|- (?P<item>[A-Za-z_]\w{0,20}: \d{1,2}))\s*$")
# A sentence of something that takes times, and what joins its clauses or says how exact a time is.
_TAKES_A_TIME = re.compile(r"\b(?:takes?|took|needs?|needed|lasts?|lasted)\b", re.IGNORECASE)
_A_TIME = re.compile(r"(?<![\w.])\d{1,6}(?:\.\d{1,4})? ?(?:[mnu\u00b5]s|s|sec|seconds)\b")
_END_OF_SENTENCE = re.compile(r"[.?!](?=\s|$)")
_JOINED = re.compile(
    r"\b(?:and|but|while|whereas|only|just|about|around|roughly|even|then|it|takes?|took)\b|[~,;:]", re.IGNORECASE
)
_LONGEST, _MOST = 400, 12


@dataclass(frozen=True, slots=True)
class ProgramQuantity:
    """A number of a line: 'size' (B), 'time' (s) or 'rate' (B/s), its value, and its key or head (empty if none).

    `power`: that of its prefix where the unit may mean thousands or 1,024 (2 of MB, 0 of MiB).
    """

    kind: str
    value: float
    key: str = ""
    power: int = 0

    def values(self) -> tuple[float, ...]:
        """What the number may mean: KB, MB and GB are written for powers of ten and of two."""
        return (self.value, self.value * (1024 / 1000) ** self.power) if self.power else (self.value,)


@dataclass(frozen=True, slots=True)
class ProgramRecord:
    """A line of a program, or a row of its table: its quantities, and its words without them.

    `repeats` are the numbers of times that it may have done what it has a size of; `ranks`: 0 if unsaid.
    """

    words: str
    quantities: tuple[ProgramQuantity, ...]
    repeats: tuple[int, ...] = ()
    ranks: int = 0

    def of(self, kind: str) -> list[ProgramQuantity]:
        """The quantities of one kind."""
        return [each for each in self.quantities if each.kind == kind]


def records(lines: Sequence[str]) -> Iterator[tuple[int, ProgramRecord]]:
    """Each line that has quantities, by its place; rows of tables take their units from the heads above."""
    heads: list[str] = []
    whole = _whole_blocks(_of_their_gpus(_whole_objects(lines)))
    clauses = ((place, clause) for place, text in whole for clause in _clause_of_each_time(text))
    for place, line in clauses:
        cells = _cells(line)
        if len(line) > _LONGEST or not _has_figure(line):
            heads = cells if _are_heads(cells) else heads
            continue
        if heads and len(cells) == len(heads) + 1 and cells[0].isdigit():
            cells = cells[1:]  # the index that pandas prints
        record = _of_cells(heads, cells) if len(cells) == len(heads) > 1 else _of_line(line)
        if record.quantities:
            yield place, record


def _clause_of_each_time(line: str) -> list[str]:
    """A line; of a sentence in which one size takes several times a clause for each: '1 GB takes 9 ms pageable'."""
    verb = _TAKES_A_TIME.search(line)
    if verb is None or "|" in line or len(line) > _LONGEST:
        return [line]
    start = line.rfind(". ", 0, verb.start()) + 1
    end = next((match.start() for match in _END_OF_SENTENCE.finditer(line, verb.end())), len(line))
    times = list(_A_TIME.finditer(line, verb.end(), end))
    sizes = [each for each in _of_line(line[start:end]).quantities if each.kind != "time"]
    if len(times) < 2 or [each.kind for each in sizes] != ["size"]:
        return [line]
    ends = [match.end() for match in times]
    before = [line[a : match.start()] for a, match in zip([verb.end(), *ends], times, strict=False)]
    after = [line[a:b] for a, b in zip(ends, [*(match.start() for match in times[1:]), end], strict=True)]
    # Words stand before every time, or after every one.
    words = [_JOINED.sub(" ", each) for each in (before if _named(before) else after)]
    if not _named(words):
        return [line]
    return [f"{line[start : verb.end()]} {match[0]} {own}" for match, own in zip(times, words, strict=True)]


def _named(parts: Sequence[str]) -> bool:
    return all(_HEAD.search(_JOINED.sub(" ", part)) for part in parts)


def _of_their_gpus(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines; those of a block of YAML below the name of a GPU behind that name: 'gpu1 h2d gbps: 25'."""
    heads: list[tuple[int, str]] = []
    for place, line in lines:
        indent = len(line) - len(line.lstrip(" "))
        heads = [each for each in heads if each[0] < indent or not line.strip()]
        if match := _HEAD_OF_BLOCK.match(line):
            heads.append((indent, with_plain_words(match["key"] or match["item"])))
        names = " ".join(name for _, name in heads)
        is_member = match is None and re.search(r"\bgpu\d", names) and _NAMED.match(line)
        yield place, f"{names} {line.strip().removeprefix('- ')}" if is_member else line


def _whole_blocks(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines; a size, a time and a rate that stand below each other, each behind its name, as one line."""
    block: list[tuple[int, str]] = []
    for place, line in (*lines, (-1, "")):
        if _NAMED.match(line) and len(block) < _MOST:
            block.append((place, line))
            continue
        whole = ", ".join(each.strip() for _, each in block)
        found = _of_line(whole) if len(block) > 1 and _has_figure(whole) else None
        if found is not None and len(whole) <= _LONGEST and len(found.of("size")) == len(found.of("rate")) == 1:
            yield block[-1][0], whole
        else:
            yield from block
        block = [(place, line)] if _NAMED.match(line) else []
        if not block and place >= 0:
            yield place, line


def with_plain_words(text: str) -> str:
    """A text whose GPUs are called gpu0, gpu1 and so on, and whose switches are words: pinned, pageable, p2p off."""

    def plain(match: re.Match[str]) -> str:
        on = (match["value"] or match["word"]).lower() in _ON
        return ("pinned" if on else "pageable") if match["pinned"] else f"p2p {'on' if on else 'off'}"

    return _SWITCH.sub(plain, _NUMBERED_GPU.sub(r"gpu\1", text))


def ranks_in(text: str) -> int:
    """The ranks that a text says by a key: world_size=8; 0 if none."""
    match = _RANKS.search(text)
    return int(match[1]) if match else 0


def _whole_objects(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The lines by their places; an object of JSON without others in it, written over several lines, as one line."""
    opened: list[tuple[int, str]] = []
    length = 0
    for place, line in enumerate(lines):
        text, opens = line.strip(), line.rstrip().endswith("{")
        length += len(text) + 1
        if opened and (opens or length > _LONGEST or re.search(r"[{\[\]]", text)):
            yield from opened
            opened = []
        if opens:
            opened, length = [(place, line)], len(text) + 1
        elif not opened:
            yield place, line
        elif text.startswith("}"):
            yield opened[0][0], " ".join(each.strip() for _, each in [*opened, (place, line)])
            opened = []
        else:
            opened.append((place, line))
    yield from opened


def _has_figure(line: str) -> bool:
    """Whether a line has a figure; h2d is none, but between bars tables of other readers have such heads."""
    return any(map(str.isdigit, line)) if "|" in line else _FIGURE.search(line) is not None


def _are_heads(cells: Sequence[str]) -> bool:
    """Whether cells without figures stand above columns: one says a unit, or all are short."""
    named = any(_with_key(cell, 1.0) for cell in cells) or all(len(cell.split()) <= 2 for cell in cells)
    return 2 <= len(cells) <= _MOST and named and any(map(_HEAD.search, cells))


def _of_cells(heads: Sequence[str], cells: Sequence[str]) -> ProgramRecord:
    """A row of a table, each cell with its head."""
    found = [*itertools.chain.from_iterable(_of_cell(head, cell) for head, cell in zip(heads, cells, strict=True))]
    words = [_cell_words(head, cell) for head, cell in zip(heads, cells, strict=True)]
    ranks = ranks_in(", ".join(f"{head}={cell}" for head, cell in zip(heads, cells, strict=True)))
    return ProgramRecord(" ".join(filter(None, words)), tuple(found), ranks=ranks)


def _of_cell(head: str, cell: str) -> list[ProgramQuantity]:
    if match := _BEHIND.fullmatch(cell):
        counted = head.lower() if re.search(r"bus|alg", head, re.IGNORECASE) else ""
        return [quantity] if (quantity := _with_unit(match, counted)) else []
    if _CELL.fullmatch(cell) and (match := re.fullmatch(_NUMBER, cell)):
        return [quantity] if (quantity := _with_key(head, float(match["number"]))) else []
    return []


def _cell_words(head: str, cell: str) -> str:
    """The words of a cell: of a number or a switch by its head, as 1 below 'gpu'; none of other figures."""
    if _BEHIND.search(cell):
        return ""
    words = with_plain_words(cell)
    by_head = with_plain_words(f"{head}={cell}")
    words = by_head if words == cell and by_head != f"{head}={cell}" else words
    return words if _HEAD.search(words) else ""


def _of_line(line: str) -> ProgramRecord:
    """A line, with units behind its numbers and in keys before them."""
    found: list[tuple[int, ProgramQuantity]] = []
    for match in _BEHIND.finditer(line):
        before = re.search(r"\b(alg|bus)[ _]?bw\W{0,3}(?:of )?$", line[: match.start()], re.IGNORECASE)
        if quantity := _with_unit(match, before[1].lower() if before else ""):
            found.append((match.start(), quantity))
    taken = [match.span() for match in _BEHIND.finditer(line)]
    for match in _BEFORE.finditer(line) if _BETWEEN.search(line) else ():
        start = match.start("number")
        inside = any(low <= start < high for low, high in taken)
        if not inside and (quantity := _with_key(match["key"], float(match["number"]))):
            found.append((start, quantity))
            labels = re.finditer(r"\b(bytes|size)=\"(\d{1,15})\"", match[0])
            found += ((start, ProgramQuantity("size", float(label[2]), label[1])) for label in labels)
    named = with_plain_words(_BEHIND.sub(" ", line))
    rest = re.sub(r"(?<![\w:])(?<![GR]TX )\d[\d.]*(?:e[+-]?\d+)?\b(?!:)", " ", named)
    ordered = sorted(found, key=lambda each: each[0])
    repeats = dict.fromkeys(int(next(filter(None, match.groups()))) for match in _REPEATS.finditer(line))
    return ProgramRecord(
        " ".join(rest.split()), tuple(quantity for _, quantity in ordered), tuple(each for each in repeats if each > 1),
        ranks_in(line),
    )  # fmt: skip


def _with_unit(match: re.Match[str], key: str) -> ProgramQuantity | None:
    """A number with its unit behind it."""
    number, unit = float((match["grouped"] or match["number"]).replace(",", "")), match["unit"]
    if unit in _SECONDS or unit in ("s", "sec", "seconds"):
        return ProgramQuantity("time", number * _SECONDS.get(unit, 1.0), key)
    name, _, per = unit.partition("/") if "/" in unit else (unit.removesuffix("ps"), "", "s" * unit.endswith("ps"))
    prefix = re.sub(r"[bB](?:ytes)?$", "", name)
    binary, power = prefix.endswith("i"), _POWERS[prefix.rstrip("i").lower()]
    scale = (1024.0 if binary else 1000.0) ** power
    if name.endswith("b"):
        return ProgramQuantity("rate", number * scale / 8, key) if per else None
    return ProgramQuantity("rate" if per else "size", number * scale, key, 0 if binary else power)


def _with_key(key: str, number: float) -> ProgramQuantity | None:
    """A number whose key or head says the unit."""
    key = key.strip(" *`\"'")
    if match := _RATE.search(key):
        bits = match["b"] == "b" and bool(re.search(r"[KMGT]b(?:ps|/s)", key))
        power = _POWERS[(match["prefix"] or "").lower()]
        binary = bool(match["binary"])
        scale = (1024.0 if binary else 1000.0) ** power / (8 if bits else 1)
        return ProgramQuantity("rate", number * scale, key.lower(), 0 if binary or bits else power)
    if _BARE_RATE.search(key):
        return ProgramQuantity("rate", number * 1e9, key.lower(), 3)
    if match := _TIME.search(key):
        return ProgramQuantity("time", number * _SECONDS.get(match["unit"].lower(), 1.0), key.lower())
    if (match := _SIZE.search(key)) and not _NO_BYTES.search(key):
        if match["whole"]:
            whole = match["whole"].lower()
            return ProgramQuantity("size", number * _WHOLE.get(whole, 1.0), whole, 2 if whole in _WHOLE else 0)
        power, binary = _POWERS[match["prefix"].lower()], bool(match["binary"])
        scale = (1024.0 if binary else 1000.0) ** power
        return ProgramQuantity("size", number * scale, key.lower(), 0 if binary else power)
    return None


def _cells(line: str) -> list[str]:
    """The cells of a row between bars, commas, tabs or two blanks; none of a sentence or a rule."""
    text = line.strip().strip(_BARS).strip()
    for separator in (f"[{_BARS}]", r"\t+", r"[,;]", r"\s{2,}"):
        if len(cells := re.split(separator, text)) > 1:
            return [cell.strip(" *`") for cell in cells]
    return []
