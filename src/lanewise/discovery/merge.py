"""The facts of all dumps as one: the better source is taken, and what contradicts it is named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lanewise.discovery.facts import KINDS, OTHER, DevicePair, DumpFacts, Fact, PeerStatus, address

# What may differ from moment to moment, or is said in other words, is no contradiction.
_SOFT = (
    "gen_now", "lanes_now", "speed_now", "name", "alias", "cpus", "listed", "row", "model", "socket", "memory", "block",
    "netdev", "rate", "state", "throttle", "vfs", "iommu_group", "nvlinks", "under_load", "made", "kernel",
)  # fmt: skip


# How the source of such a fact starts.
NVML_MOST = "at most, with this slot:"


@dataclass(frozen=True)
class Merged:
    """Facts by subject and key, pairs, peers, notes and contradictions of all dumps."""

    facts: Mapping[str, Mapping[str, Fact]]
    aliases: Mapping[str, str]
    pairs: tuple[DevicePair, ...]
    peers: tuple[PeerStatus, ...]
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


def merge(dumps: Sequence[DumpFacts]) -> Merged:
    """All dumps as one, those of the better kinds first."""
    ranked = sorted(dumps, key=lambda dump: KINDS.index(dump.kind))
    facts: dict[str, dict[str, Fact]] = defaultdict(dict)
    aliases: dict[str, str] = {}
    against: list[str] = []
    for dump in ranked:
        for fact in dump.facts:
            first = facts[fact.about].setdefault(fact.key, fact)
            if fact.key == "alias" and address(fact.about):
                aliases.setdefault(str(fact.value), fact.about)
            if first.value != fact.value and not _agree(first, fact):
                against.append(_against(first, fact))
    notes = dict.fromkeys(note for dump in ranked for note in dump.notes)
    pairs = tuple(pair for dump in ranked for pair in dump.pairs)
    peers = tuple(peer for dump in ranked for peer in dump.peers)
    return Merged(facts, aliases, pairs, peers, tuple(notes), tuple(dict.fromkeys(against)))


def _agree(first: Fact, second: Fact) -> bool:
    """Whether two values may stand side by side: NCCL and lspci know roots and switches by other names.

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


def _against(taken: Fact, second: Fact) -> str:
    values = [f"{f'0x{f.value:04x}' if f.key in ('class', 'vendor', 'device') else f.value}" for f in (taken, second)]
    texts = [f"{fact.source} says {value}" for fact, value in zip((taken, second), values, strict=True)]
    return f"{taken.about} {taken.key}: {texts[0]}, {texts[1]}; the first is taken"
