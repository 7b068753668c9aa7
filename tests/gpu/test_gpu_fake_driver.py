"""`lanewise measure gpu` as a real process over native/cuda and a driver without GPUs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_cuda
import pytest
from cli_binary import has_lines, interrupted

from lanewise.probes.gpu.cases import SETS

if sys.platform != "linux":
    pytest.skip("GPUs are measured on Linux", allow_module_level=True)

PROGRAM = [sys.executable, "-m", "lanewise.cli.main", "measure", "gpu"]
KEPT = {k: v for k, v in os.environ.items() if not k.startswith("FAKE_CUDA_")}


@pytest.fixture(scope="module")
def driver() -> Path:
    return fake_cuda.build()


def measured(driver: Path, *arguments: str, code: int = 0, **settings: object) -> list[dict[str, Any]]:
    """The rows of a run with small copies; the last one is what it said, where it failed."""
    env = {"LANEWISE_CUDA_DRIVER": str(driver), **{f"FAKE_CUDA_{name}": str(v) for name, v in settings.items()}}
    done = subprocess.run(
        [*PROGRAM, "--json", "--bytes", "64 KiB", *arguments],
        env={**KEPT, **env}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"] if done.stdout else []
    return rows if code == 0 else [*rows, {"said": done.stderr}]


def test_every_case_of_nvbandwidth_gives_values_on_two_gpus(driver: Path) -> None:
    rows = measured(driver, "--cases", "nvbandwidth")
    assert {row["scenario"] for row in rows} == set(SETS["nvbandwidth"])
    assert all(row["value"] > 0 for row in rows)
    assert all(len(row["samples"]) >= 5 for row in rows)
    assert {row["how"]["data"] for row in rows if row["metric"] == "goodput"} == {"verified"}
    engines = {row["scenario"][-3:]: row["how"]["engine"] for row in rows if row["metric"] == "goodput"}
    assert engines == {"_ce": "copy engine", "_sm": "SM", "opy": "copy engine"}


def test_the_driver_model_s_figures_come_out(driver: Path) -> None:
    rows = measured(driver, "--cases", "*_latency_sm,*launch_latency*")
    found = {(row["scenario"], row["metric"]): row["value"] for row in rows}
    assert found["host_device_latency_sm", "chase_latency"] == pytest.approx(1000e-9, rel=0.01)
    assert found["device_to_device_latency_sm", "chase_latency"] == pytest.approx(800e-9, rel=0.01)
    on, off = (found[f"device_to_device_launch_latency{way}", "latency"] for way in ("", "_no_p2p"))
    assert on < off


def test_host_pages_are_where_the_record_says(driver: Path) -> None:
    (row,) = measured(driver, "--flows", "host:0->gpu0")[:1]
    assert row["flow"] == "host0:0->gpu0"
    assert row["how"]["NUMA node"].startswith("0") or row["how"]["NUMA node"] == "unknown"


def test_wrong_data_leaves_the_pair_without_a_value_and_says_where(driver: Path) -> None:
    rows = measured(driver, "--cases", "device_to_device_memcpy_write_ce,host_to_device_memcpy_ce", CORRUPT="peers")
    pairs = [row for row in rows if row["scenario"] == "device_to_device_memcpy_write_ce"]
    assert {row.get("value") for row in pairs} == {None}
    assert all("byte" in row["note"] for row in pairs)
    assert all(row["value"] > 0 for row in rows if row not in pairs)


def test_a_hold_that_times_out_is_no_value_and_without_any_an_error(driver: Path) -> None:
    *rows, end = measured(driver, "--cases", "host_to_device_memcpy_ce", code=2, QUEUE=4, HOLD_MS=20)
    assert {row.get("value") for row in rows} == {None}
    assert all("held too long" in row["note"] for row in rows)
    assert "error: nothing could be measured: the flows were held too long" in end["said"]


def test_a_driver_that_queues_few_copies_gets_shorter_samples(driver: Path) -> None:
    rows = measured(driver, "--cases", "host_to_device_memcpy_ce", QUEUE=40, HOLD_MS=20)
    assert all(row["value"] > 0 for row in rows)


def test_a_missing_peer_is_named_and_the_other_pairs_measured(driver: Path) -> None:
    rows = measured(driver, "--cases", "device_to_device_memcpy_write_ce", GPUS=3, NO_PEER="0:1")
    without = {row["flow"]: row["note"] for row in rows if row.get("value") is None}
    assert "gpu0->gpu1" in without
    assert "no peer access" in without["gpu0->gpu1"]
    assert len(rows) == 6
    assert len(without) <= 2


def test_too_little_memory_is_an_error_with_what_is_free(driver: Path) -> None:
    (said,) = measured(driver, "--flows", "gpu0->gpu1", "--bytes", "2 GiB", code=2)
    assert "needs 2 GiB of gpu0's memory" in said["said"]
    assert said["said"].count("\n") == 2


def test_a_kernel_that_the_driver_refuses_is_an_error_with_a_hint(driver: Path) -> None:
    (said,) = measured(driver, "--cases", "*_sm", code=2, JIT_ERROR=1)
    assert said["said"].startswith("error: cuModuleLoadDataEx")
    assert said["said"].splitlines()[-1].startswith("hint:  ")


def test_ctrl_c_keeps_finished_samples_and_ends_at_once(driver: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    command = [*PROGRAM, "--cases", "nvbandwidth", "--bytes", "8 MiB", "-o", "run.json", "--samples", file]
    done = interrupted(command, has_lines(file, 3), tmp_path, {**KEPT, "LANEWISE_CUDA_DRIVER": str(driver)})
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    held = sum(len(row["samples"]) for row in json.loads((tmp_path / "run.json").read_text())["rows"])
    assert held >= 3
    # A Ctrl-C just then may leave the last sample in one of the two.
    assert abs(held - file.read_text().count("\n")) <= 1
