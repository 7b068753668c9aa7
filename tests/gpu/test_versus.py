"""The comparison with other tools on lent machines: what they print read by our names, and the whole of it in small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
LANEWISE = f"{sys.executable} {Path(__file__).parent}/measure_stand_in.py"
sys.path.insert(0, str(ROOT / "benchmarks/h200"))
import peers  # noqa: E402
import versus  # noqa: E402


def test_each_cell_of_nvbandwidth_is_named_by_the_way_its_data_goes() -> None:
    found = peers.nvbandwidth((DATA / "nvbandwidth.json").read_text())
    assert found["host_to_device_memcpy_ce", "host0->gpu1", "goodput"] == 55.49
    assert found["device_to_host_bidirectional_memcpy_ce", "gpu0->host0", "goodput"] == 51.4
    # Row 0 of a read is GPU 0 pulling from the column's.
    assert found["device_to_device_memcpy_read_ce", "gpu1->gpu0", "goodput"] == 390.5
    assert found["device_to_device_memcpy_write_ce", "gpu0->gpu1", "goodput"] == 392.1
    assert found["device_to_device_latency_sm", "gpu1->gpu0", "chase_latency"] == 828.0
    assert found["all_to_one_write_ce", "gpu1->gpu0", "goodput"] == 395.0
    assert not any(scenario == "host_to_all_memcpy_sm" for scenario, _, _ in found)


def test_both_ways_of_nvbandwidth_are_measured_twice_and_the_sum_left_out() -> None:
    found = peers.nvbandwidth((DATA / "nvbandwidth.json").read_text())
    case = "device_to_device_bidirectional_memcpy_write_ce"
    # gpu1->gpu0: first matrix at (0, 1), second matrix at (1, 0).
    assert found[case, "gpu1->gpu0", "goodput"] == (381.0 + 383.0) / 2
    assert found[case, "gpu0->gpu1", "goodput"] == (382.0 + 384.0) / 2
    assert (case, "gpu0->gpu1, gpu1->gpu0", "total") not in found


def test_four_gpus_at_once_are_named_by_all_their_flows() -> None:
    row = {"name": "one_to_all_write_ce", "bandwidth_matrix": [["1", "2", "3", "4"]]}
    found = peers.nvbandwidth(json.dumps({"nvbandwidth": {"testcases": [row]}}))
    assert found["one_to_all_write_ce", "gpu2->gpu0, gpu2->gpu1, gpu2->gpu3", "total"] == 3


def test_what_one_kernel_copies_both_ways_is_compared_by_its_sum() -> None:
    case = "all_to_host_bidirectional_memcpy_sm"
    row = {"name": case, "bandwidth_matrix": [["20", "21"]]}
    theirs = peers.nvbandwidth(json.dumps({"nvbandwidth": {"testcases": [row]}}))
    rates = {"host0->gpu0": 18.0, "gpu0->host0": 23.0, "host0->gpu1": 19.0, "gpu1->host0": 24.0}
    rows = [{"scenario": case, "flow": flow, "metric": "goodput", "value": rate} for flow, rate in rates.items()]
    ours = peers.lanewise(json.dumps({"rows": rows}))
    assert theirs == {
        (case, "host0->gpu0, gpu0->host0", "total"): 40,
        (case, "host0->gpu1, gpu1->host0", "total"): 42,
    }
    assert {name: value for name, value in ours.items() if name in theirs} == dict(zip(theirs, (41, 43), strict=True))


def test_reads_that_nvbandwidth_pushes_are_compared_with_pushes() -> None:
    row = {"name": "one_to_all_read_sm", "bandwidth_matrix": [["1", "2"]]}
    found = peers.nvbandwidth(json.dumps({"nvbandwidth": {"testcases": [row]}}))
    assert found == {("all_to_one_write_sm", "gpu1->gpu0", "goodput"): 1,
                     ("all_to_one_write_sm", "gpu0->gpu1", "goodput"): 2}  # fmt: skip


def test_the_samples_matrices_are_read_without_their_diagonals_and_cpu_times() -> None:
    found = peers.p2p_test((DATA / "p2p.txt").read_text())
    assert found["device_to_device_memcpy_no_p2p", "gpu0->gpu1", "goodput"] == 38.39
    assert found["device_to_device_memcpy_write_ce", "gpu1->gpu0", "goodput"] == 396.02
    both = "gpu0->gpu1, gpu1->gpu0"
    assert found["device_to_device_bidirectional_memcpy_write_ce", both, "total"] == pytest.approx(791.4)
    assert found["device_to_device_launch_latency_no_p2p", "gpu1->gpu0", "latency"] == 18.02
    assert found["device_to_device_launch_latency", "gpu0->gpu1", "latency"] == 2.20
    assert len(found) == 10


def _program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_whole_comparison_with_recorded_tools_and_the_stand_in(tmp_path: Path) -> None:
    nvbandwidth = _program(tmp_path, "nvbandwidth", f"cat {DATA / 'nvbandwidth.json'}")
    p2p = _program(tmp_path, "p2p", f"cat {DATA / 'p2p.txt'}")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/h200/versus.py"), "--nvbandwidth", nvbandwidth, "--p2p", p2p, "--out",
         tmp_path / "out", "--seconds", "1", "--lanewise", LANEWISE],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr  # the stand-in is slower to start than a file is to print
    data = json.loads((tmp_path / "out/versus.json").read_text())
    lines = {(line["against"], line["scenario"], line["flow"]): line for line in data["lines"]}
    host = lines["nvbandwidth", "host_to_device_memcpy_ce", "host0->gpu0"]
    assert host["ours"] == pytest.approx(55.5, rel=1e-3)
    assert host["holds"]
    assert lines["prediction", "queries_in_one_call batch=128", "host0->gpu0"]["holds"]
    assert {line["against"] for line in data["lines"]} == {"nvbandwidth", "p2pBandwidthLatencyTest", "prediction"}
    assert {each["code"] for each in data["ran"]} == {0}, done.stderr
    assert "| nvbandwidth | host_to_device_memcpy_ce | goodput | 2 |" in (tmp_path / "out/versus.md").read_text()
    assert (tmp_path / "out/raw/1-lanewise-queries.run.json").exists()


def test_a_tool_that_fails_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    broken = versus.Tool("nvbandwidth", ("sh", "-c", "echo no device >&2; exit 3"), peers.nvbandwidth)
    sample = versus.Tool("p2pBandwidthLatencyTest", ("cat", str(DATA / "p2p.txt")), peers.p2p_test)
    ran = versus.rounds([broken, sample], tmp_path, seconds=60, most=2)
    assert [(each.tool, each.code) for each in ran] == [
        ("nvbandwidth", 3), ("p2pBandwidthLatencyTest", 0), ("p2pBandwidthLatencyTest", 0), ("nvbandwidth", 3),
    ]  # fmt: skip
    assert [len(each.values) for each in ran] == [0, 10, 10, 0]
    assert (tmp_path / "1-nvbandwidth.txt").read_text() == "no device\n"
    (bound, *_) = versus.bounds(ran, versus.compare(ran))
    assert bound == {"bound": "every tool exits with 0", "reached": "nvbandwidth 3", "holds": False}


def test_no_round_is_begun_that_would_end_too_late(tmp_path: Path) -> None:
    slow = versus.Tool("slow", ("sleep", "0.2"), lambda text: {})
    assert len(versus.rounds([slow], tmp_path, seconds=0.3, most=9)) == 1
