"""The native data ends over socket pairs: nothing is lost, counts only rise, changed data is noticed."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise import _native
from lanewise.probes.network.messages import NetworkMeasurement
from lanewise.probes.network.probe import _NetworkSeries, fairness


def pairs(count):
    made = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(count):
            one = socket.create_connection(server.getsockname())
            made.append((one, server.accept()[0]))
    return made


@contextlib.contextmanager
def connected(count):
    made = pairs(count)
    try:
        yield [a for a, _ in made], [b for _, b in made]
    finally:
        for each in made:
            for end in each:
                end.close()


def until(reached, seconds=300.0):
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "did not come"
        time.sleep(0.002)


@settings(max_examples=15, deadline=None)
@given(size=st.integers(1, 200_000), count=st.integers(1, 4), zero_copy=st.booleans())
def test_all_bytes_sent_are_received_and_counters_never_fall(size, count, zero_copy):
    with connected(count) as (ours, theirs):
        sender = _native.TcpStream([s.fileno() for s in ours], True, _native.EndSetup(size, seed=9), zero_copy)
        receiver = _native.TcpStream([s.fileno() for s in theirs], False, _native.EndSetup(size, seed=9))
        until(lambda: sender.ready() and receiver.ready())
        receiver.go()
        sender.go()
        counters = []
        for _ in range(4):
            time.sleep(0.005)
            counters.append(receiver.counters())
        sender.stop()
        until(lambda: sender.done() and receiver.done())
        counters.append(receiver.counters())
        for before, after in itertools.pairwise(counters):
            assert before.seconds < after.seconds
            assert all(a <= b for a, b in zip(before.bytes, after.bytes, strict=True))
        assert receiver.counters().bytes == sender.counters().bytes
        assert all(sent % size == 0 for sent in sender.counters().bytes)


def test_data_that_arrives_changed_is_an_error_that_names_connection_and_byte():
    with connected(2) as (ours, theirs):
        sender = _native.TcpStream([s.fileno() for s in ours], True, _native.EndSetup(100, seed=1))
        receiver = _native.TcpStream([s.fileno() for s in theirs], False, _native.EndSetup(100, seed=2))
        with pytest.raises(_native.ProbeFailure, match="data arrived changed: connection"):
            until(receiver.ready)
        sender.stop()


def test_a_message_that_comes_back_changed_is_an_error():
    with connected(1) as (ours, theirs):
        ping = _native.TcpPing(ours[0].fileno(), True, _native.EndSetup(64))
        theirs[0].sendall(bytes(64))
        with pytest.raises(_native.ProbeFailure, match="came back changed"):
            until(ping.ready)


def test_round_trips_are_all_counted_and_their_percentiles_rise_from_the_smallest():
    with connected(1) as (ours, theirs):
        ping = _native.TcpPing(ours[0].fileno(), True, _native.EndSetup(5))
        pong = _native.TcpPing(theirs[0].fileno(), False, _native.EndSetup(5))
        until(ping.ready)
        ping.go()
        taken: list[Any] = []

        def some_came():
            taken.append(ping.take())
            return taken[-1].count > 0

        until(some_came)
        ping.stop()
        until(lambda: ping.done() and pong.done())
        trips = taken[-1]
        shares = [trips.percentile(share) for share in (0.0, 0.5, 0.99, 0.999, 1.0)]
        assert shares == sorted(shares)
        assert shares[0] <= trips.mean() <= shares[-1]


def test_a_receiver_stops_when_told_although_the_other_side_is_silent():
    with connected(1) as (_, theirs):
        receiver = _native.TcpStream([theirs[0].fileno()], False, _native.EndSetup(100))
        receiver.stop()
        until(receiver.done)


@given(st.lists(st.floats(0.001, 1e3), min_size=1, max_size=64))
def test_fairness_lies_between_one_share_and_all(rates):
    assert 1 / len(rates) - 1e-9 <= fairness(rates) <= 1 + 1e-9


def test_fairness_of_equal_and_of_single_rates():
    assert fairness([2.0, 2.0, 2.0]) == pytest.approx(1)
    assert fairness([1.0, 0.0]) == pytest.approx(0.5)


def test_a_window_in_which_no_round_trip_ended_goes_on(monkeypatch):
    monkeypatch.setattr(_native, "TcpPing", SimpleNamespace)
    windows = [SimpleNamespace(count=count, mean=lambda: 7.0, percentile=lambda _: 7.0) for count in (0, 0, 3)]
    taken = iter(windows)
    run: Any = SimpleNamespace(
        measurement=NetworkMeasurement("tcp", "latency", 1, 1), facts=[{}], wait=lambda _: None,
        endpoints=[SimpleNamespace(native=SimpleNamespace(take=lambda: next(taken)))],
    )  # fmt: skip
    rows = list(_NetworkSeries(run, 0.02).measure())
    assert [row.value for row in rows] == pytest.approx([7e-6] * 4)
    assert {row.how["round trips"] for row in rows} == {"3"}
