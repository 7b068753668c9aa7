"""Verbs on a real RDMA device without hardware: soft RoCE in User-Mode Linux, both processes inside.

Correctness only: one CPU at 100 Hz says nothing about rates, so none is looked at.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from network.rdma_guest import run_in_guest

pytestmark = pytest.mark.guest
BINARY = Path(sys.executable).with_name("lanewise")
SCRIPT = """\
import dataclasses, json, os, subprocess, sys, time
from lanewise.errors import LanewiseError
from lanewise.options.measure_network import MeasureNetworkOptions
from lanewise.probes.network.probe import NetworkProbe
from lanewise.options.sampling import SamplingRule

os.environ["LANEWISE_SECRET"] = "a secret of the tests"
command = [sys.argv[1], "measure", "network"]
server = subprocess.Popen([*command, "--listen", "10.9.0.1:7000"], stderr=subprocess.PIPE)
server.stderr.readline()

def answer(rows):
    print("answer", json.dumps(rows), flush=True)

def measure(seconds=0.03, **options):
    plan = MeasureNetworkOptions(
        address="10.9.0.1:7000", transport="verbs", seconds=seconds, rule=SamplingRule(2, 2), **options
    )
    try:
        answer([dataclasses.asdict(sample) for sample in NetworkProbe().run(plan)])
    except LanewiseError as error:
        answer(error.show())

for operation in ("write", "read", "send"):
    measure(operation=operation, events=True, sizes=(3000,), connections=(2,), both_ways=True)
measure(operation="send", events=True, inline_bytes=64, sizes=(64,), latency=True)
measure(operation="write", seconds=0.4, sizes=(64,), latency=True)
measure(device="none")
measure(gid_index=77)
measure(events=True, connections=(256,), depth=200, sizes=(64,))
measure(events=True, inline_bytes=4096, sizes=(64,))

# A client that dies while its data moves: the listener serves the next one.
lost = subprocess.Popen(
    [*command, "10.9.0.1:7000", "--transport", "verbs", "--events", "--operation", "send", "--seconds", "0.03",
     "--sizes", ",".join(["64"] * 400), "--connections", "2", "--samples", sys.argv[2]]
)
while not os.path.exists(sys.argv[2]) or not os.path.getsize(sys.argv[2]):
    assert lost.poll() is None
    time.sleep(0.02)
lost.kill()
lost.wait()
measure(operation="read", events=True, sizes=(5000,), connections=(1,), receive=True)
import lanewise
plan = {"over": "verbs", "runs": 1, "peak_bytes": 1 << 20}
answer([dataclasses.asdict(sample) for sample in lanewise.measure_kv("10.9.0.1:7000", "40 x 5000 B", "host", **plan)])
server.kill()

# One command that starts its own listener on the loopback, and the row that it prints.
alone = subprocess.run(
    [*command, "--transport", "verbs", "--events", "--seconds", "0.03", "--sizes", "4KiB", "--connections", "1"],
    capture_output=True, text=True,
)
answer([alone.returncode, alone.stdout, alone.stderr])
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What each command in the guest printed."""
    folder = tmp_path_factory.mktemp("guest")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    printed = run_in_guest(sys.executable, script, BINARY, folder / "samples.jsonl")
    found = [json.loads(line[7:]) for line in printed.splitlines() if line.startswith("answer ")]
    assert len(found) == 12, printed
    return found


@pytest.mark.parametrize(("which", "operation"), [(0, "write"), (1, "read"), (2, "send")])
def test_data_over_queue_pairs_arrives_as_sent_both_ways(answers, which, operation):
    rows = answers[which]
    assert isinstance(rows, list), rows
    flows = {row["flow"] for row in rows if row["metric"] == "goodput"}
    assert flows == {"host0->host1", "host1->host0"}
    assert all(row["how"]["data"] == "verified" and row["how"]["engine"] == "RDMA" for row in rows)
    assert rows[0]["scenario"] == f"verbs_{operation}_bandwidth_both_ways"
    assert ("read" in rows[0]["how"]["flows"]) == (operation == "read")


@pytest.mark.parametrize(("which", "how"), [(3, "events"), (4, "polled")])
def test_round_trips_over_queue_pairs_have_all_percentiles(answers, which, how):
    rows = answers[which]
    assert isinstance(rows, list), rows
    assert [row["metric"] for row in rows] == ["latency", "latency_p50", "latency_p99", "latency_p99.9"] * 2
    assert all(row["how"]["completions"] == how for row in rows)


def test_a_device_or_gid_that_is_not_there_is_named_and_the_listener_serves_on(answers):
    assert "error: there is no RDMA device none" in answers[5]
    assert "hint:  found: rxe0" in answers[5]
    assert "error: rxe0 has no GID 77" in answers[6]


def test_more_than_the_device_can_do_is_said_with_its_limit(answers):
    assert "error: rxe0 has at most 32767 completions in a queue, not 51200" in answers[7]
    assert "hint:  fewer --connections, or a smaller --depth" in answers[7]
    assert "error: rxe0 takes no 4096 bytes with a work request" in answers[8]
    assert "hint:  a smaller --inline, or none" in answers[8]


def test_a_listener_serves_on_after_a_client_that_died_in_the_middle(answers):
    rows = answers[9]
    assert isinstance(rows, list), rows
    assert {(row["flow"], row["scenario"]) for row in rows} == {("host1->host0", "verbs_read_bandwidth")}


def test_blocks_over_a_queue_pair_arrive_as_sent(answers):
    rows = answers[10]
    assert isinstance(rows, list), rows
    assert [row["settings"]["bytes"] for row in rows if row["metric"] == "post_time"] == [1 << 20, 64, 5000]
    assert {row["scenario"] for row in rows} == {"blocks by verbs"}
    assert all(row["how"]["data"] == "verified" and row["how"]["engine"] == "RDMA" for row in rows)


def test_one_command_alone_measures_verbs(answers):
    code, stdout, stderr = answers[11]
    assert code == 0, stderr
    assert "verbs_write_bandwidth" in stdout
    assert "card: rxe0" in stdout
