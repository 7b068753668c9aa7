"""`nvidia-smi topo -m` and `-p2p`: tabs or blanks, with or without colours, network cards, affinities and legends."""

from __future__ import annotations

import re

from lanewise.discovery.facts import Gatherer, Reading, first
from lanewise.errors import FormatError, Location

KIND = "nvidia-smi topo -m"
_COLOUR = re.compile(r"\x1b?\[[0-9;]*m")
_NAME = re.compile(r"GPU\d+|NIC\d+|mlx\d+_\d+|[a-z]+\d*_\d+|ib\w+|roce\w+")
_CELL = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC")
PEERS = "nvidia-smi topo -p2p"
_STATUS = re.compile(r"X|OK|CNS|GNS|TNS|DR|NS|U")
# The ability that the command asked for stands in no line of its output: it is looked for in what was typed, else in
# the name of the file.
_ASKED = re.compile(r"-?p2p[-_ ]*(rw|[rwnap])(?![a-z])")
_ABILITIES = {
    "r": ("read",), "w": ("write",), "rw": ("read", "write"), "n": ("nvlink",), "a": ("atomics",), "p": ("pci",),
}  # fmt: skip
_LEGEND = re.compile(r"\s*(NIC\d+)\s*:\s*(\S+)")


def plain(text: str) -> str:
    """The text without terminal colours."""
    return _COLOUR.sub("", text)


def read_topo(text: str, file: str) -> Reading:
    """The classes of all pairs, NUMA affinities and the cards' names; FormatError for a row that does not fit."""
    lines = plain(text).splitlines()
    at = next((n for n, line in enumerate(lines) if _heads(line) and not _is_peers(lines, n)), None)
    if at is None:
        raise FormatError(
            "no line of heads with GPU0", location=Location(file), hint="keep the whole output of the command"
        )
    heads = _heads(lines[at])
    found = Gatherer(file, KIND)
    affinity = "NUMA Affinity" in lines[at]
    for number, line in enumerate(lines[at + 1 :], at + 2):
        words = line.split()
        if _heads(line):
            break
        if words and words[0] in heads:
            _row(words, heads, affinity, number, found)
        legend = _LEGEND.fullmatch(line)
        if legend:
            found.say(legend[1], "alias", legend[2], "NIC legend", number)
    seen = {fact.about for fact in found.facts if fact.key == "listed"}
    for name in [name for name in heads if name not in seen]:
        raise FormatError(
            f"no row for {name}", location=Location(file, at + 1), hint="keep the whole output of the command"
        )
    found.notes.append(
        f"{found.file}: topo -m shows no link speeds, no uplinks that cards share, and no partitions of a switch"
    )
    return found.done()


def kinds(text: str) -> set[str]:
    """Which of the two commands' matrices a text holds."""
    lines = plain(text).splitlines()
    return {PEERS if _is_peers(lines, n) else KIND for n, line in enumerate(lines) if _heads(line)}


def _is_peers(lines: list[str], at: int) -> bool:
    """Whether the matrix below this line of heads shows statuses of peers, not classes."""
    row = next((line.split() for line in lines[at + 1 :] if line.strip()), [])
    cells = row[1 : len(_heads(lines[at])) + 1]
    return cells != ["X"] and bool(cells) and all(_STATUS.fullmatch(cell) for cell in cells)


def read_peers(text: str, file: str) -> Reading:
    """The statuses of all pairs, of every such matrix in the text; FormatError for a row that does not fit."""
    lines = plain(text).splitlines()
    found = Gatherer(file, PEERS)
    typed = ""
    for at, line in enumerate(lines):
        asked = _ASKED.search(line)
        typed = asked[1] if asked else typed
        if _heads(line) and _is_peers(lines, at):
            _peers(lines, at, _abilities(typed, found), found)
            typed = ""
    return found.done()


def _abilities(typed: str, found: Gatherer) -> tuple[str, ...]:
    named = typed or next((asked[1] for asked in _ASKED.finditer(found.file.lower())), "")
    if not named:
        found.notes.append(f"{found.file} does not say which ability its matrix of peers shows; reading is assumed")
    return _ABILITIES.get(named, ("read",))


def _peers(lines: list[str], at: int, abilities: tuple[str, ...], found: Gatherer) -> None:
    heads = _heads(lines[at])
    seen = set()
    for number, line in enumerate(lines[at + 1 : at + 1 + 2 * len(heads)], at + 2):
        words = line.split()
        if not words or words[0] not in heads or words[0] in seen:
            continue
        seen.add(words[0])
        cells = words[1 : len(heads) + 1]
        wrong = [cell for cell in cells if not _STATUS.fullmatch(cell)]
        if len(cells) != len(heads) or wrong:
            cause = f"'{wrong[0]}' is no status" if wrong else f"{len(cells)} cells for {len(heads)} devices"
            hint = "X, OK, CNS, GNS, TNS, DR, NS and U are known"
            raise FormatError(cause, location=Location(found.path, number), hint=hint)
        found.say(words[0], "row", True, "row", number)
        for other, cell in zip(heads, cells, strict=True):
            for ability in abilities if other != words[0] else ():
                found.peer(words[0], other, ability, cell, number)
    for name in [name for name in heads if name not in seen]:
        hint = "keep the whole output of the command"
        raise FormatError(f"no row for {name}", location=Location(found.path, at + 1), hint=hint)


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
        raise FormatError(
            cause, location=Location(found.path, line), hint="X, NV#, PIX, PXB, PHB, NODE and SYS are known"
        )
    found.say(name, "listed", True, "row", line)
    for other, cell in zip(heads, cells, strict=True):
        if heads.index(other) > heads.index(name):
            found.pair(name, other, "SYS" if cell == "SOC" else cell, "matrix", line)
    rest = words[len(heads) + 1 :]
    if affinity and len(rest) > 1:
        found.say(name, "numa", first(rest[1]), "NUMA Affinity", line)
        if not rest[1].isdigit() and first(rest[1]) is not None:
            found.notes.append(f"{found.file}: {name} is near NUMA nodes {rest[1]}; the first is taken")
