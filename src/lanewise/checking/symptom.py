"""A slow row, with what else is known of its machine and of the other rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lanewise.checking.abilities import GpuAbility
from lanewise.checking.verdict import PathResult
from lanewise.results.conditions import MachineConditions
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts


@dataclass(frozen=True)
class RowSymptom:
    """A slow row and what else is known: conditions of the machine, `results` of all rows, what was posted."""

    result: PathResult
    conditions: MachineConditions = field(default_factory=MachineConditions)
    results: Sequence[PathResult] = ()
    posted: PostedFacts = field(default_factory=PostedFacts)
    ability: GpuAbility | None = None

    @property
    def row(self) -> Observation:
        """The measured row."""
        return self.result.row

    @property
    def share(self) -> float:
        """Measured over expected; 1 where either is unknown."""
        return self.result.ratio or 1.0

    @property
    def gpu(self) -> str:
        """The first GPU of the row's flow, empty if none."""
        match = re.search(r"\bgpu\d*", self.row.flow)
        return match[0] if match else ""

    @property
    def over_nvlink(self) -> bool:
        """Whether the GPUs of the row have NVLinks, so that no root complex need be on their way."""
        return self.ability is not None and self.ability.nvlink_rate is not None

    def better(self, *, same_flow: bool) -> list[Observation]:
        """Rows of the same metric and kind of path that are not slow and clearly faster."""
        row = self.row
        return [
            other.row for other in self.results
            if other.row.metric == row.metric and other.row.path == row.path
            and (other.row.flow == row.flow) is same_flow and (other.row.value or 0.0) > 1.2 * (row.value or 0.0)
        ]  # fmt: skip
