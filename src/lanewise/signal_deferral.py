"""Signals that end a program wait where an interrupt would cost what is finished, or break what is called."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from types import FrameType
from typing import Any, TypeVar

_ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM") if hasattr(signal, name)
)  # SIGALRM repeats an interrupt that came in the midst of an import
_PATIENCE = 1.0  # s; `timeout` sends a signal twice at once, a user who waits in vain sends another later
_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


class SignalDeferral:
    """Signals that end a program wait while this is entered, so that what is finished can be saved; then they act.

    A signal that comes a second or more after the first does not wait. Only the main thread is interrupted by signals;
    in other threads this does nothing.

        with SignalDeferral() as deferral:
            result = deferral.interruptible(measure)
            write_file(path, result)
    """

    def __init__(self) -> None:
        self._defers = False
        self._handlers: dict[int, Any] = {}
        self._received: list[int] = []
        self._first = 0.0

    def __enter__(self) -> SignalDeferral:
        if threading.current_thread() is threading.main_thread():
            for number in _ENDING:
                handler = signal.getsignal(number)
                if handler not in (signal.SIG_IGN, None):
                    self._handlers[number] = handler
                    signal.signal(number, self._receive)
            self._defers = True
        return self

    def __exit__(self, *failure: object) -> None:
        self._defers = False  # what comes between here and the end acts at once
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self.act()

    def interruptible(self, call: Callable[[], _Result]) -> _Result:
        """What `call` returns; signals act while it runs, those that have waited before it begins."""
        defers = self._defers
        try:
            self._defers = False
            self.act()
            return call()
        finally:
            self._defers = defers

    def act(self) -> None:
        """Let the signals that have waited act now."""
        defers = self._defers
        try:
            self._defers = False
            while self._received:
                signal.raise_signal(self._received.pop(0))
        finally:
            self._defers = defers

    def collect(self, source: Iterator[_Item], items: list[_Item]) -> Iterator[_Item]:
        """What `source` yields, each of it in `items` before a signal acts; signals act while `source` runs."""
        failure: BaseException | None = None
        while failure is None:
            count = len(items)
            try:
                self.interruptible(lambda: items.extend(islice(source, 1)))  # one call into C, which no signal divides
            except BaseException as error:
                failure = error
            if len(items) > count:
                yield items[-1]
            elif failure is None:
                return
        raise failure

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._defers and not (self._received and time.monotonic() > self._first + _PATIENCE):
            self._first = self._first or time.monotonic()
            self._received.append(number)
        elif callable(handler := self._handlers[number]):
            handler(number, frame)
        else:
            signal.signal(number, handler)
            signal.raise_signal(number)
