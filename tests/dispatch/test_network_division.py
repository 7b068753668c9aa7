"""Load tests over Accelerator nodes that are processes of their own: answers, audits, what a lost node costs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lanewise.installed import loadgen_missing

if sys.platform != "linux":
    pytest.skip("load tests are for Linux", allow_module_level=True)
if missing := loadgen_missing():
    pytest.skip(f"built without LoadGen: {missing}", allow_module_level=True)

from dispatch.nodes import HANGS, QUICK, SPOILS, NodeProcess, descriptors, nodes, over, secret_in
from dispatch.wire import flipping_wire
from loadtest.needs import models

import lanewise
from lanewise.dispatch.messages import SampleForm
from lanewise.errors import CannotMeasure, Contradiction, InputError
from lanewise.loadtest import detail_log
from lanewise.loadtest.frontend_session import FrontendSession, agreed
from lanewise.loadtest.load_run import LoadSpec
from lanewise.loadtest.loadgen import Tick
from lanewise.loadtest.result import run_data
from lanewise.loadtest.session import open_session
from lanewise.options.loadtest import PeakOptions
from lanewise.report.text.loadtest import render_run

SERVER = LoadSpec(qps=500.0, seconds=0.2, queries=100, bound=60.0, percentile=0.9)


@pytest.mark.parametrize(("transport", "qps"), [("shm", 1000.0), ("tcp", 0.0)])  # 0: at the Offline rate
def test_the_payload_audit_finds_every_sample_unchanged(tmp_path: Path, transport: str, qps: float) -> None:
    with nodes(tmp_path, "a", "b") as started:
        result = lanewise.loadtest_run(over(started, tmp_path, transport=transport, audit="payload", qps=qps))
        lines = [node.line(" queries over ") for node in started]
    assert result.audit is not None
    assert result.audit.figures == {"checked": 32.0, "wrong": 0.0}
    assert result.setup["SUT name"] == "Network SUT: a, b"
    assert result.setup["transport"] == f"{transport} (one host)"
    assert all("client 127.0.0.1 left after" in line for line in lines)


def test_the_payload_audit_finds_a_byte_that_changed_at_a_node(tmp_path: Path) -> None:
    with nodes(tmp_path, "a", patch=SPOILS) as started:
        result = lanewise.loadtest_run(over(started, tmp_path, audit="payload", qps=1000.0))
    assert result.audit is not None
    assert not result.audit.passed
    assert result.audit.figures["wrong"] >= 1


@models
def test_accuracy_and_payloads_of_a_model_are_those_of_one_machine(tmp_path: Path) -> None:
    from loadtest.onnx_files import colours
    from PIL import Image

    images = tmp_path / "images"
    for place, colour in enumerate(("a-red", "b-green", "c-blue")):
        (images / colour).mkdir(parents=True)
        for number in range(3):
            pixels = np.zeros((240, 260, 3), np.uint8)
            pixels[..., place] = 200 + number
            Image.fromarray(pixels).save(images / colour / f"{number}.png")
    (images / "a-red" / "0.png").rename(images / "c-blue" / "wrong.png")  # red, labelled blue
    onnx = ("--engine", "onnxruntime", "--threads", "1", "--model", str(colours(tmp_path / "m.onnx")))
    with nodes(tmp_path, "a", "b", options=onnx) as started:
        result = lanewise.loadtest_run(
            over(started, tmp_path, images=images, accuracy=True, transport="tcp", qps=200.0)
        )
        audit = lanewise.loadtest_run(over(started, tmp_path, images=images, audit="payload", qps=200.0)).audit
    assert result.accuracy is not None
    assert (result.accuracy.correct, result.accuracy.counted) == (8, 9)
    assert result.setup["sha256"]
    assert audit is not None
    assert audit.figures == {"checked": 9.0, "wrong": 0.0}


def test_the_same_sample_audit_runs_over_nodes(tmp_path: Path) -> None:
    with nodes(tmp_path, "a") as started:
        result = lanewise.loadtest_run(over(started, tmp_path, audit="same-sample", qps=1000.0))
    assert result.same_sample is not None
    assert result.same_sample.settings["sut_name"] == "Network SUT: a"
    assert result.audit is not None


def test_a_peak_is_searched_for_from_the_offline_rate_of_the_nodes(tmp_path: Path) -> None:
    slow = ("--engine", "synthetic", "--service", "1 ms", "--sample-bytes", "512 B")
    with nodes(tmp_path, "a", "b", options=slow) as started:
        run = over(started, tmp_path)
        options = PeakOptions(
            nodes=run.nodes, secret_file=run.secret_file, library=32, depth=16, connections=2, bound=0.5, seconds=1.0,
            results=tmp_path / "peak", output=tmp_path / "peak.json",
        )  # fmt: skip
        result = lanewise.loadtest_peak(options)
    assert result.prediction is None
    assert str(result.setup["prediction"]).startswith("none: nodes answer")
    assert result.offline > 0.0
    rows = json.loads((tmp_path / "peak.json").read_text())["rows"]
    assert {row["how"]["division"] for row in rows} == {"Network"}
    assert {row["how"]["nodes"].count(" (") for row in rows} == {2}


def test_the_payload_audit_finds_a_byte_that_changed_on_its_way(tmp_path: Path) -> None:
    with nodes(tmp_path, "a") as (a,), flipping_wire(a.port) as wire:
        result = lanewise.loadtest_run(
            over([a], tmp_path, nodes=(wire.address,), audit="payload", transport="tcp", qps=1000.0)
        )
    assert wire.flipped
    assert result.audit is not None
    assert not result.audit.passed
    assert re.match(r"1 of 32 samples arrived changed: \d+$", result.audit.cause)


def test_a_run_says_where_its_time_went_and_traces_its_queries(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    with nodes(tmp_path, "a") as started:
        result = lanewise.loadtest_run(over(started, tmp_path, qps=500.0, percentile=0.9, trace=trace))
    assert result.run.valid, result.run.reasons
    assert list(result.statistics.stages) == ["dispatch", "fabric", "node", "queue", "copy", "infer", "answer", "total"]
    assert result.statistics.answered == result.run.queries
    assert trace.read_text().count('"name":"dispatch"') == 2 * result.run.queries


def test_a_slow_node_gets_fewer_queries_and_is_named(tmp_path: Path) -> None:
    slow = ("--engine", "synthetic", "--service", "20 ms", "--sample-bytes", "512 B", "--batch", "1")
    with nodes(tmp_path, "quick") as (quick,), nodes(tmp_path, "lame", options=slow) as (lame,):
        result = lanewise.loadtest_run(over([quick, lame], tmp_path, qps=400.0, seconds=0.5, percentile=0.9))
    by_name = {node.name: node for node in result.statistics.nodes}
    assert by_name["lame"].address == lame.address
    assert by_name["quick"].answered + by_name["lame"].answered == result.run.queries
    assert by_name["lame"].answered < by_name["quick"].answered / 2  # it can answer 50 a second
    assert by_name["lame"].stages["infer"]["mean"] >= 0.02
    text = render_run(run_data(result))
    assert re.search(r"node lame is slow: its (queue|infer) takes \S+ \S+ on average, that of quick ", text), text


def killed_in_run(node: NodeProcess) -> Tick:
    """A tick that kills a node once, when queries were answered."""
    killed: list[bool] = []

    def tick(issued: int, answered: int, late: int) -> None:
        if answered and not killed:
            node.kill()
            killed.append(True)

    return tick


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_killed_node_makes_the_run_invalid_and_comes_back_before_the_next(tmp_path: Path, transport: str) -> None:
    with nodes(tmp_path, "a", "b") as (a, b):
        options = over([a, b], tmp_path, transport=transport)
        with open_session(options, tmp_path / "logs", tick=killed_in_run(b)) as session:
            lost = session.runner.run(LoadSpec(qps=500.0, seconds=2.0, queries=1000, bound=60.0, percentile=0.9))
            at_a, at_b = session.statistics().nodes
            again = NodeProcess(tmp_path, "b", port=b.port)
            try:
                whole = session.runner.run(SERVER)
            finally:
                again.close()
    assert not lost.valid
    assert lost.reasons[0].startswith(f"node {b.address} was lost: ")
    assert lost.reasons[0].endswith(" queries unanswered")
    unanswered = int(lost.reasons[0].split()[-3].replace(",", ""))
    assert lost.folder is not None
    log = detail_log.parse((lost.folder / detail_log.NAME).read_text())
    assert lost.queries + unanswered == log.queries >= 1000  # the other went on
    assert (at_a.lost, at_a.unanswered) == ("", 0)
    assert (at_b.name, f"{at_b.lost}; {at_b.unanswered:,} queries unanswered") == ("b", lost.reasons[0])
    assert at_a.answered + at_b.answered == lost.queries
    stages = {"dispatch", "fabric", "node", "total"}  # of what it answered before, if it did
    assert set(at_b.stages) == (stages if at_b.answered else set())
    assert whole.valid, whole.reasons
    assert not whole.losses
    assert not any("memfd:lanewise" in name for name in descriptors(os.getpid()))


def test_a_node_that_does_not_come_back_ends_the_load_test(tmp_path: Path) -> None:
    with nodes(tmp_path, "a", "b") as (a, b), open_session(over([a, b], tmp_path), tmp_path / "logs") as session:
        assert isinstance(session, FrontendSession)
        link = session.frontend.nodes[1].link
        b.kill()
        until(lambda: link.reason)
        with pytest.raises(CannotMeasure, match=f"node {b.address} was lost .* cannot be connected again: nothing"):
            session.runner.run(SERVER)


def until(reached: Callable[[], object]) -> None:
    """Waits for what another thread does."""
    end = time.monotonic() + HANGS
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_run_whose_nodes_are_all_lost_ends_with_the_reason(tmp_path: Path) -> None:
    with nodes(tmp_path, "a") as (a,):
        options = over([a], tmp_path)
        with (
            open_session(options, tmp_path / "logs", tick=killed_in_run(a)) as session,
            pytest.raises(CannotMeasure, match=f"node {a.address} was lost: .* queries unanswered"),
        ):
            session.runner.run(LoadSpec(qps=500.0, seconds=HANGS, queries=1000, bound=60.0))


def test_a_killed_frontend_costs_a_node_its_session_only(tmp_path: Path) -> None:
    with nodes(tmp_path, "a") as (a,):
        words = ["loadtest", "run", "--nodes", a.address, "--secret-file", str(tmp_path / "secret"), "--qps", "500",
                 "--depth", "16", "--seconds", str(HANGS), "--results", str(tmp_path / "killed")]  # fmt: skip
        code = "import sys; from lanewise.cli.main import main; sys.exit(main())"
        frontend = subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True)
        a.line("came")
        assert frontend.stderr is not None
        while "Server" not in frontend.stderr.readline():
            pass
        frontend.kill()
        frontend.communicate()
        line = a.line("client 127.0.0.1")
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d a: client 127.0.0.1 .*after", line), line
        before = len(a.descriptors())
        result = lanewise.loadtest_run(over([a], tmp_path, qps=500.0, percentile=0.9))
        a.line("left after")
        assert result.run.valid, result.run.reasons
        assert not any("memfd" in name for name in a.descriptors())
        assert len(a.descriptors()) == before


def test_a_second_frontend_hears_that_the_node_is_busy(tmp_path: Path) -> None:
    with (
        nodes(tmp_path, "a") as started,
        open_session(over(started, tmp_path), tmp_path / "logs"),
        pytest.raises(CannotMeasure, match="is serving another client"),
    ):
        lanewise.loadtest_run(over(started, tmp_path, qps=500.0))


def test_nodes_that_differ_are_named(tmp_path: Path) -> None:
    with (
        nodes(tmp_path, "a") as (a,),
        nodes(tmp_path, "b", options=(*QUICK[:-1], "1 KiB")) as (b,),
        pytest.raises(Contradiction, match=rf"node {a.address} takes samples of .*512 B, node {b.address} of .*1024 B"),
    ):
        lanewise.loadtest_run(over([a, b], tmp_path, qps=500.0))


def test_a_node_named_twice_is_refused_whatever_way_its_port_is_written(tmp_path: Path) -> None:
    secret_in(tmp_path)
    twice = ("127.0.0.1", "127.0.0.1:7000")
    with pytest.raises(InputError, match=r"--nodes names 127\.0\.0\.1:7000 twice"):
        lanewise.loadtest_run(over([], tmp_path, nodes=twice, qps=500.0))


def test_samples_of_one_size_but_another_form_have_a_hint_that_helps(tmp_path: Path) -> None:
    def node(address: str, synthetic: bool, dtype: str, shape: list[int]) -> Any:
        sample = SampleForm(shape=shape, dtype=dtype, bytes=512)
        return SimpleNamespace(address=address, facts=SimpleNamespace(sample=sample, synthetic=synthetic, setup={}))

    with pytest.raises(Contradiction) as refused:
        agreed([node("a", True, "uint8", [512]), node("b", False, "float32", [128])])
    assert refused.value.hint == "serve the same engine and model at all nodes"
    with pytest.raises(Contradiction, match=r"node b of .* \(synthetic\)"):
        agreed([node("a", False, "uint8", [512]), node("b", True, "uint8", [512])])


def test_a_search_whose_node_is_gone_names_the_folder_to_resume_from(tmp_path: Path) -> None:
    gone: list[NodeProcess] = []
    with nodes(tmp_path, "a") as (a,):
        run = over([a], tmp_path)
        options = PeakOptions(
            nodes=run.nodes, secret_file=run.secret_file, library=32, depth=16, connections=2, bound=60.0, seconds=1.0,
            results=tmp_path / "peak",
        )  # fmt: skip

        def kill(_: object) -> None:
            if not gone:
                gone.append(a)
                a.kill()

        with pytest.raises(CannotMeasure, match="was lost") as lost:
            lanewise.loadtest_peak(options, on_run=kill)
    assert lost.value.hint.endswith(f"resume with --results {tmp_path / 'peak'}")


def test_another_secret_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.touch(mode=0o600)
    other.write_text("another secret of the tests")
    with nodes(tmp_path, "a") as started, pytest.raises(CannotMeasure, match="another secret"):
        lanewise.loadtest_run(over(started, tmp_path, qps=500.0, secret_file=other))


def test_options_of_nodes_have_no_effect_at_the_frontend_and_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--batch is an option of the nodes"):
        lanewise.loadtest_run(over([], tmp_path, nodes=("localhost",), batch=4, qps=500.0))


def test_ctrl_c_ends_a_node_cleanly_and_leaves_nothing(tmp_path: Path) -> None:
    with nodes(tmp_path, "a") as started, open_session(over(started, tmp_path), tmp_path / "logs"):
        assert any("memfd:lanewise" in name for name in started[0].descriptors())
        assert not started[0].named_memory()
        assert started[0].interrupt() == 0
        started[0].line("ended")
