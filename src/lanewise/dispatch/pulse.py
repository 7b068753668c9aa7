"""Whether the other side of a session is still there: a heartbeat each second, and how long it was silent."""

from __future__ import annotations

import time
from collections.abc import Callable

INTERVAL_S, DEADLINE_S = 1.0, 5.0


class Pulse:
    """The heartbeat of one peer.

    A machine that stands still hears nothing, though its peers are well. So silence is counted in steps between two
    looks, and a step of any length counts two intervals at most.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked = clock()
        self._next_beat = self._looked
        self.silence = 0.0

    def heard(self) -> None:
        """Something came of the peer."""
        self._looked, self.silence = self._clock(), 0.0

    def look(self) -> bool:
        """Whether the peer has been silent for too long, which this look counts on."""
        now = self._clock()
        self.silence += min(now - self._looked, 2.0 * INTERVAL_S)
        self._looked = now
        return self.silence > DEADLINE_S

    def due(self) -> bool:
        """Whether a beat is to be sent now; then the next is an interval later."""
        now = self._clock()
        if now < self._next_beat:
            return False
        self._next_beat = now + INTERVAL_S
        return True

    def wait(self) -> float:
        """Seconds until the next beat."""
        return max(0.0, self._next_beat - self._clock())
