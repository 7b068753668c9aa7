"""What a posted text says besides its figures: the names of the GPUs in a tool's header, and settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a text states: `key` of docs/reference/readers.md, its `value`, and the `source` (file:line)."""

    key: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class PostedFacts:
    """The devices' names by device (`gpu0`; `gpu` stands for every GPU), statements, and the GPUs a tool listed."""

    devices: Mapping[str, str] = field(default_factory=dict)
    statements: tuple[Statement, ...] = ()

    def title(self, device: str) -> str:
        """The name that the text gives a device, empty if none."""
        kind = re.sub(r"\d+$", "", device)
        return self.devices.get(device) or self.devices.get(kind, "")

    def stated(self, key: str) -> tuple[Statement, ...]:
        """All statements of one key."""
        return tuple(statement for statement in self.statements if statement.key == key)


def join(facts: Iterable[PostedFacts]) -> PostedFacts:
    """Several texts' facts as one; where two name a device, the later says."""
    devices: dict[str, str] = {}
    statements: dict[Statement, None] = {}
    for each in facts:
        devices |= each.devices
        statements |= dict.fromkeys(each.statements)
    return PostedFacts(devices, tuple(statements))
