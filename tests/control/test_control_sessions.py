"""Sessions of a listener: one at a time, data connections by token, an end whatever happens."""

from __future__ import annotations

import json
import threading

import pytest
from control.peers import (
    ECHO,
    HANGS,
    SECRET,
    Clock,
    Echo,
    EchoSession,
    echo_client,
    ended,
    greeted,
    line_of,
    proven_but_unanswered,
    server,
    unproven,
)

from lanewise.control import listener
from lanewise.errors import CannotMeasure, InputError


def slow_release(monkeypatch):
    """Events: a session is about to free what it holds; it may go on."""
    closing, may_close = threading.Event(), threading.Event()

    def release(session):
        closing.set()
        assert may_close.wait(HANGS)

    monkeypatch.setattr(EchoSession, "release", release)
    return closing, may_close


def test_a_second_client_hears_that_the_listener_is_busy_and_the_first_goes_on():
    with server() as running, echo_client(running.address) as first:
        with pytest.raises(CannotMeasure, match="serving another client"):
            echo_client(running.address)
        assert first.stream.request(Echo(word="still here"), Echo).word == "still here"


def test_a_friend_that_comes_while_the_last_session_ends_waits_for_it(monkeypatch):
    closing, may_close = slow_release(monkeypatch)
    with server() as running:
        greeted(running.address)[0].close()
        assert closing.wait(HANGS)
        waiting = proven_but_unanswered(running.address)
        second = proven_but_unanswered(running.address)
        assert b"serving another client" in second[1].readline()  # one waits at most
        may_close.set()
        assert json.loads(waiting[1].readline()) == {"proof": waiting[2].listener_proof}
        for connection, lines, _ in (waiting, second):
            lines.close()
            connection.close()


def test_a_friend_does_not_wait_for_ever_for_a_session_that_does_not_end(monkeypatch):
    closing, may_close = slow_release(monkeypatch)
    clock, added, add = Clock(), threading.Semaphore(0), listener._Sessions.add

    def counted_add(sessions, arrival):
        add(sessions, arrival)
        added.release()

    monkeypatch.setattr(listener._Sessions, "add", counted_add)
    with server(clock=clock) as running:
        greeted(running.address)[0].close()
        assert closing.wait(HANGS)
        connection, lines, _ = proven_but_unanswered(running.address)
        assert added.acquire(timeout=HANGS)  # the first client
        assert added.acquire(timeout=HANGS)
        clock.now += listener.WAITING_S + 1
        other = proven_but_unanswered(running.address)  # its arrival makes the listener look at the clock
        assert b"serving another client" in lines.readline()
        may_close.set()
        for each in (connection, lines, *other[:2]):
            each.close()


def test_data_connections_join_by_token_each_once():
    with server() as running, echo_client(running.address) as client:
        nonce = client.stream.request(Echo(expect=2), Echo).word
        token = client.handshake.data_token(nonce, 0)
        for said in ({"data": "0" * 64, "index": 0}, {"data": token, "index": 1}, {"data": token, "index": 511}):
            with unproven(running.address, line_of(said)) as stranger:
                assert ended(stranger)
        sockets = client.open_data(nonce, 2, HANGS)
        for connection, letter in zip(sockets, (b"a", b"b"), strict=True):
            connection.sendall(letter)
        assert client.stream.request(Echo(read=True), Echo).word == "ab"
        with unproven(running.address, line_of({"data": token, "index": 0})) as again:
            assert ended(again)
        assert client.stream.request(Echo(expect=1), Echo).word != nonce
        for connection in sockets:  # those of the last nonce are closed
            with connection:
                assert ended(connection)


def test_data_connections_are_closed_when_their_client_leaves():
    with server() as running:
        with echo_client(running.address) as client:
            nonce = client.stream.request(Echo(expect=1), Echo).word
            (connection,) = client.open_data(nonce, 1, HANGS)
            connection.sendall(b"a")
            client.stream.request(Echo(read=True), Echo)
        with connection:
            assert ended(connection)


def test_what_stops_a_session_is_told_to_its_client_and_the_next_one_is_served(monkeypatch):
    def fail(session):
        raise InputError("it cannot be", hint="try something else")

    with server() as running:
        with monkeypatch.context() as failing:
            failing.setattr(EchoSession, "answer", fail)
            with echo_client(running.address) as client, pytest.raises(CannotMeasure, match="it cannot be") as raised:
                client.stream.receive(Echo)
            assert raised.value.hint == "try something else"
        with echo_client(running.address) as client:
            assert client.stream.request(Echo(word="a"), Echo).word == "a"


def test_a_listener_that_ends_abandons_its_session_even_one_that_waits_for_data():
    waits, released = threading.Event(), threading.Event()

    class Waiting(EchoSession):
        def answer(self):
            self.expect_data(1)
            waits.set()
            self.data(2 * HANGS)

        def release(self):
            released.set()

    def serve(opened, **options):
        listener.serve(opened, SECRET, ECHO, Waiting, **options)

    with server(serve) as running, echo_client(running.address) as client:
        assert waits.wait(HANGS)
        running.stop()
        with pytest.raises(CannotMeasure):
            client.stream.receive(Echo)
        assert released.wait(HANGS)
