"""Both divisions measured on this machine: over a node of our own, and over nodes that run here already."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lanewise.installed import loadgen_missing

if sys.platform != "linux":
    pytest.skip("load tests are for Linux", allow_module_level=True)
if missing := loadgen_missing():
    pytest.skip(f"built without LoadGen: {missing}", allow_module_level=True)

from dispatch.nodes import HANGS, nodes

import lanewise
from lanewise.api import child_node
from lanewise.dispatch.host import host_facts
from lanewise.errors import CannotMeasure, InputError, LanewiseError
from lanewise.loadtest import divisions, selftest
from lanewise.loadtest.accelerator import Accelerator
from lanewise.loadtest.frontend_session import NetworkRunner
from lanewise.loadtest.load_run import LoadGenResult, LoadSpec
from lanewise.loadtest.loadgen import LoadGenRunner
from lanewise.options.loadtest import ModelOptions, PeakOptions
from lanewise.options.serve import ServeOptions
from lanewise.results.run import Run

EASY = PeakOptions(
    engine="synthetic", service=(0.0, 5e-4), sample_bytes=512, library=32, depth=16, connections=1, bound=1.0,
    seconds=1.0, most_runs=3, division="both",
)  # fmt: skip


@pytest.fixture(autouse=True)
def without_selftest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "holds", lambda *_: True)  # the generator alone is not tried


@pytest.fixture(autouse=True)
def every_run_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that does much else no rate may be VALID, and nothing here is about how high peaks are. Nor is a run
    given up for late queries, which a search would not count."""
    measured = LoadGenRunner.run

    def run(self: LoadGenRunner, load: LoadSpec) -> LoadGenResult:
        self.setup = replace(self.setup, end_hopeless=False)
        run = measured(self, load)
        latency = {name: min(value, load.bound) for name, value in run.latency.items()}
        return replace(run, valid=True, reasons=(), latency=latency)

    monkeypatch.setattr(LoadGenRunner, "run", run)


def served(secret: Path, **more: object) -> ServeOptions:
    values: dict[str, Any] = {
        "engine": "synthetic",
        "listen": "127.0.0.1:0",
        "once": True,
        "secret_file": secret,
        **more,
    }
    return ServeOptions(**values)


def test_both_divisions_are_measured_over_a_node_of_our_own_kept_and_resumed(tmp_path: Path) -> None:
    options = replace(EASY, results=tmp_path / "kept", output=tmp_path / "run.json")
    result = lanewise.loadtest_divisions(options)
    assert result.closed.qps > 0
    assert result.network.qps > 0
    assert result.share.share == result.network.qps / result.closed.qps
    assert result.predicted
    assert result.network.setup["transport"] == "shm (one host)"
    assert result.network.setup["SUT name"] == "Network SUT: node"
    run = lanewise.load_run(tmp_path / "run.json")
    peaks = {row.path: row for row in run.rows if row.metric == "qps" and row.source == "measured"}
    assert set(peaks) == {"service", "service, network"}
    assert peaks["service"].flow == peaks["service, network"].flow == "host0->cpu"
    parts = (tmp_path / "kept" / "service-times.yaml").read_text()
    assert ("software.measured" in parts) == bool(result.share.software)
    closed, network = (_only(run, path) for path in peaks)
    pairs = lanewise.compare(closed, network).pairs
    assert [pair.left.metric for pair in pairs][:1] == ["qps"]

    new: list[object] = []
    again = lanewise.loadtest_divisions(options, on_run=new.append)
    assert new == []
    assert (again.closed.qps, again.network.qps, again.predicted) == (
        result.closed.qps, result.network.qps, result.predicted,
    )  # fmt: skip


def test_nodes_of_this_host_are_taken_and_those_of_others_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic = ("--engine", "synthetic", "--service", "100 us", "--sample-bytes", "512 B")
    with nodes(tmp_path, "a", options=synthetic) as (node,):
        known: dict[str, Any] = {
            "nodes": (node.address,),
            "secret_file": tmp_path / "secret",
            "results": tmp_path / "kept",
            "most_runs": 1,
        }
        result = lanewise.loadtest_divisions(replace(EASY, **known))
        assert result.share.share
        with pytest.raises(InputError, match="the nodes have cpu, the Closed division would have cpu, cpu"):
            lanewise.loadtest_divisions(replace(EASY, **known, devices=("cpu", "cpu")))
        monkeypatch.setattr(divisions, "boot_id", lambda: "another boot")
        with pytest.raises(InputError, match="is another host") as refused:
            lanewise.loadtest_divisions(replace(EASY, **known))
    assert "lanewise compare closed.json network.json" in refused.value.hint


def test_a_node_that_cannot_start_says_why() -> None:
    elsewhere = child_node.child_node(lambda secret: served(secret, listen="203.0.113.1:7000"))
    with pytest.raises(CannotMeasure, match=r"the node does not start: cannot listen on 203\.0\.113\.1"):
        elsewhere.__enter__()


def test_a_gpu_that_is_absent_is_an_error_of_the_node_itself_not_of_its_first_frontend() -> None:
    with pytest.raises(LanewiseError):
        Accelerator(ModelOptions(engine="synthetic", devices=("gpu4000",)), "a")


def test_nodes_of_this_host_are_the_load_tests_own() -> None:
    facts = host_facts()
    assert facts.process == os.getpid()
    hosts = [facts, facts.model_copy(update={"boot": "another", "process": 7})]
    runner: Any = object.__new__(NetworkRunner)
    runner.frontend = SimpleNamespace(nodes=[SimpleNamespace(facts=SimpleNamespace(host=host)) for host in hosts])
    assert runner.local_nodes == (os.getpid(),)


def test_the_node_ends_with_its_block_whatever_ends_it_and_its_secret_is_gone() -> None:
    node = child_node.child_node(served)
    address, secret = node.__enter__()
    assert address.startswith("127.0.0.1:")
    assert secret.stat().st_mode & 0o077 == 0
    (child,) = children()
    interrupt = KeyboardInterrupt()
    assert not node.__exit__(KeyboardInterrupt, interrupt, None)
    assert not alive(child)
    assert not secret.exists()


def test_a_node_dies_with_the_process_that_started_it_and_leaves_no_secret(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from lanewise.api.child_node import child_node\n"
        "from lanewise.options.serve import ServeOptions\n"
        "with child_node(lambda s: ServeOptions(engine='synthetic', listen='127.0.0.1:0', secret_file=s)):\n"
        "    print('up', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, "TMPDIR": f"{tmp_path}"})  # fmt: skip
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        (child,) = children(parent.pid)
        parent.send_signal(signal.SIGKILL)
        assert parent.wait(HANGS) == -signal.SIGKILL
    end = time.monotonic() + HANGS
    while alive(child) and time.monotonic() < end:
        time.sleep(0.01)
    assert not alive(child)
    assert list(tmp_path.iterdir()) == []


def children(of: int | None = None) -> list[int]:
    """The processes that this one, or another, has started."""
    folder = Path(f"/proc/{of or os.getpid()}/task")
    texts = [path.read_text() for path in folder.glob("*/children")]
    mine = [int(number) for text in texts for number in text.split()]
    return [number for number in mine if b"child_node" in Path(f"/proc/{number}/cmdline").read_bytes()]


def alive(process: int) -> bool:
    """Whether it runs, which a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def _only(run: Run, path: str) -> Run:
    return replace(run, rows=tuple(row for row in run.rows if row.path == path))
