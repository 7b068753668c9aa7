"""`nvidia-smi topo -m` and `-p2p`: tabs or blanks, with or without colours, network cards, affinities and legends."""

from __future__ import annotations

import re

from lanewise.discovery.facts import DumpFacts, first
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


def read_topo(text: str, file: str) -> DumpFacts:
    """The classes of all pairs, NUMA affinities and the cards' names; FormatError for a row that does not fit."""
    lines = plain(text).splitlines()
    at = next((n for n, line in enumerate(lines) if _heads(line) and not _is_peers(lines, n)), None)
    if at is None:
        raise FormatError(
            "no line of heads with GPU0", location=Location(file), hint="keep the whole output of the command"
        )
    heads = _heads(lines[at])
    facts = DumpFacts(file, KIND)
    affinity = "NUMA Affinity" in lines[at]
    for number, line in enumerate(lines[at + 1 :], at + 2):
        words = line.split()
        if _heads(line):
            break
        if words and words[0] in heads:
            _row(words, heads, affinity, number, facts)
        legend = _LEGEND.fullmatch(line)
        if legend:
            facts.add(legend[1], "alias", legend[2], "NIC legend", number)
    listed = {fact.about for fact in facts.facts if fact.key == "listed"}
    for name in [name for name in heads if name not in listed]:
        raise FormatError(
            f"no row for {name}", location=Location(file, at + 1), hint="keep the whole output of the command"
        )
    facts.notes.append(
        f"{facts.file}: topo -m shows no link speeds, no uplinks that cards share, and no partitions of a switch"
    )
    return facts


def kinds(text: str) -> set[str]:
    """Which of the two commands' matrices a text holds."""
    lines = plain(text).splitlines()
    return {PEERS if _is_peers(lines, n) else KIND for n, line in enumerate(lines) if _heads(line)}


def _is_peers(lines: list[str], at: int) -> bool:
    """Whether the matrix below this line of heads shows statuses of peers, not classes."""
    row = next((line.split() for line in lines[at + 1 :] if line.strip()), [])
    cells = row[1 : len(_heads(lines[at])) + 1]
    return cells != ["X"] and bool(cells) and all(_STATUS.fullmatch(cell) for cell in cells)


def read_peers(text: str, file: str) -> DumpFacts:
    """The statuses of all pairs, of every such matrix in the text; FormatError for a row that does not fit."""
    lines = plain(text).splitlines()
    facts = DumpFacts(file, PEERS)
    typed = ""
    for at, line in enumerate(lines):
        ability = _ASKED.search(line)
        typed = ability[1] if ability else typed
        if _heads(line) and _is_peers(lines, at):
            _peers(lines, at, _abilities(typed, facts), facts)
            typed = ""
    return facts


def _abilities(typed: str, facts: DumpFacts) -> tuple[str, ...]:
    named = typed or next((ability[1] for ability in _ASKED.finditer(facts.file.lower())), "")
    if not named:
        facts.notes.append(f"{facts.file} does not say which ability its matrix of peers shows; reading is assumed")
    return _ABILITIES.get(named, ("read",))


def _peers(lines: list[str], at: int, abilities: tuple[str, ...], facts: DumpFacts) -> None:
    heads = _heads(lines[at])
    listed = set()
    for number, line in enumerate(lines[at + 1 : at + 1 + 2 * len(heads)], at + 2):
        words = line.split()
        if not words or words[0] not in heads or words[0] in listed:
            continue
        listed.add(words[0])
        cells = words[1 : len(heads) + 1]
        wrong = [cell for cell in cells if not _STATUS.fullmatch(cell)]
        if len(cells) != len(heads) or wrong:
            cause = f"'{wrong[0]}' is no status" if wrong else f"{len(cells)} cells for {len(heads)} devices"
            hint = "X, OK, CNS, GNS, TNS, DR, NS and U are known"
            raise FormatError(cause, location=Location(facts.path, number), hint=hint)
        facts.add(words[0], "row", True, "row", number)
        for column, cell in zip(heads, cells, strict=True):
            for ability in abilities if column != words[0] else ():
                facts.add_peer(words[0], column, ability, cell, number)
    for name in [name for name in heads if name not in listed]:
        hint = "keep the whole output of the command"
        raise FormatError(f"no row for {name}", location=Location(facts.path, at + 1), hint=hint)


def _heads(line: str) -> list[str]:
    words = line.split()
    names = []
    for word in words:
        if not _NAME.fullmatch(word):
            break
        names.append(word)
    return names if names[:1] == ["GPU0"] and "X" not in words else []


def _row(words: list[str], heads: list[str], affinity: bool, line: int, facts: DumpFacts) -> None:
    name, cells = words[0], words[1 : len(heads) + 1]
    wrong = [cell for cell in cells if not _CELL.fullmatch(cell)]
    if len(cells) != len(heads) or wrong:
        cause = f"'{wrong[0]}' is no class" if wrong else f"{len(cells)} cells for {len(heads)} devices"
        raise FormatError(
            cause, location=Location(facts.path, line), hint="X, NV#, PIX, PXB, PHB, NODE and SYS are known"
        )
    facts.add(name, "listed", True, "row", line)
    for column, cell in zip(heads, cells, strict=True):
        if heads.index(column) > heads.index(name):
            facts.add_pair(name, column, "SYS" if cell == "SOC" else cell, "matrix", line)
    rest = words[len(heads) + 1 :]
    if affinity and len(rest) > 1:
        facts.add(name, "numa", first(rest[1]), "NUMA Affinity", line)
        if not rest[1].isdigit() and first(rest[1]) is not None:
            facts.notes.append(f"{facts.file}: {name} is near NUMA nodes {rest[1]}; the first is taken")
