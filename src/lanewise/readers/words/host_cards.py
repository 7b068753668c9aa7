"""The network cards of each host as people state them beside a collective, and those that NCCL's log says it uses.

Sources: NCCL's documentation (NCCL_IB_HCA: '=' before the list wants exact names, '^' leaves cards out) and its log
("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB"). Rates of names are those of InfiniBand's generations, four lanes each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.readers.words.machines import machines_in
from lanewise.readers.words.path_words import lines_in
from lanewise.results.posted import Statement

_COUNTS = {"two": 2, "four": 4, "eight": 8, "sixteen": 16}
_SO_MANY = rf"(?P<count>\d{{1,2}}|{'|'.join(_COUNTS)})"
# Of what stands behind the number only rails are a host's own whatever else is said.
_CARD = r"(?:ConnectX|CX|BlueField)-?\d|[FEHNX]DR\d{0,3}\b|\d{2,3} ?G(?:b(?:it)?(?:/s|ps)?|bE)? (?:NICs|HCAs|rails)"
_CARDS = re.compile(
    rf"(?<![\w.-]){_SO_MANY} rails\b|(?<![\w.-]){_SO_MANY.replace('count', 'times')} ?[x\u00d7*] ?(?:{_CARD})|"
    rf"(?<![\w.-]){_SO_MANY.replace('count', 'each')} (?:NICs|HCAs|network cards) "
    r"(?:a|per|each|in each) (?:node|host|server)",
    re.IGNORECASE,
)  # fmt: skip
_RATE = re.compile(r"(?<![\w.])(\d{2,3}) ?G(?:b(?:it)?(?:/s|ps)?|bE)?\b", re.IGNORECASE)
_BEHIND, _MOST = 48, 16
_USING = re.compile(r"NET/IB : Using (.{1,1500})")
_USED = re.compile(r"\[\d{1,2}\]([\w.-]{1,40}):\d")
_CHOSEN = re.compile(
    r"\bNCCL_IB_HCA(?:=| set (?:by environment )?to )\"?(=?)((?:[a-z]\w{1,30}\d(?::\d)?,?){1,16})(?=[\s\";]|$)"
)


def network_cards(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """How many network cards each host has, with their rate if it is said, and how many of them NCCL uses."""
    yield from [*_counted_cards(lines, file)] or _cards_of_machines(lines, file)
    for number, line in enumerate(lines, 1):
        if "NCCL" not in line:
            continue
        if match := _USING.search(line):
            cards = dict.fromkeys(_USED.findall(match[1]))
            yield Statement("cards in use", f"{len(cards)}: {','.join(cards)}", f"{file}:{number}")
        elif match := _CHOSEN.search(line):
            chosen = dict.fromkeys(match[2].strip(",").split(","))
            value = f"{len(chosen)}: NCCL_IB_HCA={match[1]}{','.join(chosen)}"
            yield Statement("cards chosen", value, f"{file}:{number}")


def _counted_cards(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """How many network cards each host has by the words of a text."""
    for number, line in enumerate(lines, 1):
        if (match := _CARDS.search(line)) and 1 < (count := _number(match)) <= _MOST:
            rate = _rate(line[match.start() : match.end() + _BEHIND])
            yield Statement("network cards", f"{count} x {rate}" if rate else str(count), f"{file}:{number}")


def _cards_of_machines(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """The network cards of the servers and cloud instances that a text names."""
    for number, line in enumerate(lines, 1):
        for machine in machines_in(line):
            if machine.cards:
                yield Statement("network cards", machine.cards, f"{file}:{number}")


def _number(match: re.Match[str]) -> int:
    text = next(filter(None, match.group("count", "times", "each")))
    return _COUNTS.get(text.lower()) or int(text)


def _rate(words: str) -> str:
    """The rate of one card that words name: '400Gb', 'NDR'; empty if none."""
    match = _RATE.search(words)
    named = lines_in(words)
    return f"{match[1]} Gb/s" if match else named[0] if named else ""
