"""What dumps say: facts about PCI functions, NUMA nodes and pairs of devices, each with its source, and all merged.

Of several dumps the better source is taken, and what contradicts it is named.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lanewise import units
from lanewise.errors import InputError, Location, printable
from lanewise.results.conditions import PeerState

Value = str | int | float | bool
_ADDRESS = re.compile(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])")
MACHINE = "machine"
# No line of a dump is longer, no dump of one machine says more, no NUMA node has a higher number.
_MAX_LINE, _MAX_FACTS, _MAX_NODE = 8192, 500_000, 4095
# The class of what lspci calls by a word that means no bulk data.
OTHER = 0xFF00
# Where two sources differ, the one named first is taken.
KINDS = (
    "capture", "sysfs", "lspci -vvv", "NVML", "lspci -tv", "NCCL topology", "hwloc XML", "nvidia-smi topo -m",
    "nvidia-smi topo -p2p", "nvidia-smi nvlink -s", "names of GPUs", "ibstat", "lscpu", "/proc/cpuinfo",
    "numactl --hardware",
)  # fmt: skip

# What may differ from moment to moment, or is said in other words, is no contradiction.
_SOFT = (
    "gen_now", "lanes_now", "speed_now", "name", "alias", "cpus", "listed", "row", "model", "socket", "memory", "block",
    "netdev", "rate", "state", "throttle", "vfs", "iommu_group", "nvlinks", "under_load", "made", "kernel", "revision",
    "secondary", "subordinate", "slot", "serial", "vf_offset", "vf_stride", "below", "off_bus", "cpu_id",
)  # fmt: skip
# How the source of such a fact starts.
NVML_MOST = "at most, with this slot:"


@dataclass(frozen=True, slots=True)
class FactSource:
    """Where a fact was read: the file, the attribute in it, the line if known."""

    file: str
    what: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.what}" if self.line else f"{self.file} {self.what}"


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement: `key` of `about` (a PCI address, `node:0`, `GPU0` of a matrix, or the machine) is `value`."""

    about: str
    key: str
    value: Value
    source: FactSource


@dataclass(frozen=True, slots=True)
class DevicePair:
    """What a dump says of two devices: a class (`PHB`, `NV4`) or `bandwidth` of an NVLink, in `word`."""

    a: str
    b: str
    word: str
    source: FactSource


class DumpFacts:
    """All that one dump says, collected fact by fact; `notes` are what it cannot say or what in it makes no sense.

    Sources have the file's name, errors its whole `path`.
    """

    def __init__(self, file: str, kind: str) -> None:
        self.path, self.file, self.kind = file, file.rstrip("/").rpartition("/")[2] or "/", kind
        self.facts: list[Fact] = []
        self.pairs: list[DevicePair] = []
        self.peers: list[PeerState] = []
        self.notes: list[str] = []

    def add(self, about: str, key: str, value: Value | None, what: str, line: int = 0) -> None:
        """Add a fact, unless the value is unknown; words in one line, without control characters."""
        value = " ".join(printable(value).split()) if isinstance(value, str) else value
        if value is not None and value != "" and not (key == "numa" and int(value) > _MAX_NODE):
            self.facts.append(Fact(about, key, value, FactSource(self.file, what, line)))
            self._check_size()

    def add_pair(self, a: str, b: str, word: str, what: str, line: int = 0) -> None:
        """Add what the dump says of two devices."""
        self.pairs.append(DevicePair(a, b, word, FactSource(self.file, what, line)))
        self._check_size()

    def add_peer(self, a: str, b: str, ability: str, status: str, line: int = 0) -> None:
        """Add the status of `a` reaching `b` in one ability: read, write, nvlink, pci or atomics."""
        self.peers.append(PeerState(a, b, ability, status, str(FactSource(self.file, f"p2p {ability}", line))))
        self._check_size()

    def _check_size(self) -> None:
        if len(self.facts) + len(self.pairs) + len(self.peers) > _MAX_FACTS:
            cause = f"says more than {_MAX_FACTS:,} things of a machine"
            raise InputError(cause, location=Location(self.path), hint="name the dump of one machine")


@dataclass(frozen=True)
class MachineFacts:
    """Facts by subject and key, pairs, peers, notes and contradictions of all dumps."""

    facts: Mapping[str, Mapping[str, Fact]]
    aliases: Mapping[str, str]
    pairs: tuple[DevicePair, ...]
    peers: tuple[PeerState, ...]
    notes: tuple[str, ...]
    contradictions: tuple[str, ...]

    def number(self, about: str, key: str) -> int | None:
        """A fact that is a whole number, None if unknown."""
        value = self.value(about, key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def word(self, about: str, key: str) -> str:
        """A fact in words, empty if unknown."""
        value = self.value(about, key)
        return value if isinstance(value, str) else ""

    def value(self, about: str, key: str) -> object:
        """A fact's value, None if unknown."""
        fact = self.fact(about, key)
        return fact.value if fact else None

    def fact(self, about: str, key: str) -> Fact | None:
        """A fact with its source, None if unknown."""
        return self.facts.get(about, {}).get(key)

    def addresses(self) -> list[str]:
        """All PCI functions, in the order of their addresses."""
        return sorted((about for about in self.facts if address(about)), key=lambda a: (len(a), a))


def merge(dumps: Sequence[DumpFacts]) -> MachineFacts:
    """All dumps as one, those of the better kinds first."""
    ranked = sorted(dumps, key=lambda dump: KINDS.index(dump.kind))
    facts: dict[str, dict[str, Fact]] = defaultdict(dict)
    aliases: dict[str, str] = {}
    against: dict[tuple[str, str, str], list[tuple[Fact, Fact]]] = defaultdict(list)
    for dump in ranked:
        for fact in dump.facts:
            first = facts[fact.about].setdefault(fact.key, fact)
            if fact.key == "alias" and address(fact.about):
                aliases.setdefault(str(fact.value), fact.about)
            if first.value != fact.value and not _agree(first, fact):
                against[fact.about, first.source.file, fact.source.file].append((first, fact))
    notes = dict.fromkeys(note for dump in ranked for note in dump.notes)
    pairs = tuple(pair for dump in ranked for pair in dump.pairs)
    peers = tuple(peer for dump in ranked for peer in dump.peers)
    return MachineFacts(facts, aliases, pairs, peers, tuple(notes), tuple(map(_against, against.values())))


def _agree(first: Fact, second: Fact) -> bool:
    """Whether two values do not contradict each other: NCCL and lspci know roots and switches by other names.

    What NVML says of a link is the most of GPU and slot together, so it may be less than the GPU's own.
    """
    if first.key in _SOFT:
        return True
    if first.key == "class":
        return OTHER in (first.value, second.value)
    if first.key in ("gen", "lanes") and NVML_MOST in second.source.what:
        return float(second.value) <= float(first.value)
    if first.key == "port":
        return "switch" in (first.value, second.value)
    return first.key == "parent" and (
        str(first.value).startswith("root:node") or str(second.value).startswith("root:node")
    )


def _against(differences: Sequence[tuple[Fact, Fact]]) -> str:
    """What two dumps, or one, say differently of one subject: one line, with values if it is one fact alone."""
    taken, second = differences[0]
    keys = list(dict.fromkeys(fact.key for fact, _ in differences))
    if len(keys) > 1:
        files = " and ".join(dict.fromkeys((taken.source.file, second.source.file)))
        return f"{taken.about} {', '.join(keys)}: {files} says two things of it; the first is taken"
    values = [f"{f'0x{f.value:04x}' if f.key in ('class', 'vendor', 'device') else f.value}" for f in (taken, second)]
    texts = [f"{fact.source} says {value}" for fact, value in zip((taken, second), values, strict=True)]
    return f"{taken.about} {taken.key}: {texts[0]}, {texts[1]}; the first is taken"


def address(text: str) -> str | None:
    """A PCI address written in full, `0000:c1:00.0`; None if the text is none."""
    match = _ADDRESS.fullmatch(text.strip())
    if not match:
        return None
    domain = (match[1] or "0").lower().lstrip("0").rjust(4, "0")
    return f"{domain}:{match[2]}:{match[3]}.{match[4]}".lower()


def width(text: str) -> int | None:
    """The lanes of `x16` or `16`; None if unknown."""
    match = re.match(r"\s*x?(\d{1,9})(?!\d)", text)
    lanes = int(match[1]) if match else 0
    return lanes if lanes in (1, 2, 4, 8, 16) else None


def first(text: str) -> int | None:
    """The first number of a list such as `0-1,4`; None if it is empty or N/A."""
    match = re.match(r"\s*(\d+)", text)
    return units.whole(match[1]) if match else None


def short_lines(text: str) -> str:
    """The text with lines that are longer than any of a dump made blank."""
    return "\n".join(line if len(line) <= _MAX_LINE else "" for line in text.split("\n"))
