"""`nvidia-smi topo -m`: tabs or blanks, with or without colours, network cards, affinities and legends."""

from __future__ import annotations

import re

from lanewise.discovery.facts import Gatherer, Reading, first
from lanewise.errors import FormatError, Place

KIND = "nvidia-smi topo -m"
_COLOUR = re.compile(r"\x1b?\[[0-9;]*m")
_NAME = re.compile(r"GPU\d+|NIC\d+|mlx\d+_\d+|[a-z]+\d*_\d+|ib\w+|roce\w+")
_CELL = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC")
_LEGEND = re.compile(r"\s*(NIC\d+)\s*:\s*(\S+)")


def plain(text: str) -> str:
    """The text without terminal colours."""
    return _COLOUR.sub("", text)


def read_topo(text: str, file: str) -> Reading:
    """The classes of all pairs, NUMA affinities and the cards' names; FormatError for a row that does not fit."""
    lines = plain(text).splitlines()
    at = next((n for n, line in enumerate(lines) if _heads(line)), None)
    if at is None:
        raise FormatError("no line of heads with GPU0", place=Place(file), hint="keep the whole output of the command")
    heads = _heads(lines[at])
    found = Gatherer(file, KIND)
    affinity = "NUMA Affinity" in lines[at]
    for number, line in enumerate(lines[at + 1 :], at + 2):
        words = line.split()
        if words and words[0] in heads:
            _row(words, heads, affinity, number, found)
        legend = _LEGEND.fullmatch(line)
        if legend:
            found.say(legend[1], "alias", legend[2], "NIC legend", number)
    seen = {fact.about for fact in found.facts if fact.key == "listed"}
    for name in [name for name in heads if name not in seen]:
        raise FormatError(f"no row for {name}", place=Place(file, at + 1), hint="keep the whole output of the command")
    found.notes.append(
        f"{found.file}: topo -m shows no link speeds, no uplinks that cards share, and no partitions of a switch"
    )
    return found.done()


def _heads(line: str) -> list[str]:
    words = line.split()
    names = []
    for word in words:
        if not _NAME.fullmatch(word):
            break
        names.append(word)
    return names if names[:1] == ["GPU0"] and "X" not in words else []


def _row(words: list[str], heads: list[str], affinity: bool, line: int, found: Gatherer) -> None:
    name, cells = words[0], words[1 : len(heads) + 1]
    wrong = [cell for cell in cells if not _CELL.fullmatch(cell)]
    if len(cells) != len(heads) or wrong:
        cause = f"'{wrong[0]}' is no class" if wrong else f"{len(cells)} cells for {len(heads)} devices"
        raise FormatError(cause, place=Place(found.path, line), hint="X, NV#, PIX, PXB, PHB, NODE and SYS are known")
    found.say(name, "listed", True, "row", line)
    for other, cell in zip(heads, cells, strict=True):
        if heads.index(other) > heads.index(name):
            found.pair(name, other, "SYS" if cell == "SOC" else cell, "matrix", line)
    rest = words[len(heads) + 1 :]
    if affinity and len(rest) > 1:
        found.say(name, "numa", first(rest[1]), "NUMA Affinity", line)
        if not rest[1].isdigit() and first(rest[1]) is not None:
            found.notes.append(f"{found.file}: {name} is near NUMA nodes {rest[1]}; the first is taken")
