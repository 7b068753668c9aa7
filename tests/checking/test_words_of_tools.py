"""What tools say besides rates: tests that failed, pairs that are no peers, the names of a matrix's GPUs, modes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise import api
from lanewise.catalog import builtin
from lanewise.checking.checkup import check
from lanewise.checking.named.abilities import on_a_board
from lanewise.readers.kinds import read_results

FINE = """nvbandwidth Version: v0.8
Device 0: NVIDIA H200 (00000000:19:00)
Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0     55.31
SUM host_to_device_memcpy_ce 55.31
Running device_to_device_memcpy_read_ce.
"""
LATER = [
    ("[CUDA_ERROR_SYSTEM_NOT_READY] system not yet initialized in cuCtxCreate", 1),
    ("Waived: needs two GPUs", 0),
]


@pytest.mark.parametrize(("line", "exit_code"), LATER)
def test_a_case_that_failed_is_a_finding_and_one_that_was_waived_is_none(line: str, exit_code: int):
    results = read_results(FINE + line + "\n", "f")
    checkup = check(results.observations, posted=results.posted)
    assert checkup.exit_code == exit_code
    titles = [finding.title for finding in checkup.findings]
    failed = [title for title in titles if title.startswith("a test of the tool failed: nvbandwidth, device_to_device")]
    assert len(failed) == exit_code


def test_pairs_that_the_driver_calls_no_peers_are_said_where_nothing_else_is_known(tmp_path: Path):
    path = tmp_path / "topo-p2p.txt"
    path.write_text("$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n")
    checkup = api.check([path])
    assert checkup.exit_code == 3
    [note] = checkup.notes
    assert note.startswith("no peers, by the driver: gpu0-gpu1 (not supported)")


TOPO = (
    "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV4\tNV4\t0-7\n"
    "GPU1\tNV4\t X \t{0}\t0-7\nGPU2\tNV4\t{0}\t X \t0-7\n"
)
RATES = "\n".join([
    *(f"Device: {n}, NVIDIA A100-SXM4-40GB, pciBusID: {n}, pciDeviceID: 0, pciDomainID:0" for n in range(3)),
    "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)",
    "   D\\D     0      1      2", "     0 1275.0   93.2   93.1", "     1  93.2 1279.2   {0}",
    "     2  93.1   {0} 1278.1",
])  # fmt: skip


@pytest.mark.parametrize(
    ("links", "rate", "exit_code"), [("NV4", "93.2", 0), ("NV3", "69.9", 1), ("NV4", "24.0", 1)]
)
def test_a_matrix_of_classes_is_judged_with_the_gpus_that_the_results_name(
    tmp_path: Path, links: str, rate: str, exit_code: int
):
    files = [tmp_path / "topo.txt", tmp_path / "p2p.txt"]
    for path, text in zip(files, (TOPO.format(links), RATES.format(rate)), strict=True):
        path.write_text(text)
    checkup = api.check(files)
    assert checkup.exit_code == exit_code
    assert {str(result.verdict) for result in checkup.results} == ({"ok", "slow"} if rate == "24.0" else {"ok"})
    uneven = "gpu1 and gpu2 are joined by 3 NVLinks, other pairs of the board by 4"
    assert any(finding.title == uneven for finding in checkup.findings) is (links == "NV3")


def test_boards_are_those_that_join_each_pair():
    boards = {name for name in builtin().names("gpu") if on_a_board(name)}
    assert boards >= {"a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200", "b300", "gb200", "gb300"}
    assert not boards & {"p100-sxm2", "v100-sxm2", "v100-sxm3", "h100-nvl", "h100-pcie", "gh200", "rtx-a6000"}


def test_a_mode_of_gdsio_is_no_variable_of_the_environment():
    line = (
        "IoType: READ XferType: {} Threads: 32 DataSetSize: 1048576/1048576(KiB) IOSize: 1024(KiB) "
        "Throughput: {} GiB/sec, Avg_Latency: 100.0 usecs ops: 1024 total_time 1.0 secs\n"
    )
    results = read_results(line.format("GPUD", 2.9) + line.format("CPU_GPU", 6.5), "f")
    causes = check(results.observations, posted=results.posted).findings[0].causes
    assert causes
    assert not any("a setting that differs" in cause.what for cause in causes)
