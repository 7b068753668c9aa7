"""Outputs of collective, AMD, NIXL, DCGM and demo suite tools, and figures that somebody typed in."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_display_units import shown

from lanewise.errors import FormatError, LanewiseError
from lanewise.readers.kinds import read_results
from lanewise.readers.tool_results import ImportedResults
from lanewise.results.observation import Observation

DATA = Path(__file__).parent / "data"


def read(name: str) -> ImportedResults:
    return read_results((DATA / name).read_text(encoding="utf-8"), name)


def rows_of(results: ImportedResults, flow: str, metric: str = "goodput") -> list[Observation]:
    return [row for row in results.observations if (row.flow, row.metric) == (flow, metric)]


def test_bus_bandwidth_is_of_the_ring_of_all_ranks_by_size():
    results = read("nccl-tests.txt")
    ring = "gpu0->gpu1, gpu1->gpu2, gpu2->gpu3, gpu3->gpu0"
    rows = rows_of(results, ring, "bus_bandwidth")
    assert [(row.scenario, shown(row), row.settings["bytes"]) for row in rows] == [
        ("all_reduce", 228.75, 1 << 28), ("all_reduce in place", 229.11, 1 << 28),
        ("all_reduce", 232.0, 1 << 29), ("all_reduce in place", 232.08, 1 << 29),
    ]  # fmt: skip
    assert {(row.settings["ranks"], row.settings["hosts"]) for row in rows} == {(4, 1)}
    assert results.posted.title("gpu3") == "NVIDIA A100-SXM4-80GB"


WRAPPERS = (
    "[1,0]<stdout>:{}", "[prterun-node1-4711@1,0]<stdout>: {}", "[2026-11-23T10:00:00.123Z] {}", "0: {}", " 12: {}",
    "2026-11-23T10:00:00.123456789Z stdout F {}", "2026-11-23 10:00:00,123 {}", "[rank0]: {}", "node-1: {}", "> {}",
    "nccl-launcher-0 | {}", "2026-11-23T10:00:00Z [1,0]<stdout>:{}", "\x1b[32m{}\x1b[0m",
)  # fmt: skip


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", ["nccl-tests.txt", "nccl-tests-old.txt"])
def test_a_table_of_nccl_tests_in_a_log_is_read_as_itself(name: str, wrapper: str):
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    text = "\n".join(["some launcher says hello: 1", *(wrapper.format(line) for line in lines)])
    assert read_results(text, "f").observations == read(name).observations
    bare = "\n".join(wrapper.format(line.lstrip("# ")) for line in lines)
    assert read_results(bare, "f").observations == read(name).observations


def test_lines_without_heads_and_ranks_tell_both_by_their_factor():
    lines = (DATA / "nccl-tests.txt").read_text(encoding="utf-8").splitlines()
    rows = read_results("\n".join(line for line in lines if line.strip()[:1].isdigit()), "f").observations
    whole = read("nccl-tests.txt").observations
    assert [(row.scenario, row.value) for row in rows] == [(row.scenario, row.value) for row in whole]
    assert {tuple(row.settings.items())[1:] for row in rows} == {(("ranks", 4),)}


@settings(max_examples=40)
@given(st.sets(st.integers(0, 16)), st.integers(0, 16), st.integers(0, 130))
def test_a_table_with_lines_lost_or_torn_is_read_or_refused(lost: set[int], torn: int, length: int):
    lines = (DATA / "nccl-tests.txt").read_text(encoding="utf-8").splitlines()
    sizes = {row.settings["bytes"] for row in read("nccl-tests.txt").observations}
    kept = [line[:length] if number == torn else line for number, line in enumerate(lines) if number not in lost]
    with suppress(FormatError):
        assert {row.settings["bytes"] for row in read_results("\n".join(kept), "f").observations} <= sizes


def test_one_process_or_one_for_each_rank_issues_the_calls():
    text = (DATA / "nccl-tests.txt").read_text(encoding="utf-8")
    ranks = [line for line in text.splitlines() if "Rank " in line]
    for pids, launch in ((("7",) * 4, "nccl-tests -g"), (("7", "8", "9", "10"), "nccl-tests")):
        other = text
        for line, pid in zip(ranks, pids, strict=True):
            other = other.replace(line, re.sub(r"Pid\s+\d+", f"Pid {pid}", line))
        other = re.sub(r"nThread\s+\d+ nGpus", "", other)
        assert {row.how["launch"] for row in read_results(other, "f").observations} == {launch}
    assert {row.how["launch"] for row in read("nccl-tests.txt").observations} == {"nccl-tests -g"}
    alone = text.replace("nGpus 4", "nGpus 1")
    assert {row.how["launch"] for row in read_results(alone, "f").observations} == {"nccl-tests"}


def test_torch_s_collectives_have_ranks_and_no_devices():
    rows = read("torch-all-reduce.txt").observations
    assert [(row.settings["bytes"], row.settings["ranks"], shown(row)) for row in rows] == [
        (2**15, 4, 1.2), (2**30, 4, 355.5), (4_000_000_000, 16, 330.0), (4_000_000_000, 8, 17.5),
    ]  # fmt: skip
    assert {row.scenario for row in rows} == {"all_reduce"}
    assert {(row.flow, row.how["launch"], row.how["library"]) for row in rows} == {("", "torch", "NCCL 2.26.2")}
    with pytest.raises(FormatError, match="a heading without figures"):
        read_results("The average bandwidth of all_reduce over 4 ranks (5 warmups / 20 trials):\n", "cut.txt")


def test_old_tables_of_nccl_tests_have_no_root_and_rccl_names_no_group():
    (row, _) = read("nccl-tests-old.txt").observations
    assert (row.scenario, shown(row), row.flow) == ("all_gather", 7.8, "gpu0->gpu1, gpu1->gpu0")


def test_ranks_on_two_hosts_are_no_ring_of_one():
    text = (DATA / "nccl-tests.txt").read_text(encoding="utf-8").replace("node1 device  3", "node2 device  3")
    (row, *_) = read_results(text, "f").observations
    assert (row.flow, row.settings["hosts"]) == ("all_reduce of 4 GPUs on 2 hosts", 2)


def test_rocm_bandwidth_test_numbers_processors_and_gpus_apart():
    results = read("rocm-bandwidth.txt")
    assert shown(rows_of(results, "host0:1->gpu0")[0]) == 28.411
    assert shown(rows_of(results, "gpu1->host0:0")[0]) == 28.268
    assert shown(rows_of(results, "gpu0->gpu1, gpu1->gpu0", "total")[0]) == 44.02
    assert rows_of(results, "gpu0->gpu0")[0].path == "GPU memory"
    assert results.no_peers == (("gpu1", "gpu0"),)
    assert results.posted.title("gpu0") == "AMD Instinct MI210"


def test_transfers_of_one_test_run_together_and_memory_of_none_is_no_flow():
    results = read("transfer-bench.txt")
    peer, host = (row for row in results.observations if row.scenario == "test 1")
    assert (peer.flow, shown(peer), peer.how["engine"]) == ("gpu0->gpu1", 80.886, "SM")
    assert (host.flow, host.how["engine"], host.how["flows"]) == (
        "gpu0->host0:1", "copy engine", "gpu0->gpu1, gpu0->host0:1",
    )  # fmt: skip
    assert [shown(row) for row in rows_of(results, "gpu1->gpu0")] == [60.973, 57.41]
    assert [shown(row) for row in rows_of(results, "gpu0->gpu1, gpu1->gpu0", "total")] == [109.3]


def test_bus_grind_names_the_gpus_in_its_header():
    header = "Device: 1, Tesla V100-SXM2-16GB, pciBusID: 16, pciDeviceID: 0, pciDomainID:0\n"
    text = header + (DATA / "bus-grind.txt").read_text(encoding="utf-8")
    assert read_results(text, "f").posted.devices == {"gpu1": "Tesla V100-SXM2-16GB"}


def test_a_row_of_nccl_tests_that_breaks_off_is_noted():
    text = (DATA / "nccl-tests.txt").read_text(encoding="utf-8")
    cut = text[: text.index("232.08")]
    results = read_results(cut, "f")
    assert len(results.observations) == 2
    assert results.notes == (f"f: the text breaks off in line {cut.count(chr(10)) + 1}, a row of 536870912 B",)


def test_a_call_that_failed_is_what_nccl_tests_say_without_a_table():
    text = "# nThread 1 nGpus 8 minBytes 8\nnode-1: Test CUDA failure common.cu:941 'system not yet initialized'\n"
    results = read_results(text + " .. node-1 pid 4711: Test failure common.cu:844\n", "f")
    [failed] = results.posted.stated("failed test")
    assert (results.observations, failed.value, failed.source) == ((), "nccl-tests: system not yet initialized", "f:2")


def test_bus_grind_alone_and_all_at_once():
    results = read("bus-grind.txt")
    alone, together = rows_of(results, "host0->gpu1")
    assert (shown(alone), alone.how["flows"]) == (56.21, "host0->gpu1")
    assert (shown(together), together.how["flows"]) == (25.32, "host0->gpu1, host0->gpu0")
    both = rows_of(results, "host0->gpu1, gpu1->host0", "total")
    assert [shown(row) for row in both] == [7.25, 30.02]


def test_nixlbench_says_which_memory_and_which_way():
    small, wait, large, _ = read("nixlbench.txt").observations
    assert (small.flow, small.path, small.settings) == (
        "gpu0->host1", "network", {"bytes": 4096, "batch": 1, "threads": 1},
    )  # fmt: skip
    assert (shown(large), shown(wait), wait.metric) == (23.582432, 14.1, "latency_mean")
    text = (DATA / "nixlbench.txt").read_text(encoding="utf-8").replace(": UCX", ": GDS").replace(": WRITE", ": READ")
    assert read_results(text, "f").observations[0].flow == "storage->gpu0"


DCGM = [("dcgm-diag.txt", "gpu0", 13.13), ("dcgm-diag-4.json", "gpu3", 28.27)]


@pytest.mark.parametrize(("name", "gpu", "down"), DCGM)
def test_dcgm_values_are_read_though_its_table_breaks_words(name: str, gpu: str, down: float):
    results = read(name)
    assert shown(rows_of(results, f"{gpu}->host0")[0]) == down
    assert rows_of(results, f"host0->{gpu}, {gpu}->host0", "total")
    assert rows_of(results, f"{gpu}->host0", "latency")


DCGM_4 = """| Diagnostic                | Result                                         |
| GPU Device IDs Detected   | 2901, 2901                                     |
| pcie                      | Fail                                           |
|                           | GPU0: Pass                                     |
| Info: GPU0                | GPU to Host bandwidth: 55.10 GB/s, Host to GPU |
|                           |  bandwidth: 54.90 GB/s                         |
|                           | GPU1: Fail                                     |
| Info: GPU1                | GPU to Host bandwidth: 27.05 GB/s              |
"""


def test_dcgm_4_names_the_gpu_in_the_left_column_and_its_part_by_pci_id():
    results = read_results(DCGM_4, "f")
    down = [shown(rows_of(results, f"gpu{n}->host0")[0]) for n in (0, 1)]
    assert (down, shown(rows_of(results, "host0->gpu0")[0])) == ([55.1, 27.05], 54.9)
    assert results.posted.devices == {"gpu0": "b200", "gpu1": "b200"}


def test_tests_that_dcgm_calls_failed_are_stated_with_their_lines():
    data = (DATA / "dcgm-diag-4.json").read_text(encoding="utf-8").replace('"status": "Pass"', '"status": "Fail"')
    for text, value, line in ((DCGM_4, "pcie: Fail", 3), (data, "pcie: Fail", 9)):
        stated = read_results(text, "f").posted.stated("failed test")
        assert (stated[0].value, stated[0].source) == (f"dcgmi diag, {value}", f"f:{line}")
    assert not read("dcgm-diag.txt").posted.stated("failed test")


CUT = [
    ("nccl-tests.txt", "  228.75      0   1757.4  152.74  229.11      0", "", "7 words below 13 heads"),
    ("nccl-tests.txt", "232.00", "1e999", "is no figure"),
    ("rocm-bandwidth.txt", "          3         28.268", "          9         28.268", "ends after 3 of 4 rows"),
    ("transfer-bench.txt", "  GPU 01  ->     55.59        57.41   2152.51\n", "", "the matrix ends after 2 rows"),
    ("bus-grind.txt", "56.17  56.21", "56.17", "1 cells for 2 columns"),
    ("nixlbench.txt", "2844.5         2851.0", "2844.5", "9 figures below 10 heads"),
]


@pytest.mark.parametrize(("name", "old", "new", "said"), CUT)
def test_a_table_that_is_cut_short_is_refused_with_its_line(name: str, old: str, new: str, said: str):
    text = (DATA / name).read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(FormatError, match=said) as caught:
        read_results(text.replace(old, new, 1), name)
    assert caught.value.location is not None
    assert caught.value.location.line


FIGURES = """\
lanewise-rows: 1
gpus: {gpu0: GeForce RTX 4090}
stated: {iommu: translate}
rows:
  - {flows: "gpu0<->gpu1", value: 6.11 GB/s, p2p: false}
  - {flows: "host0->gpu[0-1]", value: 100 Gb/s, of: each, host memory: pinned, bytes: 64 MiB}
  - {flows: "gpu0->gpu1", value: 1.9 us}
"""


def test_figures_typed_in_are_rows_like_those_of_a_tool():
    results = read_results(FIGURES, "f.yaml")
    both, first, second, wait = results.observations
    assert (both.metric, both.flow, both.how["p2p"]) == ("total", "gpu0->gpu1, gpu1->gpu0", "off")
    assert [(row.flow, row.metric, row.value) for row in (first, second)] == [
        ("host0->gpu0", "goodput", 12.5e9), ("host0->gpu1", "goodput", 12.5e9),
    ]  # fmt: skip
    assert (first.settings, first.how["host memory"]) == ({"bytes": 64 * 2**20}, "pinned")
    assert (wait.metric, wait.value) == ("latency", pytest.approx(1.9e-6))
    assert results.posted.title("gpu0") == "NVIDIA GeForce RTX 4090"
    assert results.posted.stated("iommu")[0].source == "f.yaml:3"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("6.11 GB/s", "fast", "no rate and no time"),
        ("gpu0<->gpu1", "gpu0-gpu1", "is not a flow"),
        ("of: each", "of: some", "some"),
        ("p2p: false", "pp2: false", "unknown key 'pp2'"),
        ("lanewise-rows: 1", "lanewise-rows: 2", "whole numbers"),
    ],
)
def test_figures_that_cannot_be_used_are_refused_with_their_line(old: str, new: str, said: str):
    with pytest.raises(LanewiseError, match=said) as caught:
        read_results(FIGURES.replace(old, new, 1), "f.yaml")
    assert caught.value.location is not None
    assert caught.value.location.line


def _typed(*rows: str) -> tuple[Observation, ...]:
    text = "lanewise-rows: 1\nrows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    return read_results(text, "f.yaml").observations


def test_a_collective_typed_in_for_all_gpus_of_a_host_is_one_row_of_their_ring():
    (row,) = _typed('path: all_reduce, flows: "gpu[0-2]->gpu[0-2]", value: 480 GB/s, metric: bus_bandwidth')
    assert (row.flow, row.metric) == ("gpu0->gpu1, gpu1->gpu2, gpu2->gpu0", "bus_bandwidth")
    assert row.settings == {"ranks": 3}
    (pair,) = _typed('path: all_reduce, flows: "gpu[0-1]->gpu[0-1]", value: 208 GB/s, metric: bus_bandwidth')
    assert (pair.flow, pair.settings) == ("gpu0->gpu1, gpu1->gpu0", {"ranks": 2})
    (unnamed,) = _typed('flows: "gpu[0-2]->gpu[0-2]", value: 480 GB/s')
    assert (unnamed.metric, unnamed.settings) == ("bus_bandwidth", {"ranks": 3})
    (call,) = _typed('flows: "gpu[0-2]->gpu[0-2]", value: 19 us')
    assert (call.metric, call.settings) == ("time", {"ranks": 3})
    (around,) = _typed('flows: "gpu0->gpu1, gpu1->gpu2, gpu2->gpu0", value: 60 GB/s')
    assert around.metric == "total"
    with pytest.raises(FormatError, match="goes nowhere"):
        _typed('flows: "gpu[0-2]->gpu[0-2]", value: 480 GB/s, metric: total')


def test_a_copy_within_a_memory_and_requests_of_several_hosts_may_be_typed_in():
    gpu, host, node, sum_of_two, small = _typed(
        'flows: "gpu0->gpu0", value: 900 GB/s', 'flows: "host0->host0", value: 90 GB/s',
        'flows: "host0:1->host0:1", value: 40 GB/s',
        'flows: "host[1-2]->host0", value: 1000 IOPS, bytes: 4 KiB', 'flows: "host0->host1", value: 235 KB/s',
    )  # fmt: skip
    assert (gpu.path, host.path, node.path, gpu.value) == ("GPU memory", "host memory", "host memory", 900e9)
    assert (sum_of_two.metric, sum_of_two.value, small.value) == ("total", 4096e3, 235e3)


TEXTS = [
    ("osu-bw.txt", "gpu0->host1", "goodput", 24.41025, {"bytes": 1 << 24}),
    ("osu-bw.txt", "host0->host1", "latency_mean", 1.52, {"bytes": 8}),
    ("simple-p2p.txt", "gpu0->gpu1", "goodput", 21.475, {"bytes": 64 << 20}),
    ("iperf3.txt", "host0->host1", "goodput", 4.4, {"connections": 2}),
    ("fio-3.txt", "nvme0n1->host0", "goodput", 6.816, {"depth": 32, "threads": 1, "bytes": 1 << 20}),
    ("fio-3.txt", "nvme0n1->host0", "latency_p99.9", 6100.0, {"depth": 32, "threads": 1, "bytes": 1 << 20}),
    ("fio-2.txt", "host0->sdb", "goodput", 1.258, {"depth": 64, "threads": 4, "bytes": 4096}),
    ("fio-2.txt", "host0->sdb", "iops", 307200.0, {"depth": 64, "threads": 4, "bytes": 4096}),
]


@pytest.mark.parametrize(("name", "flow", "metric", "value", "settings"), TEXTS)
def test_what_people_paste_of_a_run_becomes_rows(
    name: str, flow: str, metric: str, value: float, settings: dict[str, int]
):
    row = rows_of(read(name), flow, metric)[-1]
    assert (pytest.approx(shown(row), rel=1e-3), row.settings) == (value, settings)


def test_a_gpu_of_rocm_bandwidth_test_1_that_has_no_name_is_one_by_its_pci_id():
    cpu, gpu = "Intel(R) Celeron(R) CPU G3930 @ 2.90GHz", "Device 687f"
    head = f"RocmBandwidthTest Version: 1.0.0\nDevice: 0,  {cpu}\nDevice: 1,  {gpu}\n"
    rows = "Unidirectional peak bandwidth GB/s\nD/D 0 1\n0 N/A 0.439568\n1 0.453472 169.8\n"
    (row,) = rows_of(read_results(head + rows, "f"), "gpu0->host0")
    assert row.path == "device to host"


def test_an_excerpt_of_one_fio_job_needs_no_line_of_its_result():
    announced = "job: (g=0): rw=rw, bs=(R) 64.0KiB-64.0KiB, (W) 64.0KiB-64.0KiB, ioengine=libaio, iodepth=64\n"
    results = read_results(announced + "  read: IOPS=11.1k, BW=693MiB/s (727MB/s)(40.6GiB/60001msec)\n", "f")
    (row,) = rows_of(results, "job->host0", "goodput")
    assert (pytest.approx(shown(row), rel=1e-3), row.settings) == (0.7267, {"depth": 64, "threads": 1, "bytes": 65536})


def test_buffers_that_a_command_of_osu_names_as_arguments_are_the_ends():
    text = "".join(
        f"$ mpirun -n 2 osu_bw -d cuda {ends}\n# OSU MPI-CUDA Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n"
        f"268435456           {rate}\n" for ends, rate in (("D D", 279577.81), ("H D", 23744.0), ("D H", 23700.5))
    )  # fmt: skip
    rows = read_results(text, "f").observations
    assert [row.flow for row in rows] == ["gpu0->gpu1", "host0->gpu0", "gpu0->host0"]
