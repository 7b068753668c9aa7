"""Signals that end the program become a KeyboardInterrupt, but never in the midst of an import.

A compiled module that is interrupted while it loads fails in a way of its own (numpy says that it is not installed), so
the interrupt waits until the import is done. A second signal does not wait.
"""

from __future__ import annotations

import _signal as signals
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_WAIT = 0.01  # s
_received: list[int] = []


def handle(handler: Callable[[int, Any], None]) -> None:
    """Let `handler` take every signal that ends a program, but for those that a parent has ignored (nohup)."""
    for name in _NAMES:
        number = getattr(signals, name, None)
        if number is not None and signals.getsignal(number) not in (signals.SIG_IGN, None):
            signals.signal(number, handler)
    if hasattr(signals, "SIGALRM"):
        signals.setitimer(signals.ITIMER_REAL, 0.0)
        signals.signal(signals.SIGALRM, interrupt if handler is interrupt else signals.SIG_IGN)
    sys.unraisablehook = _retry_unraisable if handler is interrupt else sys.__unraisablehook__


def interrupt(number: int, frame: Any) -> None:
    """Raise KeyboardInterrupt, after the import that is under way if there is one."""
    again = number == getattr(signals, "SIGALRM", None)
    if not again:
        _received.append(number)
    if (again or len(_received) == 1) and _is_importing(frame) and hasattr(signals, "setitimer"):
        signals.setitimer(signals.ITIMER_REAL, _WAIT)
        return
    raise KeyboardInterrupt


def received() -> bool:
    """Whether a signal has come."""
    return bool(_received)


def exit_code() -> int:
    """128 and the number of the first signal; that of Ctrl-C where the interrupt was no signal."""
    return 128 + (_received[0] if _received else signals.SIGINT)


def _is_importing(frame: Any) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _retry_unraisable(unraisable: Any) -> None:
    """An interrupt that a finalizer swallowed comes again a moment later; all else is shown as ever."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        signals.setitimer(signals.ITIMER_REAL, _WAIT)
    else:
        sys.__unraisablehook__(unraisable)
