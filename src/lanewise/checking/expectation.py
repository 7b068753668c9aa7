"""What a measured row should show, with its tolerance, and which rows anything is expected of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lanewise.checking.load_rows import is_warm_load
from lanewise.checking.tolerances import TOLERANCES, Tolerance
from lanewise.results.observation import Observation, Source

# A launch costs about 10 us: below this size (B) it is more than 3 % of a copy at 50 GB/s. Smaller I/O and messages
# than these tell how many of them a second there are, not what the path carries.
LEAST_COPY = 16 * 2**20
# Times one copy without one before it: 34 of 55 GB/s of an idle H100 (cuda-samples, simpleMultiCopy.cu).
COLD = "simpleMultiCopy"
LONG_MESSAGE = 256 * 2**20  # of a collective, which has the rate of its links from there on
LEAST = {"storage": 128 * 2**10, "network": 64 * 2**10}
HOST_MEMORY = "host memory"
_RATES = ("goodput", "total", "fit_bandwidth")
_METRICS = (*_RATES, "latency")
NOTHING_DESCRIBED = "nothing says what the machine is; name it with --system, or its dumps with --from"
_SHORT = ("goodput", "total")


@dataclass(frozen=True, slots=True)
class Expectation:
    """A measured row as predicted, with the tolerance for its basis; without a value no tolerance, and a note why.

    `ceiling`: what is not known, where the value is only the most that a row can show; down to a quarter of it a row is
    not judged then.
    """

    expected: Observation
    tolerance: Tolerance | None
    ceiling: str = ""


# What tells the expectation of a row: the model, or earlier runs.
Expect: TypeAlias = Callable[[Observation], Expectation]


def expectation(
    row: Observation, *, basis: str = "", value: float | None = None, interval: tuple[float, float] | None = None,
    limit: str = "", rests_on: tuple[str, ...] = (), note: str = "",
) -> Expectation:  # fmt: skip
    """A row's expected value (SI; None: unknown) with its interval, and the tolerance for that basis."""
    low, high = interval if interval is not None else (value, value)
    expected = Observation(
        row.scenario, row.flow, row.metric, value, row.display_unit, Source.PREDICTED, settings=row.settings,
        limit=limit, rests_on=rests_on, low=low, high=high, path=row.path, note=note,
    )  # fmt: skip
    return Expectation(expected, None if value is None else TOLERANCES[basis])


def covers(row: Observation) -> bool:
    """Whether the model predicts such a value: of long copies and I/O, and the latency of small copies.

    Not of copies within one device or the memory of one host, and not of the page cache.
    """
    source, _, target = row.flow.partition("->")
    # Our own storage probe reads from the page cache on purpose, in addition to the other modes.
    cache = (row.how.get("mode") == "cached" and "tool" not in row.how) or is_warm_load(row)
    if source.strip() == target.strip() or row.path == HOST_MEMORY or cache:
        return False
    # What could not be measured at all would not have been at any size.
    return row.metric in _METRICS and (row.value is None or not too_short(row))


def too_short(row: Observation) -> bool:
    """Whether a rate is of copies or I/O so short that they cost more to start than to carry."""
    least = LEAST.get(row.path, LEAST_COPY)
    if row.how.get("tool") == COLD:
        return True
    return row.metric in _SHORT and row.path != HOST_MEMORY and row.settings.get("bytes", least) < least


def starts_longer_than_it_moves(row: Observation) -> bool:
    """Whether a link's rate says nothing of a row: of a short copy of a GPU, or a collective of less than 256 MiB."""
    if row.metric in ("bus_bandwidth", "time") and row.settings.get("ranks", 0) > 1:
        return row.settings.get("bytes", LONG_MESSAGE) < LONG_MESSAGE
    return too_short(row) and "gpu" in row.flow


def nothing_described(row: Observation) -> Expectation:
    """Where neither a description nor dumps say what the machine is, nothing is expected."""
    return expectation(row, note=NOTHING_DESCRIBED)
