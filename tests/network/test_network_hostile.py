"""Hostile connections and hostile peers: a friend is served, nothing is done for a stranger, and no side is believed.

Nothing here waits for a time to pass: events order the steps, and a clock of its own moves the deadlines.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from typing import cast

import pytest
from network.network_commands import HANGS, QUICK, listener, start
from network.peers import (
    CELL,
    SECRET,
    alive,
    come,
    fake_listener,
    friend,
    greeted,
    line_of,
    proven_but_unanswered,
    server,
    talk,
    unproven,
)

from lanewise.errors import CannotMeasure, InputError
from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes import machine
from lanewise.probes.network import listener as listening
from lanewise.probes.network import messages
from lanewise.probes.network.handshake import Handshake, new_nonce, read_secret
from lanewise.probes.network.messages import NetworkMeasurement, Request
from lanewise.probes.network.probe import _rates
from lanewise.probes.network.reception import GREETING_S, DataConnection, ProvenClient, Reception
from lanewise.probes.network.session import NetworkRun, connect_session

HELLO = line_of({"lanewise": 2, "nonce": "0" * 64})
HOSTILE = {
    "silent": b"",
    "slow": b'{"lanew',
    "garbage": b"GET / HTTP/1.1\r\n\r\n",
    "half a handshake": HELLO,
    "wrong proof": HELLO + line_of({"proof": "0" * 64}),
    "longer than a greeting": b"[" * 100_000,
    "huge number": b'{"lanewise": ' + b"9" * 400 + b"}\n",
    "first version": b'{"lanewise": 1}\n' + line_of({"do": "open", "cell": CELL}),
    "data of nothing": line_of({"data": "0" * 64, "index": 0}),
}


@contextlib.contextmanager
def strangers(address, count):
    """That many hostile connections of all kinds, all there before the block begins."""
    with contextlib.ExitStack() as stack:
        for i in range(count):
            connection = stack.enter_context(socket.create_connection(address, timeout=HANGS))
            with contextlib.suppress(OSError):  # refused already
                connection.sendall(list(HOSTILE.values())[i % len(HOSTILE)])
        yield


def measure(session, cell):
    """Moves the pattern over a whole measurement."""
    run = NetworkRun(session, cell)
    try:
        run.start()
        run.counters()
        run.stop()
    finally:
        run.close()


def test_a_friend_measures_among_sixty_hostile_connections():
    with server() as running, strangers(running.address, 60), friend(running.address) as session:
        measure(session, NetworkMeasurement("tcp", "bandwidth", 5000, 3, "both"))


def test_a_friend_measures_when_every_place_for_strangers_is_occupied(monkeypatch):
    monkeypatch.setattr("lanewise.probes.network.reception.MOST_STRANGERS", 4)
    with server() as running, strangers(running.address, 30), friend(running.address) as session:
        measure(session, NetworkMeasurement("tcp", "bandwidth", 5000, 2))


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
def test_a_stranger_gets_nothing_but_a_refusal(said):
    with server() as running:
        for line in talk(unproven(running.address), said).splitlines():
            answer = json.loads(line)
            assert set(answer) <= {"error", "hint", "crowded", "lanewise", "nonce"}
        assert alive(running.address)
        assert not [line for line in running.said if "came" in line and "proof" not in line][1:]


# --- the reception, step by step ---


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@contextlib.contextmanager
def reception(**options):
    clock = Clock()
    with socket.create_server(("127.0.0.1", 0)) as opened, Reception(opened, SECRET, clock=clock, **options) as there:
        yield there, opened.getsockname(), clock


def settle(there, reached):
    """Poll until something is reached; what came through meanwhile."""
    through = []
    while not reached():
        through += there.poll(0.05)
    return through


def ended(connection):
    """Whether the listener has closed this connection; its refusal is taken."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(4096):
            pass
    return True


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
                    handshake = Handshake(SECRET, nonce, new_nonce())
                    lines.write(line_of({"lanewise": 2, "nonce": handshake.listener_nonce}))
                    lines.flush()
                    lines.readline()
                    lines.write(line_of({"proof": handshake.listener_proof}))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with friend(opened.getsockname()):
            pass
        thread.join(HANGS)
    assert len(set(attempts)) == 2


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
        there = Reception(cast(socket.socket, exhausted), SECRET, say=said.append, clock=clock)
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
        settle(there, lambda: any(key.getpeername() == last for key in there._strangers))
        assert len(said) == 6  # the 1st, 2nd, 4th, 8th, 16th and 32nd of 39
        assert said[-1].endswith("(32 so far)")


def test_only_the_right_proof_comes_through_and_each_nonce_serves_once():
    with reception() as (there, address, _), socket.create_connection(address, timeout=HANGS) as honest:
        honest.sendall(HELLO)
        settle(there, lambda: come(honest))
        nonce = json.loads(honest.recv(4096))["nonce"]
        proof = line_of({"proof": Handshake(SECRET, "0" * 64, nonce).client_proof})
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


# --- sessions ---


def test_a_second_friend_hears_that_the_listener_is_busy_and_the_first_goes_on():
    with server() as running, friend(running.address) as first:
        with pytest.raises(CannotMeasure, match="serving another client"), friend(running.address):
            pass
        measure(first, NetworkMeasurement("tcp", "bandwidth", 100, 1))


def test_a_friend_that_comes_while_the_last_session_ends_waits_for_it(monkeypatch):
    closing, may_close = threading.Event(), threading.Event()
    close = listening._ClientSession._close

    def slow_close(session):
        closing.set()
        assert may_close.wait(HANGS)
        close(session)

    monkeypatch.setattr(listening._ClientSession, "_close", slow_close)
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
    closing, may_close = threading.Event(), threading.Event()
    close = listening._ClientSession._close
    clock, added, add = Clock(), threading.Semaphore(0), listening._Sessions.add

    def slow_close(session):
        closing.set()
        assert may_close.wait(HANGS)
        close(session)

    def counted_add(sessions, arrival):
        add(sessions, arrival)
        added.release()

    monkeypatch.setattr(listening._Sessions, "add", counted_add)
    monkeypatch.setattr(listening._ClientSession, "_close", slow_close)
    with server(clock=clock) as running:
        greeted(running.address)[0].close()
        assert closing.wait(HANGS)
        connection, lines, _ = proven_but_unanswered(running.address)
        assert added.acquire(timeout=HANGS)  # the first client
        assert added.acquire(timeout=HANGS)
        clock.now += listening.WAITING_S + 1
        other = proven_but_unanswered(running.address)  # its arrival makes the listener look at the clock
        assert b"serving another client" in lines.readline()
        may_close.set()
        for each in (connection, lines, *other[:2]):
            each.close()


def test_a_data_connection_without_the_token_is_closed_and_does_not_count():
    with server() as running, friend(running.address) as session:
        nonce = session.stream.request(Request(do="open", cell=NetworkMeasurement(**CELL)), messages.DataEnds).nonce
        token = session.handshake.data_token(nonce, 0)
        for said in ({"data": "0" * 64, "index": 0}, {"data": token, "index": 1}, {"data": token, "index": 511}):
            with unproven(running.address, line_of(said)) as stranger:
                assert ended(stranger)
        with unproven(running.address, line_of({"data": token, "index": 0})):
            answer = session.stream.request(Request(do="begin"), messages.EndpointFacts)
            assert len(answer.about) == 1
            with unproven(running.address, line_of({"data": token, "index": 0})) as again:
                assert ended(again)
            request = Request(do="begin")
            with pytest.raises(CannotMeasure, match="a measurement that runs cannot begin"):
                session.stream.request(request, messages.EndpointFacts)


@pytest.mark.parametrize("secret", ["another secret, not ours", SECRET + " "])
def test_a_client_with_another_secret_is_refused(secret):
    with server() as running:
        client = connect_session(running.address, NetworkSideOptions(), secret)
        with pytest.raises(CannotMeasure, match="has another secret") as raised, client:
            pass
        assert "--secret-file" in raised.value.hint
        assert alive(running.address)


def test_a_client_without_a_secret_says_where_to_get_one():
    with server() as running:
        client = connect_session(running.address, NetworkSideOptions(), "")
        with pytest.raises(InputError, match="asks for its secret") as raised, client:
            pass
    assert "LANEWISE_SECRET" in raised.value.hint


def test_a_listener_that_does_not_know_the_secret_is_not_believed():
    impostor = fake_listener(lambda request: b"{}\n", secret="a secret it made up itself")
    with impostor as fake, pytest.raises(CannotMeasure, match="does not know the secret"), friend(fake):
        pass


def test_memory_beyond_what_is_free_is_refused_before_any_is_taken(monkeypatch):
    cell = NetworkMeasurement("tcp", "bandwidth", 1 << 28, 4)
    with server() as running, friend(running.address) as session:
        monkeypatch.setattr(machine, "available", lambda: (1 << 31) - 1)
        monkeypatch.setattr(listening, "tcp_endpoint", lambda *_: pytest.fail("allocated"))
        with pytest.raises(CannotMeasure, match=r"but only .* of memory is free"):
            session.stream.request(Request(do="open", cell=cell), messages.DataEnds)
    with fake_listener(lambda request: pytest.fail("asked")) as fake, friend(fake) as session:
        run = NetworkRun(session, cell)
        with pytest.raises(CannotMeasure, match=r"but only .* of memory is free"):
            run.start()


def test_buffers_of_both_directions_count_toward_the_limit():
    assert NetworkMeasurement("tcp", "bandwidth", 1 << 28, 16).memory == messages.MOST_MEMORY
    with pytest.raises(InputError, match="B in all buffers"):
        NetworkMeasurement("tcp", "bandwidth", 1 << 28, 16, "both")


# --- what the listener may say ---

HONEST = {
    "open": line_of({"nonce": "0" * 64}), "begin": line_of({"about": [{"card": "lo"}]}),
    "ready": line_of({"reached": True}), "check": b"{}\n", "go": b"{}\n", "stop": b"{}\n", "close": b"{}\n",
    "mark": line_of({"marks": [{"seconds": 1.0, "bytes": [5]}]}), "done": line_of({"reached": True}),
}  # fmt: skip
LIES = [
    ("open", b'{"nonce": 7}\n'),
    ("open", b'{"nonce": null}\n'),
    ("open", b'{"token": "x"}\n'),
    ("open", b"[" * 100_000 + b"\n"),
    ("begin", b'{"about": "x"}\n'),
    ("begin", b'{"about": [["x"]]}\n'),
    ("ready", b'{"reached": 1}\n'),
    ("check", b'{"more": 1}\n'),
    ("mark", b'{"marks": [{"seconds": NaN, "bytes": [5]}]}\n'),
    ("mark", b'{"marks": [{"seconds": 1e999, "bytes": [5]}]}\n'),
    ("mark", b'{"marks": [{"seconds": -1, "bytes": [5]}]}\n'),
    ("mark", b'{"marks": [{"seconds": 1, "bytes": [1e999]}]}\n'),
    ("mark", b'{"marks": [{"seconds": 1, "bytes": [' + b"9" * 5000 + b"]}]}\n"),
    ("mark", b'{"marks": [{"seconds": 1, "bytes": [-5]}]}\n'),
    ("mark", b'{"marks": [{"seconds": 1, "bytes": []}]}\n'),
    ("mark", b'{"marks": [{"seconds": 1, "bytes": [5, 5]}]}\n'),
    ("mark", b'{"marks": []}\n'),
    ("mark", b'{"marks": [[5]]}\n'),
]


@pytest.mark.parametrize(("stage", "lie"), LIES, ids=[f"{stage} {lie[:40]!r}" for stage, lie in LIES])
def test_a_listener_whose_answers_make_no_sense_is_one_error(stage, lie):
    liar = fake_listener(lambda request: lie if request["do"] == stage else HONEST[request["do"]])
    with liar as fake, friend(fake) as session:
        run = NetworkRun(session, NetworkMeasurement("tcp", "bandwidth", 10, 1))
        try:
            if stage == "mark":
                run.start()
            with pytest.raises(CannotMeasure):
                run.counters() if stage == "mark" else run.start()
        finally:
            run.close()


def test_an_honest_listener_of_that_kind_is_believed():
    with fake_listener(lambda request: HONEST[request["do"]]) as fake, friend(fake) as session:
        run = NetworkRun(session, NetworkMeasurement("tcp", "bandwidth", 10, 1))
        run.start()
        assert run.counters() == [(1.0, [5])]
        run.close()


def test_words_of_the_other_side_cannot_command_the_terminal():
    said = line_of({"error": "\x1b[31mred\x9b2J\u202e" + "x" * 1000, "hint": "\x1b]0;title\x07"})
    with fake_listener(lambda request: said) as fake, friend(fake) as session:
        request = Request(do="go")
        with pytest.raises(CannotMeasure) as raised:
            session.stream.request(request, messages.Acknowledgement)
    assert all(char.isprintable() for char in raised.value.cause + raised.value.hint)
    assert len(raised.value.cause) < 400


def test_a_rate_that_no_network_has_is_refused():
    counts = iter([5, 1 << 62, 1 << 62])
    times = iter([1.0, 1.0000001, 2.0])

    def answer(request):
        if request["do"] == "mark":
            return line_of({"marks": [{"seconds": next(times), "bytes": [next(counts)]}]})
        return HONEST[request["do"]]

    with fake_listener(answer) as fake, friend(fake) as session:
        run = NetworkRun(session, NetworkMeasurement("tcp", "bandwidth", 10, 1))
        run.start()
        with pytest.raises(CannotMeasure, match="claims to have counted"):
            _rates(run.counters()[0], run.counters()[0])
        run.close()


# --- the command ---


def test_a_module_in_the_current_folder_is_not_run(tmp_path):
    for name in ("secrets", "socket", "json", "lanewise"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'EXECUTED')!r}, 'w').close()\nraise SystemExit\n")
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.path[:] = [p for p in sys.path if p]\n"
         "from lanewise.api import measure_network\n"
         "from lanewise.options.sampling import SamplingRule\n"
         "print(next(measure_network(sizes=(1000,), connections=(1,), seconds=0.01)).metric)"],
        cwd=tmp_path, capture_output=True, text=True, timeout=HANGS, check=False,
    )  # fmt: skip
    assert not (tmp_path / "EXECUTED").exists()
    assert done.stdout == "goodput\n", done.stderr


def test_the_second_process_gets_its_secret_where_nobody_else_reads_it(monkeypatch):
    started, popen = [], subprocess.Popen

    def record(command, **options):
        started.append((command, options))
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", record)
    side = NetworkSideOptions()
    with listening.listener_process(side) as (address, secret), connect_session(address, side, secret):
        pass
    ((command, options),) = started
    assert secret not in " ".join(command)
    assert secret not in str(options.get("env", os.environ))


def test_a_listener_without_descriptors_says_so_and_serves_on():
    process = subprocess.Popen(
        [*_command(), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "LANEWISE_SECRET": SECRET},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)),
    )  # fmt: skip
    try:
        assert process.stderr is not None
        port = int(process.stderr.readline().split(" port ")[1].split(";")[0])
        with friend(("127.0.0.1", port)) as session:
            run = NetworkRun(session, NetworkMeasurement("tcp", "bandwidth", 10, 100))
            with pytest.raises(CannotMeasure, match=r"data connections came|has left"):
                run.start()
            run.close()
        with friend(("127.0.0.1", port)) as session:
            measure(session, NetworkMeasurement("tcp", "bandwidth", 100, 1))
        assert process.poll() is None
    finally:
        process.kill()
        _, stderr = process.communicate(timeout=HANGS)
    assert "Traceback" not in stderr
    assert "Too many open files" in stderr


def test_a_client_without_descriptors_is_one_error_with_the_right_hint():
    done = subprocess.run(
        [*_command(), *QUICK[:4], "--connections", "64"], capture_output=True, text=True, timeout=HANGS, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)),
    )  # fmt: skip
    assert done.returncode == 2
    assert "Too many open files" in done.stderr
    assert "ulimit -n" in done.stderr
    assert "Traceback" not in done.stderr


def _command():
    from network.network_commands import BINARY

    return [str(BINARY), "measure", "network"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_listener_with_a_session_and_strangers(number):
    with listener() as (process, address):
        host, _, port = address.partition(":")
        there = (host, int(port))
        with strangers(there, 20), friend(there) as session:
            run = NetworkRun(session, NetworkMeasurement("tcp", "bandwidth", 100, 2))
            run.start()
            os.kill(process.pid, number)
            _, stderr = process.communicate(timeout=HANGS)
            run.close()
    assert process.returncode == 128 + number
    assert stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in stderr


def test_a_listener_makes_a_secret_and_shows_it_once(tmp_path):
    process = start("--listen", "127.0.0.1:0", "--once", LANEWISE_SECRET="")
    assert process.stdout is not None
    assert process.stderr is not None
    said = process.stderr.readline()
    address = "127.0.0.1:" + said.split(" port ")[1].split(";")[0]
    assert "clients need this secret" in process.stderr.readline()
    secret = process.stdout.readline().strip()
    assert len(secret) == 32
    file = tmp_path / "secret"
    file.write_text(secret + "\n")
    file.chmod(0o600)
    wrong = start(address, *QUICK)
    _, stderr = wrong.communicate(timeout=HANGS)
    assert wrong.returncode == 2
    assert "has another secret" in stderr
    client = start(address, *QUICK, "--secret-file", str(file), LANEWISE_SECRET="")
    _, stderr = client.communicate(timeout=HANGS)
    assert client.returncode == 0, stderr
    stdout, stderr = process.communicate(timeout=HANGS)
    assert process.returncode == 0
    assert secret not in stdout + stderr


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [(b"a fine long secret\n", 0o644, "every user of this machine can read"), (b"short\n", 0o600, "has 5 characters"),
     (b"x" * 2000, 0o600, "characters"), (b"\xff" * 20, 0o600, "is no text"), (None, 0, "No such file")],
)  # fmt: skip
def test_a_secret_file_that_is_not_safe_is_refused(tmp_path, content, mode, says):
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
        file.chmod(mode)
    with pytest.raises(InputError, match=says):
        read_secret(NetworkSideOptions(secret_file=file))


def test_a_secret_comes_from_the_file_before_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "secret"
    file.write_text("the secret of the file\n")
    file.chmod(0o600)
    monkeypatch.setenv("LANEWISE_SECRET", "the secret of the environment")
    assert read_secret(NetworkSideOptions(secret_file=file)) == "the secret of the file"
    assert read_secret(NetworkSideOptions()) == "the secret of the environment"
    monkeypatch.setenv("LANEWISE_SECRET", "short")
    with pytest.raises(InputError, match="LANEWISE_SECRET has 5 characters"):
        read_secret(NetworkSideOptions())
