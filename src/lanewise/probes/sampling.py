"""The sampling loop that all probes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.results.match import identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lanewise.results.estimate import Rule
    from lanewise.results.match import Identity
    from lanewise.results.sample import Sample


def sample_until(rule: Rule, metric: str, measure: Callable[[], Iterable[Sample]]) -> Iterator[Sample]:
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
        if missing or all(rule.enough(row) for row in values.values()):
            return
