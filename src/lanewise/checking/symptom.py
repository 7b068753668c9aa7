"""A slow row, with what else is known of its machine and of the other rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lanewise import units
from lanewise.checking.named.abilities import GpuAbility
from lanewise.checking.references.drives import DriveAbility
from lanewise.checking.references.stated_limits import names_limit
from lanewise.checking.verdict import PathResult, lower_is_better
from lanewise.results.conditions import MachineConditions
from lanewise.results.observation import Observation
from lanewise.results.posted import SLOT, PostedFacts


@dataclass(frozen=True)
class RowSymptom:
    """A slow row and what else is known: conditions of the machine, `results` of all rows, what was posted."""

    result: PathResult
    conditions: MachineConditions = field(default_factory=MachineConditions)
    results: Sequence[PathResult] = ()
    posted: PostedFacts = field(default_factory=PostedFacts)
    ability: GpuAbility | None = None
    drive: DriveAbility | None = None

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
    def slot_is_stated(self) -> bool:
        """Whether generation and lanes of the slot were typed in: who asks has looked at the link."""
        typed = self.row.how.get("tool") == "typed in"
        return typed and any(SLOT.fullmatch(each.value.strip()) for each in self.posted.stated("slot"))

    @property
    def over_nvlink(self) -> bool:
        """Whether the GPUs of the row have NVLinks, so that no root complex need be on their way."""
        return self.ability is not None and self.ability.nvlink_rate is not None

    @property
    def surely_over_nvlink(self) -> bool:
        """Whether NVLinks join the GPUs of the row whatever the machine: boards do so, cards need a bridge."""
        return self.ability is not None and self.ability.nvlink_rate is not None and self.ability.all_linked

    def best_host_copy(self) -> float:
        """The fastest lone copy between the row's GPU and host memory, B/s, either way; 0 if none."""
        return max(
            (other.row.value or 0.0 for other in self.results
             if self.gpu and other.row.metric == "goodput" and other.row.path in ("host to device", "device to host")
             and row_devices(other.row) >= {self.gpu} and other.row.how.get("flows", other.row.flow).count("->") == 1),
            default=0.0,
        )  # fmt: skip

    def better_rates(self) -> list[Observation]:
        """Rows of the same kind of path, of whatever metric, that are clearly faster."""
        row = self.row
        return [
            other.row for other in self.results
            if other.row.path == row.path and other.row.unit == row.unit
            and _clearly_better(other.row, row)
        ]  # fmt: skip

    def better(self, *, same_flow: bool) -> list[Observation]:
        """Rows of the same metric and kind of path that are clearly faster."""
        row = self.row
        return [
            other.row for other in self.results
            if other.row.metric == row.metric and other.row.path == row.path
            and (other.row.flow == row.flow) is same_flow and _clearly_better(other.row, row)
        ]  # fmt: skip


def _clearly_better(other: Observation, row: Observation) -> bool:
    if other.value is None or row.value is None:
        return False
    better = 1.2 * other.value < row.value if lower_is_better(row.unit) else other.value > 1.2 * row.value
    return better and not names_limit(other)  # a limit is no measurement


def row_devices(row: Observation) -> frozenset[str]:
    """The ends of a row's own flow or flows."""
    return frozenset(end.strip() for end in row.flow.replace("->", ",").split(","))


def value_text(row: Observation) -> str:
    """A row's value as text, in its own unit."""
    return units.show(row.value, row.display_unit, 3)


def line_of(row: Observation) -> str:
    """The data rate of the network as stated: other cards, or other numbers of them, are other paths."""
    return row.how.get("line", "")
