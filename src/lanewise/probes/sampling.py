"""The sampling loop that all probes share."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

from lanewise.options.sampling import SamplingRule
from lanewise.results.estimate import median_interval
from lanewise.results.match import Identity, identity
from lanewise.results.sample import Sample


def sample_until(rule: SamplingRule, metric: str, measure: Callable[[], Iterable[Sample]]) -> Iterator[Sample]:
    """The samples of `measure()`, called again until `rule` has enough values of `metric` in every row that has it.

    A row of that metric without a value ends it, as its note says why nothing can be measured.
    """
    values: dict[Identity, list[float]] = {}
    while True:
        missing = False
        for sample in measure():
            if sample.metric == metric and sample.value is not None:
                values.setdefault(identity(sample), []).append(sample.value)
            missing |= sample.metric == metric and sample.value is None
            yield sample
        if missing or all(enough(row_values, rule) for row_values in values.values()):
            return


def enough(values: Sequence[float], rule: SamplingRule) -> bool:
    """Whether a row with these values needs no further sample."""
    if len(values) < rule.least:
        return False
    if len(values) >= rule.most:
        return True
    low, high = median_interval(values, rule.confidence)
    return high - low <= rule.width * abs(statistics.median(values))
