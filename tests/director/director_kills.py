"""A director in a process of its own that is killed by SIGKILL while clients use it, and what the next one finds."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from director.directors import Clock, Running, check
from director.races import run_all
from director.racks import rack

from lanewise.director.drivers.sim import SimDriver, SimFaults
from lanewise.director.engine import Director
from lanewise.director.errors import Refused
from lanewise.director.records import Task
from lanewise.director.store.database import Store
from lanewise.errors import Contradiction
from lanewise.pool.model import BlockState, CompositionRequest

SERVERS, GPUS = 4, 24
FAULTS = SimFaults(trained_down=0.1, stuck_quiesce=0.05, lost_reply=0.2, refused=0.2)
HANGS = 300.0


class Message(NamedTuple):
    """What a client says before an operation and after its answer: the blocks it has if that is done, None: ended."""

    client: int
    answered: bool
    blocks: tuple[str, ...] | None


@dataclass
class KillRound:
    """What was done before the kill and how the next director found it; `faults` should be empty."""

    where: str
    answered: int = 0
    open: int = 0
    seconds: float = 0.0
    finished: int = 0
    undone: int = 0
    faults: list[str] = field(default_factory=list)


def kill_round(url: str, state: Path, seed: int, point: int | None = None, delay: float | None = None) -> KillRound:
    """Clients of a director that is killed at its n-th driver step, or after so many seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_serve, args=(url, state, seed, point if delay is None else None, sender))
    child.start()
    sender.close()
    messages: list[Message] = []
    if delay is not None:
        _receive(receiver, messages, 1)  # the director has started
        time.sleep(delay)
        child.kill()
    _receive(receiver, messages)
    child.join(HANGS)
    result = KillRound(f"driver step {point}" if delay is None else f"{1000 * delay:.0f} ms after its start")
    if child.exitcode != -signal.SIGKILL:
        result.faults.append(f"the director ended with {child.exitcode}")
    _judge(result, url, state, messages)
    return result


def _receive(receiver: Connection, messages: list[Message], most: int | None = None) -> None:
    """Take what the clients say: so much of it, or all until the process is gone."""
    with contextlib.suppress(EOFError, ConnectionResetError):
        while most is None or len(messages) < most:
            assert receiver.poll(HANGS), "the director does nothing"
            messages.append(Message(*receiver.recv()))


def _judge(result: KillRound, url: str, state: Path, messages: list[Message]) -> None:
    """Start the next director over what is left, and compare it with every answer that was given."""
    store = Store(url)
    driver = SimDriver(rack(SERVERS, GPUS), state=state)
    began = time.monotonic()
    director = Director(store, driver, pause=lambda attempt: None)
    report = director.start()
    result.seconds = time.monotonic() - began
    result.finished, result.undone = len(report.finished), len(report.undone)
    result.answered = sum(message.answered for message in messages)
    try:
        check(Running(director, driver, store, Clock()))
    except AssertionError as error:
        result.faults.append(f"torn: {error}")
    view = director.view()
    if any(not task.ended for task in director.tasks()):
        result.faults.append("a task runs for ever")
    result.faults += [f"{name} is Failed" for name in report.failed]
    for client in range(SERVERS):
        mine = [message for message in messages if message.client == client]
        before = next((message.blocks for message in reversed(mine) if message.answered), None)
        allowed = [before]
        if mine and not mine[-1].answered:
            result.open += 1
            allowed.append(mine[-1].blocks)
        found = view.pool.composition_on(f"host{client}")
        blocks = None if found is None else tuple(sorted(found.blocks))
        if blocks not in allowed:
            result.faults.append(f"lost: client {client} has {blocks}, and not {' or '.join(map(str, allowed))}")
        bound = driver.observe(f"host{client}")
        if bound != set(blocks or ()):
            result.faults.append(f"torn: host{client} has {sorted(bound)} on the fabric, {blocks} in the pool")
    director.close()
    store.close()


def _serve(url: str, state: Path, seed: int, point: int | None, sender: Connection) -> None:
    """The process that is killed: a director and its clients, each with a server of its own."""
    guard, said = Lock(), Lock()
    reached = 0

    def crash(_: str) -> None:
        nonlocal reached
        with guard:
            reached += 1
            if reached == point:
                os.kill(os.getpid(), signal.SIGKILL)

    def say(message: Message) -> None:
        with said:
            sender.send(tuple(message))

    store = Store(url)
    driver = SimDriver(rack(SERVERS, GPUS), faults=FAULTS, seed=seed, state=state, crash=crash)
    director = Director(store, driver, pause=lambda attempt: None)
    director.start()
    clients = [_Client(director, number, random.Random(f"{seed}/{number}"), say) for number in range(SERVERS)]
    run_all([client.run for client in clients])


class _Client:
    """Composes, attaches, detaches and releases at random, and says what it is about to do and what was answered."""

    def __init__(self, director: Director, number: int, chance: random.Random, say: Callable[[Message], None]) -> None:
        self._director, self._number, self._chance, self._say = director, number, chance, say
        found = director.view().pool.composition_on(f"host{number}")
        self._name = found.name if found else ""
        self._blocks: tuple[str, ...] | None = found.blocks if found else None

    def run(self) -> None:
        """Until the process is killed."""
        while True:
            self._step()

    def _step(self) -> None:
        blocks = self._blocks
        free = [block.name for block in self._director.view().pool.blocks.values() if block.state is BlockState.UNUSED]
        names = self._chance.sample(free, min(len(free), self._chance.randint(1, 3)))
        key = f"{self._chance.random()}"
        if blocks is None:
            request = CompositionRequest(blocks=tuple(names), server=f"host{self._number}")
            self._do(tuple(sorted(names)), lambda: self._director.compose(request, key=key))
        elif len(blocks) > 4 or self._chance.random() < 0.25:
            self._do(None, lambda: self._director.release(self._name, key=key))
        elif blocks and self._chance.random() < 0.4:
            gone = self._chance.choice(blocks)
            rest = tuple(name for name in blocks if name != gone)
            self._do(rest, lambda: self._director.detach(self._name, gone, key=key))
        else:
            request = CompositionRequest(blocks=tuple(names), extends=self._name)
            self._do(tuple(sorted({*blocks, *names})), lambda: self._director.compose(request, key=key))

    def _do(self, wanted: tuple[str, ...] | None, operation: Callable[[], Task]) -> None:
        self._say(Message(self._number, False, wanted))
        try:
            task = operation()
        except (Refused, Contradiction):  # another client took the block
            self._say(Message(self._number, True, self._blocks))
            return
        found = self._director.view().pool.compositions.get(task.composition)
        got = None if found is None else tuple(sorted(found.blocks))
        assert task.problem is not None or got == wanted
        self._blocks, self._name = got, task.composition
        self._say(Message(self._number, True, self._blocks))
