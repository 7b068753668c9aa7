"""Group commit: changes requested while another commits go into one transaction, with one wait for the disk."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

_Result = TypeVar("_Result")
MOST = 32  # changes in one transaction: a commit that fails is the error of all of them


@dataclass(eq=False)
class _Entry(Generic[_Result]):
    """One change: what it does within the transaction, what follows its commit, and how it ended."""

    work: Callable[[sa.Connection], _Result]
    after: Callable[[_Result], None]
    result: _Result | None = None
    error: BaseException | None = None
    ended: bool = False
    turn: threading.Event = field(default_factory=threading.Event)


class GroupCommit:
    """Runs changes one after the other, each whole or not at all, in the order in which threads requested them."""

    def __init__(self, transaction: Callable[[], AbstractContextManager[sa.Connection]]) -> None:
        self._transaction = transaction
        self._guard = threading.Lock()
        self._queue: deque[_Entry[Any]] = deque()
        self._running = False

    def run(self, work: Callable[[sa.Connection], _Result], after: Callable[[_Result], None]) -> _Result:
        """What `work` returns, once committed; what it raises otherwise, with nothing of it kept.

        `after` is called with the result once committed, for one change after the other in the order of their commits.
        It runs in the thread of any of the changes, so it must neither raise nor wait for another change.
        """
        entry = _Entry(work, after)
        with self._guard:
            self._queue.append(entry)
            leads, self._running = not self._running, True
        if not leads:
            entry.turn.wait()
        if not entry.ended:
            self._lead()
        if entry.error is not None:
            raise entry.error
        return entry.result  # type: ignore[return-value]

    def _lead(self) -> None:
        """Run what waits, this thread's change first, then let the next waiting thread do so."""
        with self._guard:
            batch = [self._queue.popleft() for _ in range(min(MOST, len(self._queue)))]
        try:
            self._commit(batch)
        except BaseException as error:
            for entry in batch:
                entry.error = entry.error or error
        finally:
            for entry in batch:
                entry.ended = True
            with self._guard:
                following = self._queue[0] if self._queue else None
                self._running = following is not None
            for waiting in (*batch, following):
                if waiting is not None:
                    waiting.turn.set()

    def _commit(self, batch: list[_Entry[Any]]) -> None:
        with self._transaction() as connection:
            if len(batch) == 1:  # the transaction itself is given up if it fails
                batch[0].result = batch[0].work(connection)
            else:
                for entry in batch:
                    _run_within(connection, entry)
        for entry in batch:
            if entry.error is None:
                entry.after(entry.result)


def _run_within(connection: sa.Connection, entry: _Entry[Any]) -> None:
    """One change of several in a transaction: if it fails, what it wrote is undone and the others stay."""
    try:
        with connection.begin_nested():
            entry.result = entry.work(connection)
    except Exception as error:
        entry.error = error
