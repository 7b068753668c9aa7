"""What tools say besides rates: tests that failed, however fine the others are, and pairs of GPUs that are no peers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise import api
from lanewise.checking.checkup import check
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
