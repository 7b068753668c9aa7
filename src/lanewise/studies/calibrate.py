"""Calibration: fits named unknown figures of parts to chosen observations, and predicts what it did not see.

Relative residuals, least squares on the logarithm of each unknown (scipy's trust region with bounds), from the start
given and, where that one lies on a plateau, from others. Nothing else in Lanewise fits anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lanewise.catalog import Figure
from lanewise.catalog.keys import check_key
from lanewise.errors import InputError, error_location
from lanewise.results.run import FittedValue, LeftOut
from lanewise.results.statistics import rms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lanewise.catalog import Catalog
    from lanewise.results.plan import Plan, Probe
    from lanewise.studies.form import FitForm
    from lanewise.topology.model import System

    Progress = Callable[[str], None]

SAME = 1e-6  # a cost lower by less than this share is no better
FLAT = 1e-9  # a column of the Jacobian below this moves nothing
QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """One observation to fit: the plan that predicts it, its value in the plan's unit, and what it is left out with.

    `where` is the study, table and row that it stands in.
    """

    plan: Plan
    value: float
    group: str = ""
    where: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, slots=True)
class Fit:
    """The fitted catalogue, the values, the targets used and their relative residuals, nan for no prediction."""

    catalog: Catalog
    values: tuple[FittedValue, ...]
    targets: tuple[Target, ...]
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
        found = rms(self.compared)
        return math.nan if found is None else 100 * found


def calibrate(
    probe: Probe, catalog: Catalog, unknowns: Sequence[FitForm], targets: Sequence[Target]
) -> tuple[Fit, Search]:
    """Fit `unknowns` to `targets`, and the search that did it; InputError if the targets that have a prediction are
    fewer than the unknowns, or with the location of an unknown that its part cannot have.
    """
    search = Search(probe, catalog, _checked(catalog, unknowns), targets)
    return search.fit(), search


def leave_out(search: Search, fit: Fit, say: Progress = lambda _: None) -> tuple[LeftOut, ...]:
    """For each group of targets: fit without it, predict it, and report the residuals of what was not seen."""
    starts = [value.value for value in fit.values]
    made: list[LeftOut] = []
    unseen: list[float] = []
    for name in dict.fromkeys(t.group for t in search.targets if t.group):
        say(f"leaving out {name}")
        without = replace(search, targets=[t for t in search.targets if t.group != name])
        found = without.fit(starts)
        held = replace(search, targets=[t for t in search.targets if t.group == name])
        values = [value.value for value in found.values]
        seen = [r for r in held.residuals(values) if r is not None]
        if seen:
            made.append(_left_out(name, seen))
            unseen += seen
    return (*made, _left_out("all groups", unseen)) if made else ()


@dataclass(frozen=True)
class Search:
    """The targets as a function of the unknowns; asks the probe only for targets whose own parts have changed."""

    probe: Probe
    catalog: Catalog
    unknowns: Sequence[FitForm]
    targets: Sequence[Target]
    known: dict[tuple[object, ...], float | None] = field(default_factory=dict)

    def residuals(self, values: Sequence[float]) -> list[float | None]:
        """The relative residual of each target with those values of the unknowns, None where nothing predicts it."""
        keys = [(t, *self._own(t, values)) for t in self.targets]
        asked = [(key, t) for key, t in zip(keys, self.targets, strict=True) if key not in self.known]
        if asked:
            found = _residuals(
                self.probe, _with(self.catalog, self.unknowns, values, self.targets), [t for _, t in asked]
            )
            self.known.update(zip((key for key, _ in asked), found, strict=True))
        return [self.known[key] for key in keys]

    def fit(self, starts: Sequence[float] = ()) -> Fit:
        """The best fit, searched from `starts` (the unknowns' own if none are given)."""
        first = list(starts) or [u.start for u in self.unknowns]
        seen = [t for t, r in zip(self.targets, self.residuals(first), strict=True) if r is not None]
        if len(seen) < len(self.unknowns):
            raise InputError(
                f"{len(self.unknowns)} unknowns cannot be fitted to {len(seen)} observations that have a prediction",
                hint="choose more observations or fit fewer figures",
            )
        if not self.unknowns:
            return self._made((), [])
        usable = replace(self, targets=seen)
        best = usable.solve(first)
        for start in usable.others(best):
            found = usable.solve(start)
            if found.cost < best.cost * (1 - SAME):
                best = found
        settled = [u.start if flat else v for u, v, flat in zip(self.unknowns, best.values, best.flat, strict=True)]
        if usable.cost(settled) <= best.cost * (1 + SAME):
            best = replace(best, values=settled)
        return self._made(best.fitted(self.unknowns), best.values)

    def misses(self, values: Sequence[float]) -> list[float]:
        """The residuals, with 1 for a target that has no prediction there."""
        return [1.0 if r is None else r for r in self.residuals(values)]

    def cost(self, values: Sequence[float]) -> float:
        """Half the sum of the squared residuals, as scipy counts it."""
        return sum(r * r for r in self.misses(values)) / 2

    def solve(self, start: Sequence[float]) -> _Solution:
        """The optimum next to `start`; a target that loses its prediction on the way counts as wholly missed."""
        from scipy.optimize import least_squares

        def misses(x: Iterable[float]) -> list[float]:
            return self.misses([math.exp(value) for value in x])

        low = [math.log(u.low) - 1e-12 for u in self.unknowns]
        high = [math.log(u.high) + 1e-12 for u in self.unknowns]
        inside = [min(max(math.log(v), a), b) for v, a, b in zip(start, low, high, strict=True)]
        found = least_squares(misses, inside, bounds=(low, high), diff_step=1e-4, xtol=1e-6, ftol=1e-8, max_nfev=40)
        return _Solution([math.exp(value) for value in found.x], float(found.cost), found.jac, found.fun)

    def others(self, found: _Solution) -> Iterator[list[float]]:
        """More starts, log-spaced between the bounds: all unknowns where that costs less at once, else those that do
        not bind, which may lie on a plateau.
        """
        flat = found.flat
        for share in QUARTERS:
            spread = [u.low * (u.high / u.low) ** share for u in self.unknowns]
            if self.cost(spread) < found.cost:
                yield spread
            moved = [s if f else v for s, f, v in zip(spread, flat, found.values, strict=True)]
            if any(flat) and abs(self.cost(moved) - found.cost) > SAME * found.cost:  # else the plateau reaches there
                yield moved

    def _own(self, target: Target, values: Sequence[float]) -> Iterator[float]:
        parts = {device.part for device in target.plan.system.devices.values()}
        for unknown, value in zip(self.unknowns, values, strict=True):
            # What is no device of its own (an NVLink generation) may be reached from any of them.
            if unknown.part in parts or self.catalog.get(unknown.part).kind == "nvlink":
                yield value

    def _made(self, values: tuple[FittedValue, ...], numbers: Sequence[float]) -> Fit:
        found = self.residuals(numbers)
        catalog = _with(self.catalog, self.unknowns, numbers, self.targets)
        return Fit(catalog, values, tuple(self.targets), tuple(math.nan if r is None else r for r in found))


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
        """The values with what can be said of them."""
        told = zip(unknowns, self.values, _spreads(self.jacobian, self.misses), self.flat, strict=True)
        return tuple(
            FittedValue(f"{u.part} {u.figure}", v, u.unit, len(self.misses), u.start, spread, _note(u, v, flat))
            for u, v, spread, flat in told
        )


def _checked(catalog: Catalog, unknowns: Sequence[FitForm]) -> list[FitForm]:
    """The unknowns under their parts' own names; UnknownName with the location of one that cannot be."""
    made = []
    for unknown in unknowns:
        with error_location(unknown.location):
            part = catalog.get(unknown.part)
            check_key(part.kind, unknown.figure)
        made.append(replace(unknown, part=part.name))
    return made


def _residuals(probe: Probe, catalog: Catalog, targets: Sequence[Target]) -> list[float | None]:
    made: list[float | None] = []
    systems: dict[int, System] = {}
    for each in targets:
        before = each.plan.system
        if id(before) not in systems:
            systems[id(before)] = before.with_catalog(catalog)
        seen = probe.run(replace(each.plan, system=systems[id(before)]))[0]
        known = seen.value is not None and math.isfinite(seen.value)
        made.append((seen.value - each.value) / each.value if known and seen.value is not None else None)
    return made


def _with(catalog: Catalog, unknowns: Sequence[FitForm], values: Sequence[float], targets: Sequence[Target]) -> Catalog:
    tables = dict.fromkeys(f"{study} '{table}'" for study, table, _ in (target.where for target in targets))
    source = f"fitted by lanewise calibrate to {len(targets)} rows of {', '.join(tables)}"
    for unknown, value in zip(unknowns, values, strict=True):
        figure = Figure(value, unknown.unit, source, condition=unknown.note, basis="fitted")
        catalog = catalog.with_part(catalog.get(unknown.part).with_figure(unknown.figure, figure))
    return catalog


def _spreads(jacobian: Any, misses: Any) -> list[float | None]:
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
