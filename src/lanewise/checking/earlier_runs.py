"""What measured rows should show by an earlier run, or by machines of one class."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from lanewise.checking.expectation import Expect, Expectation, expectation
from lanewise.errors import InputError
from lanewise.results.estimate import robust_deviation
from lanewise.results.match import CONTEXT, METHOD, Identity, identity
from lanewise.results.observation import Observation

LEAST_MACHINES = 3
# A machine's name and memory nodes are its own, and other tools say no path.
_IGNORED = (*CONTEXT, "path", *(key for key in METHOD if key not in ("flows", "engine", "p2p", "mode", "phase")))


def expect_earlier(machines: Sequence[tuple[str, Iterable[Observation]]]) -> Expect:
    """Expects the rows of one earlier run, or the medians of a class: the rows of each machine by its file's name.

    InputError for two machines, which are no class.
    """
    if len(machines) == 2:
        raise InputError(
            "two machines do not say which of them is right",
            hint=f"give one run to compare with, or {LEAST_MACHINES} and more of machines of one class",
        )
    values: dict[Identity, list[float]] = defaultdict(list)
    for _, rows in machines:
        for key, value in {identity(row, _IGNORED): row.value for row in rows if row.value is not None}.items():
            values[key].append(value)
    names = tuple(name for name, _ in machines)

    def expect(row: Observation) -> Expectation:
        own = values.get(identity(row, _IGNORED), [])
        if len(names) == 1:
            if not own:
                return expectation(row, note=f"{names[0]} has no such row")
            return expectation(row, basis="earlier run", value=own[0], rests_on=names)
        if len(own) < LEAST_MACHINES:
            return expectation(row, note=f"{len(own)} of {len(names)} machines have such a row; a class needs 3")
        middle, wide = statistics.median(own), 3 * robust_deviation(own)
        rests_on = (f"median of {len(own)} machines, 3 robust deviations = {100 * wide / middle:.1f} %",)
        interval = (middle - wide, middle + wide)
        return expectation(row, basis="class", value=middle, interval=interval, rests_on=rests_on)

    return expect
