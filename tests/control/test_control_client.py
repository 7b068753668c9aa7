"""A client's greeting of listeners of all kinds, the lines it reads, the addresses it takes."""

from __future__ import annotations

import json
import socket
import threading
from typing import cast

import pytest
from control.peers import (
    ECHO,
    HANGS,
    SECRET,
    echo_client,
    fake_listener,
    hello,
    line_of,
    server,
    talk,
    unproven,
)
from hypothesis import example, given
from hypothesis import strategies as st

from lanewise.control import stream
from lanewise.control.client import connect
from lanewise.control.handshake import Handshake, new_nonce
from lanewise.control.service import ControlService, parse_address
from lanewise.errors import CannotMeasure, InputError


def test_a_client_that_was_crowded_out_tries_again():
    attempts = []
    with socket.create_server(("127.0.0.1", 0)) as opened:

        def serve():
            for _ in range(2):
                connection, _ = opened.accept()
                with connection, connection.makefile("rwb") as lines:
                    nonce = json.loads(lines.readline())["nonce"]
                    attempts.append(nonce)
                    if len(attempts) == 1:
                        lines.write(line_of({"error": "too many connections at once", "hint": "", "crowded": True}))
                        continue
                    handshake = Handshake(SECRET, ECHO.name, nonce, new_nonce())
                    lines.write(line_of(hello(nonce=handshake.listener_nonce)))
                    lines.flush()
                    lines.readline()
                    lines.write(line_of({"proof": handshake.listener_proof}))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        echo_client(opened.getsockname()).close()
        thread.join(HANGS)
    assert len(set(attempts)) == 2


@pytest.mark.parametrize("secret", ["another secret, not ours", SECRET + " "])
def test_a_client_with_another_secret_is_refused(secret):
    with server() as running:
        with pytest.raises(CannotMeasure, match="has another secret") as raised:
            connect(running.address, secret, ECHO)
        assert "--secret-file" in raised.value.hint
        echo_client(running.address).close()


def test_a_client_without_a_secret_says_where_to_get_one():
    with server() as running, pytest.raises(InputError, match="asks for its secret") as raised:
        connect(running.address, "", ECHO)
    assert "LANEWISE_SECRET" in raised.value.hint


def test_a_listener_that_does_not_know_the_secret_is_not_believed():
    impostor = fake_listener(lambda request: b"{}\n", secret="a secret it made up itself")
    with impostor as fake, pytest.raises(CannotMeasure, match="does not know the secret"):
        echo_client(fake)


OTHER = ControlService("other service", port=7998, listen_command="lanewise other")


def test_a_client_at_the_listener_of_another_service_names_both():
    with server() as running:
        with pytest.raises(CannotMeasure, match="is for echo, this side for other service") as raised:
            connect(running.address, SECRET, OTHER)
        assert "lanewise other" in raised.value.hint
        echo_client(running.address).close()


def test_a_listener_refuses_a_client_of_another_service_by_its_name():
    with server() as running:
        said = talk(unproven(running.address, line_of(hello(OTHER))))
    greeting, refusal = map(json.loads, said.splitlines())
    assert greeting["service"] == "echo"
    assert "is for other service, this side for echo" in refusal["error"]


def test_no_listener_is_named_with_the_command_that_starts_one():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = closed.getsockname()
    with pytest.raises(CannotMeasure, match="nothing listens") as raised:
        echo_client(address)
    assert raised.value.hint == f"start it there: lanewise echo --listen 127.0.0.1:{address[1]}"


@pytest.mark.parametrize("line", [b'{"lanewise": 1}\n', line_of({"lanewise": 2, "nonce": "0" * 64})])
def test_a_client_of_an_earlier_version_is_told_what_differs(line):
    with server() as running:
        greeting, refusal = (json.loads(said) for said in talk(unproven(running.address), line).splitlines())
    assert greeting["lanewise"] == stream.PROTOCOL == 3
    version = json.loads(line)["lanewise"]
    assert f"speaks version {version} of the protocol, this side 3" in refusal["error"]


@given(st.text(max_size=40))
@example("[::1]:80")
@example("[::1")
@example("host:²")
def test_any_address_is_read_or_refused(text):
    try:
        host, port = parse_address(text, 7531)
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
    assert parse_address(text, 7531) == address


class Dripping:
    """A connection over which a byte comes each second."""

    def __init__(self):
        self.now = 0.0

    def settimeout(self, seconds):
        assert seconds > 0

    def recv(self, count, flags=0):
        self.now += 0 if flags else 1
        return b"x"


def test_a_side_that_says_a_byte_a_second_has_its_seconds_in_all(monkeypatch):
    connection = Dripping()
    monkeypatch.setattr(stream.time, "monotonic", lambda: connection.now)
    other = stream.MessageStream(cast(socket.socket, connection), "the other side")
    with pytest.raises(CannotMeasure, match="no answer from the other side in 10 s"):
        other.receive(stream.Proof)
    assert connection.now == 10
