"""Which GPUs and CPUs the matrix of `nvidia-smi topo -m` is of, by the lists that people post beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import lanewise
from lanewise.discovery.nvidia_smi import has_names, read_names
from lanewise.errors import InputError

DATA = Path(__file__).parent / "data"
TABLE = """\
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   31C    P0              62W / 400W |      4MiB / 81920MiB   |      0%      Default |
|   1  NVIDIA A100-SXM...             On  |   00000000:0F:00.0 Off |                    0 |
"""
MATRIX = """\
\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV12\t0-31\t0
GPU1\tNV12\t X \t0-31\t0
"""


def parts(found):
    return {name: device.part for name, device in found.system.devices.items()}


def test_the_lists_of_a_real_machine_name_its_devices(own):
    found = own("h200-pair-lists.txt")
    assert parts(found) == {"cpu0": "emerald-rapids", "gpu0": "h200-sxm", "gpu1": "h200-sxm"}


def test_all_rows_of_its_healthy_collectives_are_fine_with_them():
    alone = lanewise.check([DATA / "h200-pair-all-reduce.txt"])
    assert sum(str(result.verdict) == "ok" for result in alone.results) == 6
    described = lanewise.check([DATA / "h200-pair-all-reduce.txt", DATA / "h200-pair-lists.txt"])
    assert [str(result.verdict) for result in described.results] == ["ok"] * 12


def test_a_link_of_unknown_speed_makes_no_slow_copy_fine():
    checkup = lanewise.check([DATA / "h200-pair-beside-copies.txt", DATA / "h200-pair-lists.txt"])
    slow = {(result.row.flow, result.row.value) for result in checkup.results if str(result.verdict) == "slow"}
    assert slow == {("host0->gpu0", 27.93e9), ("host0->gpu0", 23.30e9)}


def test_pageable_memory_is_judged_as_such_with_and_without_a_description(tmp_path):
    copies = tmp_path / "copies.txt"
    copies.write_text(
        " Device 0: NVIDIA H200\n Host to Device Bandwidth, 1 Device(s)\n PAGEABLE Memory Transfers\n"
        "   Transfer Size (Bytes)\tBandwidth(GB/s)\n   32000000\t\t\t7.0\n"
    )
    for files in ([copies], [copies, DATA / "h200-pair-lists.txt"]):
        assert [str(result.verdict) for result in lanewise.check(files).results] == ["ok"]


@pytest.mark.parametrize(("text", "names"), [
    ("GPU 0: Tesla T4 (UUID: GPU-1)\nGPU 1: NVIDIA L4 (UUID: GPU-2)\n", ["Tesla T4", "NVIDIA L4"]),
    (TABLE, ["NVIDIA A100-SXM4-80GB"]),
    ("GPU 00000000:07:00.0\n    Product Name            : NVIDIA L40S\nGPU 00000000:0F:00.0\n"
     "    Product Name            : NVIDIA A40\n", ["NVIDIA L40S", "NVIDIA A40"]),
])  # fmt: skip
def test_names_of_gpus_by_their_numbers(text, names):
    assert has_names(text)
    assert [(fact.about, fact.value) for fact in read_names(text, "smi.txt").facts] == [
        (f"GPU{number}", name) for number, name in enumerate(names)
    ]


def test_a_name_that_the_table_cut_short_is_no_part(tmp_path):
    (tmp_path / "smi.txt").write_text(TABLE + MATRIX)
    assert parts(lanewise.discover(tmp_path / "smi.txt")) == {"cpu0": None, "gpu0": "a100-sxm-80gb", "gpu1": None}


def test_sockets_that_no_gpu_is_at_come_from_lscpu(tmp_path):
    (tmp_path / "topo.txt").write_text(MATRIX)
    (tmp_path / "lscpu.txt").write_text(
        "Architecture: x86_64\nCPU(s): 128\nModel name: AMD EPYC 7763 64-Core Processor\nSocket(s): 2\n"
        "NUMA node0 CPU(s): 0-63\nNUMA node1 CPU(s): 64-127\n"
    )
    found = lanewise.discover([tmp_path / "topo.txt", tmp_path / "lscpu.txt"])
    assert {name: part for name, part in parts(found).items() if part} == {"cpu0": "milan", "cpu1": "milan"}


def test_names_alone_are_no_machine(tmp_path):
    (tmp_path / "list.txt").write_text("GPU 0: Tesla T4 (UUID: GPU-1)\n")
    with pytest.raises(InputError, match="no GPU, network card or drive"):
        lanewise.discover(tmp_path / "list.txt")
    (tmp_path / "rows.txt").write_text("host to device bandwidth: 12.3 GB/s\n")
    checkup = lanewise.check([tmp_path / "rows.txt", tmp_path / "list.txt"])
    assert not [note for note in checkup.notes if "describe no machine" in note]
