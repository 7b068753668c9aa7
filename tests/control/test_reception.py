"""The reception of a listener, step by step: strangers are bounded in number, bytes and time, friends come through.

Nothing here waits for a time to pass: events order the steps, and a clock of its own moves the deadlines.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import socket
from typing import cast

import pytest
from control.peers import ECHO, HANGS, SECRET, Clock, come, ended, hello, line_of

from lanewise.control.handshake import Handshake
from lanewise.control.reception import GREETING_S, DataConnection, ProvenClient, Reception

HELLO = line_of(hello())


@contextlib.contextmanager
def reception(**options):
    clock = Clock()
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        there = stack.enter_context(Reception(opened, SECRET, ECHO, clock=clock, **options))
        yield there, opened.getsockname(), clock


def settle(there, reached):
    """Poll until something is reached; what came through meanwhile."""
    through = []
    while not reached():
        through += there.poll(0.05)
    return through


def test_a_stranger_that_says_a_byte_at_a_time_has_one_deadline_in_all():
    with reception() as (there, address, clock), socket.create_connection(address, timeout=HANGS) as slow:
        settle(there, lambda: there.strangers == 1)
        for byte in b'{"lan':
            slow.sendall(bytes([byte]))
            clock.now += GREETING_S / 6
            there.poll(0)
        assert there.strangers == 1
        clock.now += GREETING_S / 6
        there.poll(0)
        assert there.strangers == 0
        assert ended(slow)


def test_a_greeting_without_end_is_refused_after_its_few_bytes():
    with reception() as (there, address, _), socket.create_connection(address, timeout=HANGS) as endless:
        endless.sendall(b"x" * 511)
        settle(there, lambda: any(len(each.line) == 511 for each in there._strangers.values()))
        endless.sendall(b"x")
        for _ in range(100):
            if not there.strangers:
                break
            there.poll(0.05)
        assert there.strangers == 0
        assert b"is no lanewise" in endless.recv(4096)


def test_the_oldest_stranger_goes_for_the_newest_and_hears_why():
    with reception(most=2) as (there, address, _), contextlib.ExitStack() as stack:
        first, *_ = [stack.enter_context(socket.create_connection(address, timeout=HANGS)) for _ in range(3)]
        settle(there, lambda: come(first))
        refusal = json.loads(first.makefile("rb").readline())
        assert refusal["crowded"] is True
        assert there.strangers == 2


class Exhausted:
    """A listening socket that has no descriptor for another connection while `full`."""

    def __init__(self, opened):
        self.opened, self.full, self.accepts = opened, True, 0

    def accept(self):
        self.accepts += 1
        if self.full:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return self.opened.accept()

    def fileno(self):
        return self.opened.fileno()

    def setblocking(self, on):
        self.opened.setblocking(on)


def test_without_descriptors_accepting_pauses_and_goes_on_later():
    said: list[str] = []
    clock = Clock()
    with socket.create_server(("127.0.0.1", 0)) as opened:
        exhausted = Exhausted(opened)
        there = Reception(cast(socket.socket, exhausted), SECRET, ECHO, say=said.append, clock=clock)
        with there, socket.create_connection(opened.getsockname(), timeout=HANGS):
            settle(there, lambda: exhausted.accepts)
            for _ in range(50):
                there.poll(0)
            assert exhausted.accepts == 1  # it does not spin
            assert "Too many open files" in said[0]
            exhausted.full = False
            clock.now += 1
            settle(there, lambda: there.strangers == 1)


def test_a_connection_that_cannot_be_watched_is_closed_and_the_next_is_greeted_later():
    with reception() as (there, address, clock), contextlib.ExitStack() as stack:
        register = there._selector.register

        def refuse(connection, events):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        there._selector.register = refuse
        first = stack.enter_context(socket.create_connection(address, timeout=HANGS))
        there.poll()
        assert ended(first)
        there._selector.register = register
        clock.now += 1
        stack.enter_context(socket.create_connection(address, timeout=HANGS))
        settle(there, lambda: there.strangers == 1)


@pytest.mark.parametrize(("files", "places"), [(resource.RLIM_INFINITY, 256), (20, 5), (2, 1), (1 << 20, 256)])
def test_places_for_strangers_leave_most_files_to_sessions(monkeypatch, files, places):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    with reception() as (there, address, _), contextlib.ExitStack() as stack:
        assert there._most == places
        stack.enter_context(socket.create_connection(address, timeout=HANGS))
        settle(there, lambda: there.strangers == 1)


def test_refusals_of_a_flood_are_few_lines():
    said: list[str] = []
    with reception(say=said.append, most=1) as (there, address, _), contextlib.ExitStack() as stack:
        flood = [stack.enter_context(socket.create_connection(address, timeout=HANGS)) for _ in range(40)]
        last = flood[-1].getsockname()
        settle(there, lambda: any(each.connection.getpeername() == last for each in there._strangers.values()))
        assert len(said) == 6  # the 1st, 2nd, 4th, 8th, 16th and 32nd of 39
        assert said[-1].endswith("(32 so far)")


def test_only_the_right_proof_comes_through_and_each_nonce_serves_once():
    with reception() as (there, address, _), socket.create_connection(address, timeout=HANGS) as honest:
        honest.sendall(HELLO)
        settle(there, lambda: come(honest))
        nonce = json.loads(honest.recv(4096))["nonce"]
        proof = line_of({"proof": Handshake(SECRET, ECHO.name, "0" * 64, nonce).client_proof})
        honest.sendall(proof)
        through: list[ProvenClient | DataConnection] = []
        while not through:
            through = there.poll()
        assert isinstance(through[0], ProvenClient)
        through[0].connection.close()
        with socket.create_connection(address, timeout=HANGS) as replay:  # what was overheard
            replay.sendall(HELLO + proof)
            settle(there, lambda: b"error" in come(replay))
            assert b"another secret" in replay.recv(4096)


def test_a_data_connection_is_handed_on_for_the_session_to_judge():
    with reception() as (there, address, _), socket.create_connection(address, timeout=HANGS) as data:
        data.sendall(line_of({"data": "f" * 64, "index": 3}))
        through: list[ProvenClient | DataConnection] = []
        while not through:
            through = there.poll()
        assert isinstance(through[0], DataConnection)
        assert through[0].hello.index == 3
        through[0].connection.close()
