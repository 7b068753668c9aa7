"""What a dump says: facts about PCI functions, NUMA nodes and pairs of devices, each with its source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

Value = str | int | float | bool
_T = TypeVar("_T", str, int, float, bool)
_ADDRESS = re.compile(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])")
MACHINE = "machine"
# The class of what lspci calls by a word that means no bulk data.
OTHER = 0xFF00
# Where two sources differ, the one named first is taken.
KINDS = (
    "capture", "sysfs", "lspci -vvv", "NVML", "lspci -tv", "NCCL topology", "hwloc XML", "nvidia-smi topo -m",
    "nvidia-smi topo -p2p", "nvidia-smi nvlink -s", "ibstat",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FactSource:
    """Where a fact stands: the file, the attribute in it, the line if known."""

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


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """What the driver says of `a` reaching `b`: an ability (read, write, nvlink, pci, atomics) and its status."""

    a: str
    b: str
    ability: str
    status: str
    source: FactSource


class DumpFacts:
    """All that one dump says, collected fact by fact; `notes` are what it cannot say or what in it makes no sense.

    Sources have the file's name, errors its whole `path`.
    """

    def __init__(self, file: str, kind: str) -> None:
        self.path, self.file, self.kind = file, file.rstrip("/").rpartition("/")[2] or "/", kind
        self.facts: list[Fact] = []
        self.pairs: list[DevicePair] = []
        self.peers: list[PeerStatus] = []
        self.notes: list[str] = []

    def add(self, about: str, key: str, value: Value | None, what: str, line: int = 0) -> None:
        """Add a fact, unless the value is unknown."""
        if value is not None and value != "":
            self.facts.append(Fact(about, key, value, FactSource(self.file, what, line)))

    def add_pair(self, a: str, b: str, word: str, what: str, line: int = 0) -> None:
        """Add what the dump says of two devices."""
        self.pairs.append(DevicePair(a, b, word, FactSource(self.file, what, line)))

    def add_peer(self, a: str, b: str, ability: str, status: str, line: int = 0) -> None:
        """Add a peer status of two devices."""
        self.peers.append(PeerStatus(a, b, ability, status, FactSource(self.file, f"p2p {ability}", line)))


def address(text: str) -> str | None:
    """A PCI address written in full, `0000:c1:00.0`; None if the text is none."""
    match = _ADDRESS.fullmatch(text.strip())
    if not match:
        return None
    domain = (match[1] or "0").lower().lstrip("0").rjust(4, "0")
    return f"{domain}:{match[2]}:{match[3]}.{match[4]}".lower()


def width(text: str) -> int | None:
    """The lanes of `x16` or `16`; None if unknown."""
    match = re.match(r"\s*x?(\d+)", text)
    lanes = int(match[1]) if match else 0
    return lanes if lanes in (1, 2, 4, 8, 16) else None


def first(text: str) -> int | None:
    """The first number of a list such as `0-1,4`; None if it is empty or N/A."""
    match = re.match(r"\s*(\d+)", text)
    return int(match[1]) if match else None
