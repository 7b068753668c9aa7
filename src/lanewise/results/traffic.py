"""Traffic of LLM serving and training at one size: a collective, blocks of KV caches, the weights of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from lanewise.blocks.pieces import Pieces
from lanewise.collectives.model import Collective, CollectiveSettings
from lanewise.perf.flow import Flow
from lanewise.weights.prediction import WeightSource


@dataclass(frozen=True, slots=True)
class CollectiveMessage:
    """A collective of `ranks`, as `--ranks` names them, with messages of `size` B."""

    collective: Collective
    ranks: str
    size: float
    settings: CollectiveSettings = field(default_factory=CollectiveSettings)


@dataclass(frozen=True, slots=True)
class BlockCopies:
    """The same `pieces` over each of `flows` at once, moved by `software` (the usual one if None)."""

    flows: tuple[Flow, ...]
    pieces: Pieces
    software: str | None = None
    posters: int = 1


@dataclass(frozen=True, slots=True)
class WeightLoad:
    """`size` B of weights from `source` to `targets` by one `loader`; `warm`: from the page cache."""

    size: float
    source: WeightSource
    targets: tuple[str, ...]
    loader: str
    readers: int | None = None
    warm: bool = False
    replicated: bool = False


Traffic: TypeAlias = CollectiveMessage | BlockCopies | WeightLoad


@dataclass(frozen=True, slots=True)
class MachineTraffic:
    """Traffic of a measured machine, as its evidence words it; no figure learned on the machines `without` counts."""

    traffic: Traffic
    flow: str
    without: frozenset[str]
    name: str = ""
