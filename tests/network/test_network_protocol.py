"""Whatever a client says, the listener answers or hangs up in time, and serves the next one."""

from __future__ import annotations

import json
import socket
import threading

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lanewise.errors import CannotMeasure, InputError, LanewiseError
from lanewise.options.measure_network import MeasureNetworkOptions, NetworkSideOptions
from lanewise.options.sampling import SamplingRule
from lanewise.probes.network import listener, messages
from lanewise.probes.network.messages import NetworkMeasurement
from lanewise.probes.network.probe import NetworkProbe
from lanewise.probes.network.session import NetworkRun, connect_session

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
CELL = {"transport": "tcp", "kind": "bandwidth", "bytes": 10, "connections": 1}
REQUESTS = st.fixed_dictionaries(
    {"do": st.sampled_from(["open", "ready", "check", "go", "mark", "stop", "done", "close", "?"]) | JSON},
    optional={"cell": JSON | st.just(CELL) | st.builds(lambda key, value: {**CELL, key: value}, st.text(), JSON)
              | st.builds(lambda key, value: {**CELL, key: value}, st.sampled_from(sorted(CELL)), JSON),
              "ends": JSON, "all": JSON},
)  # fmt: skip


@pytest.fixture(scope="module")
def server():
    said = []
    with listener.open_listener("127.0.0.1:0") as opened:
        failed = []

        def serve():
            try:
                listener.serve(opened, NetworkSideOptions(), say=said.append, patience=60)
            except OSError:
                return  # closed at the end
            except BaseException as error:
                failed.append(error)
                raise

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield opened.getsockname()[:2]
        assert not failed
        assert thread.is_alive()


def talk(address, *lines):
    """What the listener answers to these raw lines until it has hung up."""
    with socket.create_connection(address, timeout=300) as connection:
        answer = b""
        try:
            connection.sendall(b"".join(lines))
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                answer += piece
        except OSError:
            pass  # it hung up on unread rubbish: that is an answer
        return answer


def alive(address):
    with connect_session(address, NetworkSideOptions()) as session:
        return session.stream.request({"do": "close"}) == {}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=300))
@example(b"")
@example(b"{" * 60_000 + b"\n")
@example(b"[" * 60_000 + b"\n")
@example(b'{"lanewise": 1e999}\n')
@example(b'{"data": "x"}\n')
def test_rubbish_is_answered_and_the_next_client_is_served(server, rubbish):
    for line in talk(server, rubbish).splitlines():
        assert set(json.loads(line)) <= {"error", "hint", "lanewise"}
    assert alive(server)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(REQUESTS, max_size=4))
def test_requests_in_any_order_are_answered_each_by_one_object(server, requests):
    lines = [json.dumps(each).encode() + b"\n" for each in [messages.HELLO, *requests]]
    answers = [json.loads(line) for line in talk(server, *lines).splitlines()]
    assert answers[:1] in ([messages.HELLO], [])
    assert len(answers) <= len(lines)
    assert alive(server)


def test_a_silent_client_is_dropped_and_the_next_one_served(server, monkeypatch):
    with monkeypatch.context() as short:
        short.setattr(listener, "HELLO_S", 0.2)
        with socket.create_connection(server, timeout=300) as silent:
            assert b"no answer" in silent.makefile("rb").read()
    assert alive(server)


UNCONNECTED = [messages.HELLO, {"do": "open", "cell": CELL}, {"do": "begin"}]


def test_a_client_whose_data_connections_never_come_is_told_and_the_next_one_served(server, monkeypatch):
    with monkeypatch.context() as short:
        short.setattr(listener, "DATA_S", 0.2)
        last = talk(server, *(json.dumps(each).encode() + b"\n" for each in UNCONNECTED)).splitlines()[-1]
    assert json.loads(last)["error"] == "only 0 of 1 data connections came"
    assert alive(server)


def test_another_version_is_told_what_differs(server):
    first, second = (json.loads(line) for line in talk(server, b'{"lanewise": 2}\n').splitlines())
    assert first == messages.HELLO
    assert "speaks version 2 of the protocol, this side 1" in second["error"]


def test_the_same_bytes_are_sent_and_received_over_the_whole_protocol(server):
    measurement = NetworkMeasurement("tcp", "bandwidth", 5000, 3, "both")
    with connect_session(server, NetworkSideOptions()) as session:
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


def test_a_probe_that_is_closed_in_mid_measurement_frees_the_listener_for_the_next(server):
    address = f"{server[0]}:{server[1]}"
    options = MeasureNetworkOptions(
        address=address, sizes=(1000,), connections=(2,), seconds=0.01, rule=SamplingRule(least=2, most=3)
    )  # fmt: skip
    for _ in range(2):
        samples = NetworkProbe().run(options)
        assert next(samples).value is not None
        samples.close()


def test_what_a_listener_refuses_is_told_in_its_own_words():
    with socket.create_server(("127.0.0.1", 0)) as fake:

        def answer():
            connection, _ = fake.accept()
            with connection, connection.makefile("rwb") as lines:
                for line in (messages.HELLO, {"token": "x"}, {"error": "out of order" * 100}):
                    lines.readline()
                    lines.write(json.dumps(line).encode() + b"\n")
                    lines.flush()

        thread = threading.Thread(target=answer)
        thread.start()
        with connect_session(fake.getsockname(), NetworkSideOptions()) as session:
            run = NetworkRun(session, NetworkMeasurement("tcp", "bandwidth", 10, 1))
            with pytest.raises(CannotMeasure, match="out of order"):
                run.start()
            run.close()
        thread.join()


@given(st.text(max_size=40))
@example("[::1]:80")
@example("[::1")
@example("host:²")
def test_any_address_is_read_or_refused(text):
    try:
        host, port = messages.parse_address(text)
    except InputError:
        return
    assert host
    assert 0 <= port <= 65535


@pytest.mark.parametrize(
    ("text", "address"),
    [("", ("127.0.0.1", 7531)), ("a", ("a", 7531)), (":9", ("127.0.0.1", 9)), ("a:9", ("a", 9)),
     ("::1", ("::1", 7531)), ("[::1]:9", ("::1", 9))],
)  # fmt: skip
def test_addresses_are_read_as_users_write_them(text, address):
    assert messages.parse_address(text) == address


@given(st.dictionaries(st.sampled_from(["transport", "kind", "bytes", "connections", "depth", "events"]), JSON))
def test_a_measurement_from_outside_is_sound_or_refused(given_fields):
    try:
        measurement = listener._requested_measurement({"cell": {**CELL, **given_fields}})
    except LanewiseError:
        return
    assert measurement.bytes >= 1
    assert 1 <= measurement.connections <= 256
