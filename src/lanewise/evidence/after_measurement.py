"""How well a machine is predicted after one or two measurements of it: its other rows, before and after.

Measured is the row whose interval was the widest, relative to its low end, of those that no benchmark's order of copies
limits: what a user would be told to measure, chosen without any knowledge of the errors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lanewise.catalog import Catalog
from lanewise.evidence.model import EACH, FIRST, EvidenceMachine, EvidenceRow
from lanewise.evidence.prediction import PredictedRow, predict_row
from lanewise.perf.host_calibration import HostRate, calibrate_host
from lanewise.perf.schedules import schedule_named

MOST_MEASUREMENTS = 2


@dataclass(frozen=True, slots=True)
class AfterMeasurement:
    """Rows of machines after that many `measurements` of each: as predicted without and with them."""

    measurements: int
    before: tuple[PredictedRow, ...]
    after: tuple[PredictedRow, ...]


def after_measurements(
    machines: Iterable[EvidenceMachine], rates: Sequence[PredictedRow], catalog: Catalog
) -> tuple[AfterMeasurement, ...]:
    """The `rates` of a score again, after one measurement of each machine, and after two."""
    rows: dict[str, list[PredictedRow]] = defaultdict(list)
    for row in rates:
        if row.observation.value is not None:
            rows[row.machine].append(row)
    pairs: list[list[tuple[PredictedRow, PredictedRow]]] = [[] for _ in range(MOST_MEASUREMENTS)]
    for machine in machines:
        system, before = machine.system(machine.left_out_of(catalog)), rows[machine.name]
        now, measured = before, set[int]()
        for number in range(MOST_MEASUREMENTS):
            place = _most_uncertain(now, measured)
            if place is None:
                break
            measured.add(place)
            system = calibrate_host(system, [measured_rate(before[place].row)]).system
            now = [predict_row(machine.name, system, row.row) for row in before]
            pairs[number] += [pair for index, pair in enumerate(zip(before, now, strict=True)) if index not in measured]
    return tuple(
        AfterMeasurement(number, tuple(before for before, _ in each), tuple(after for _, after in each))
        for number, each in enumerate(pairs, start=1)
    )


def measured_rate(row: EvidenceRow) -> HostRate:
    """A row of the evidence as a measurement of its machine."""
    flows = tuple(replace(flow, start=0.0) for flow in row.flows)
    rate = row.value * (len(flows) if row.of == EACH else 1)
    return HostRate(row.path, flows, rate, 0 if row.of == FIRST else None, schedule_named(row.schedule))


def _most_uncertain(rows: Sequence[PredictedRow], measured: set[int]) -> int | None:
    """The row to measure next, None where no other row would profit."""
    left = [index for index in range(len(rows)) if index not in measured]
    if len(left) < 2:
        return None
    ordered = [index for index in left if schedule_named(rows[index].row.schedule).rounds <= 1]
    return max(ordered or left, key=lambda index: _width(rows[index]))


def _width(row: PredictedRow) -> float:
    seen = row.observation
    return seen.high / seen.low if seen.high is not None and seen.low else 1.0
