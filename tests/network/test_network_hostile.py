"""Hostile connections and hostile peers: a friend is served, nothing is done for a stranger, and no side is believed.

Nothing here waits for a time to pass: events order the steps, and a clock of its own moves the deadlines.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys

import pytest
from control.peers import HANGS, SECRET, hello, line_of, talk, unproven
from network.network_commands import QUICK, listener, start
from network.peers import CELL, alive, fake_listener, friend, server

from lanewise.errors import CannotMeasure, InputError
from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes import machine
from lanewise.probes.network import listener as listening
from lanewise.probes.network import messages
from lanewise.probes.network.messages import SERVICE, NetworkMeasurement, Request
from lanewise.probes.network.probe import _rates
from lanewise.probes.network.session import NetworkRun, connect_session

HELLO = line_of(hello(SERVICE))
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
    monkeypatch.setattr("lanewise.control.reception.MOST_STRANGERS", 4)
    with server() as running, strangers(running.address, 30), friend(running.address) as session:
        measure(session, NetworkMeasurement("tcp", "bandwidth", 5000, 2))


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
def test_a_stranger_gets_nothing_but_a_refusal(said):
    with server() as running:
        for line in talk(unproven(running.address), said).splitlines():
            answer = json.loads(line)
            assert set(answer) <= {"error", "hint", "crowded", "lanewise", "nonce", "service"}
        assert alive(running.address)
        assert not [line for line in running.said if "came" in line and "proof" not in line][1:]


# --- sessions ---


def test_a_second_friend_hears_that_the_listener_is_busy_and_the_first_goes_on():
    with server() as running, friend(running.address) as first:
        with pytest.raises(CannotMeasure, match="serving another client"), friend(running.address):
            pass
        measure(first, NetworkMeasurement("tcp", "bandwidth", 100, 1))


def test_a_measurement_that_runs_cannot_begin_again():
    with server() as running, friend(running.address) as session:
        nonce = session.stream.request(Request(do="open", cell=NetworkMeasurement(**CELL)), messages.DataEnds).nonce
        assert nonce is not None
        (data,) = session.control.open_data(nonce, 1, HANGS)
        with data:
            begin = Request(do="begin")
            assert len(session.stream.request(begin, messages.EndpointFacts).about) == 1
            with pytest.raises(CannotMeasure, match="a measurement that runs cannot begin"):
                session.stream.request(begin, messages.EndpointFacts)


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
