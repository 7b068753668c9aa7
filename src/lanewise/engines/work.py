"""Batches of work, their results, and the seam to whatever carries them.

An engine takes batches and gives back their results as they finish, in any order:

    with open_engine("local:4") as engine:
        for result in stream(engine, batches):
            ...

`stream` keeps every worker supplied and reads `batches`, which may be a generator, no further than that: the next batch
can be sized by the seconds of those before it. What every engine guarantees:

* a batch gives exactly one result;
* a worker that is lost (killed, out of memory, its node gone) costs its own batch alone: the batch is sent again, up to
  RETRIES times, and then its result has a WorkerLost in `error` and no values;
* an item whose function raises a LanewiseError has that error as its value; `next_result` raises any other exception;
* a worker with another version of Lanewise than the one that sent the batch does not run it: VersionMismatch is raised;
* `cancel` drops what is not finished, `close` ends the workers; a driver that is killed leaves none behind.

The function and the items are pickled: the function is one of a module, the items are plain data. Several machines are
`nodes`; `WorkBatch.node` says on which one a batch runs, `gpus` how many GPUs the engine reserves there meanwhile. Only
Ray has more than one node.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from lanewise.errors import EngineFailure, LanewiseError

RETRIES = 3
_AHEAD = 1  # batches that wait for each worker, so that it has the next one at hand


class WorkerLost(EngineFailure):
    """Every worker that had a batch was lost."""


class VersionMismatch(EngineFailure):
    """A worker has another version of Lanewise than the driver."""


@dataclass(frozen=True, slots=True)
class WorkBatch:
    """Items that one worker takes one after the other: `function(item)` of each. `node` "" is any node."""

    number: int
    function: Callable[[Any], Any]
    items: tuple[Any, ...]
    node: str = ""
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class PlacedWork:
    """A function of items that each come with their place among all, which it does not need."""

    function: Callable[[Any], Any]

    def __call__(self, placed: tuple[int, Any]) -> Any:
        return self.function(placed[1])


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch gave: a value or a LanewiseError for each item, and the seconds that the worker took.

    `error` is set where no worker lived to finish it; then there are no values.
    """

    batch: WorkBatch
    values: tuple[Any, ...] = ()
    seconds: float = 0.0
    error: WorkerLost | None = None


@dataclass(frozen=True, slots=True)
class WorkerLoss:
    """A worker that was lost: which one, why (as far as that is known), and whether its batch is sent again."""

    worker: str
    why: str
    batch: WorkBatch
    again: bool


@dataclass(frozen=True, slots=True)
class EngineNode:
    """A machine of an engine: `name` is what WorkBatch.node takes, CPUs and GPUs are those that the engine may use."""

    name: str
    address: str
    cpus: int
    gpus: int = 0


class WorkEngine(Protocol):
    """What carries batches; the module's text says what each engine guarantees."""

    @property
    def workers(self) -> int:
        """How many batches run at once."""

    @property
    def losses(self) -> list[WorkerLoss]:
        """The workers that were lost; who has told of them empties the list."""

    def nodes(self) -> tuple[EngineNode, ...]:
        """The machines that batches can be sent to."""

    def submit(self, batch: WorkBatch) -> None:
        """Take a batch; returns at once."""

    def next_result(self, timeout: float | None = None) -> BatchResult | None:
        """The next batch that finishes; None after `timeout` seconds, or where nothing is left to finish."""

    def cancel(self) -> None:
        """Drop every batch that is not finished."""

    def close(self) -> None:
        """End the workers."""

    def __enter__(self) -> WorkEngine: ...

    def __exit__(self, *failure: object) -> None: ...


def stream(engine: WorkEngine, batches: Iterable[WorkBatch]) -> Iterator[BatchResult]:
    """The result of each batch as it finishes; what is not finished is cancelled when the caller stops early."""
    source = iter(batches)
    waiting, last = 0, False
    try:
        while True:
            while not last and waiting < (1 + _AHEAD) * engine.workers:
                batch = next(source, None)
                last = batch is None
                if batch is not None:
                    engine.submit(batch)
                    waiting += 1
            if not waiting:
                return
            result = engine.next_result()
            if result is None:
                return
            waiting -= 1
            yield result
    finally:
        if waiting:
            engine.cancel()


def run_batch(pickled: bytes, driver_version: str) -> tuple[tuple[Any, ...], float]:
    """The values of a pickled batch's items and the seconds that they took; called in the worker.

    The version is compared before anything is unpickled, which another version may not be able to.
    """
    version = installed_version()
    if version != driver_version:
        raise VersionMismatch(
            f"a worker has Lanewise {version}, this is {driver_version}",
            hint=f"install lanewise=={driver_version} on the workers' machines, or start with the same version there",
        )
    try:
        batch: WorkBatch = pickle.loads(pickled)
    except (ImportError, AttributeError) as error:
        raise EngineFailure(
            f"a worker cannot load the work: {error}", hint="install what Lanewise requires on the workers' machines"
        ) from None
    start = time.perf_counter()
    values = tuple(_value(batch, item) for item in batch.items)
    return values, time.perf_counter() - start


def lost(batch: WorkBatch, why: str) -> BatchResult:
    """The result of a batch whose workers were all lost."""
    cause = f"batch {batch.number} ({len(batch.items)} items) lost its worker {RETRIES + 1} times: {why}"
    return BatchResult(batch, error=WorkerLost(cause, hint="see the workers' memory and logs; run again to retry it"))


@cache
def installed_version() -> str:
    """The version of the Lanewise that this process imports."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("lanewise")
    except PackageNotFoundError:
        return "unknown"


def _value(batch: WorkBatch, item: Any) -> Any:
    try:
        return batch.function(item)
    except EngineFailure:
        raise
    except LanewiseError as error:
        return error
