"""`lanewise measure network` between real processes: what it yields, and what it says when the other side fails."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import pytest
from forked_cli import forked
from network.network_commands import HANGS, QUICK, environment, listener, samples, start

from lanewise.perf.flow import parse_flows

MANY = ",".join(["64KiB"] * 400)  # sizes: a measurement that nothing but its end can end


def finish(process):
    stdout, stderr = process.communicate(timeout=HANGS)
    assert "Traceback" not in stderr, stderr
    return stdout, stderr


def wait_for(path, lines):
    end = time.monotonic() + HANGS
    while not path.exists() or path.read_text().count("\n") < lines:
        assert time.monotonic() < end, "no sample came"
        time.sleep(0.02)


def test_one_command_measures_both_ways_over_loopback_and_keeps_every_sample(tmp_path):
    file = tmp_path / "s.jsonl"
    process = start(*QUICK[:4], "--connections", "2", "--both-ways", "--samples", str(file), "-o", str(tmp_path / "r"))
    stdout, stderr = finish(process)
    assert process.returncode == 0, stderr
    rows = samples(file)
    by_metric = {(row["metric"], row["flow"]) for row in rows}
    assert {("goodput", "host0->host1"), ("goodput", "host1->host0")} < by_metric
    assert ("total", "host0->host1, host1->host0") in by_metric
    assert all(row["value"] >= 0 and row["path"] == "network" for row in rows)
    assert [flow.name for flow in parse_flows(rows[0]["how"]["flows"])] == ["host0->host1", "host1->host0"]
    assert rows[0]["how"]["data"] == "verified"
    assert rows[0]["how"]["card"] == "lo, NUMA node none"
    assert "tcp_bandwidth_both_ways" in stdout


def test_connections_of_one_window_add_up_to_its_goodput(tmp_path):
    file = tmp_path / "s.jsonl"
    assert finish(start(*QUICK[:4], "--connections", "3", "--samples", str(file)))
    assert file.exists()
    window = samples(file)[:5]
    parts = [row["value"] for row in window if row["metric"] == "connection_goodput"]
    assert len(parts) == 3
    assert window[0]["metric"] == "goodput"
    assert sum(parts) == pytest.approx(window[0]["value"])
    assert window[4]["metric"] == "fairness"
    assert 1 / 3 <= window[4]["value"] <= 1.000001


def test_a_listener_serves_one_client_after_the_other_and_percentiles_rise(tmp_path):
    with listener() as (process, address):
        for name in ("a", "b"):
            client = start(address, "--latency", "--seconds", "0.01", "--sizes", "1", "--samples", str(tmp_path / name))
            _, stderr = finish(client)
            assert client.returncode == 0, stderr
            window = samples(tmp_path / name)[:4]
            assert [row["metric"] for row in window] == ["latency", "latency_p50", "latency_p99", "latency_p99.9"]
            assert window[1]["value"] <= window[2]["value"] <= window[3]["value"]
        assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=HANGS)
        assert process.returncode == 130
        assert stderr.splitlines()[-1] == "interrupted"


def test_once_ends_the_listener_after_its_client():
    with listener("--once") as (process, address):
        finish(start(address, *QUICK, "--receive"))
        assert process.wait(HANGS) == 0


def test_a_peer_killed_in_mid_run_is_named_and_finished_samples_stay(tmp_path):
    file, run = tmp_path / "s.jsonl", tmp_path / "run.json"
    with listener() as (process, address):
        sizes = ["--sizes", MANY, "--connections", "2", "--seconds", "0.05"]
        client = start(address, *sizes, "--samples", str(file), "-o", str(run))
        wait_for(file, 8)
        process.kill()
        stdout, stderr = finish(client)
    assert client.returncode == 2
    assert "error: 127.0.0.1 port" in stderr or "error: a connection broke" in stderr
    assert "has left" in stderr or "broke" in stderr
    assert "hint:" in stderr
    assert len(samples(file)) >= 8
    assert run.exists()
    assert "goodput" in stdout


def test_ctrl_c_keeps_finished_samples_and_ends_the_second_process(tmp_path):
    file, run = tmp_path / "s.jsonl", tmp_path / "run.json"
    client = start("--sizes", MANY, "--seconds", "0.05", "--samples", str(file), "-o", str(run))
    wait_for(file, 3)
    os.kill(client.pid, signal.SIGINT)
    _, stderr = finish(client)
    assert client.returncode == 130
    assert stderr.splitlines()[-1] == "interrupted"
    assert len(samples(file)) >= 3
    assert run.exists()


@pytest.mark.parametrize(
    "said", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\x00\xff\x00garbage\n", b"[1, 2]\n", b"", b'{"a": 1}\n']
)
def test_a_port_of_something_else_is_no_lanewise(said, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer():
            connection, _ = other.accept()
            with connection:
                connection.sendall(said)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        client = forked(["measure", "network", f"127.0.0.1:{other.getsockname()[1]}", *QUICK], tmp_path, environment())
        thread.join()
    assert client.returncode == 2
    assert "is no lanewise" in client.stderr
    assert "Traceback" not in client.stderr


def test_another_version_of_the_protocol_is_refused_by_name(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        thread = threading.Thread(target=lambda: other.accept()[0].sendall(b'{"lanewise": 99}\n'))
        thread.start()
        client = forked(["measure", "network", f"127.0.0.1:{other.getsockname()[1]}", *QUICK], tmp_path, environment())
        thread.join()
    assert "speaks version 99 of the protocol, this side 3" in client.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["127.0.0.1:1"], "nothing listens at 127.0.0.1 port 1"),
        (["no-such-host.invalid"], "there is no host no-such-host.invalid"),
        (["127.0.0.1:port"], "'port' is no port"),
        (["127.0.0.1:99999"], "'99999' is no port"),
        (["--node", "999"], "this machine has no NUMA node 999"),
        (["--node", "0", "--no-bind"], "--node and --no-bind contradict"),
        (["--sizes", "0"], "a message of B cannot be 0"),
        (["--connections", "two"], "--connections: 'two' is not a whole number"),
        (["--transport", "smoke"], "'smoke' is no transport"),
        (["--transport", "verbs", "--device", "none7"], "there is no RDMA device none7"),
        (["--both-ways", "--receive"], "--both-ways includes --receive"),
        (["--listen", "192.0.2.1"], "cannot listen on 192.0.2.1"),
        (["--seconds", "0"], "a sample of 0 s has no use"),
    ],
)
def test_what_cannot_be_is_one_error_with_a_hint(options, says, tmp_path):
    client = forked(["measure", "network", *options], tmp_path, environment())
    assert client.returncode == 2
    assert client.stdout == ""
    assert f"error: {says}" in client.stderr
    assert "hint:" in client.stderr
    assert "Traceback" not in client.stderr


def test_a_port_in_use_is_named():
    with listener() as (_, address):
        second = start("--listen", address)
        _, stderr = finish(second)
    assert second.returncode == 2
    assert "Address already in use" in stderr
    assert "another listener" in stderr
