"""`lanewise loadtest run` and `peak`: verdicts, Top-1, audits; a failure is an error line, a hint and exit code 2."""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_cuda
import numpy as np
import pytest
from cli_binary import BINARY, interrupted, interrupts_itself
from loadtest.needs import models

from lanewise.installed import loadgen_missing

if sys.platform != "linux":
    pytest.skip("load tests are for Linux", allow_module_level=True)
if missing := loadgen_missing():
    pytest.skip(f"built without LoadGen: {missing}", allow_module_level=True)

from lanewise.cli.verbs import run as lanewise
from lanewise.errors import CannotMeasure
from lanewise.loadtest.load_run import LoadSpec

QUICK = ["--engine", "synthetic", "--service", "50 us", "--sample-bytes", "512 B", "--library", "32"]
# For searches: a bound that a busy machine keeps as well, and a service so slow that its prediction is soon simulated.
CALM = [*QUICK, "--service", "1 ms", "--bound", "500 ms"]
NEVER = "600 s"  # a bound that no query breaks
ONNX = ["--engine", "onnxruntime", "--threads", "1"]

Told = tuple[int, str, str]
Ask = Callable[..., Told]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """`lanewise loadtest ...` in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def asked(*words: object) -> Told:
        code = lanewise(["loadtest", *map(str, words)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return asked


@pytest.fixture
def sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator alone holds twice any rate: that is not tried each time."""
    from lanewise.loadtest import selftest

    monkeypatch.setattr(selftest, "holds", lambda *_: True)


def refused(told: Told, *words: str) -> str:
    """The error of a command that must have failed with one error line, a hint, and nothing on stdout."""
    code, out, err = told
    lines = err.splitlines()
    assert code == 2, err
    assert out == ""
    assert [line[:6] for line in lines[-2:]] == ["error:", "hint: "], err
    assert sum(line.startswith("error:") for line in lines) == 1
    assert "Traceback" not in err
    for word in words:
        assert word in err
    return err


def pictures(folder: Path) -> Path:
    """Four red, four green and four blue images in a folder each."""
    from PIL import Image

    for place, colour in enumerate(("a-red", "b-green", "c-blue")):
        (folder / colour).mkdir(parents=True)
        for number in range(4):
            pixels = np.zeros((240, 260, 3), np.uint8)
            pixels[..., place] = 200 + number
            Image.fromarray(pixels).save(folder / colour / f"{number}.png")
    return folder


def test_a_run_says_what_loadgen_says_and_keeps_its_logs(ask: Ask, tmp_path: Path):
    code, out, _ = ask(
        "run", *QUICK, "--qps", 800, "--seconds", 0.1, "--queries", 480, "--bound", NEVER, "--results", "logs-here",
        "--json", "-o", "run.json", "--trace", "trace.json", "--seed", 7,
    )  # fmt: skip
    assert code == 0
    found = json.loads(out)
    log = (Path(found["logs"]) / "mlperf_log_detail.txt").read_text()
    assert found["valid"]
    assert '"result_validity", "value": "VALID"' in log
    assert found["bound"] == 600.0
    assert found["seed"] == 7
    assert '"effective_target_qps", "value": 800' in log
    rows = json.loads((tmp_path / "run.json").read_text())["rows"]
    assert {row["metric"] for row in rows} >= {"completed", "goodput", "p50", "p99"}
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "b" for event in events) == found["queries"]


@pytest.mark.parametrize("scenario", ["offline", "SingleStream", "multi-stream"])
def test_every_scenario_of_mlperf_runs(ask: Ask, scenario: str):
    code, out, err = ask("run", *QUICK, "--scenario", scenario, "--seconds", 0.3, "--queries", 100, "--percentile", 0.9,
                         "--json")  # fmt: skip
    found = json.loads(out)
    assert code == (0 if found["valid"] else 1), err
    assert found["scenario"].lower() == scenario.lower().replace("-", "")
    assert found["qps"] > 0
    assert found["bound"] is None


def test_what_stands_in_user_conf_counts_but_for_the_rate(ask: Ask, tmp_path: Path):
    (tmp_path / "user.conf").write_text("*.Server.target_latency = 250000\n*.Server.min_duration = 300\n"
                                        "*.Server.target_qps = 7\n*.Server.min_query_count = 480\n")  # fmt: skip
    code, out, err = ask("run", *QUICK, "--qps", 1500, "--seconds", 9, "--user-conf", "user.conf", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["bound"] == 250.0
    assert found["target"] == 1500
    assert 480 <= found["queries"] < 1500


@models
def test_top1_is_the_share_of_images_whose_class_is_named(ask: Ask, tmp_path: Path):
    from loadtest.onnx_files import colours

    folder = pictures(tmp_path / "images")
    (folder / "a-red" / "0.png").rename(folder / "c-blue" / "wrong.png")  # red, labelled blue
    told = ask("run", *ONNX, "--model", colours(tmp_path / "m.onnx"), "--images", folder, "--accuracy", "--json")
    found = json.loads(told[1])
    assert found["accuracy"] == {"top1": 11 / 12, "correct": 11, "counted": 12, "of": 12}
    if told[0] != 0:  # twice in about ten suites LoadGen logged an error; which one is to be learned
        assert found["reasons"], told[2]
        warnings.warn(f"LoadGen logged errors: {found['reasons']}", stacklevel=1)


def test_the_payload_audit_finds_every_sample_unchanged(ask: Ask):
    code, out, _ = ask("run", *QUICK, "--audit", "payload", "--json")
    assert code == 0
    assert json.loads(out)["audit"]["figures"] == {"checked": 32.0, "wrong": 0.0}


@models
def test_the_payload_audit_sums_what_a_model_got(ask: Ask, tmp_path: Path):
    from loadtest.onnx_files import colours

    model = colours(tmp_path / "m.onnx")
    code, out, _ = ask("run", *ONNX, "--model", model, "--library", 20, "--audit", "payload", "--json")
    assert code == 0
    assert json.loads(out)["audit"]["figures"] == {"checked": 20.0, "wrong": 0.0}


def test_a_changed_sample_fails_the_payload_audit_with_exit_code_1(ask: Ask, monkeypatch: pytest.MonkeyPatch):
    from lanewise.loadtest.datasets import NativeSamples

    true = NativeSamples.sample
    monkeypatch.setattr(NativeSamples, "sample", lambda own, i: b"x" + true(own, i)[1:] if i == 5 else true(own, i))
    code, out, _ = ask("run", *QUICK, "--audit", "payload")
    assert code == 1
    assert "audit      payload FAILED: 1 of 32 samples arrived changed: 5" in out


def test_the_same_sample_audit_sends_one_sample_in_its_second_run(ask: Ask):
    code, out, err = ask("run", *QUICK, "--audit", "same-sample", "--seconds", 0.3, "--queries", 50, "--json")
    assert code in (0, 1), err
    found = json.loads(out)
    assert code == (not found["audit"]["passed"])
    first, second = ((Path(each) / "mlperf_log_detail.txt").read_text()
                     for each in (found["logs"], found["same_sample"]["logs"]))  # fmt: skip
    assert '"effective_performance_issue_same", "value": false' in first
    assert '"effective_performance_issue_same", "value": true' in second


def test_a_cache_fails_the_same_sample_audit(ask: Ask, monkeypatch: pytest.MonkeyPatch):
    import dataclasses

    from lanewise.loadtest import loadgen

    true = loadgen.LoadGenRunner.run

    def cached(own: Any, load: LoadSpec) -> Any:
        outcome = true(own, load)
        return dataclasses.replace(outcome, qps=1000 * outcome.qps) if own.setup.audit else outcome

    monkeypatch.setattr(loadgen.LoadGenRunner, "run", cached)
    code, out, _ = ask("run", *QUICK, "--audit", "same-sample", "--seconds", 0.2, "--queries", 50)
    assert code == 1
    assert "same-sample FAILED: one sample repeated" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", *QUICK], "needs a target above 0"),
        (["run", *QUICK, "--qps", "0"], "needs a target above 0"),
        (["run", *QUICK, "--qps", "-2"], "--qps is -2"),
        (["run", *QUICK, "--qps", "nan"], "'nan' is not a number"),
        (["run", *QUICK, "--qps", "9", "--seconds", "0"], "a run of 0 s"),
        (["run", *QUICK, "--scenario", "servr", "--qps", "9"], "did you mean server?"),
        (["run", *QUICK, "--audit", "same"], "unknown audit 'same'"),
        (["run", *QUICK, "--accuracy"], "no image with a label"),
        (["run", *QUICK, "--qps", "9", "--user-conf", "none.conf"], "no file none.conf"),
        (["run", *QUICK, "--qps", "9", "--engine", "sintetic"], "did you mean synthetic?"),
        (["run", *QUICK, "--qps", "9", "--devices", "tpu0"], "unknown device 'tpu0'"),
        (["run", *QUICK, "--qps", "9", "--devices", "gpu4711"], "error: "),
        (["run", *QUICK, "--qps", "9", "-o", "no/such/folder.json"], "no/such"),
        (["run", *QUICK, "--qps", "1e6", "--seconds", "1e6"], "LoadGen makes its queries beforehand"),
        (["run", *QUICK[:-1], "1000000000000", "--qps", "9"], "GB of host memory needed"),
        (["peak", *QUICK, "--bound", "0 s"], "latency bound of 0"),
        (["peak", *QUICK, "--service", "1 ms + 1 ms + 1 ms"], "more than two times"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_leaves_nothing(ask: Ask, tmp_path: Path, words: list[str], said: str):
    refused(ask(*words), said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("devices", "extra"), [("cpu", "loadtest"), ("gpu4711", "torch")])
def test_where_no_engine_is_installed_it_says_that_no_model_runs(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, devices: str, extra: str
):
    find = importlib.util.find_spec
    gone = ("onnxruntime", "torch")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *of: None if name in gone else find(name, *of))
    words = ["run", *QUICK[2:], "--devices", devices, "--qps", 800, "--seconds", 0.1, "--queries", 480]
    words += ["--bound", NEVER]
    code, out, err = ask(*words)
    first, second, *_ = err.splitlines()
    assert first.startswith("note: neither onnxruntime nor torch is installed: the synthetic engine measures path")
    assert second == f"hint: pip install 'lanewise[{extra}]'"
    if devices == "cpu":
        assert code == 0, err
        assert "engine synthetic" in out
    assert "neither onnxruntime" not in ask(*words, "--engine", "synthetic")[2]  # as asked for


def test_a_sweep_takes_images_as_a_search_does(ask: Ask):
    refused(ask("sweep", *QUICK, "--batches", 1, "--images", "nowhere"), "nowhere: there is no such folder of images")


def test_a_sweep_that_is_refused_leaves_no_folder(ask: Ask):
    words = ["sweep", *QUICK, "--batches", "1,2", "--images", "nowhere", "--results", "a/b"]
    refused(ask(*words), "nowhere")
    assert list(Path().iterdir()) == []


def test_without_loadgen_it_says_how_to_get_it(ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from lanewise.loadtest import loadgen

    monkeypatch.setattr(loadgen, "loadgen_missing", lambda: "it could not be fetched")
    for words in (["run", *QUICK, "--qps", 9], ["peak", *QUICK]):
        refused(ask(*words), "built without: it could not be fetched", "LANEWISE_LOADGEN_SDIST")
    assert list(tmp_path.iterdir()) == []


@models
def test_an_unknown_model_a_broken_file_and_one_of_two_inputs_are_refused(ask: Ask, tmp_path: Path):
    from loadtest.onnx_files import two_inputs

    (tmp_path / "bad.onnx").write_bytes(b"no model at all")
    two_inputs(tmp_path / "two.onnx")
    refused(ask("run", *ONNX, "--qps", 9, "--model", "resnet51"), "did you mean resnet50?")
    refused(ask("run", *ONNX, "--qps", 9, "--model", "gone.onnx"), "gone.onnx: the model cannot be read")
    refused(ask("run", *ONNX, "--qps", 9, "--model", "bad.onnx"), "bad.onnx: onnxruntime refuses it")
    refused(ask("run", *ONNX, "--qps", 9, "--model", "two.onnx"), "two.onnx: the model has 2 inputs (a, b)")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.onnx", "two.onnx"]


@models
def test_a_gpu_that_is_not_there_is_named_before_anything_runs(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    import onnxruntime

    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", "absent-libcuda.so")
    refused(ask("run", *ONNX, "--qps", 9, "--devices", "gpu0"), "absent-libcuda.so", "nvidia-smi")
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        monkeypatch.setenv("LANEWISE_CUDA_DRIVER", str(fake_cuda.build()))
        refused(ask("run", *ONNX, "--qps", 9, "--devices", "gpu0"), "CUDAExecutionProvider", "use the CPU")
    assert list(tmp_path.iterdir()) == []


@models
def test_a_broken_image_is_named_with_its_file(ask: Ask, tmp_path: Path):
    from loadtest.onnx_files import colours

    folder = pictures(tmp_path / "images")
    (folder / "b-green" / "2.png").write_bytes(b"\x89PNG and no more")
    model = colours(tmp_path / "m.onnx")
    words = ["run", *ONNX, "--model", model, "--images", folder, "--accuracy", "--results", "kept"]
    err = refused(ask(*words))
    assert "b-green/2.png: not an image that can be read" in err
    assert "logs" not in err  # it was found before LoadGen ran
    assert not (tmp_path / "kept").exists()
    err = refused(ask(*words, "--qps", "100"))
    assert "b-green/2.png: not an image that can be read" in err
    assert "logs: kept" in err
    assert list((tmp_path / "kept" / "logs").iterdir())


@models
def test_an_operator_that_fails_in_the_middle_ends_the_run_and_keeps_its_logs(tmp_path: Path):
    # A real process: its whole stderr, that of native libraries too.
    import subprocess

    from loadtest.onnx_files import fails_later

    model = fails_later(tmp_path / "m.onnx")
    command = [BINARY, "loadtest", "run", *ONNX, "--model", model, "--qps", 2000, "--seconds", 60, "--results", "kept"]
    done = subprocess.run([str(word) for word in command], cwd=tmp_path, capture_output=True, text=True, check=False)
    refused((done.returncode, done.stdout, done.stderr), "indices element out of data bounds", "logs: kept")
    assert "onnxruntime:" not in done.stderr.replace("onnxruntime m.onnx", "")
    assert "nanobind" not in done.stderr
    log = tmp_path / "kept" / "logs" / "0001-server-2000-seed1" / "mlperf_log_detail.txt"
    assert "the system under test failed" in log.read_text()
    assert '"result_validity", "value": "VALID"' not in log.read_text()


@models
def test_an_engine_that_fails_in_a_search_leaves_the_runs_before(ask: Ask, monkeypatch: pytest.MonkeyPatch):
    from lanewise.loadtest import prediction
    from lanewise.loadtest.engines import callback

    def unbound(times: dict[int, float], *_: object) -> prediction.PredictedPeak:
        most = max(batch / seconds for batch, seconds in times.items())
        return prediction.PredictedPeak(0.9 * most, (0.7 * most, most), most)

    monkeypatch.setattr(prediction, "predict_peak", unbound)  # which is simulated for seconds elsewhere
    true = callback.as_bytes

    def worn_out(made: Any) -> Any:
        kept = Path("kept/search.jsonl")
        if kept.exists() and kept.read_text().count("\n") > 3:
            raise CannotMeasure("the device fell off the bus", hint="reboot")
        return true(made)

    monkeypatch.setattr(callback, "as_bytes", worn_out)
    from loadtest.onnx_files import means

    words = ["peak", *ONNX, "--model", means(Path("m.onnx")), "--seconds", 40, "--results", "kept", "--library", 8]
    refused(ask(*words), "error: the device fell off the bus", "reboot; logs: kept")
    lines = Path("kept/search.jsonl").read_text().splitlines()
    assert len(lines) >= 2
    assert all(json.loads(line)["kind"] for line in lines[1:])


@pytest.mark.usefixtures("sure")
def test_a_search_goes_on_with_the_same_settings_only(ask: Ask):
    words = ["peak", *CALM, "--seconds", 1, "--most-runs", 2, "--results", "kept"]
    code, _, err = ask(*words)
    assert code == 0, err
    before = Path("kept/search.jsonl").read_text()
    for other in (["--batch", 4], ["--bound", "20 ms"], ["--timeout", "2 ms"], ["--service", "60 us"]):
        refused(ask(*words, *other), "kept/search.jsonl:1: holds a search with other settings")
        assert Path("kept/search.jsonl").read_text() == before
    again, out, err = ask(*words, "--json")
    assert again == 0, err
    assert Path("kept/search.jsonl").read_text() == before
    assert len(json.loads(out)["runs"]) == before.count("\n") - 1


def test_a_generator_that_does_not_hold_twice_the_rate_by_itself_is_noted(ask: Ask, monkeypatch: pytest.MonkeyPatch):
    from lanewise.loadtest import selftest

    words = ["peak", *CALM, "--seconds", 1, "--most-runs", 2, "--results", "kept", "--json"]
    tried = []

    def holds(*asked: Any) -> bool:
        tried.append(asked[-1].qps)
        return len(tried) > 1

    monkeypatch.setattr(selftest, "holds", holds)
    told = json.loads(ask(*words)[1])
    assert tried == [pytest.approx(2 * told["qps"])]
    assert any("the generator alone does not hold twice this rate" in note for note in told["notes"])
    assert not any("the generator alone" in note for note in json.loads(ask(*words)[1])["notes"])


def test_a_single_run_that_asks_much_of_the_generator_is_noted(ask: Ask, monkeypatch: pytest.MonkeyPatch):
    from lanewise.loadtest import selftest

    monkeypatch.setattr(selftest, "holds", lambda *_: False)
    for qps, noted in ((20_000, False), (30_000, True)):
        told = json.loads(ask("run", *QUICK, "--qps", qps, "--seconds", 0.2, "--queries", 100, "--json")[1])
        assert any("the generator alone" in note for note in told["notes"]) is noted


@pytest.mark.usefixtures("sure")
def test_a_finished_search_told_again_says_where_the_last_runs_time_went(ask: Ask):
    words = ("peak", *CALM, "--seconds", 1, "--results", "kept", "--json")
    first, again = (json.loads(ask(*words)[1]) for _ in range(2))
    assert first["mean_batch"] > 0
    for name in ("runs", "stages", "mean_batch", "limit"):
        assert again[name] == first[name]


def test_a_file_that_is_no_search_is_left_as_it_is(ask: Ask):
    Path("kept").mkdir()
    Path("kept/search.jsonl").write_text("my diary\n")
    refused(ask("peak", *QUICK, "--seconds", 2, "--results", "kept"), "kept/search.jsonl:1", "not a line of a search")
    assert Path("kept/search.jsonl").read_text() == "my diary\n"


# LoadGen, which tells how many queries it has issued: in its first run of a second a Ctrl-C comes when there are some.
# The warm-up and Offline runs before may be over by the first tick.
LONG_RUN = """
import signal
import warnings
from lanewise import _loadgen
run = _loadgen.run_load
def interrupted(system, settings, tick):
    def signalled(issued, answered, late):
        if issued and settings.seconds >= 1.0:
            signal.raise_signal(signal.SIGINT)
        tick(issued, answered, late)
    return run(system, settings, signalled)
_loadgen.run_load = interrupted
"""


def test_ctrl_c_keeps_finished_runs_and_the_same_command_goes_on(tmp_path: Path):
    search = ["loadtest", "peak", *CALM, "--seconds", "1.5", "--most-runs", "3", "--results", "kept"]
    state = tmp_path / "kept" / "search.jsonl"
    cut = interrupts_itself(LONG_RUN, [*search, "--json"], tmp_path)
    assert cut.returncode == 130, cut.stderr
    assert cut.stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in cut.stderr
    assert "nanobind" not in cut.stderr
    assert cut.stdout == ""
    before = state.read_text()
    finished = before.count("\n") - 1
    assert finished >= 2
    # How often it warms up depends on the machine; every run but the one that was cut off is kept.
    assert finished == len(list((tmp_path / "kept" / "logs").iterdir())) - 1

    import subprocess

    done = subprocess.run([BINARY, *search, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert state.read_text().startswith(before)
    found = json.loads(done.stdout)
    # What was finished was not run again: only the run that was cut off left a folder without a line.
    runs = len(found["runs"])
    folders = len(list((tmp_path / "kept" / "logs").iterdir()))
    assert runs >= finished
    assert state.read_text().count("\n") - 1 == runs
    assert runs <= folders <= runs + 1


def test_ctrl_c_in_a_single_run_keeps_its_logs(tmp_path: Path):
    command = [BINARY, "loadtest", "run", *QUICK, "--qps", 100, "--seconds", 600, "--bound", NEVER,
               "--results", "kept"]  # fmt: skip
    logs = tmp_path / "kept" / "logs"
    cut = interrupted(command, lambda: logs.exists() and any(logs.glob("*/mlperf_log_detail.txt")), tmp_path)
    assert cut.returncode == 130, cut.stderr
    assert cut.stderr.splitlines()[-1] == "interrupted"
    assert "nanobind" not in cut.stderr
    (log,) = logs.glob("*/mlperf_log_detail.txt")
    assert "interrupted" in log.read_text()


@models
def test_any_error_of_an_engine_ends_the_run_at_once(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from loadtest.onnx_files import means

    from lanewise.loadtest.engines import callback

    true, calls = callback.as_bytes, []

    def failing(made: Any) -> Any:
        calls.append(len(made))
        if sum(calls) > 50:
            raise ZeroDivisionError("no such luck")
        return true(made)

    monkeypatch.setattr(callback, "as_bytes", failing)
    words = ["run", *ONNX, "--model", means(tmp_path / "m.onnx"), "--qps", 500, "--seconds", 600, "--library", 8]
    refused(
        ask(*words, "--results", "kept"), "the system under test failed: ZeroDivisionError: no such luck", "logs: kept"
    )
