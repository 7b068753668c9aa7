"""The progress of scenarios on stderr: how many, how fast, how long still."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lanewise.cli import terminal
from lanewise.report.words import plural

if TYPE_CHECKING:
    from lanewise.api.scenarios import ScenarioProgress
    from lanewise.engines.work import WorkerLoss
    from lanewise.options.workers import WorkerOptions

_OFTEN, _SELDOM = 0.2, 10.0  # s between two states: on a terminal, in a log


class ScenarioStatus:
    """Shows how far a run is; on a terminal in one line, in a log every ten seconds."""

    def __init__(self, what: str = "scenario") -> None:
        self._what = what
        self._shown = time.monotonic() if not terminal.overwrites() else 0.0  # a short run says nothing in a log
        self._last: ScenarioProgress | None = None
        self._unfinished = False  # whether the last state in a log is one: it ends with the count of all

    def begin(self, engine: WorkerOptions) -> None:
        """Say what takes seconds before the first scenario."""
        if engine.on is not None and engine.on.startswith("ray"):
            terminal.status(f"connecting to {engine.on}" if "://" in engine.on else "starting Ray")

    def show(self, progress: ScenarioProgress) -> None:
        """A batch has finished, or nothing yet."""
        self._last = progress
        for loss in progress.losses:
            terminal.note(loss_text(loss, self._what))
        if progress.finished == progress.kept:
            if progress.kept:
                rest = f"{progress.total - progress.kept:,} remain"
                terminal.note(f"{progress.kept:,} of {progress.total:,} {self._what}s were finished before, {rest}")
            elif terminal.overwrites():
                terminal.status(progress_text(progress, self._what))
            return
        now = time.monotonic()
        if now - self._shown >= (_OFTEN if terminal.overwrites() else _SELDOM):
            self._shown = now
            self._unfinished = not terminal.overwrites() and progress.finished < progress.total
            terminal.status(progress_text(progress, self._what))

    def end(self, engine: WorkerOptions, stopped: bool) -> None:
        """Nothing more comes: say what is left, and how to go on."""
        terminal.done()
        if self._unfinished and not stopped and self._last is not None:
            terminal.note(f"{self._last.finished:,} of {self._last.total:,} {self._what}s")
        if stopped and self._last is not None and self._last.finished < self._last.total:
            keeps = engine.results is not None and self._last.finished > 0
            kept = f"; kept in {engine.results}, the same command resumes" if keeps else ""
            terminal.note(f"not finished: {self._last.finished:,} of {self._last.total:,} {self._what}s{kept}")


def loss_text(loss: WorkerLoss, what: str = "scenario") -> str:
    """'lost worker 2 of 4 (killed by signal 9): its 12 scenarios run again'."""
    count = plural(len(loss.batch.items), what)
    then = f"its {count} run{'s' if len(loss.batch.items) == 1 else ''} again" if loss.again else f"{count} given up"
    return f"lost {loss.worker} ({loss.why}): {then}"


def progress_text(progress: ScenarioProgress, what: str = "scenario") -> str:
    """'1,234 of 10,000 scenarios, 92/s, 1 min 35 s left'."""
    text = f"{progress.finished:,} of {progress.total:,} {what}s"
    if not progress.rate or progress.left is None:
        return text
    rate = f"{progress.rate:,.0f}/s" if progress.rate >= 10 else f"{progress.rate:.2g}/s"
    minutes, seconds = divmod(round(progress.left), 60)
    hours, minutes = divmod(minutes, 60)
    left = f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    return f"{text}, {rate}, {left} left"
