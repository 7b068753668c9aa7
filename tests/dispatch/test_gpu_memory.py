"""Samples that arrive in the memory of a node's GPU: by dma-buf where all that takes part can, else in the host's.

Over a CUDA driver and a libibverbs without devices: it never ran on RDMA hardware.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_cuda
import fake_verbs
import pytest

from lanewise.errors import InputError
from lanewise.options.serve import ServeOptions

if sys.platform != "linux":
    pytest.skip("the dispatch is for Linux", allow_module_level=True)

RUNS: dict[str, dict[str, str]] = {
    "on": {"gpu_memory": "on", "FAKE_CUDA_CORRUPT": "in"},
    "flush": {"gpu_memory": "auto", "FAKE_CUDA_CORRUPT": "in", "FAKE_CUDA_RDMA_ORDERING": "0"},
    "off": {"gpu_memory": "off", "FAKE_CUDA_CORRUPT": "in"},
    "no dma-buf": {"gpu_memory": "auto", "FAKE_CUDA_DMA_BUF": "0"},
    "no flush": {"gpu_memory": "auto", "FAKE_CUDA_RDMA_ORDERING": "0", "FAKE_CUDA_RDMA_FLUSHES": "0"},
    "refused": {"gpu_memory": "auto", "FAKE_VERBS_DMA_BUF_ERROR": "95"},
    "no memory": {"gpu_memory": "auto", "FAKE_CUDA_MEMORY": "300000"},
    "must, refused": {"gpu_memory": "on", "FAKE_VERBS_DMA_BUF_ERROR": "95"},
    "must, no dma-buf": {"gpu_memory": "on", "FAKE_CUDA_DMA_BUF": "0"},
    "must, tcp": {"gpu_memory": "on", "transport": "tcp"},
    "cpu": {"gpu_memory": "auto", "devices": "cpu"},
}


def run(folder: Path, library: Path, runs: list[dict[str, str]]) -> list[dict[str, Any]]:
    """What the process with those libraries printed."""
    script = Path(__file__).with_name("gpu_memory_runs.py")
    paths = {"PYTHONPATH": str(script.parents[1]), "LD_LIBRARY_PATH": str(library)}
    done = subprocess.run(
        [sys.executable, script, folder, *map(json.dumps, runs)], capture_output=True, text=True, check=False,
        env={**os.environ, **paths, "LANEWISE_CUDA_DRIVER": str(fake_cuda.build())},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The runs by name."""
    folder = tmp_path_factory.mktemp("rdma")
    return dict(zip(RUNS, run(folder, fake_verbs.build(), list(RUNS.values())), strict=True))


def test_samples_reach_gpu_memory_without_a_copy_from_host_memory(rows: dict[str, dict[str, Any]]) -> None:
    """The driver spoils every copy from host memory to the GPU."""
    for name in ("on", "flush"):
        assert (rows[name]["failure"], rows[name]["wrong"], rows[name]["copy"]) == (["", ""], 0, "kernel")
        assert rows[name]["GPU memory"] == "used (never run on RDMA hardware)"
        assert "over 2 connections (verbs; GPU memory used (never run on RDMA hardware))" in rows[name]["said"][-1]
        assert any("has never run on RDMA hardware" in line for line in rows[name]["said"])
    assert rows["off"]["wrong"] == 200
    assert rows["off"]["GPU memory"] is None


def test_writes_are_flushed_only_where_the_gpu_does_not_order_them(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["on"]["flushes"] == 0
    assert rows["flush"]["flushes"] > 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no dma-buf", "GPU 0 exports no memory as dma-buf (CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0)"),
        ("no flush", "GPU 0 neither orders writes of other devices nor flushes them for the host"),
        ("refused", "fake0 does not register GPU memory (ibv_reg_dmabuf_mr): Operation not supported"),
        ("no memory", "0 MiB for queries in flight are more than half of the 0 MiB free on GPU 0"),
        ("cpu", "samples arrive in the memory of one GPU, this node has cpu"),
    ],
)
def test_auto_falls_back_to_host_memory_and_says_why(rows: dict[str, dict[str, Any]], name: str, reason: str) -> None:
    row = rows[name]
    assert (row["failure"], row["wrong"]) == (["", ""], 0)
    assert row["GPU memory"] == f"not used: {reason}"
    assert reason in row["said"][-1]


def test_what_is_known_at_the_start_is_said_there(rows: dict[str, dict[str, Any]]) -> None:
    (note,) = (line for line in rows["no dma-buf"]["said"] if line.startswith("note: samples arrive in host memory"))
    assert "hint: it takes NVIDIA's open kernel modules" in note
    assert not any("host memory" in line for line in rows["refused"]["said"][:-1])


def test_on_refuses_what_auto_falls_back_from(rows: dict[str, dict[str, Any]]) -> None:
    assert "fake0 does not register GPU memory" in rows["must, refused"]["error"]
    assert "does not reach GPU memory" in rows["must, tcp"]["error"]
    assert "--transport verbs" in rows["must, tcp"]["hint"]
    (said,) = (line for line in rows["must, no dma-buf"]["said"] if line.startswith("error: "))
    assert "DMA_BUF_SUPPORTED" in said


def test_everything_of_the_gpu_is_given_back(rows: dict[str, dict[str, Any]]) -> None:
    assert {name: row["left"] for name, row in rows.items()} == dict.fromkeys(RUNS, 0)


def test_a_libibverbs_that_registers_no_dma_buf_is_named(tmp_path: Path) -> None:
    (row,) = run(tmp_path, fake_verbs.build(old=True), [{"gpu_memory": "auto"}])
    assert (row["wrong"], row["GPU memory"]) == (0, "not used: libibverbs.so.1 has no ibv_reg_dmabuf_mr")


@pytest.mark.parametrize(
    "options", [{"devices": ("cpu",)}, {"devices": ("gpu0", "gpu1")}, {"devices": ("gpu0",), "copy": "staged"}]
)
def test_options_that_contradict_gpu_memory_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="--gpu-memory on"):
        ServeOptions(gpu_memory="on", **options)
