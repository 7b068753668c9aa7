"""Why a row is not what it should be: each cause a small function over a symptom, judged by the model.

`Cause.rank` orders the causes of a slow row. A cause without evidence is tried only where none with evidence explains
the value, and only counts if it would explain it and no fine row speaks against it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace

from lanewise.checking.cause import Cause
from lanewise.checking.causes.contention import other_copies, unexplained
from lanewise.checking.causes.host_buffers import empty_channels, far_buffers
from lanewise.checking.causes.modelled_links import (
    better_link,
    idle_link,
    link_under_load,
    shared_uplink,
    slower_link,
    slower_port,
)
from lanewise.checking.causes.modelled_routes import (
    compat_mode,
    fewer_nvlinks,
    nvlinks_not_in_use,
    peer_route,
    slow_staging,
    translated_copy,
    wrong_node,
)
from lanewise.checking.causes.modelled_symptom import Symptom, weigh
from lanewise.checking.causes.networks import NETWORK_WITH_A_MODEL
from lanewise.checking.causes.posted import stated_causes
from lanewise.checking.causes.rows import WITH_A_MODEL_TOO
from lanewise.checking.references.siblings import kind_of_path
from lanewise.checking.verdict import Verdict
from lanewise.results.estimate import robust_deviation

NOISY = 0.05
OUTLIER = 3.5
LEAST_SIBLINGS = 4


def causes(symptom: Symptom) -> tuple[Cause, ...]:
    """What may be behind a row, each cause once: the likeliest first; of a fast row in the order of FAST."""
    if symptom.result.verdict is Verdict.FAST:
        return tuple(cause for find in FAST for cause in find(symptom))
    if symptom.result.verdict is not Verdict.SLOW:
        return ()
    causes_by_key: dict[tuple[str, ...], Cause] = {}
    finders = (*WITH_A_MODEL_TOO, *NETWORK_WITH_A_MODEL, stated_causes)
    general = [
        replace(cause, left_open=_is_open(symptom, cause))
        for find in finders for cause in find(symptom)
    ]  # fmt: skip
    observed = [*(cause for find in WITH_EVIDENCE for cause in find(symptom)), *_of_machine(symptom)]
    for cause in [*observed, *(cause for cause in general if cause.evidence)]:
        weighed = weigh(symptom, cause)
        if weighed is not None:
            causes_by_key.setdefault(cause.key, weighed)
    if not any(cause.rank == 0 for cause in causes_by_key.values()):
        for cause in (cause for find in WITHOUT_EVIDENCE for cause in find(symptom)):
            weighed = weigh(symptom, cause)
            if weighed is not None and weighed.explains and not _contradicted(symptom, cause):
                causes_by_key.setdefault(cause.key, weighed)
    for cause in general:
        causes_by_key.setdefault(cause.key, cause)
    if not any(cause.explains or cause.rank <= 1 for cause in causes_by_key.values()):
        causes_by_key |= {cause.key: cause for cause in slow_staging(symptom)}
    if not causes_by_key:
        causes_by_key = {cause.key: cause for cause in unexplained(symptom)}
    ranked = sorted(causes_by_key.values(), key=lambda cause: (cause.rank, cause.distance(symptom.result)))
    return tuple(_each_kind_first(ranked) if symptom.row.path in ("network", "storage", "peer") else ranked)


def _is_open(symptom: Symptom, cause: Cause) -> bool:
    """Whether nothing but a description that does not settle it speaks for a cause."""
    return cause.key == ("iommu",) and not cause.evidence and not symptom.model.is_iommu_stated


def _each_kind_first(ranked: list[Cause]) -> list[Cause]:
    """The likeliest cause of each kind, then the others: every link on a long way would explain the same rate."""
    first = {cause.key[0]: cause for cause in reversed(ranked)}
    return [*(cause for cause in ranked if first[cause.key[0]] is cause),
            *(cause for cause in ranked if first[cause.key[0]] is not cause)]  # fmt: skip


def _of_machine(symptom: Symptom) -> Iterator[Cause]:
    """Causes in the captures that touch the row's route, or that a change of the model must tell."""
    touched = symptom.model.route_devices(symptom.row)
    yield from (cause for cause in symptom.machine_causes if cause.change is not None or cause.devices & touched)


def _contradicted(symptom: Symptom, cause: Cause) -> bool:
    """Whether a fine row is better than it could be if that were so."""
    engine = symptom.row.how.get("engine")
    for result in symptom.results:
        if cause.key[0] in ("far NUMA node", "memory channels", "others") and result.row.how.get("engine") != engine:
            continue  # kernels copy from the CPU's cache (decision 13), and take no turns with a copy engine
        if cause.change and result.verdict is Verdict.OK and cause.devices & symptom.model.route_devices(result.row):
            predicted, plain = symptom.model.value(result.row, cause.change), symptom.model.value(result.row)
            touched = predicted is not None and plain is not None and abs(predicted - plain) > 0.01 * plain
            if predicted is not None and touched and result.better_than(predicted):
                return True
    return False


def one_among_equals(symptom: Symptom) -> Iterator[Cause]:
    """A device that does worse than its siblings on the same kind of path."""
    mine, value = kind_of_path(symptom.row), symptom.row.value
    siblings = [result.row for result in symptom.results if kind_of_path(result.row) == mine]
    values = [row.value for row in siblings if row.value is not None]
    if value is None or len(values) < LEAST_SIBLINGS or symptom.peer_flow or not symptom.devices:
        return
    middle, device = statistics.median(values), symptom.devices[0]
    z = abs(value - middle) / max(robust_deviation(values), 0.01 * middle)
    if z > OUTLIER:
        what = f"{device} alone is slow among {len(values)} of its kind ({z:.0f} robust deviations from their median)"
        step = f"swap {device} with a sibling: does the fault stay with the slot or go with the card?"
        devices = frozenset({device})
        yield Cause(("alone", device), what, step, evidence="the other rows", inconclusive=True, devices=devices)


def noise(symptom: Symptom) -> Iterator[Cause]:
    """Samples so far apart that the median says little."""
    relative_range = symptom.result.relative_range
    if relative_range is not None and relative_range > NOISY:
        what = f"{len(symptom.row.samples)} samples spread over {100 * relative_range:.0f} % of their median"
        step = "look for other traffic and clock changes, then measure again: lanewise measure ... -o again.json"
        yield Cause(("noise",), what, step, evidence="the samples", inconclusive=True)


def wrong_unit(symptom: Symptom) -> Iterator[Cause]:
    """Bits taken for bytes, or the sum of both ways for one."""
    expected = symptom.result.expected.value
    mistakes = [(8.0, "bits were taken for bytes")]
    if symptom.row.metric != "total":
        mistakes.append((2.0, "it is the sum of both ways, not one flow's rate"))
    for factor, what in mistakes:
        if expected is not None and symptom.result.reached_by(expected * factor):
            step = "look at the unit and the columns of the result"
            predicted = expected * factor
            yield Cause(("unit", what), what, step, evidence="the ratio", predicted=predicted, explains=True)


def cached(symptom: Symptom) -> Iterator[Cause]:
    """Data that came from memory, not from a drive."""
    mode = symptom.row.how.get("mode")
    if symptom.row.path == "storage" and mode != "direct":
        what = f"the data came from the page cache (mode {mode or 'not stated'})"
        step = "read with O_DIRECT, and more data than the machine has memory: lanewise measure storage FILE --direct"
        yield Cause(("cache",), what, step, evidence="the row's mode")


CauseFinder = Callable[[Symptom], Iterator[Cause]]
WITH_EVIDENCE: tuple[CauseFinder, ...] = (
    link_under_load, idle_link, wrong_node, compat_mode, nvlinks_not_in_use, one_among_equals, shared_uplink,
    noise,
)  # fmt: skip
WITHOUT_EVIDENCE: tuple[CauseFinder, ...] = (
    slower_link, slower_port, other_copies, empty_channels, far_buffers, peer_route, translated_copy,
    fewer_nvlinks,
)  # fmt: skip
FAST: tuple[CauseFinder, ...] = (wrong_unit, cached, better_link)
