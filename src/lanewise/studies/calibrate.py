"""Calibration: fits named figures of parts to observations, and predicts the groups that it leaves out.

Least squares of relative residuals over the logarithm of each unknown (scipy's trust region with bounds), from the
stated start and, if that is on a plateau, from further starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from lanewise.catalog import Catalog, Figure
from lanewise.catalog.keys import check_key
from lanewise.errors import InputError, error_location
from lanewise.results.plan import Plan, StudyProbe
from lanewise.results.run import FittedValue, LeftOut
from lanewise.results.statistics import rms
from lanewise.studies.form import FitForm
from lanewise.topology.model import System

Progress: TypeAlias = Callable[[str], None]
SAME = 1e-6  # relative: a cost lower by less than this is no better
FLAT = 1e-9  # a column of the Jacobian below this moves nothing
QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationTarget:
    """One observation to fit: its plan, its value in the plan's unit, and the group it is left out with.

    `where` is its study, table and row.
    """

    plan: Plan
    value: float
    group: str = ""
    where: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, slots=True)
class CalibrationFit:
    """The fitted catalogue, the values, the targets used and their relative residuals, nan for no prediction."""

    catalog: Catalog
    values: tuple[FittedValue, ...]
    targets: tuple[CalibrationTarget, ...]
    residuals: tuple[float, ...]

    @property
    def compared(self) -> tuple[float, ...]:
        """The residuals of the targets that have a prediction."""
        return tuple(r for r in self.residuals if math.isfinite(r))

    @property
    def without_prediction(self) -> int:
        """How many targets were left out because nothing predicts them."""
        return len(self.residuals) - len(self.compared)

    @property
    def rms_pct(self) -> float:
        """Root mean square of the residuals in percent, nan if there are none."""
        value = rms(self.compared)
        return math.nan if value is None else 100 * value


def calibrate(
    probe: StudyProbe, catalog: Catalog, unknowns: Sequence[FitForm], targets: Sequence[CalibrationTarget]
) -> tuple[CalibrationFit, CalibrationSearch]:
    """The fit of `unknowns` to `targets`, and its search.

    InputError if fewer targets than unknowns have a prediction, or a part cannot state an unknown.
    """
    search = CalibrationSearch(probe, catalog, _checked(catalog, unknowns), targets)
    return search.fit(), search


def leave_out(search: CalibrationSearch, fit: CalibrationFit, say: Progress = lambda _: None) -> tuple[LeftOut, ...]:
    """The residuals of each group of targets as predicted by a fit without that group, and of all groups together."""
    starts = [value.value for value in fit.values]
    groups: list[LeftOut] = []
    all_residuals: list[float] = []
    for name in dict.fromkeys(t.group for t in search.targets if t.group):
        say(f"leaving out {name}")
        training = replace(search, targets=[t for t in search.targets if t.group != name])
        test = replace(search, targets=[t for t in search.targets if t.group == name])
        values = [value.value for value in training.fit(starts).values]
        residuals = [r for r in test.residuals(values) if r is not None]
        if residuals:
            groups.append(_left_out(name, residuals))
            all_residuals += residuals
    return (*groups, _left_out("all groups", all_residuals)) if groups else ()


@dataclass(frozen=True)
class CalibrationSearch:
    """The targets as a function of the unknowns; the probe predicts only targets whose own parts have changed."""

    probe: StudyProbe
    catalog: Catalog
    unknowns: Sequence[FitForm]
    targets: Sequence[CalibrationTarget]
    cache: dict[tuple[object, ...], float | None] = field(default_factory=dict)

    def residuals(self, values: Sequence[float]) -> list[float | None]:
        """The relative residual of each target with those values of the unknowns, None where nothing predicts it."""
        keys = [(t, *self._own(t, values)) for t in self.targets]
        new = {key: t for key, t in zip(keys, self.targets, strict=True) if key not in self.cache}
        if new:
            catalog = _with(self.catalog, self.unknowns, values, self.targets)
            self.cache.update(zip(new, _residuals(self.probe, catalog, [*new.values()]), strict=True))
        return [self.cache[key] for key in keys]

    def fit(self, starts: Sequence[float] = ()) -> CalibrationFit:
        """The best fit, searched from `starts` (the unknowns' own if none are given)."""
        first = list(starts) or [u.start for u in self.unknowns]
        predicted = [t for t, r in zip(self.targets, self.residuals(first), strict=True) if r is not None]
        if len(predicted) < len(self.unknowns):
            count = len(self.unknowns)
            cause = f"{count} unknowns cannot be fitted to {len(predicted)} observations that have a prediction"
            raise InputError(cause, hint="choose more observations or fit fewer figures")
        if not self.unknowns:
            return self._result((), [])
        usable = replace(self, targets=predicted)
        best = usable.solve(first)
        for start in usable.more_starts(best):
            solution = usable.solve(start)
            if solution.cost < best.cost * (1 - SAME):
                best = solution
        settled = [u.start if flat else v for u, v, flat in zip(self.unknowns, best.values, best.flat, strict=True)]
        if usable.cost(settled) <= best.cost * (1 + SAME):
            best = replace(best, values=settled)
        return self._result(best.fitted(self.unknowns), best.values)

    def misses(self, values: Sequence[float]) -> list[float]:
        """The residuals, with 1 for a target that has no prediction there."""
        return [1.0 if r is None else r for r in self.residuals(values)]

    def cost(self, values: Sequence[float]) -> float:
        """Half the sum of the squared residuals, as scipy counts it."""
        return sum(r * r for r in self.misses(values)) / 2

    def solve(self, start: Sequence[float]) -> _Solution:
        """The optimum near `start`; a target that loses its prediction has a residual of 1."""
        from scipy.optimize import least_squares

        def misses(x: Iterable[float]) -> list[float]:
            return self.misses([math.exp(value) for value in x])

        low = [math.log(u.low) - 1e-12 for u in self.unknowns]
        high = [math.log(u.high) + 1e-12 for u in self.unknowns]
        inside = [min(max(math.log(v), a), b) for v, a, b in zip(start, low, high, strict=True)]
        optimum = least_squares(misses, inside, bounds=(low, high), diff_step=1e-4, xtol=1e-4, ftol=1e-6, max_nfev=40)
        return _Solution([math.exp(value) for value in optimum.x], float(optimum.cost), optimum.jac, optimum.fun)

    def more_starts(self, best: _Solution) -> Iterator[list[float]]:
        """More starts, log-spaced between the bounds: all unknowns where that costs less at once, else those that do
        not bind, which may be on a plateau.
        """
        flat = best.flat
        for share in QUARTERS:
            start = [u.low * (u.high / u.low) ** share for u in self.unknowns]
            if self.cost(start) < best.cost:
                yield start
            moved = [s if f else v for s, f, v in zip(start, flat, best.values, strict=True)]
            if any(flat) and abs(self.cost(moved) - best.cost) > SAME * best.cost:  # else the plateau reaches there
                yield moved

    def _own(self, target: CalibrationTarget, values: Sequence[float]) -> Iterator[float]:
        parts = {device.part for device in target.plan.system.devices.values()}
        for unknown, value in zip(self.unknowns, values, strict=True):
            # What is no device of its own (an NVLink generation) may be reached from any of them.
            if unknown.part in parts or self.catalog.get(unknown.part).kind == "nvlink":
                yield value

    def _result(self, values: tuple[FittedValue, ...], numbers: Sequence[float]) -> CalibrationFit:
        residuals = tuple(math.nan if r is None else r for r in self.residuals(numbers))
        catalog = _with(self.catalog, self.unknowns, numbers, self.targets)
        return CalibrationFit(catalog, values, tuple(self.targets), residuals)


@dataclass(frozen=True, slots=True)
class _Solution:
    values: list[float]
    cost: float
    jacobian: Any
    misses: Any

    @property
    def flat(self) -> list[bool]:
        """For each unknown, whether nothing depends on it here."""
        return [not any(abs(entry) > FLAT for entry in column) for column in self.jacobian.T]

    def fitted(self, unknowns: Sequence[FitForm]) -> tuple[FittedValue, ...]:
        """The values with their standard errors and notes."""
        columns = zip(unknowns, self.values, _standard_errors(self.jacobian, self.misses), self.flat, strict=True)
        return tuple(
            FittedValue(f"{u.part} {u.figure}", v, u.unit, len(self.misses), u.start, error, _note(u, v, flat))
            for u, v, error, flat in columns
        )


def _checked(catalog: Catalog, unknowns: Sequence[FitForm]) -> list[FitForm]:
    """The unknowns under their parts' own names; UnknownName with the location of an unknown part or figure."""
    checked = []
    for unknown in unknowns:
        with error_location(unknown.location):
            part = catalog.get(unknown.part)
            check_key(part.kind, unknown.figure)
        checked.append(replace(unknown, part=part.name))
    return checked


def _residuals(probe: StudyProbe, catalog: Catalog, targets: Sequence[CalibrationTarget]) -> list[float | None]:
    residuals: list[float | None] = []
    systems: dict[int, System] = {}
    for target in targets:
        before = target.plan.system
        if id(before) not in systems:
            systems[id(before)] = before.with_catalog(catalog)
        value = next(probe.run(replace(target.plan, system=systems[id(before)]))).value
        predicted = value is not None and math.isfinite(value)
        residuals.append((value - target.value) / target.value if predicted and value is not None else None)
    return residuals


def _with(
    catalog: Catalog, unknowns: Sequence[FitForm], values: Sequence[float], targets: Sequence[CalibrationTarget]
) -> Catalog:
    tables = dict.fromkeys(f"{study} '{table}'" for study, table, _ in (target.where for target in targets))
    source = f"fitted by lanewise calibrate to {len(targets)} rows of {', '.join(tables)}"
    for unknown, value in zip(unknowns, values, strict=True):
        figure = Figure(value, unknown.unit, source, condition=unknown.note, basis="fitted")
        catalog = catalog.with_part(catalog.get(unknown.part).with_figure(unknown.figure, figure))
    return catalog


def _standard_errors(jacobian: Any, misses: Any) -> list[float | None]:
    """Relative standard errors from the Jacobian on the log scale; None where the observations do not determine it."""
    import numpy as np

    matrix, rest = np.asarray(jacobian), np.asarray(misses)
    freedom = max(1, rest.size - matrix.shape[1])
    try:
        covariance = np.linalg.inv(matrix.T @ matrix) * float(rest @ rest) / freedom
    except np.linalg.LinAlgError:
        return [None] * matrix.shape[1]
    return [float(math.sqrt(v)) if v >= 0 else None for v in np.diag(covariance)]


def _note(unknown: FitForm, value: float, flat: bool) -> str:
    if flat:
        return "does not bind"
    at_bound = min(abs(math.log(value / unknown.low)), abs(math.log(unknown.high / value))) < 1e-3
    return "at its bound" if at_bound else unknown.note


def _left_out(name: str, residuals: Sequence[float]) -> LeftOut:
    return LeftOut(name, len(residuals), 100 * (rms(residuals) or 0.0), 100 * max(residuals, key=abs, default=0.0))
