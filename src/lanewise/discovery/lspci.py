"""`lspci -tv`: the tree of bridges, and names."""

from __future__ import annotations

import re

from lanewise.discovery.facts import DumpFacts
from lanewise.discovery.pci_ids import ids_in
from lanewise.errors import FormatError, Location

TREE = "lspci -tv"
_ROOT = re.compile(r"^[ \t\xa0|]*[-+\\]+-?\[(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}\]", re.MULTILINE)
_BUS = re.compile(r"\[(?:([0-9a-f]{4,8}):)?([0-9a-f]{2})(?:-[0-9a-f]{2})?\]")
_SLOT = re.compile(r"([0-9a-f]{2}\.[0-7])")


def is_tree(text: str) -> bool:
    """Whether the text holds an `lspci -t` tree."""
    return bool(_ROOT.search(text))


def read_tree(text: str, file: str) -> DumpFacts:
    """Which function lies below which bridge; FormatError for a branch that hangs in the air."""
    facts = DumpFacts(file, TREE)
    opened: dict[int, tuple[str, str, str]] = {}
    for number, line in enumerate(text.expandtabs().splitlines(), 1):
        if re.match(r"[\s|]*[-+\\]+-?[\[0-9a-f]", line):
            _branch(line, number, opened, facts)
    return facts


def _branch(line: str, number: int, opened: dict[int, tuple[str, str, str]], facts: DumpFacts) -> None:
    """Follow one line of the tree from where it branches off; `opened` has parent, domain and bus by column."""
    at = re.match(r"[\s|]*", line).end()  # type: ignore[union-attr]
    bdf = opened.get(at, ("", "0000", ""))
    if line[at] in "+\\" and at not in opened:
        cause = "this branch of the tree starts nowhere"
        hint = "keep the blanks at the start of the lines"
        raise FormatError(cause, location=Location(facts.path, number), hint=hint)
    for column in [column for column in opened if column > at]:
        del opened[column]
    while at < len(line):
        if line[at] in "+\\-":
            if line[at] == "+" or (line[at] == "-" and not opened):
                opened[at] = bdf
            at += 1
        elif bus := _BUS.match(line, at):
            domain = (bus[1] or bdf[1]).lstrip("0").rjust(4, "0")
            bdf = (bdf[0] or f"root:{domain}:{bus[2]}", domain, bus[2])
            at = bus.end()
        elif slot := _SLOT.match(line, at):
            name = f"{bdf[1]}:{bdf[2]}:{slot[1]}"
            facts.add(name, "parent", bdf[0], "tree", number)
            bdf, at = (name, bdf[1], ""), slot.end()
            if line[at : at + 1] != "-":
                return _named(name, line[at:].strip(), number, facts)
        else:
            return None
    return None


def _named(name: str, words: str, line: int, facts: DumpFacts) -> None:
    for key, value in zip(("vendor", "device"), ids_in(words) or (), strict=False):
        facts.add(name, key, value, "tree", line)
    facts.add(name, "name", words, "tree", line)
