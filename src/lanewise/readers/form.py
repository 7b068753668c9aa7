"""What a reader gives: results of another tool as observations, who can reach whom, what the text leaves open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.results.observation import Observation, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GIB = 2.0**30
MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class Results:
    """What one text or several say: `tool` with its version, measured rows, `peers` and notes on what to know of them.

    `peers[("gpu0", "gpu1")]` is whether gpu0 can access the memory of gpu1; pairs that no text mentions are absent.
    """

    tool: str
    observations: tuple[Observation, ...]
    peers: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def no_peers(self) -> tuple[tuple[str, str], ...]:
        """The pairs of GPUs of which the first cannot access the second's memory."""
        return tuple(pair for pair, reached in self.peers.items() if not reached)


def merge(found: Sequence[Results]) -> Results:
    """Several results as one; where two differ about a pair of peers, the later says."""
    return Results(
        ", ".join(dict.fromkeys(each.tool for each in found)),
        tuple(row for each in found for row in each.observations),
        {pair: reached for each in found for pair, reached in each.peers.items()},
        tuple(dict.fromkeys(note for each in found for note in each.notes)),
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """What a number of a tool stands for: its flow, all `flows` that ran with it, metric, unit and path."""

    flow: str
    flows: str
    metric: str = "goodput"
    unit: str = "GB/s"
    path: str = ""
    note: str = ""


def measured(
    tool: str, scenario: str, cell: Cell, value: float | None, how: Mapping[str, str], settings: Mapping[str, int]
) -> Observation:
    """The observation of one such number, `value` in the unit of its cell."""
    words = {"tool": tool, **({"flows": cell.flows} if cell.flows else {}), **{k: v for k, v in how.items() if v}}
    note = cell.note if value is not None else cell.note or "the tool gives no value"
    return Observation(
        scenario, cell.flow, cell.metric, None if value is None else units.to_si(value, cell.unit), cell.unit,
        Source.MEASURED,
        settings=dict(settings), path=cell.path, how=words, note=note,
    )  # fmt: skip


__all__ = ["GIB", "MIB", "Cell", "Results", "measured", "merge"]
