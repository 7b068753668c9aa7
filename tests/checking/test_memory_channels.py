"""Copies of all GPUs at once that the memory of a socket holds back: channels left empty are a cause."""

from __future__ import annotations

import pytest

from lanewise.checking.checkup import Checkup, check
from lanewise.readers.kinds import read_results
from lanewise.topology.read import read_system

# As nvbandwidth printed it on an Inspur NF5468-M7 (benchmarks/runs/2026-11-27-unseen-machines-fourth).
RESULT = """\
nvbandwidth Version: v0.8
Device 0: NVIDIA GeForce RTX 5090 (00000000:0c:00)
Device 1: NVIDIA GeForce RTX 5090 (00000000:22:00)
Device 2: NVIDIA GeForce RTX 5090 (00000000:b2:00)
Device 3: NVIDIA GeForce RTX 5090 (00000000:e0:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2         3
 0     56.38     56.38     56.39     56.40

SUM host_to_device_memcpy_ce 225.54

Running host_to_all_bidirectional_memcpy_ce.
memcpy CE CPU(row) <-> GPU(column) bandwidth (GB/s)
           0         1         2         3
 0     23.13     23.14     23.17     23.16

SUM host_to_all_bidirectional_memcpy_ce 92.60
"""
BY_KERNELS = """
Running host_to_all_bidirectional_memcpy_sm.
memcpy SM CPU(row) <-> GPU(column) bandwidth (GB/s)
           0         1         2         3
 0     38.58     38.63     39.45     39.33

SUM host_to_all_bidirectional_memcpy_sm 155.98
"""
SYSTEM = """\
lanewise: 1
system: four-5090
devices:
  "cpu[0-1]": {cpu: sapphire-rapids}
  "gpu[0-3]": {gpu: rtx-5090}
links:
  - {from: cpu0, to: cpu1, socket: "?"}
  - {from: cpu0, to: "gpu[0-1]", pcie: auto}
  - {from: cpu1, to: "gpu[2-3]", pcie: auto}
"""


def checked(text: str) -> Checkup:
    return check(read_results(text, "f").observations, target=read_system(SYSTEM, "machine.yaml"))


@pytest.mark.parametrize("text", [RESULT, RESULT + BY_KERNELS], ids=["copy engines", "and kernels, by a cache"])
def test_channels_left_empty_explain_what_a_full_memory_gives(text: str) -> None:
    findings = checked(text).findings
    assert [finding.causes[0].key for finding in findings] == [("memory channels", f"cpu{n}") for n in range(2)]
    first = findings[0].causes[0]
    assert first.what.startswith("half of the memory channels of cpu0")
    assert first.predicted == pytest.approx(23.13e9, rel=0.02)
    assert "dmidecode" in first.step


def test_one_flow_alone_is_no_evidence_that_the_program_is_why_all_at_once_are_slower() -> None:
    causes = [cause.key for finding in checked(RESULT).findings for cause in finding.causes]
    assert ("software",) not in causes


def test_empty_channels_are_no_cause_where_one_copy_of_a_gpu_is_slow() -> None:
    slow = RESULT.replace("56.38     56.38", "26.38     56.38").partition("Running host_to_all")[0]
    causes = [cause.key for finding in checked(slow).findings for cause in finding.causes]
    assert causes
    assert ("memory channels", "cpu0") not in causes
