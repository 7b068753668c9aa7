"""Looks at the connections of a load test over nodes about once a second, for a terminal and for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lanewise.dispatch.counters import ConnectionCounters, DispatchRates
    from lanewise.loadtest.session import LoadTestSession

EVERY_S = 1.0


class DispatchWatch:
    """Calls `on_counters` and writes the file `prometheus`, whole or not at all, if `tick` is called often enough."""

    def __init__(
        self, prometheus: Path | None, on_counters: Callable[[DispatchRates], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._file, self._on_counters, self._clock = prometheus, on_counters, clock
        self._connections: Callable[[], tuple[ConnectionCounters, ...]] | None = None
        self._before: tuple[ConnectionCounters, ...] = ()
        self._at = -EVERY_S

    def watch(self, session: LoadTestSession) -> None:
        """From now on look at the connections of this session; those of this machine's devices it has none."""
        from lanewise.loadtest.frontend_session import FrontendSession

        if isinstance(session, FrontendSession):
            self._connections = session.frontend.connection_counters
            self._before, self._at = self._connections(), self._clock()

    def tick(self) -> None:
        """Look, if the last time is a second ago."""
        if self._connections is not None and self._clock() - self._at >= EVERY_S:
            self.look()

    def look(self) -> None:
        """Look now."""
        from lanewise import files
        from lanewise.dispatch.counters import rates
        from lanewise.report.dispatch import prometheus

        if self._connections is None:
            return
        now, at = self._connections(), self._clock()
        found = rates(self._before, now, at - self._at)
        self._before, self._at = now, at
        self._on_counters(found)
        if self._file is not None:
            files.write_file(self._file, prometheus(found, round(time.time(), 3)))
