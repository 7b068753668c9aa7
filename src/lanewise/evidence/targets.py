"""The accuracy to reach for data paths of LLM serving and training, by kind of path."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.evidence.prediction import PredictedRow
from lanewise.evidence.traffic_prediction import LONG, MIDDLE, SHORT


@dataclass(frozen=True, slots=True)
class AccuracyTarget:
    """For rows of this `kind`: the `median` error to reach, and the error `within` which `share` of the rows should
    lie; errors are shares of the measured value, None where there is no such target."""

    kind: str
    median: float | None = None
    within: float | None = None
    share: float = 0.9

    def counts(self, row: PredictedRow) -> bool:
        """Whether it is about the row, which could be predicted."""
        return row.observation.path == self.kind and not row.row.skip

    def reached(self, row: PredictedRow) -> bool:
        """Whether the row's error is at most `within`."""
        return self.within is not None and row.error is not None and abs(row.error) <= self.within


TARGETS = (
    AccuracyTarget(f"collective, NVLink, {LONG}", 0.05, 0.12),
    AccuracyTarget(f"collective, NVLink, {MIDDLE}", 0.15, 0.40),
    AccuracyTarget(f"collective, NVLink, {SHORT}", 0.25),
    AccuracyTarget(f"collective, PCIe, {LONG}", 0.15, 0.30),
    AccuracyTarget(f"collective, Infinity Fabric, {LONG}", 0.15, 0.30),
    AccuracyTarget("KV transfer, pieces of 1 MiB and up", 0.10, 0.25),
    AccuracyTarget("KV transfer, pieces below 1 MiB", 0.30),
    AccuracyTarget("KV offload, pieces of 128 KiB and up", 0.10),
    AccuracyTarget("model load, parallel readers", within=0.20, share=1.0),
    AccuracyTarget("model load, mapped pages", within=0.35, share=1.0),
)
