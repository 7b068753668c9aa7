"""`lanewise measure gpu` as a real process: over a stand-in for the driver, without one, and stopped in mid-way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_binary import has_lines, interrupted

STAND_IN = [sys.executable, str(Path(__file__).with_name("measure_stand_in.py"))]
REAL = [sys.executable, "-m", "lanewise.cli.main"]
ENV = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS")}


def run(program: list[str], *arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, "measure", "gpu", *arguments], cwd=cwd, env={**ENV, **env}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_each_case_is_shown_with_what_its_rows_share_and_row_by_row() -> None:
    done = run(STAND_IN, "--cases", "host_to_device_memcpy_ce,device_to_device_memcpy_no_p2p")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines[0].split()[0] == "host_to_device_memcpy_ce"
    assert lines[1].startswith("goodput 55.47 GB/s · 256 MiB · host to device · engine: copy engine")
    rows = [line.split()[:3] for line in lines if line.startswith(("host0->", "gpu"))]
    assert rows[:2] == [["host0->gpu0", "goodput", "55.47"], ["host0->gpu1", "goodput", "55.47"]]
    assert rows[2:] == [["gpu0->gpu1", "goodput", "38.37"], ["gpu1->gpu0", "goodput", "38.37"]]


def test_a_run_holds_rows_samples_and_the_conditions(tmp_path: Path) -> None:
    done = run(STAND_IN, "--flows", "host->gpu0, gpu0->gpu1", "-o", "run.json", "--samples", "all.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    saved = json.loads((tmp_path / "run.json").read_text())
    assert saved["machine"]["CUDA driver"] == "13.0"
    assert saved["machine"]["gpu1"].startswith("Stand-in, 0000:1c:00.0")
    assert [row["metric"] for row in saved["rows"]] == ["goodput", "goodput", "total"]
    assert saved["rows"][0]["how"]["flows"] == "host0->gpu0, gpu0->gpu1"
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert len(lines) == sum(len(row["samples"]) for row in saved["rows"]) == 3 * 5


def test_queries_are_shown_by_method_and_batch() -> None:
    done = run(STAND_IN, "--queries", "--devices", "0")
    assert done.returncode == 0, done.stderr
    method = done.stdout.partition("queries_in_one_call")[2].partition("queries_")[0]
    shown = [line for line in method.splitlines() if line.startswith("host0->gpu0") and " goodput " in line]
    assert [line.split("batch ")[1].split()[0] for line in shown] == ["1", "8", "32", "128"]


@pytest.mark.parametrize("case", ["all", "*latency*"])
def test_json_has_each_row_with_its_unit(case: str) -> None:
    done = run(STAND_IN, "--cases", case, "--devices", "0", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    units = {row["metric"]: row["unit"] for row in rows}
    assert units.items() <= {
        "goodput": "B/s", "total": "B/s", "latency": "s", "chase_latency": "s", "share": "1",
    }.items()  # fmt: skip


def test_cases_for_want_of_a_second_gpu_are_named() -> None:
    done = run(STAND_IN, "--cases", "device_to_device_latency_sm,host_device_latency_sm", "--devices", "1")
    assert done.returncode == 0
    assert "skipped, for want of a second GPU: device_to_device_latency_sm\n" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["--cases", "host_to_devise_memcpy_ce"], "unknown case", "did you mean host_to_device_memcpy_ce"),
        (["--flows", "gpu0->gpu7"], "unknown GPU 'gpu7'", "gpu0"),
        (["--sweep", "--bytes", "1 MiB"], "--sweep takes copies of many sizes, --bytes of one", "one of the two"),
        (["--bytes", "200 GiB"], "needs 200 GiB of gpu0's memory, and 140 GiB are free", "--bytes"),
        (["--bytes", "3 apples"], "unknown unit 'apples'", "units"),
    ],
)
def test_a_wrong_question_is_one_error_line_with_a_hint(arguments: list[str], error: str, hint: str) -> None:
    done = run(STAND_IN, *arguments)
    first, second = done.stderr.strip().splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert first.startswith("error: ")
    assert error in first
    assert second.startswith("hint:  ")
    assert hint in second


def test_without_a_driver_the_error_says_what_is_missing_and_no_file_is_left(tmp_path: Path) -> None:
    done = run(REAL, "-o", "run.json", cwd=tmp_path, LANEWISE_CUDA_DRIVER="libno-such-driver.so")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "libno-such-driver.so" in done.stderr
    assert "hint:  " in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_list_needs_no_driver() -> None:
    done = run(REAL, "--list", "--cases", "nvbandwidth", LANEWISE_CUDA_DRIVER="libno-such-driver.so")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 36


def test_ctrl_c_keeps_the_finished_samples(tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    command = [*STAND_IN, "--slow", "measure", "gpu", "--cases", "all", "-o", "run.json", "--samples", file]
    done = interrupted(command, has_lines(file, 3), tmp_path, ENV)
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.stderr
    held = sum(len(row["samples"]) for row in json.loads((tmp_path / "run.json").read_text())["rows"])
    assert held >= 3
    assert f"not finished: {held} samples" in done.stderr
    # A Ctrl-C just then may leave the last sample in one of the two.
    assert abs(held - file.read_text().count("\n")) <= 1
    assert "host_to_device_memcpy_ce" in done.stdout
