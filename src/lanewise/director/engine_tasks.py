"""Tasks that run now and events as they are committed: what waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lanewise.director.records import Event, Task


@dataclass
class RunningTask:
    """A task with its progress; `ended` wakes those who wait for it, and nobody else."""

    task: Task
    ended: threading.Event = field(default_factory=threading.Event)


class TaskBoard:
    """The running tasks, and who waits for a task's end."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._running: dict[str, RunningTask] = {}

    def commit(self, task: Task) -> None:
        """A task is in the store: it runs from now, or has ended."""
        if task.ended:
            self.drop(task.name)
            return
        with self._guard:
            self._running.setdefault(task.name, RunningTask(task)).task = task

    def progress(self, name: str, percent: int) -> None:
        """So much of a task is done."""
        with self._guard:
            if name in self._running:
                self._running[name].task = replace(self._running[name].task, percent=percent)

    def drop(self, name: str) -> None:
        """Nobody runs a task any more, whether its end is in the store or not."""
        with self._guard:
            running = self._running.pop(name, None)
        if running is not None:
            running.ended.set()

    def runs(self, name: str) -> bool:
        """Whether the steps of a task are under way."""
        return name in self._running

    def current(self, task: Task) -> Task:
        """The task as of now, if it runs, else as the store has it."""
        running = self._running.get(task.name)
        return task if running is None or task.ended else running.task

    def wait(self, name: str, timeout: float | None) -> None:
        """Return once the task does not run any more, or after so many seconds."""
        running = self._running.get(name)
        if running is not None:
            running.ended.wait(timeout)


class EventBoard:
    """Tells listeners of every event in the order of their ids, and wakes those who wait for one."""

    def __init__(self, last: int = 0) -> None:
        self._changed = threading.Condition()
        self._listeners: list[Callable[[Event], None]] = []
        self.last = last

    def publish(self, events: list[Event]) -> None:
        """Events that were committed just now."""
        with self._changed:
            listeners = tuple(self._listeners)
            self.last = max([self.last, *(event.id for event in events)])
            self._changed.notify_all()
        for event in events:
            for listener in listeners:
                listener(event)

    def wait(self, after: int, timeout: float | None) -> None:
        """Return once there is an event with an id above `after`, or after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self.last > after, timeout)

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call a listener with every event from now on; the answer ends that."""
        with self._changed:
            self._listeners.append(listener)

        def end() -> None:
            with self._changed:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end
