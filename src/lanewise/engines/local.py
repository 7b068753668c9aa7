"""Engines of this machine: the calling process itself, or worker processes of concurrent.futures."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any

from lanewise.engines.work import (
    RETRIES,
    BatchResult,
    EngineNode,
    WorkBatch,
    WorkerLoss,
    installed_version,
    lost,
    run_batch,
)

_NODE = "local"


class InlineEngine:
    """Runs each batch in the calling process, when its result is taken."""

    workers = 1

    def __init__(self) -> None:
        self._pending: deque[WorkBatch] = deque()
        self.losses: list[WorkerLoss] = []

    def nodes(self) -> tuple[EngineNode, ...]:
        """This machine."""
        return _this_machine(self.workers)

    def submit(self, batch: WorkBatch) -> None:
        """Take a batch."""
        self._pending.append(batch)

    def next_result(self, timeout: float | None = None) -> BatchResult | None:
        """Run the oldest batch."""
        if not self._pending:
            return None
        batch = self._pending.popleft()
        return BatchResult(batch, *run_batch(pickle.dumps(batch), installed_version()))

    def cancel(self) -> None:
        """Drop every batch."""
        self._pending.clear()

    close = cancel

    def __enter__(self) -> InlineEngine:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class LocalEngine:
    """Worker processes of this machine.

    Each has an executor of its own: an executor whose process dies fails everything that it holds, so one for all
    workers would lose the batches of the others as well.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.losses: list[WorkerLoss] = []
        self._pending: deque[tuple[WorkBatch, int]] = deque()
        self._running: dict[Future[Any], tuple[WorkBatch, int]] = {}
        self._executors: list[ProcessPoolExecutor | None] = [None] * workers
        self._slots: dict[Future[Any], int] = {}
        self._version = installed_version()

    def nodes(self) -> tuple[EngineNode, ...]:
        """This machine."""
        return _this_machine(self.workers)

    def submit(self, batch: WorkBatch) -> None:
        """Take a batch."""
        self._pending.append((batch, 0))
        self._start()

    def next_result(self, timeout: float | None = None) -> BatchResult | None:
        """The next batch that finishes."""
        while self._running:
            finished, _ = wait(self._running, timeout, return_when=FIRST_COMPLETED)
            if not finished:
                return None
            result = self._result(finished.pop())
            self._start()
            if result is not None:
                return result
        return None

    def cancel(self) -> None:
        """Drop every batch; workers in the midst of one are ended."""
        self._pending.clear()
        self._end({self._slots[future] for future in self._running})
        self._running.clear()
        self._slots.clear()

    def close(self) -> None:
        """End the workers."""
        self.cancel()
        self._end(set(range(self.workers)))

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _start(self) -> None:
        """Give batches that wait to workers that have none."""
        free = [slot for slot in range(self.workers) if slot not in self._slots.values()]
        for slot in free[: len(self._pending)]:
            batch, losses = self._pending.popleft()
            executor = self._executors[slot] or _executor()
            self._executors[slot] = executor
            try:
                future = executor.submit(run_batch, pickle.dumps(batch), self._version)
            except BrokenProcessPool:  # it died without work
                self._end({slot})
                self._pending.appendleft((batch, losses))
                return self._start()
            self._running[future], self._slots[future] = (batch, losses), slot
        return None

    def _result(self, future: Future[Any]) -> BatchResult | None:
        """That of a finished future; None where its worker was lost and the batch is sent again."""
        batch, losses = self._running.pop(future)
        slot = self._slots.pop(future)
        try:
            return BatchResult(batch, *future.result())
        except BrokenProcessPool as error:
            again = losses < RETRIES
            self.losses.append(WorkerLoss(f"worker {slot + 1} of {self.workers}", self._ending(slot), batch, again))
            if not again:
                return lost(batch, str(error))
            self._pending.appendleft((batch, losses + 1))
            return None

    def _ending(self, slot: int) -> str:
        """How the process of a lost worker ended, once its executor is shut down."""
        executor, self._executors[slot] = self._executors[slot], None
        processes = list((executor._processes or {}).values()) if executor is not None else []
        if executor is not None:
            # Its thread reaps the process. Whoever waits for it here as well may leave both without the exit code.
            executor.shutdown(wait=True)
        codes = [process.exitcode for process in processes if process.exitcode is not None]
        if not codes:
            return "it ended"
        return f"killed by signal {-codes[0]}" if codes[0] < 0 else f"exit code {codes[0]}"

    def _end(self, slots: set[int]) -> None:
        for slot in slots:
            executor, self._executors[slot] = self._executors[slot], None
            if executor is not None:
                # Python 3.14 has kill_workers() for this; before, a batch could only be waited for.
                for process in list((executor._processes or {}).values()):
                    process.kill()
                executor.shutdown(wait=True, cancel_futures=True)


def _executor() -> ProcessPoolExecutor:
    # Not forked: the native core and LoadGen have threads, whose locks a forked child would inherit.
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _prepare_worker)


def _prepare_worker() -> None:
    """In the worker: Ctrl-C is the driver's to handle, and the worker ends with the driver."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    driver = multiprocessing.parent_process()

    def end_with_driver() -> None:
        if driver is not None:
            driver.join()
            os._exit(1)

    threading.Thread(target=end_with_driver, daemon=True).start()


def _this_machine(workers: int) -> tuple[EngineNode, ...]:
    return (EngineNode(_NODE, "127.0.0.1", workers),)
