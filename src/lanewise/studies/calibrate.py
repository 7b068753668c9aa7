"""Calibration: fits named unknown figures of parts to chosen observations, and predicts what it did not see.

Relative residuals, least squares on the logarithm of each unknown (scipy's trust region with bounds).
Nothing else in Lanewise fits anything.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.catalog import Figure
from lanewise.errors import InputError
from lanewise.results.run import FittedValue, LeftOut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lanewise.catalog import Catalog
    from lanewise.results.observation import Observation
    from lanewise.results.plan import Plan, Probe
    from lanewise.studies.form import FitForm
    from lanewise.topology.model import System

    Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Target:
    """One observation to fit: the plan that predicts it, its value in the plan's unit, and what it is left out with."""

    plan: Plan
    value: float
    group: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """The fitted catalogue, the values, and the residuals (relative) of the targets used."""

    catalog: Catalog
    values: tuple[FittedValue, ...]
    residuals: tuple[float, ...]

    @property
    def rms_pct(self) -> float:
        """Root mean square of the residuals in percent."""
        return _rms(self.residuals)


def calibrate(probe: Probe, catalog: Catalog, unknowns: Sequence[FitForm], targets: Sequence[Target]) -> Fit:
    """Fit `unknowns` to `targets`; InputError if there are fewer targets than unknowns or an unknown moves nothing."""
    if len(targets) < len(unknowns):
        raise InputError(
            f"{len(unknowns)} unknowns cannot be fitted to {len(targets)} observations",
            hint="choose more observations or fit fewer figures",
        )
    from scipy.optimize import least_squares

    start = [math.log(u.start) for u in unknowns]
    bounds = ([math.log(u.low) - 1e-12 for u in unknowns], [math.log(u.high) + 1e-12 for u in unknowns])

    known: dict[tuple[object, ...], float] = {}

    def residuals(x: Sequence[float]) -> list[float]:
        return _known_residuals(probe, catalog, unknowns, [math.exp(value) for value in x], targets, known)

    found = least_squares(residuals, start, bounds=bounds, diff_step=1e-4, xtol=1e-6, ftol=1e-8, max_nfev=40)
    values = [math.exp(value) for value in found.x]
    spreads = _spreads(found.jac, found.fun)
    fitted = tuple(
        FittedValue(f"{u.part} {u.figure}", value, u.unit, len(targets), u.start, spread, _note(u, value, column))
        for u, value, spread, column in zip(unknowns, values, spreads, found.jac.T, strict=True)
    )
    return Fit(_with(catalog, unknowns, values), fitted, tuple(float(r) for r in found.fun))


def leave_out(
    probe: Probe,
    catalog: Catalog,
    unknowns: Sequence[FitForm],
    targets: Sequence[Target],
    say: Progress = lambda _: None,
) -> tuple[LeftOut, ...]:
    """For each group of targets: fit without it, predict it, and report the residuals of what was not seen."""
    groups: dict[str, list[Target]] = defaultdict(list)
    for target in targets:
        if target.group:
            groups[target.group].append(target)
    made: list[LeftOut] = []
    for name, held in groups.items():
        say(f"leaving out {name}")
        fit = calibrate(probe, catalog, unknowns, [t for t in targets if t.group != name])
        made.append(_left_out(name, _residuals(probe, fit.catalog, held)))
    if made:
        total = sum(group.rows for group in made)
        rms = math.sqrt(sum(group.rms_pct**2 * group.rows for group in made) / total)
        made.append(LeftOut("all groups", total, rms, max((g.worst_pct for g in made), key=abs)))
    return tuple(made)


def target(plan: Plan, seen: Observation, group: str = "") -> Target:
    """A target from an observation with a published or measured value."""
    value = seen.published if seen.published is not None else seen.value
    if not value:
        raise InputError(
            f"{seen.scenario} has no value to fit to", hint="choose rows with a published or measured value"
        )
    return Target(plan, value, group)


def _residuals(probe: Probe, catalog: Catalog, targets: Sequence[Target]) -> list[float]:
    from dataclasses import replace

    made = []
    systems: dict[int, System] = {}
    for each in targets:
        system = systems.setdefault(id(each.plan.system), each.plan.system.with_catalog(catalog))
        seen = probe.run(replace(each.plan, system=system))[0]
        made.append((seen.value - each.value) / each.value if seen.value is not None else 1.0)
    return made


def _known_residuals(
    probe: Probe,
    catalog: Catalog,
    unknowns: Sequence[FitForm],
    values: Sequence[float],
    targets: Sequence[Target],
    known: dict[tuple[object, ...], float],
) -> list[float]:
    """Residuals, asking the probe only for targets whose own parts have changed since it was last asked."""
    changed = _with(catalog, unknowns, values)
    keys = []
    for index, each in enumerate(targets):
        parts = {device.part for device in each.plan.system.devices.values()}
        keys.append((index, *(v for u, v in zip(unknowns, values, strict=True) if u.part in parts)))
    asked = [(key, t) for key, t in zip(keys, targets, strict=True) if key not in known]
    for (key, _), value in zip(asked, _residuals(probe, changed, [t for _, t in asked]), strict=True):
        known[key] = value
    return [known[key] for key in keys]


def _with(catalog: Catalog, unknowns: Sequence[FitForm], values: Sequence[float]) -> Catalog:
    for unknown, value in zip(unknowns, values, strict=True):
        note = f"fitted by lanewise calibrate from {unknown.start:.6g}" + (f": {unknown.note}" if unknown.note else "")
        figure = Figure(value, unknown.unit, note, basis="fitted")
        catalog = catalog.with_part(catalog.get(unknown.part).with_figure(unknown.figure, figure))
    return catalog


def _spreads(jacobian: object, residuals: object) -> list[float | None]:
    """Relative standard errors from the Jacobian on the log scale; None where the observations do not determine it."""
    import numpy as np

    matrix, rest = np.asarray(jacobian), np.asarray(residuals)
    freedom = max(1, rest.size - matrix.shape[1])
    try:
        covariance = np.linalg.inv(matrix.T @ matrix) * float(rest @ rest) / freedom
    except np.linalg.LinAlgError:
        return [None] * matrix.shape[1]
    return [float(math.sqrt(v)) if v >= 0 else None for v in np.diag(covariance)]


def _note(unknown: FitForm, value: float, column: Sequence[float]) -> str:
    if not any(abs(entry) > 1e-9 for entry in column):
        return "no observation used depends on it: the start value stands"
    at_bound = min(abs(math.log(value / unknown.low)), abs(math.log(unknown.high / value))) < 1e-3
    return "at its bound" if at_bound else unknown.note


def _left_out(name: str, residuals: Sequence[float]) -> LeftOut:
    return LeftOut(name, len(residuals), _rms(residuals), 100 * max(residuals, key=abs, default=0.0))


def _rms(residuals: Sequence[float]) -> float:
    return 100 * math.sqrt(sum(r * r for r in residuals) / len(residuals)) if residuals else 0.0
