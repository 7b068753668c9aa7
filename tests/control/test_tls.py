"""TLS around a control channel: friends of both kinds, certificates that are refused, strangers that speak half of it.

Nothing here waits for a time to pass: events order the steps, and a clock of its own moves the deadlines.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading

import pytest
from control.certificates import make
from control.peers import ECHO, HANGS, SECRET, Clock, Echo, ended, hello, line_of, server, talk, unproven

from lanewise.control.client import connect
from lanewise.control.reception import GREETING_S, Reception
from lanewise.control.tls import client_tls, listener_tls
from lanewise.errors import CannotMeasure, InputError


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return make(tmp_path_factory.mktemp("ca"), "ca")


@pytest.fixture(scope="module")
def own(ca):
    """A listener's certificate, signed by the CA."""
    return make(ca.file.parent, "listener", ca)


@pytest.fixture(scope="module")
def tls(own):
    return listener_tls(own.file, own.key_file)


@pytest.fixture
def trust(ca):
    return client_tls(ca.file)


def client(address, trust, secret=SECRET):
    return connect(address, secret, ECHO, trust)


def echoes(control, word="word"):
    return control.stream.request(Echo(word=word), Echo, HANGS).word == word


def client_hello():
    """The first bytes of a TLS client."""
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="a").do_handshake()
    return out.read()


def test_a_friend_speaks_tls_and_its_data_connections_do_not(tls, trust):
    with server(tls=tls) as running, client(running.address, trust) as control:
        assert isinstance(control.stream.connection, ssl.SSLSocket)
        assert control.stream.connection.version() == "TLSv1.3"
        assert all(echoes(control, word) for word in ("a", "b" * 60_000, "c"))  # the second in several records
        nonce = control.stream.request(Echo(expect=2), Echo).word
        data = control.open_data(nonce, 2, HANGS)
        for connection, byte in zip(data, b"xy", strict=True):
            connection.sendall(bytes([byte]))
        assert control.stream.request(Echo(read=True), Echo, HANGS).word == "xy"
        for connection in data:
            connection.close()
        with pytest.raises(CannotMeasure, match="serving another client"):
            client(running.address, trust)
        assert not control.stream.closed()
    assert any("is done" in line for line in running.said)


def test_one_thread_may_read_while_another_sends(tls, trust):
    with server(tls=tls) as running, client(running.address, trust) as control:
        count = 200
        sender = threading.Thread(target=lambda: [control.stream.send(Echo(word=str(i))) for i in range(count)])
        sender.start()
        assert [control.stream.receive(Echo, HANGS).word for _ in range(count)] == [str(i) for i in range(count)]
        sender.join(HANGS)


def test_a_listener_that_ends_ends_its_session(tls, trust):
    with server(tls=tls) as running:
        control = client(running.address, trust)
        running.stop()
        with control:
            assert control.stream.closed()
            with pytest.raises(CannotMeasure, match="has left"):
                control.stream.receive(Echo, HANGS)


@pytest.mark.parametrize("pinned", ["listener", "alone"])
def test_the_listeners_own_certificate_will_do(ca, own, pinned):
    certificate = own if pinned == "listener" else make(ca.file.parent, "alone")
    with server(tls=listener_tls(certificate.file, certificate.key_file)) as running:
        client(running.address, client_tls(certificate.file)).close()


def test_certificate_and_key_may_be_in_one_file(own, trust, tmp_path):
    both = tmp_path / "both.pem"
    both.touch(mode=0o600)
    both.write_bytes(own.file.read_bytes() + own.key_file.read_bytes())
    with server(tls=listener_tls(both, None)) as running:
        client(running.address, trust).close()


@pytest.mark.parametrize(
    ("how", "reason", "hint"),
    [
        ({"ends": 0, "begins": -2}, "certificate has expired", "renew it"),
        ({"begins": 1, "ends": 2}, "certificate is not yet valid", "clocks"),
        ({"address": "10.1.1.1"}, "not valid for '127.0.0.1'", "as its certificate does"),
        ({"issuer": None}, "self.signed certificate", "--tls-ca must name"),
    ],
)
def test_a_certificate_that_is_not_to_be_trusted_is_refused_and_the_listener_serves_on(ca, trust, how, reason, hint):
    wrong = make(ca.file.parent, "wrong", **{"issuer": ca, **how})
    with server(tls=listener_tls(wrong.file, wrong.key_file)) as running:
        for _ in range(2):
            with pytest.raises(CannotMeasure, match=f"not to be trusted: .*{reason}") as error:
                client(running.address, trust)
            assert hint in error.value.hint
    assert running.said[0].startswith("refused: client 127.0.0.1 ended the TLS handshake (")


def test_a_side_without_tls_and_one_with_it_are_told(tls, trust):
    with server() as plain:
        with pytest.raises(CannotMeasure, match=r"port \d+ speaks no TLS") as error:
            client(plain.address, trust)
        assert "leave out --tls-ca" in error.value.hint
        client(plain.address, None).close()
    assert plain.said[0] == "refused: client 127.0.0.1 speaks TLS, this listener does not"
    with server(tls=tls) as running:
        with pytest.raises(CannotMeasure, match="says: this listener asks for TLS") as error:
            client(running.address, None)
        assert "--tls-ca FILE" in error.value.hint
        client(running.address, trust).close()


def test_the_secret_is_asked_for_within_tls(tls, trust):
    with server(tls=tls) as running:
        with pytest.raises(CannotMeasure, match="has another secret"):
            client(running.address, trust, "another secret, not ours")
        with pytest.raises(InputError, match="asks for its secret"):
            client(running.address, trust, "")


# --- files ---


def test_files_that_are_none_are_refused_by_name(ca, own, tmp_path):
    def refused(text, make_context, *files):
        with pytest.raises(InputError, match=text) as error:
            make_context(*files)
        return error.value.hint

    absent, other, junk = tmp_path / "absent", make(tmp_path, "other"), tmp_path / "junk"
    junk.touch(mode=0o600)
    junk.write_text("no PEM")
    locked = make(tmp_path, "locked", password=b"x")
    assert "--tls-certificate" in refused("absent: No such file", listener_tls, absent, own.key_file)
    assert "--tls-key" in refused("absent: No such file", listener_tls, own.file, absent)
    refused("is not that of the certificate", listener_tls, own.file, other.key_file)
    refused("are no certificate and key in PEM", listener_tls, junk, own.key_file)
    assert "no password" in refused("are no certificate and key", listener_tls, locked.file, locked.key_file)
    refused("without --tls-certificate", listener_tls, None, own.key_file)
    refused("holds no certificate in PEM", client_tls, junk)
    assert "--tls-ca" in refused("absent: No such file", client_tls, absent)
    other.key_file.chmod(0o644)
    assert "chmod 600" in refused("every user of this machine can read", listener_tls, other.file, other.key_file)
    assert (listener_tls(None, None), client_tls(None)) == (None, None)


# --- hostile ---

HELLO = client_hello()
HOSTILE = {
    "silent": b"",
    "greets and is silent": HELLO,
    "half a greeting": HELLO[: len(HELLO) // 2],
    "first byte": b"\x16",
    "garbage record": b"\x16\x03\x01" + b"\xff" * 2000,
    "garbage within": HELLO + b"garbage" * 100,
    "lines behind a greeting": HELLO + line_of(hello()),
    "plain greeting": line_of(hello()),
    "data of nothing": line_of({"data": "0" * 64, "index": 0}),
}
WITHIN = {
    "silent": b"",
    "half a line": b'{"lanew',
    "wrong proof": line_of(hello()) + line_of({"proof": "0" * 64}),
    "longer than a greeting": b"[" * 20_000,
    "first version": b'{"lanewise": 1}\n',
    "data within": line_of({"data": "0" * 64, "index": 0}),
}


def stranger_within(address, trust, said):
    """A connection whose TLS stands, and that has said this within it."""
    connection = trust.wrap_socket(socket.create_connection(address, timeout=HANGS), server_hostname="127.0.0.1")
    with contextlib.suppress(OSError):
        for line in said.splitlines(keepends=True):  # a record each
            connection.sendall(line)
    return connection


def test_a_friend_is_served_among_hostile_connections(tls, trust, monkeypatch):
    monkeypatch.setattr("lanewise.control.reception.MOST_STRANGERS", 24)
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(server(tls=tls))
        for said in 2 * list(HOSTILE.values()):
            stack.enter_context(unproven(running.address, said))
        for said in 2 * list(WITHIN.values()):
            stack.enter_context(stranger_within(running.address, trust, said))
        with client(running.address, trust) as control:
            assert echoes(control)


def test_a_friend_is_served_when_silent_tls_clients_occupy_every_place(tls, trust, monkeypatch):
    monkeypatch.setattr("lanewise.control.reception.MOST_STRANGERS", 3)
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(server(tls=tls))
        for _ in range(12):
            stack.enter_context(unproven(running.address, HELLO))
        assert echoes(stack.enter_context(client(running.address, trust)))


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "silent"])
def test_a_stranger_gets_no_session(tls, trust, name):
    with server(tls=tls) as running:
        assert b"proof" not in talk(unproven(running.address), HOSTILE[name])
        with client(running.address, trust) as control:
            assert echoes(control)
        assert sum(line.endswith(" came") for line in running.said) == 1


@pytest.mark.parametrize("name", [name for name in WITHIN if name not in ("silent", "half a line")])
def test_a_stranger_within_tls_gets_nothing_but_a_refusal(tls, trust, name):
    with server(tls=tls) as running, stranger_within(running.address, trust, WITHIN[name]) as connection:
        answers = b""
        with contextlib.suppress(OSError):
            while piece := connection.recv(65536):
                answers += piece
        for line in answers.splitlines():
            assert set(json.loads(line)) <= {"error", "hint", "crowded", "lanewise", "nonce", "service"}
        assert not any(line.endswith(" came") for line in running.said)


def test_an_older_tls_is_refused(tls, trust):
    trust.minimum_version = ssl.TLSVersion.TLSv1_2
    trust.maximum_version = ssl.TLSVersion.TLSv1_2
    with server(tls=tls) as running, pytest.raises(CannotMeasure, match=r"TLS with .* failed: .*PROTOCOL_VERSION"):
        client(running.address, trust)


@pytest.mark.parametrize("count", [len(HELLO), 50, 1])
def test_a_silent_tls_client_has_one_deadline(tls, count):
    clock = Clock()
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        there = stack.enter_context(Reception(opened, SECRET, ECHO, clock=clock, tls=tls))
        silent = stack.enter_context(unproven(opened.getsockname(), HELLO[:count]))
        while not any(each.has_tls for each in there._strangers.values()):
            there.poll(0.05)
        clock.now += GREETING_S / 2
        there.poll(0)
        assert there.strangers == 1
        clock.now += GREETING_S / 2
        there.poll(0)
        assert there.strangers == 0
        assert ended(silent)


def test_strangers_stay_in_the_order_of_their_coming(tls):
    """One that begins with TLS keeps its place, as the oldest goes first."""
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        there = stack.enter_context(Reception(opened, SECRET, ECHO, clock=Clock(), tls=tls, most=2))
        first, second, third = (stack.enter_context(unproven(opened.getsockname())) for _ in range(3))
        first.sendall(b"\x16")
        while there.strangers < 2 or not ended_now(first):
            there.poll(0.05)
        assert not ended_now(second)
        assert not ended_now(third)


def ended_now(connection):
    """Whether the other side has closed it, without waiting."""
    connection.setblocking(False)
    try:
        return connection.recv(4096) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
