"""All measuring verbs one after the other as users type them, on this machine, whatever it is; and how they stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from cli_binary import BINARY

from lanewise import api

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="probes of Linux")
HOST = ("measure", "host", "--what", "copy", "--bytes", "8MiB", "--threads", "1")
MODES = ("--modes", "cached", "--io", "64KiB", "--threads", "2")


@LINUX
def test_discover_measure_check_compare_and_report_run_end_to_end_without_a_gpu(lanewise, tmp_path):
    (tmp_path / "drive").mkdir()

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = lanewise(*arguments)
        assert done.returncode == code, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
        return done

    run("discover", "-o", "machine.yaml", "--capture", "machine.tar.zst", "--draw", "machine.svg")
    assert (tmp_path / "machine.svg").read_text().startswith("<svg")
    again = run("discover", "--from", "machine.tar.zst", "--json")
    devices = {device["name"] for device in json.loads(again.stdout)["devices"]}
    assert devices == set(api.load_system(str(tmp_path / "machine.yaml")).devices)

    assert "memory copy" in run(*HOST, "-o", "host.json", "--samples", "host.jsonl").stdout
    assert "memory copy" in run(*HOST, "-o", "later.json").stdout
    read = run("measure", "storage", "drive", "--make", "4MiB", *MODES, "--runs", "2", "-o", "storage.json")
    assert "read cached" in read.stdout
    assert os.listdir(tmp_path / "drive") == []

    # No model says what the memory of a machine copies: not judged, unless an earlier run does.
    aside = run("check", "--from", "host.json", "--system", "machine.yaml", code=3)
    assert "memory modules" in aside.stdout
    judged = run("check", "--from", "host.json", "--from", "machine.tar.zst", "--expect", "host.json", "--json",
                 "--prometheus", "lanewise.prom", "-o", "checked.json")  # fmt: skip
    assert json.loads(judged.stdout)["counts"]["ok"] == 1
    assert "lanewise_check_exit_code 0" in (tmp_path / "lanewise.prom").read_text()
    run("check", "--from", "storage.json", code=3)

    assert "1 pair" in run("compare", "host.json", "later.json").stdout
    for name in ("host", "storage", "checked"):
        run("report", f"{name}.json", "-o", f"{name}.html")
        assert "Where and under which conditions" in (tmp_path / f"{name}.html").read_text()
    assert not [path for path in tmp_path.rglob("*") if "partial" in path.name or path.name.startswith(".")]


@LINUX
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_however_a_measurement_ends_finished_samples_stay_and_nothing_is_half_written(tmp_path, clean_env, how):
    (tmp_path / "drive").mkdir()
    process = subprocess.Popen(
        [BINARY, "measure", "storage", "drive", "--make", "8MiB", *MODES, "--seconds", "0.2 s", "--runs", "1000",
         "-o", "run.json", "--samples", "s.jsonl"],
        cwd=tmp_path, env=clean_env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )  # fmt: skip
    samples, deadline = tmp_path / "s.jsonl", time.monotonic() + 300
    while not (samples.exists() and samples.read_text().count("\n") > 3) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(how)
    _, stderr = process.communicate(timeout=300)
    assert "Traceback" not in stderr
    kept = [json.loads(line) for line in samples.read_text().splitlines()]
    assert any(row["value"] for row in kept)
    left = {"drive", "s.jsonl"}
    if how is not signal.SIGKILL:
        left.add("run.json")
        assert process.returncode == 128 + how, stderr
        assert stderr.splitlines()[-1] == "interrupted"
        assert len(api.load_run(tmp_path / "run.json").rows) > 0
    assert set(os.listdir(tmp_path)) == left
    assert os.listdir(tmp_path / "drive") == []


@LINUX
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "2>/dev/full", ">&- 2>&-"])
def test_a_closed_or_full_stream_costs_its_words_only(tmp_path, clean_env, closed):
    command = f"'{BINARY}' {' '.join(HOST)} -o run.json {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=clean_env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(api.load_run(tmp_path / "run.json").rows) == 1


@LINUX
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("measure", "storage", "/proc/cpuinfo"), "error: /proc/cpuinfo: has no size"),
        (("measure", "storage", "nowhere.bin"), "error: nowhere.bin: cannot be read"),
        (("measure", "storage", ".", "--make", "1MiB", "--seconds", "0"), "error: a run of no time"),
        (("measure", "storage", ".", "--make", "1MiB", "--seconds", "-1"), "error: a run of no time"),
        ((*HOST, "-o", "nowhere/run.json"), "error: nowhere/run.json: there is no folder"),
        ((*HOST, "-o", "/dev/full"), "error: /dev/full: cannot be written: No space left"),
        ((*HOST, "--samples", "/dev/full"), "error: /dev/full: cannot be written: No space left"),
        (("discover", "-o", "/dev/full"), "error: /dev/full: cannot be written: No space left"),
        (("check", "nowhere.txt"), "error: nowhere.txt: cannot be read"),
    ],
)
def test_what_cannot_be_is_one_error_and_one_hint_and_leaves_nothing(lanewise, tmp_path, arguments, error):
    done = lanewise(*arguments)
    assert done.returncode == 2
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert said.startswith(error)
    assert done.stderr.splitlines()[-1].startswith("hint:  ")
    assert os.listdir(tmp_path) == []


@LINUX
def test_a_folder_and_a_file_without_permission_are_errors_and_leave_nothing(tmp_path, clean_env):
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    (tmp_path / "mine.bin").write_bytes(bytes(1 << 16))
    (tmp_path / "mine.bin").chmod(0)
    (tmp_path / "locked").mkdir(mode=0o555)
    attempts = [
        (("measure", "storage", "mine.bin"), "error: mine.bin: cannot be read: Permission denied"),
        (("measure", "storage", "locked", "--make", "1MiB"), "error: locked: no test file can be made"),
        ((*HOST, "-o", "locked/run.json"), "error: locked/run.json: cannot be written"),
        (("discover", "--capture", "locked/m.tar.zst"), "error: locked/m.tar.zst: cannot be written"),
    ]
    for arguments, error in attempts:
        try:
            done = subprocess.run(
                [*drop, BINARY, *arguments], cwd=tmp_path, env=clean_env, capture_output=True, text=True
            )
        except FileNotFoundError:
            pytest.skip("root without setpriv may read everything")
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith(error)
        assert "\nhint:  " in done.stderr
    assert os.listdir(tmp_path / "locked") == []


@LINUX
def test_progress_in_a_log_is_one_line_a_scenario(lanewise, tmp_path):
    (tmp_path / "drive").mkdir()
    done = lanewise("measure", "storage", "drive", "--make", "4MiB", *MODES, "--runs", "5")
    assert [line for line in done.stderr.splitlines() if "now" in line] == ["1 sample, now read cached drive->host0"]
