"""Runs scenarios on an engine: each once, in batches, their answers as they finish, kept to resume from."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanewise.engines.batch_size import BatchSizer
from lanewise.engines.work import (
    BatchResult,
    PlacedWork,
    WorkBatch,
    WorkEngine,
    WorkerLost,
    installed_version,
    stream,
)

if TYPE_CHECKING:
    from lanewise.api.scenario_store import ScenarioStore
    from lanewise.engines.work import WorkerLoss


LEAST_PACE = 2.0  # s; workers start together, so that their first batches come in one lump


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a worker's function takes, and the hash of everything that its answer depends on."""

    item: Any
    key: str


@dataclass(frozen=True, slots=True)
class ScenarioProgress:
    """How far a run is: `finished` of `total` scenarios, `kept` of which an earlier run had finished.

    `rate` is how many finish a second in this run, without what it took to start, and `left` the seconds that follow;
    0 and None where too few have finished to say. `losses` are workers that were lost since the last report.
    """

    finished: int
    total: int
    rate: float = 0.0
    left: float | None = None
    kept: int = 0
    losses: tuple[WorkerLoss, ...] = ()


class _Pace:
    """How many scenarios finish a second, from the first batch on: what came before was the workers' start."""

    def __init__(self) -> None:
        self._start: float | None = None
        self._count = 0

    def rate(self, finished: int) -> float:
        """With so many more; 0 until they have come for LEAST_PACE seconds."""
        now = time.monotonic()
        if self._start is None:
            self._start = now
            return 0.0
        self._count += finished
        seconds = now - self._start
        return self._count / seconds if seconds >= LEAST_PACE else 0.0


def scenario_key(*content: Any) -> str:
    """The hash of JSON data, texts and numbers that an answer depends on, and of the version of Lanewise."""
    text = json.dumps([installed_version(), *content], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:32]


def run_scenarios(
    scenarios: Sequence[Scenario],
    function: Callable[[Any], Any],
    engine: WorkEngine,
    store: ScenarioStore[Any] | None = None,
    progress: Callable[[ScenarioProgress], None] = lambda _: None,
) -> Iterator[tuple[int, Any]]:
    """The place of each scenario in `scenarios` and its answer, `function(item)`: those of the store, then the others
    as they finish. An answer that is a LanewiseError is not kept.

    Raises what the engine and the store raise, and WorkerLost at the end for scenarios that every worker died of.
    """
    finished = store.read({scenario.key for scenario in scenarios}) if store is not None else {}
    waiting: list[int] = []
    for place, scenario in enumerate(scenarios):
        if scenario.key in finished:
            yield place, finished[scenario.key]
        else:
            waiting.append(place)
    kept, total = len(scenarios) - len(waiting), len(scenarios)
    count, pace = kept, _Pace()
    progress(ScenarioProgress(count, total, kept=kept))
    losses: list[BatchResult] = []
    for result in _results(scenarios, waiting, function, engine, losses):
        places = result.batch.items
        for (place, _), value in zip(places, result.values, strict=True):
            if store is not None and not isinstance(value, Exception):
                store.add(scenarios[place].key, value)
            yield place, value
        count += len(places)
        rate = pace.rate(len(places))
        left = (total - count) / rate if rate else None
        news = tuple(engine.losses)
        engine.losses.clear()
        progress(ScenarioProgress(count, total, rate, left, kept, news))
    if losses and losses[0].error is not None:
        raise WorkerLost(f"{len(losses)} of {total} scenarios lost their workers: {losses[0].error.cause}",
                         hint="the others are finished; run again to retry these")  # fmt: skip


def _results(
    scenarios: Sequence[Scenario], waiting: Sequence[int], function: Callable[[Any], Any], engine: WorkEngine,
    losses: list[BatchResult],
) -> Iterator[BatchResult]:  # fmt: skip
    """The results of batches that fit the time; a batch that was lost is taken apart, as one item may be the cause."""
    sizer, apart = BatchSizer(), PlacedWork(function)

    def batches(places: Sequence[int], whole: bool) -> Iterator[WorkBatch]:
        start = 0
        while start < len(places):
            size = sizer.size(len(places) - start, engine.workers) if whole else 1
            chosen = places[start : start + size]
            yield WorkBatch(start, apart, tuple((place, scenarios[place].item) for place in chosen))
            start += size

    again: list[int] = []
    for result in stream(engine, batches(waiting, True)):
        if result.error is not None:
            again += [place for place, _ in result.batch.items]
            continue
        sizer.add(len(result.batch.items), result.seconds)
        yield result
    for result in stream(engine, batches(again, False)):
        if result.error is not None:
            losses.append(result)
        else:
            yield result
