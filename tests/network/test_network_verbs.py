"""Verbs on a real RDMA device without hardware: soft RoCE in User-Mode Linux, both processes inside.

Correctness only: one CPU at 100 Hz says nothing about rates, so none is looked at.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lanewise import _native

ROOT = Path(__file__).parents[2]
GUEST = Path(os.environ.get("LANEWISE_RDMA_GUEST") or ROOT.parent / "shared" / "rdma-uml" / "run")
BINARY = Path(sys.executable).with_name("lanewise")
SCRIPT = """\
import dataclasses, json, os, subprocess, sys, time
from lanewise.errors import LanewiseError
from lanewise.options.measure_network import MeasureNetworkOptions
from lanewise.probes.network.probe import NetworkProbe
from lanewise.options.sampling import SamplingRule

os.environ["LANEWISE_SECRET"] = "a secret of the tests"
server = subprocess.Popen([sys.argv[1], "measure", "network", "--listen", "10.9.0.1:7000"], stderr=subprocess.PIPE)
server.stderr.readline()

def measure(seconds=0.03, **options):
    plan = MeasureNetworkOptions(
        address="10.9.0.1:7000", transport="verbs", seconds=seconds, rule=SamplingRule(2, 2), **options
    )
    try:
        rows = [dataclasses.asdict(sample) for sample in NetworkProbe().run(plan)]
    except LanewiseError as error:
        rows = error.show()
    print("answer", json.dumps(rows), flush=True)

for operation in ("write", "read", "send"):
    measure(operation=operation, events=True, sizes=(3000,), connections=(2,), both_ways=True)
measure(operation="send", events=True, inline_bytes=64, sizes=(64,), latency=True)
measure(operation="write", seconds=0.4, sizes=(64,), latency=True)
measure(device="none")
measure(gid_index=77)
server.kill()
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What each command in the guest printed."""
    if not GUEST.exists():
        pytest.skip("LANEWISE_RDMA_GUEST names no User-Mode Linux with an RDMA device (docs/guides/measure-network.md)")
    if shutil.which("rdma") is None:
        pytest.skip("no rdma command: iproute2 is not installed")
    try:
        _native.verbs_devices()
    except _native.ProbeFailure as failure:
        pytest.skip(failure.args[0])
    script = tmp_path_factory.mktemp("guest") / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [GUEST, sys.executable, script, BINARY], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    found = [json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert len(found) == 7, done.stdout
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
