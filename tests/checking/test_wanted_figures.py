"""What an asker expects of a figure typed in, times of long copies, stated modules and GPUDirect Storage."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes, verdict_of
from hypothesis import given
from hypothesis import strategies as st

from lanewise import api
from lanewise.checking.checkup import Checkup
from lanewise.readers.typed.figures import read_text
from lanewise.results.observation import Observation


def rows_of(*rows: str) -> tuple[Observation, ...]:
    return read_text("lanewise-rows: 1\nrows:\n" + "".join(f"  - {{{row}}}\n" for row in rows), "f.yaml").observations


def checked(folder: Path, text: str) -> Checkup:
    path = folder / "question.txt"
    path.write_text(text, encoding="utf-8")
    return api.check([path])


def typed(folder: Path, *rows: str, head: str = "") -> Checkup:
    return checked(folder, f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows))


WANTED = [
    # MI300X in pairs of no model: the asker's figure decides; of a bridge of four NVLinks the catalogue knows better.
    ('flows: "gpu[0-7]->gpu[0-7]", value: 150 GB/s, path: all_reduce, bytes: 8G, {}: 310 GB/s', "", "slow"),
    ('flows: "gpu0->gpu1, gpu1->gpu0", value: 101 GB/s, {}: 160 GB/s', "GeForce RTX 3090", "ok"),
    ('flows: "host0->host1", value: 9.4 Gb/s, {}: 9.5 Gb/s', "", "ok"),
    ('flows: "host0->host1", value: 4 Gb/s, {}: 9.5 Gb/s', "", "slow"),
    ('flows: "nvme0n1->host0", value: 200k IOPS, bytes: 4k, {}: 1000k IOPS', "", "slow"),
    ('flows: "gpu0->gpu1", value: 30 us, {}: 2 us', "", "slow"),
]


@pytest.mark.parametrize("key", ["expected", "should be", "target"])
@pytest.mark.parametrize(("row", "gpus", "verdict"), WANTED)
def test_what_the_asker_expects_counts_where_nothing_better_is_known(
    tmp_path: Path, key: str, row: str, gpus: str, verdict: str
):
    assert verdict_of(typed(tmp_path, row.format(key), head=f"gpus: {gpus}\n" if gpus else "")) == verdict


@pytest.mark.parametrize("key", ["rated", "theoretical", "spec"])
def test_half_of_what_is_rated_is_no_fault_yet(tmp_path: Path, key: str):
    row = f'flows: "host0->host0", path: Triad, value: {{}} GB/s, {key}: 204 GB/s'
    assert [verdict_of(typed(tmp_path, row.format(value))) for value in (150, 112, 60)] == ["ok", "unknown", "slow"]


@given(st.floats(0.001, 10), st.integers(2**24, 2**34), st.sampled_from(["host0->gpu0", "gpu0->host0", "gpu0->gpu1"]))
def test_the_time_of_a_long_copy_is_its_bytes_over_that_time(seconds: float, size: int, flow: str):
    row = rows_of(f'flows: "{flow}", value: {seconds:.9g} s, bytes: {size}')[0]
    assert row.metric == "goodput"
    assert row.value == pytest.approx(size / seconds, rel=1e-6)
    assert "a copy" in row.note


@pytest.mark.parametrize(
    ("flow", "size"), [("host0->gpu0", "4 KiB"), ("host0->host1", "1 MiB"), ("nvme0n1->host0", "1 GiB")]
)
def test_a_short_copy_a_message_and_a_request_keep_their_latency(flow: str, size: str):
    assert rows_of(f'flows: "{flow}", value: 8 ms, bytes: {size}')[0].metric == "latency"


def test_what_is_expected_of_a_long_copys_time_is_a_rate_as_well():
    row = rows_of('flows: "host0->gpu0", value: 100 ms, bytes: 1 GB, expected: 40 ms')[0]
    assert row.how["expected"] == "25 GB/s"


COPIES = [("pinned", "42 ms", "ok"), ("pinned", "180 ms", "slow"), ("pageable", "180 ms", "ok"), ("", "42 ms", "ok"),
          ("", "180 ms", "unknown"), ("", "900 ms", "slow")]  # fmt: skip


@pytest.mark.parametrize(("memory", "time", "verdict"), COPIES)
def test_a_time_may_hold_more_than_the_copy_where_nobody_says_which_memory(
    tmp_path: Path, memory: str, time: str, verdict: str
):
    row = f'flows: "host0->gpu0", value: {time}, bytes: 1G' + (f", host memory: {memory}" if memory else "")
    assert verdict_of(typed(tmp_path, row, head="gpus: NVIDIA A100-SXM4-80GB\n")) == verdict


MODULES = [("24 x DDR5-4800", 740, "ok"), ("24 x 64GB RDIMM DDR5-4800", 300, "slow"), ("12x DDR5-4800", 1000, "fast"),
           ("4 x 32GB DDR4-3200", 40, ""), ("4 x 32GB DDR4-3200", 20, "slow"), ("512 GB", 20, "")]  # fmt: skip


@pytest.mark.parametrize(("modules", "rate", "verdict"), MODULES)
def test_memory_is_compared_with_what_its_stated_modules_carry(tmp_path: Path, modules: str, rate: int, verdict: str):
    row = f'flows: "host0->host0", path: Triad, value: {rate} GB/s'
    results = typed(tmp_path, row, head=f"stated: {{ram: {modules}}}\n").results
    assert [result.verdict.value for result in results] == ([verdict] if verdict else [])


STREAM = "Function    Best Rate MB/s  Avg time     Min time     Max time\n"
STREAM += "Triad:           {}.1     0.110     0.109     0.111\n"
POSTED_MODULES = [
    ("Dual EPYC 7763, 16 x 32 GB DDR4-3200, Ubuntu", 62000, "slow"),
    ("a server with 256GB (8x32GB) DDR4-3200 and one socket", 150000, "ok"),
    ("GPU memory of 8 x 16 GDDR5-7000", 62000, "unknown"),
    ("host a has 8 x 32 GB DDR4-3200, host b 12 x 32 GB DDR5-4800", 20000, "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "rate", "verdict"), POSTED_MODULES)
def test_modules_that_a_text_names_beside_a_tool_are_those_of_the_host(
    tmp_path: Path, words: str, rate: int, verdict: str
):
    assert verdict_of(checked(tmp_path, f"{words}\n\n{STREAM.format(rate)}")) == verdict


def test_the_time_of_a_long_all_reduce_is_compared_as_its_bus_bandwidth():
    ring = 'flows: "gpu[0-7]->gpu[0-7]", bytes: 1 GB'
    (row,) = rows_of(f"path: all_reduce, {ring}, value: 40 ms, expected: 400 GB/s")
    assert (row.metric, row.value, row.how["expected"]) == ("bus_bandwidth", 1e9 * 1.75 / 40e-3, "400 GB/s")
    # A short call is no rate; of a gather people count the bytes of one rank or of all.
    assert rows_of(f"path: all_reduce, {ring}, value: 40 ms".replace("1 GB", "64 KiB"))[0].metric == "time"
    (gather,) = rows_of(f"path: all_gather, {ring}, value: 40 ms")
    assert (gather.metric, gather.how["bytes of"]) == ("bus_bandwidth", "a rank or all")
    (wanted,) = rows_of(f"path: all_gather, {ring}, value: 40 ms, expected: 4 ms")
    assert (wanted.metric, wanted.how["expected"]) == ("time", "4 ms")


def test_a_time_of_more_than_what_is_expected_is_slow(tmp_path: Path):
    row = 'path: all_gather, flows: "gpu[0-7]->gpu[0-7]", value: {} ms, bytes: 1 GB, expected: 4 ms'
    assert [verdict_of(typed(tmp_path, row.format(value))) for value in (40, 4)] == ["slow", "unknown"]


ONE = [
    'flows: "host0->host0", path: Triad 1 thread',
    'flows: "host0:1->host0:1", path: Triad',
    'flows: "host0->host0", path: Triad, threads: 1',
]


@pytest.mark.parametrize("row", ONE)
def test_one_core_and_one_node_do_not_have_the_rate_of_all_modules(tmp_path: Path, row: str):
    assert not typed(tmp_path, f"{row}, value: 12 GB/s", head="stated: {memory: 24 x DDR5-4800}\n").results


READ = 'flows: "nvme0n1->gpu0", value: 3.2 GB/s, device: Samsung PM1733, bytes: 1M, threads: 8'
GDSIO = (
    "gdsio -f /mnt/nvme/file -d 0 -w 8 -s 10G -i 1M -x 0 -I 0\n"
    "IoType: READ XferType: GPUD Threads: 8 DataSetSize: 82313216/83886080(KiB) IOSize: 1024(KiB) "
    "Throughput: 3.210 GiB/sec, Avg_Latency: 2433.5 usecs ops: 80384 total_time 24.4 secs\n"
    "The drive is a Samsung PM1733, seven were expected.\n NVMe               : {}\n NVMeOF             : Unsupported\n"
)


def test_gpudirect_storage_that_is_stated_off_is_the_first_cause(tmp_path: Path):
    for head in ("stated: {GPUDirect Storage: compat mode}\n", "stated: {GPUDirect Storage: off}\n"):
        checkup = typed(tmp_path, READ, head=head)
        assert first_causes(checkup)[0] == "staged"
        assert checkup.findings[0].causes[0].evidence.endswith("question.txt:2")
    assert first_causes(checked(tmp_path, GDSIO.format("Unsupported")))[0] == "staged"
    assert first_causes(typed(tmp_path, READ, head="stated: {GPUDirect Storage: on}\n"))[0] != "staged"


def test_a_file_system_that_nobody_uses_is_no_evidence(tmp_path: Path):
    causes = checked(tmp_path, GDSIO.format("Supported")).findings[0].causes
    assert not any(cause.evidence for cause in causes)


def test_a_card_whose_pairs_may_have_a_bridge_is_held_against_pcie_below_that(tmp_path: Path):
    result = typed(tmp_path, 'flows: "gpu0->gpu2", value: 18.9 GB/s', head="gpus: NVIDIA A100 80GB PCIe\n").results[0]
    assert result.verdict.value == "unknown"
    assert "without NVLinks" in result.note
