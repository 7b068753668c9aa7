"""Tables of no tool in particular: a size a row, with a rate and perhaps a time, whose heads say the units.

Read only where no tool's own text is. What moved is told by the heads and the lines above them; where they do not say,
the rates are kept, but nothing judges them. KB of a size is 1024 B, GB/s of a rate 1e9 B/s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.words.directions import FROM_DEVICE, TO_DEVICE
from lanewise.results.observation import Observation

TOOL = "a table of sizes and rates"
_SIZE = re.compile(
    r"[#\s]{0,8}(?:(?:len|length|message|msg|transfer|buffer|data|block|copy)[ _]?)?(?:size|len|length|bytes|data)?"
    r"\s?[\[(]?(b|bytes?|kb|kib|mb|mib|gb|gib)?[\])]?", re.IGNORECASE,
)  # fmt: skip
_RATE = re.compile(r".{0,30}[\[( ](([KMG])(i?)B(?:ps|/s(?:ec)?))[\])]?.{0,12}", re.IGNORECASE)
_POWERS = {"": 1, "b": 1, "byte": 1, "bytes": 1, "kb": 1 << 10, "kib": 1 << 10, "mb": 1 << 20, "mib": 1 << 20,
           "gb": 1 << 30, "gib": 1 << 30}  # fmt: skip
_SCALES = {"K": 1e-6, "M": 1e-3, "G": 1.0}
_NUMBER = re.compile(r"(\d[\d.]{0,17}(?:e[+-]?\d{1,3})?)\s?([KMG]i?B?|B)?", re.IGNORECASE)
_ABOVE = 4
# What moves, by the words of the heads and of the lines above: flow and path.
_MOVES = (
    (re.compile(TO_DEVICE, re.IGNORECASE), "host0->gpu0", "host to device"),
    (re.compile(FROM_DEVICE, re.IGNORECASE), "gpu0->host0", "device to host"),
    (re.compile(r"\bp2p\b|peer|gpu\d? ?(?:to|->) ?gpu|nvlink|cuda_ipc|xgmi", re.IGNORECASE), "gpu0->gpu1", "peer"),
    (re.compile(r"\b(?:rdma|ib|roce|infiniband|network|tcp)\b", re.IGNORECASE), "host0->host1", "network"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Heads:
    """The columns of a table: how many, the size's bytes a unit; of each rate place, unit, words and what moved."""

    columns: int
    unit: int
    rates: tuple[tuple[int, float, str], ...]
    kinds: tuple[ToolValue, ...] = ()


def is_text(lines: Sequence[str]) -> bool:
    """Whether some line is the heads of such a table, and a row of it follows."""
    columns = {found.columns for line in lines if (found := _heads(line))}
    return bool(columns) and any(len(cells := _cells(line)) in columns and _numbers(cells) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The rates of each size; FormatError with the line of a figure that is none."""
    rows: list[Observation] = []
    heads: _Heads | None = None
    for number, line in enumerate(lines, 1):
        if found := _heads(line):
            above = " ".join(lines[max(0, number - 1 - _ABOVE) : number - 1])
            heads = replace(found, kinds=tuple(_kind(words, above) for _, _, words in found.rates))
        elif heads and len(cells := _cells(line)) == heads.columns and _numbers(cells):
            rows += _row(heads, cells, Location(file, number))
            check_rows(rows, Location(file, number))
        elif line.strip():
            heads = heads if heads and not any(char.isalpha() for char in line) else None
    return ImportedResults(TOOL if rows else "", tuple(rows))


def _row(heads: _Heads, cells: Sequence[str], at: Location) -> Iterator[Observation]:
    match = _NUMBER.fullmatch(cells[0])
    if match is None:
        return
    unit = _POWERS.get(_full(match[2]), heads.unit) if match[2] else heads.unit
    settings = {"bytes": max(1, int(figure(match[1], at) * unit))}
    for (place, scale, words), kind in zip(heads.rates, heads.kinds, strict=True):
        how = {"p2p": "on" if kind.path == "peer" else ""}
        yield observation(TOOL, words, kind, figure(cells[place], at) * scale, how, settings)


def _full(unit: str) -> str:
    """'K' as 'kb', 'KiB' as 'kib'."""
    lower = unit.lower()
    return lower if lower.endswith("b") else f"{lower}b"


def _kind(words: str, above: str) -> ToolValue:
    """What a rate is of, by its own head or else by what is above the table."""
    for said in (words, above):
        found = [(flow, path) for pattern, flow, path in _MOVES if pattern.search(said)]
        if len(found) == 1:
            return ToolValue(found[0][0], found[0][0], path=found[0][1])
    return ToolValue("a copy", "")


def _heads(line: str) -> _Heads | None:
    """The columns of a line of heads; None for another line."""
    cells = _cells(line)
    size = _SIZE.fullmatch(cells[0]) if 2 <= len(cells) <= 16 and re.search("[A-Za-z]", cells[0]) else None
    if size is None:
        return None
    rates = []
    for place, cell in enumerate(cells[1:], 1):
        if match := _RATE.fullmatch(f" {cell}"):
            binary = (1024 / 1000) ** {"K": 1, "M": 2, "G": 3}[match[2].upper()] if match[3] else 1.0
            rates.append((place, _SCALES[match[2].upper()] * binary, cell))
    return _Heads(len(cells), _POWERS[(size[1] or "").lower()], tuple(rates)) if rates else None


def _cells(line: str) -> list[str]:
    """The cells of a line between bars, commas, tabs or two spaces; a word with its unit behind a space is one."""
    text = line.strip().strip("|").strip()
    for separator in (r"\|", r"\t+", r"[,;]", r"\s{2,}"):
        if len(cells := re.split(separator, text)) > 1:
            return [cell.strip() for cell in cells]
    return text.split()


def _numbers(cells: Sequence[str]) -> bool:
    """Whether all cells of a line are numbers, the first perhaps with a unit."""
    return _NUMBER.fullmatch(cells[0]) is not None and all(re.fullmatch(r"[\d.e+-]{1,20}", cell) for cell in cells[1:])
