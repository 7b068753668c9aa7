"""What measurements of a machine told of its capacities, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise import units
from lanewise.perf.host_calibration import CalibrationStep, HostCalibration
from lanewise.perf.resources import LABELS


def render_steps(calibration: HostCalibration) -> Iterator[str]:
    """One line for each measured rate."""
    for step in calibration.steps:
        rates = f"{units.show(step.measured.rate, 'GB/s')} measured, {units.show(step.predicted, 'GB/s')} predicted"
        yield f"{step.measured.name}: {rates}: {_told(step)}"


def _told(step: CalibrationStep) -> str:
    if step.capacity is None:
        return "as predicted" if step.is_as_predicted else "no single capacity explains it; not used"
    kind, what, *words = step.capacity
    name = f"link {what}" if kind == "link" else LABELS.get(kind, kind.replace("_", " "))
    where = ", ".join(filter(None, words))
    return f"{name}{f' ({where})' if where else ''} has {100 * step.factor:.3g} % of what was taken"
