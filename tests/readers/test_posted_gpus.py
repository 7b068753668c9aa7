"""Lists of GPUs beside somebody's figures name the GPUs of rows whose tool does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise import api
from lanewise.checking.verdict import Verdict
from lanewise.readers.posted.gpus import listed_gpu
from lanewise.report.text.check import render_checkup

# Lines as the tools print them: driver 595 (nvidia-smi), ROCm 6 (rocm-smi), CUDA 12 (deviceQuery).
LISTS = {
    "nvidia-smi -L": (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5dd2a0fb-0000-1111-2222-333344445555)\n"
        "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-5dd2a0fc-0000-1111-2222-333344445555)",
        "NVIDIA H100 80GB HBM3",
    ),
    "nvidia-smi": (
        "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |\n"
        "| N/A   31C    P0             70W /  700W |       1MiB /  81559MiB |      0%      Default |\n"
        "|   1  NVIDIA H100 80GB HBM3          On  |   00000000:3B:00.0 Off |                    0 |",
        "NVIDIA H100 80GB HBM3",
    ),
    "nvidia-smi -q": (
        "GPU 00000000:19:00.0\n    Product Name                          : NVIDIA L40S\n    Product Brand : NVIDIA",
        "NVIDIA L40S",
    ),
    "rocm-smi --showproductname": (
        "GPU[0]\t\t: Card series: \t\tAMD Instinct MI300X OAM\nGPU[1]\t\t: Card Series: \t\tAMD Instinct MI300X OAM",
        "AMD Instinct MI300X OAM",
    ),
    "deviceQuery": ('Device 0: "NVIDIA A100-SXM4-80GB"\n  CUDA Driver Version / Runtime Version  12.4 / 12.4',
                    "NVIDIA A100-SXM4-80GB"),
}  # fmt: skip
MATRIX = """
Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    395.08
 1    395.12       N/A

SUM device_to_device_memcpy_read_ce 790.20
"""


@pytest.mark.parametrize(("text", "name"), LISTS.values(), ids=LISTS)
def test_a_list_names_the_gpus(text: str, name: str) -> None:
    assert listed_gpu(text.splitlines()) == name


@pytest.mark.parametrize(
    "text",
    [
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\nGPU 1: NVIDIA H100 PCIe (UUID: GPU-2)",
        'Device 0: "NVIDIA GeForce RTX 4090"\nDevice 1: "NVIDIA GeForce RTX 3090"',
        "| 0  NVIDIA GeForce RTX 509... On | 00000000:01:00.0 On |",
        "GPU 0: (UUID: none)",
        "",
    ],
)
def test_gpus_that_differ_or_are_cut_short_stay_unnamed(text: str) -> None:
    assert listed_gpu(text.splitlines()) == ""


def test_a_name_that_a_table_cuts_is_the_one_that_another_list_has_whole() -> None:
    lines = ["| 0  NVIDIA GeForce RTX 509... On | 0000:01:00.0 On |", "GPU 0: NVIDIA GeForce RTX 5090 (UUID: GPU-1)"]
    assert listed_gpu(lines) == "NVIDIA GeForce RTX 5090"


@pytest.mark.parametrize("apart", [True, False])
def test_check_judges_rows_by_the_gpus_that_a_list_names(tmp_path: Path, apart: bool) -> None:
    names, _ = LISTS["nvidia-smi -L"]
    (tmp_path / "matrix.txt").write_text(MATRIX if apart else f"{names}\n{MATRIX}")
    (tmp_path / "names.txt").write_text(names)
    unnamed = tmp_path / "unnamed.txt"
    unnamed.write_text(MATRIX)
    assert {result.verdict for result in api.check([unnamed]).results} == {Verdict.UNKNOWN}
    files = [tmp_path / "matrix.txt", tmp_path / "names.txt"][: 1 + apart]
    assert {result.verdict for result in api.check(files).results} == {Verdict.OK}


def test_a_gpu_that_the_catalogue_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.yaml").write_text(
        'lanewise-rows: 1\ngpus: Foo 9000\nrows:\n  - {flows: "gpu0->gpu1", value: 33.9 GB/s}\n'
    )
    finding = api.check([tmp_path / "rows.yaml"]).findings[0]
    assert finding.title == "the catalogue does not have 'Foo 9000'"
    assert "lanewise parts template" in finding.step


def test_many_flows_that_nothing_is_known_of_are_one_line(tmp_path: Path) -> None:
    pairs = [f"gpu{a}->gpu{b}" for a in range(4) for b in range(4) if a != b]
    rows = "\n".join(
        f'  - {{path: copies, flows: "{pair}", value: {100 + at} GB/s}}' for at, pair in enumerate(pairs)
    )
    (tmp_path / "rows.yaml").write_text(f'lanewise-rows: 1\nrows:\n{rows}\n  - {{flows: "gpu0->host0", value: 3 GB/s}}')
    table = render_checkup(api.check([tmp_path / "rows.yaml"])).split("\n\n")[1]
    assert len(table.splitlines()) == 3
    assert "gpu0->gpu1 and 11 more flows" in table
    assert "100 to 111 GB/s" in table
