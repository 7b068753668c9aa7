"""Tasks that run now and events as they are committed: what waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from lanewise.director.records import Event, Task


class TaskBoard:
    """The running tasks with their progress, and who waits for a task's end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: dict[str, Task] = {}

    def commit(self, task: Task) -> None:
        """A task is in the store: it runs from now, or has ended."""
        with self._changed:
            if task.ended:
                self._running.pop(task.name, None)
                self._changed.notify_all()
            else:
                self._running[task.name] = task

    def progress(self, name: str, percent: int) -> None:
        """So much of a task is done."""
        with self._changed:
            if name in self._running:
                self._running[name] = replace(self._running[name], percent=percent)

    def drop(self, name: str) -> None:
        """Nobody runs a task any more, though its end is not in the store."""
        with self._changed:
            self._running.pop(name, None)
            self._changed.notify_all()

    def runs(self, name: str) -> bool:
        """Whether the steps of a task are under way."""
        return name in self._running

    def current(self, task: Task) -> Task:
        """The task as of now, if it runs, else as the store has it."""
        return self._running.get(task.name, task)

    def wait(self, name: str, timeout: float | None) -> None:
        """Return once the task does not run any more, or after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: name not in self._running, timeout)


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
