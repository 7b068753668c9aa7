"""Two sets of observations side by side: two runs, two sources of one run, or two systems.

Of measured rows it is said as well whether a difference is real, and how the sides were measured. A service under load
takes part as rows: its largest valid rate, what it answered, and its latency.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lanewise.results.estimate import median_interval
from lanewise.results.match import CONTEXT, identity, join
from lanewise.results.network_share import NetworkShare, measured_share
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.run import Run
from lanewise.results.service_result import ServiceResult

# What is said of both sides of a pair of measured rows where it is not the same.
_HOW = ("engine", "mode", "p2p", "link under load", "NUMA node", "data", "tool")
_BETTER = {"B/s": 1, "1/s": 1, "s": -1}  # more is better of rates, less of times


@dataclass(frozen=True, slots=True)
class RowPair:
    """Two observations of the same thing, in SI; `right_value` is None as well where the two are of another kind."""

    left: Observation
    right: Observation

    @property
    def right_value(self) -> float | None:
        """The right value, None where unknown or of another dimension than the left one."""
        return None if self.note else self.right.value

    @property
    def note(self) -> str:
        """Why the two cannot be compared, '' if they can."""
        if self.left.unit == self.right.unit:
            return ""
        return f"not comparable: {self.left.display_unit} and {self.right.display_unit}"

    @property
    def difference_pct(self) -> float | None:
        """100 * (right - left) / left; None where either is unknown or left is zero."""
        if self.right_value is None or not self.left.value:
            return None
        return 100.0 * (self.right_value - self.left.value) / self.left.value

    @property
    def measured(self) -> bool:
        """Whether both sides were measured."""
        return self.left.source is self.right.source is Source.MEASURED

    @property
    def in_predicted_interval(self) -> bool | None:
        """Whether the measured value lies inside the interval of the predicted one; None without such a pair."""
        sides = {self.left.source: self.left, self.right.source: self.right}
        predicted, measured = sides.get(Source.PREDICTED), sides.get(Source.MEASURED)
        if predicted is None or measured is None or measured.value is None or self.note:
            return None
        if predicted.low is None or predicted.high is None:
            return None
        return predicted.low <= measured.value <= predicted.high

    @property
    def speed(self) -> float | None:
        """How fast the right one is as a ratio of the left: of times the left over the right; None for what is neither.

        None as well where a value is missing or not above zero.
        """
        sense = _BETTER.get(self.left.unit)
        if sense is None or not self.left.value or not self.right_value or self.left.value * self.right_value < 0:
            return None
        return float((self.right_value / self.left.value) ** sense)

    @property
    def verdict(self) -> str:
        """Of measured rows 'faster' or 'slower' where the medians' intervals do not overlap, else 'same'.

        '' where that is not known. The intervals hold 95 %, or all samples where those are too few; one value alone
        says nothing of its spread.
        """
        speed, left, right = self.speed, interval(self.left), interval(self.right)
        if speed is None or left is None or right is None or not self.measured:
            return ""
        if left[0] <= right[1] and right[0] <= left[1]:
            return "same"
        return "faster" if speed > 1 else "slower"

    @property
    def differs(self) -> dict[str, tuple[str, str]]:
        """How the two were measured, as far as it differs: {'link under load': ('Gen5 x16', 'Gen4 x16')}."""
        sides = [{"path": row.path, **{key: row.how.get(key, "") for key in _HOW}} for row in (self.left, self.right)]
        if not self.measured:
            return {}
        return {key: (sides[0][key], sides[1][key]) for key in sides[0] if sides[0][key] != sides[1][key]}


def interval(row: Observation) -> tuple[float, float] | None:
    """Where the median of a measured row lies with 95 %, all of the range where samples are few; None if not known."""
    if len(row.samples) > 1:
        return median_interval(row.samples)
    known = row.low is not None and row.high is not None and len(row.samples) != 1
    return (row.low or 0.0, row.high or 0.0) if known else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows that match, in the order of the left side, and the rows of one side only.

    `share`: of a Closed and a Network peak, Network as a share of Closed.
    """

    left_name: str
    right_name: str
    pairs: tuple[RowPair, ...]
    only_left: tuple[Observation, ...]
    only_right: tuple[Observation, ...]
    conditions: tuple[tuple[str, str, str], ...] = ()
    share: NetworkShare | None = None

    @property
    def verdicts(self) -> dict[str, int]:
        """How many measured pairs are same, faster and slower; empty where none was measured."""
        counts = Counter(pair.verdict for pair in self.pairs if pair.verdict)
        return {word: counts[word] for word in ("same", "faster", "slower")} if counts else {}

    @property
    def speed(self) -> float | None:
        """The right side's speed as a ratio of the left's: the geometric mean of the measured pairs that state one."""
        speeds = [pair.speed for pair in self.pairs if pair.measured]
        known = [speed for speed in speeds if speed is not None]
        return statistics.geometric_mean(known) if known else None


def compare(
    left: Iterable[Observation],
    right: Iterable[Observation],
    names: tuple[str, str] = ("left", "right"),
    ignore: frozenset[str] = frozenset(),
) -> Comparison:
    """Join rows by their identity without the fields in `ignore`; then what is left over without method and path."""
    # A path that has become another one (peers that are staged now) is what a comparison is for.
    rows = join(left, right, ignore, relax=("method", "path"))
    pairs = tuple(RowPair(*pair) for pair in rows.pairs)
    return Comparison(names[0], names[1], pairs, rows.only_left, rows.only_right)


def compare_runs(left: Run, right: Run, names: tuple[str, str] = ("left", "right")) -> Comparison:
    """Two runs side by side; `conditions` are the machine facts that differ.

    Only rows of one source are matched; or those of two sources if each run has one of its own, as predicted and
    measured.
    """
    sources = [source for source in Source if source is not Source.PUBLISHED]
    rows = [{source: rows_of(run, source) for source in sources} for run in (left, right)]
    own = [[source for source in sources if side[source]] for side in rows]
    if len(own[0]) == len(own[1]) == 1 and own[0] != own[1]:
        # A prediction names its system, a measurement does not.
        parts = [compare(rows[0][own[0][0]], rows[1][own[1][0]], names, frozenset(CONTEXT))]
    else:
        parts = [compare(rows[0][source], rows[1][source], names) for source in sources]
    keys = dict.fromkeys([*left.machine_facts, *right.machine_facts])
    sides = ((key, left.machine_facts.get(key, ""), right.machine_facts.get(key, "")) for key in keys)
    return Comparison(
        *names,
        pairs=tuple(pair for part in parts for pair in part.pairs),
        only_left=tuple(row for part in parts for row in part.only_left),
        only_right=tuple(row for part in parts for row in part.only_right),
        conditions=tuple(side for side in sides if side[1] != side[2]),
        share=measured_share(rows_of(left, Source.MEASURED), rows_of(right, Source.MEASURED)),
    )


def with_devices(run: Run, device_of_word: Mapping[str, str]) -> Run:
    """A run whose flows name other devices: {'model.safetensors': 'weights'}."""

    def flows(text: str) -> str:
        return ", ".join("->".join(map(end, flow.split("->"))) for flow in text.split(", "))

    def end(text: str) -> str:
        name, *marks = text.split(" ")  # "gpu1 read"
        return " ".join([device_of_word.get(name, name), *marks])

    rows = (
        replace(row, flow=flows(row.flow), how={**row.how, "flows": flows(row.how["flows"])} if "flows" in row.how
                else row.how)
        for row in run.rows
    )  # fmt: skip
    return replace(run, rows=tuple(rows))


def names_that_differ(comparison: Comparison) -> dict[str, str]:
    """Words of the right side's flows with those of the left side in rows that differ in nothing else."""
    pairs = join(comparison.only_left, comparison.only_right, {*CONTEXT, "flow", "flows"}, ("method", "path")).pairs
    left_words = {word for row in comparison.only_left for word in _words(row)}
    names: dict[str, str] = {}
    for left, right in pairs:
        sides = _words(left), _words(right)
        if len(sides[0]) != len(sides[1]):
            return {}
        for device, word in zip(*sides, strict=True):
            if word != device and (names.setdefault(word, device) != device or word in left_words):
                return {}
    return names


def _words(row: Observation) -> list[str]:
    return re.split(r"->|, ", row.flow)


def compare_sources(run: Run, left: Source = Source.PUBLISHED, right: Source = Source.PREDICTED) -> Comparison:
    """Two sources of one run, compared."""
    return compare(rows_of(run, left), rows_of(run, right), (left.value, right.value))


def compare_systems(run: Run, left: str, right: str) -> Comparison:
    """The same scenarios on two systems of one run, compared.

    Where rows are called after their systems, the rows of a table and metric are matched in their order.
    """
    rows = rows_of(run, Source.PREDICTED)
    left_rows, right_rows = ([row for row in rows if row.system == name] for name in (left, right))
    comparison = compare(left_rows, right_rows, (left, right), frozenset({"system"}))
    if comparison.pairs:
        return comparison
    return compare(left_rows, right_rows, (left, right), frozenset({"system", "scenario"}))


def rows_of(run: Run, source: Source) -> tuple[Observation, ...]:
    """The rows of one source and those of its services; published and measured values of other rows become rows."""
    rows = [*run.rows, *(row for study in run.studies for row in study.rows)]
    rows += [row for study in run.studies for service in study.services for row in service_rows(service, study.name)]
    rows += [row for service in run.services for row in service_rows(service)]
    chosen = [row for row in rows if row.source is source]
    known = {identity(row, ("path", "method")) for row in chosen}
    for row in rows:
        extra = _as_row(row, source)
        if extra is not None and (key := identity(row, ("path", "method"))) not in known:
            known.add(key)
            chosen.append(extra)
    return tuple(chosen)


def _as_row(row: Observation, source: Source) -> Observation | None:
    """The published or measured value of a row, as a row of its own."""
    bare = replace(
        row, source=source, published=None, measured=None, basis=None, limit="", rests_on=(), low=None, high=None,
        use={}, samples=(), note="", comparisons={},
    )  # fmt: skip
    if source is Source.PUBLISHED and row.published is not None:
        return replace(bare, value=row.published)
    if source is Source.MEASURED and (own := row.measured) is not None:
        return replace(
            bare, value=own.value, low=own.low, high=own.high, samples=own.samples, how=own.how, note=own.note
        )
    return None


def service_rows(result: ServiceResult, study: str = "") -> tuple[Observation, ...]:
    """What two runs compare of a service: largest valid rate if it was searched, rate answered, latency."""
    latency = f"p{round(100 * result.percentile, 6):g} latency"
    metrics: list[tuple[str, float, str, float | None, float | None]] = [
        ("answered rate", result.answered, "QPS", None, None),
        (latency, result.latency, "ms", None, None),
    ]
    if result.peak is not None:
        low, high = result.peak
        metrics.insert(0, ("largest valid rate", (low + high) / 2, "QPS", low, high))
    basis = next((member for member in Basis if member.value == result.basis), None)
    return tuple(
        Observation(
            result.name, result.workload, metric, value, unit, result.source, study=study, system=result.system,
            table="services", settings=result.settings, basis=basis, limit=result.limit, rests_on=result.rests_on,
            low=low, high=high,
        )
        for metric, value, unit, low, high in metrics
    )  # fmt: skip
