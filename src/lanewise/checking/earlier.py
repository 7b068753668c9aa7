"""Expected values from measured rows: of one earlier run, or of several machines of one class."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lanewise.checking.verdict import Expected
from lanewise.errors import InputError
from lanewise.results.match import CONTEXT, METHOD, Identity, identity
from lanewise.results.observation import Observation

LEAST_MACHINES = 3
# The median of |x - median| of normal values, times this, is their standard deviation.
_NORMAL = 1.4826
# A machine's name and memory nodes are its own, and other tools say no path.
_IGNORED = (*CONTEXT, "path", *(key for key in METHOD if key not in ("flows", "engine", "p2p", "mode")))


@dataclass(frozen=True)
class EarlierValues:
    """Expected values by row; `names` are the files that they come from, one a machine."""

    values: Mapping[Identity, tuple[float, ...]]
    names: tuple[str, ...]

    def expect(self, row: Observation) -> Expected:
        """The value of the earlier run, or the median of the class with three robust deviations to either side."""
        values = self.values.get(identity(row, _IGNORED), ())
        if len(self.names) == 1:
            if not values:
                return Expected(None, note=f"{self.names[0]} has no such row")
            return Expected(values[0], values[0], values[0], "earlier run", rests_on=self.names)
        if len(values) < LEAST_MACHINES:
            return Expected(None, note=f"{len(values)} of {len(self.names)} machines have such a row; a class needs 3")
        middle, wide = statistics.median(values), 3 * robust_deviation(values)
        rests = (f"median of {len(values)} machines, 3 robust deviations = {100 * wide / middle:.1f} %",)
        return Expected(middle, middle - wide, middle + wide, "class", rests_on=rests)


def robust_deviation(values: Sequence[float]) -> float:
    """The standard deviation as the median distance from the median tells it: a few outliers do not move it."""
    middle = statistics.median(values)
    return _NORMAL * statistics.median(abs(value - middle) for value in values)


def from_rows(machines: Sequence[tuple[str, Iterable[Observation]]]) -> EarlierValues:
    """Expected values from the rows of one file, or of three or more; InputError for two, which are no class."""
    if len(machines) == 2:
        raise InputError(
            "two machines do not say which of them is right",
            hint=f"give one run to compare with, or {LEAST_MACHINES} and more of machines of one class",
        )
    values: dict[Identity, list[float]] = defaultdict(list)
    for _, rows in machines:
        own = {identity(row, _IGNORED): row.value for row in rows if row.value is not None}
        for key, value in own.items():
            values[key].append(value)
    return EarlierValues({key: tuple(numbers) for key, numbers in values.items()}, tuple(name for name, _ in machines))
