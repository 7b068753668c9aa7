"""Whatever a client says, the listener answers or hangs up in time, and serves the next one."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing
from typing import Any, cast

import pytest
from control.peers import SECRET, line_of, talk, unproven
from example_counts import examples
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from network.peers import CELL, alive, fake_listener, friend, greeted, server

from lanewise.control.stream import LONGEST, encode, parse
from lanewise.errors import CannotMeasure, LanewiseError
from lanewise.options.measure_network import MeasureNetworkOptions
from lanewise.options.sampling import SamplingRule
from lanewise.probes.network import listener, messages
from lanewise.probes.network import session as session_module
from lanewise.probes.network.messages import NetworkMeasurement, Request
from lanewise.probes.network.probe import NetworkProbe
from lanewise.probes.network.session import NetworkRun
from lanewise.results.sample import Sample

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
REQUESTS = st.fixed_dictionaries(
    {"do": st.sampled_from(["open", "ready", "check", "go", "mark", "stop", "done", "close", "?"]) | JSON},
    optional={"cell": JSON | st.just(CELL) | st.builds(lambda key, value: {**CELL, key: value}, st.text(), JSON)
              | st.builds(lambda key, value: {**CELL, key: value}, st.sampled_from(sorted(CELL)), JSON),
              "ends": JSON, "all": JSON},
)  # fmt: skip


@pytest.fixture(scope="module")
def address():
    with server() as running:
        yield running.address
        assert running.thread.is_alive()


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=300))
@example(b"")
@example(b"{" * 60_000 + b"\n")
@example(b"[" * 60_000 + b"\n")
@example(b'{"lanewise": 1e999}\n')
@example(b'{"data": "x"}\n')
def test_rubbish_is_answered_and_the_next_client_is_served(address, rubbish):
    for line in talk(unproven(address), rubbish).splitlines():
        assert set(json.loads(line)) <= {"error", "hint", "crowded", "lanewise", "nonce", "service"}
    assert alive(address)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(REQUESTS, max_size=4))
def test_requests_in_any_order_are_answered_each_by_one_object(address, requests):
    connection, _ = greeted(address)
    answers = [json.loads(line) for line in talk(connection, *(line_of(each) for each in requests)).splitlines()]
    assert len(answers) <= len(requests)
    assert all(isinstance(answer, dict) for answer in answers)
    assert alive(address)


def test_a_client_whose_data_connections_never_come_is_told_and_the_next_one_served(address, monkeypatch):
    with monkeypatch.context() as short:
        short.setattr("lanewise.control.session.DATA_S", 0.0)
        connection, _ = greeted(address)
        last = talk(connection, line_of({"do": "open", "cell": CELL}), line_of({"do": "begin"})).splitlines()[-1]
    assert json.loads(last)["error"] == "only 0 of 1 data connections came"
    assert alive(address)


def test_the_same_bytes_are_sent_and_received_over_the_whole_protocol(address):
    measurement = NetworkMeasurement("tcp", "bandwidth", 5000, 3, "both")
    with friend(address) as session:
        run = NetworkRun(session, measurement)
        try:
            run.start()
            first = run.counters()
            second = run.counters()
            sent, received = run.stop()
        finally:
            run.close()
    assert [count for _, count in sent] == [count for _, count in received]
    for one, other in zip(first, second, strict=True):
        assert all(a <= b for a, b in zip(one[1], other[1], strict=True))


def test_a_probe_that_is_closed_in_mid_measurement_frees_the_listener_for_the_next(address, monkeypatch):
    monkeypatch.setenv("LANEWISE_SECRET", SECRET)
    options = MeasureNetworkOptions(
        address=f"{address[0]}:{address[1]}", sizes=(1000,), connections=(2,), seconds=0.01,
        rule=SamplingRule(least=2, most=3),
    )  # fmt: skip
    for _ in range(2):
        with closing(cast("Generator[Sample, None, None]", NetworkProbe().run(options))) as samples:
            assert next(samples).value is not None


def test_what_a_listener_refuses_is_told_in_its_own_words():
    def answer(request):
        if request["do"] == "open":
            return line_of({"nonce": "0" * 64})
        return line_of({"error": "out of order" * 100})

    with fake_listener(answer) as fake, friend(fake) as session:
        run = NetworkRun(session, NetworkMeasurement("tcp", "bandwidth", 10, 1))
        with pytest.raises(CannotMeasure, match="out of order"):
            run.start()
        run.close()


@given(st.dictionaries(st.sampled_from(["transport", "kind", "bytes", "connections", "depth", "events"]), JSON))
def test_a_measurement_from_outside_is_sound_or_refused(given_fields):
    line = line_of({"do": "open", "cell": {**CELL, **given_fields}})
    try:
        measurement = parse(Request, line, "a client").cell
    except LanewiseError:
        return
    assert measurement is not None
    assert measurement.bytes >= 1
    assert 1 <= measurement.connections <= 256
    assert all(type(value) is type(CELL[name]) for name, value in given_fields.items() if name in CELL)


def test_an_address_of_queue_pairs_travels_unchanged_and_within_limits():
    address: Any = {
        "gid": "f" * 32, "lid": 65535, "mtu": 5, "reads": 16, "psn": 1, "memory": 2**64 - 1, "key": 2**32 - 1,
        "pairs": [2**24 - 1] * 256,
    }  # fmt: skip
    request = Request(do="open", cell=NetworkMeasurement("verbs", "bandwidth", 64, 256), ends=[address, address])
    line = encode(request)
    assert len(line) < LONGEST
    assert parse(Request, line, "a client").ends == [address, address]
    for key, value in (("memory", 2**64), ("psn", -1), ("lid", True), ("gid", "f" * 65), ("pairs", [1] * 257)):
        with pytest.raises(LanewiseError, match="ends"):
            parse(Request, line_of({"do": "open", "ends": [{**address, key: value}]}), "a client")


class QueuePairs:
    """What the control protocol needs of an endpoint over verbs, without a device."""

    def __init__(self, measurement, direction, sends, side):
        self.native = self.queue_pairs = self
        self.sends = self.drives = sends
        self.events = []
        self._pairs = measurement.connections

    def address(self):
        return {"gid": "f" * 32, "memory": 2**64 - 1, "pairs": [7] * self._pairs}

    def connect(self, address):
        assert dict(address) == self.address()
        self.events.append("connect")

    def begin(self):
        assert self.events.pop() == "connect"

    def describe(self):
        return {"card": "none"}

    def counters(self):
        return messages.ByteCounters(seconds=1.0, bytes=[9] * self._pairs)

    def ready(self):
        return True

    done = ready

    def check(self):
        pass

    go = stop = close = check


def test_queue_pairs_are_connected_on_both_sides_before_either_begins(address, monkeypatch):
    monkeypatch.setattr(listener, "verbs_endpoint", QueuePairs)
    monkeypatch.setattr(session_module, "verbs_endpoint", QueuePairs)
    with friend(address) as session:
        run = NetworkRun(session, NetworkMeasurement("verbs", "bandwidth", 64, 3, "both"))
        run.start()
        assert run.counters() == [(1.0, [9, 9, 9])] * 2
        assert run.stop() == ([(1.0, [9, 9, 9])] * 2,) * 2
        assert run.facts == [{"card": "none", "card there": "none"}] * 2
        run.close()
