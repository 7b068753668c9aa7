"""A GPU's own memory against its rated bandwidth, limits typed in, files mapped, and several GPUs at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.checking.checkup import Checkup

WITHIN = 'flows: "gpu0->gpu0", '


@pytest.fixture
def typed(tmp_path: Path):
    """A check of rows typed in, of GPUs of that name."""

    def check(*rows: str, gpus: str = "", stated: str = "") -> Checkup:
        path = tmp_path / "rows.txt"
        named = f"gpus: {gpus}\n" * bool(gpus) + f"stated: {{{stated}}}\n" * bool(stated)
        path.write_text(f"lanewise-rows: 1\n{named}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows), "utf-8")
        return api.check([path])

    return check


@pytest.fixture
def text(tmp_path: Path):
    """A check of a text."""

    def check(words: str) -> Checkup:
        path = tmp_path / "post.txt"
        path.write_text(words, "utf-8")
        return api.check([path])

    return check


MEMORY = [
    # alpaka#1874, ginkgo#164, gpu-workshop-JuliaCon23#7: normal; CUDA.jl#1860, rocHPCG#46: more than the pins carry
    ("NVIDIA GeForce RTX 2060", "250 GB/s", "ok"), ("Tesla V100-SXM2-16GB", "750 GB/s", "ok"),
    ("NVIDIA A100-SXM4-40GB", "1355 GB/s", "ok"), ("NVIDIA GeForce RTX 4090", "2452 GB/s", "fast"),
    ("AMD Instinct MI100", "1487.6 GB/s", "fast"), ("NVIDIA GeForce RTX 4090", "1050 GB/s", "ok"),
    # memtest_vulkan#52
    ("Intel(R) Arc(TM) A770 Graphics", "105 GB/s", "slow"), ("NVIDIA GeForce RTX 4090", "400 GB/s", "unknown"),
    ("Unheard Of", "3 GB/s", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("gpu", "rate", "verdict"), MEMORY)
def test_a_gpus_memory_is_compared_with_what_it_is_rated_at(typed, gpu, rate, verdict):
    assert verdict_of(typed(f"{WITHIN}value: {rate}", gpus=gpu)) == verdict


def test_more_than_the_memory_carries_is_the_cache_or_the_counting(typed):
    checkup = typed(f"{WITHIN}value: 3 TB/s, bytes: 16 MiB", gpus="NVIDIA GeForce RTX 4090")
    (finding,) = [finding for finding in checkup.findings if finding.causes]
    assert [cause.key[0] for cause in finding.causes] == ["cache", "counting"]


def test_the_small_buffers_of_a_tool_may_lie_in_the_cache(text):
    sample = (
        " Device 0: NVIDIA GeForce RTX 4090\n Device to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n"
        "   Transfer Size (Bytes)\tBandwidth(GB/s)\n   {}\t\t\t2900.5\n"
    )
    assert verdict_of(text(sample.format(32_000_000))) == "ok"
    assert verdict_of(text(sample.format(320_000_000))) == "fast"


def test_large_buffers_are_no_slower_than_others_far_above_the_caches(typed):
    # legacy-rocm-build#102: memory of a Fiji Nano drops by half above 2 GB
    rows = [f"path: copy, {WITHIN}value: {rate} GB/s, bytes: {size}" for rate, size in ((440, "1 GB"), (210, "4 GB"))]
    assert verdict_of(typed(*rows)) == "slow"
    assert verdict_of(typed(rows[0].replace("1 GB", "16 MiB"), rows[1])) == "unknown"


def test_small_buffers_are_not_slow(typed):
    assert verdict_of(typed(f"{WITHIN}value: 20 GB/s, bytes: 64 KiB", gpus="NVIDIA A100-SXM4-40GB")) == "unknown"


@pytest.mark.parametrize(("rate", "verdict"), [(2580, "ok"), (601, "slow"), (3900, "fast")])
def test_a_copy_counted_once_moves_twice_its_bytes(text, rate, verdict):
    head = "Using CUDA device NVIDIA H100 80GB HBM3\nFunction    MBytes/sec  Min (sec)   Max\n"
    assert verdict_of(text(head + f"Copy        {rate}000.000  0.00180     0.00256\n")) == verdict


RATED = ["Max theoretical memory bandwidth: 136.53 GB/s", "Peak Memory Bandwidth (GB/s): 136.53",
         "  Memory Clock rate:    4266.5 Mhz\n  Memory Bus Width:   128-bit"]  # fmt: skip


@pytest.mark.parametrize("said", RATED)
def test_a_rated_bandwidth_in_the_text_counts_for_a_gpu_that_nobody_named(text, said):
    clpeak = "\n\nGlobal memory bandwidth (GBPS)\n  float    : {}\n"
    assert verdict_of(text(said + clpeak.format(505.84))) == "fast"
    assert verdict_of(text(said + clpeak.format(110.5))) == "ok"
    assert verdict_of(text(clpeak.format(505.84))) == "unknown"


LIMITS = [
    ("attainable", f"{WITHIN}value: 317.6 GB/s", f"{WITHIN}value: 94.8 GB/s", "slow"),
    ("attainable", f"{WITHIN}value: 317.6 GB/s", f"{WITHIN}value: 290 GB/s", "ok"),
    ("theoretical", 'flows: "host0->gpu0", value: 15.75 GB/s', 'flows: "host0->gpu0", value: 12.1 GB/s', "ok"),
    ("theoretical", 'flows: "host0->gpu0", value: 15.75 GB/s', 'flows: "host0->gpu0", value: 10.5 GB/s', "unknown"),
    ("data sheet", 'flows: "host0->gpu0", value: 15.75 GB/s', 'flows: "host0->gpu0", value: 6 GB/s', "slow"),
    ("expected", 'flows: "host0->gpu0", value: 25 GB/s', 'flows: "host0->gpu0", value: 12 GB/s', "slow"),
]


@pytest.mark.parametrize(("name", "limit", "row", "verdict"), LIMITS)
def test_a_row_that_is_called_a_limit_is_what_others_are_compared_with(typed, name, limit, row, verdict):
    checkup = typed(f"path: {name}, {limit}", f"path: program, {row}")
    assert verdict_of(checkup) == verdict
    assert all(result.verdict == "unknown" for result in checkup.results if result.row.scenario == name)
    assert verdict != "slow" or "software" in first_causes(checkup)


def test_a_mapped_file_is_compared_with_reads_of_other_sizes(typed):
    # llama.cpp#28223
    read = 'path: read, flows: "nvme0->host0", value: 1222 MB/s, bytes: 128 KiB'
    mapped = 'path: mmap, flows: "nvme0->host0", value: {} MB/s, bytes: 4 KiB, depth: 1'
    checkup = typed(mapped.format(236), read)
    assert verdict_of(checkup) == "slow"
    assert "requests" in first_causes(checkup)
    assert verdict_of(typed(mapped.format(800), read)) == "unknown"
    assert verdict_of(typed(mapped.format(236).replace("mmap", "pread"), read)) == "unknown"


def test_each_of_several_gpus_far_below_one_alone_shares_a_link(typed):
    # DeepSpeed#1137
    alone = 'flows: "host0->gpu0", value: 12 GB/s'
    checkup = typed(alone, 'flows: "host0->gpu[0-15]", value: 3 GB/s, of: each')
    assert verdict_of(checkup) == "slow"
    assert first_causes(checkup)[0] == "shared"
    assert verdict_of(typed(alone, 'flows: "host0->gpu[0-1]", value: 6 GB/s, of: each')) != "slow"


def test_who_states_the_slot_has_looked_at_the_link(typed):
    # tt-metal#20518
    row = 'path: host to device, flows: "host0->gpu0", value: 15 GB/s'
    assert first_causes(typed(row, stated="slot: gen4 x16")) == ["pageable", "software"]
    assert first_causes(typed(row, gpus="NVIDIA A100-PCIE-40GB"))[0] == "link"


def test_a_gpu_with_much_memory_bandwidth_has_more_than_one_gigabyte_a_second_to_the_host(text):
    # a page of clpeak on a CMP 170HX
    transfer = "enqueueWriteBuffer              : 0.85 GB/s\n"
    checkup = text("Global memory bandwidth (GBPS)\n  float   : 1165.79\n\n" + transfer)
    assert (verdict_of(checkup), first_causes(checkup)[0]) == ("slow", "link")
    assert verdict_of(text("Global memory bandwidth (GBPS)\n  float   : 40.79\n\n" + transfer)) == "unknown"


def test_pageable_copies_need_be_no_faster_than_one_core(text):
    # OpenCL-Benchmark's page: 9.9 GB/s on a B300
    table = "| Device Name    | NVIDIA H100 80GB HBM3 |\n| PCIe   Bandwidth (send                 )   {} GB/s |\n"
    assert verdict_of(text(table.format("9.86"))) == "ok"
    assert verdict_of(text(table.format("3.10"))) == "slow"


NAMED_LINKS = [
    ("NVIDIA GeForce RTX 3080", "Thunderbolt eGPU", "2.6 GB/s", "ok"),
    ("NVIDIA GeForce RTX 3080", "Thunderbolt eGPU", "0.9 GB/s", "slow"),
    ("NVIDIA GeForce RTX 3080", "OCuLink eGPU, PCIe 4.0 x4", "6.6 GB/s", "ok"),
    ("AMD Radeon RX 6500 XT", "PCIe 3.0", "3.2 GB/s", "ok"),
    ("AMD Radeon RX 6500 XT", "a copy", "3.2 GB/s", "slow"),
    ("NVIDIA A100-PCIE-40GB", "x8 slot", "12.3 GB/s", "ok"),
    ("NVIDIA A100-PCIE-40GB", "x8 and x16", "12.3 GB/s", "slow"),
]


@pytest.mark.parametrize(("gpu", "name", "rate", "verdict"), NAMED_LINKS)
def test_a_copy_is_no_faster_than_the_link_that_its_name_says(typed, gpu, name, rate, verdict):
    row = f'path: "{name}", flows: "host0->gpu0", value: {rate}, host memory: pinned'
    assert verdict_of(typed(row, gpus=gpu)) == verdict


def test_a_named_link_far_below_another_is_still_slow(typed):
    rows = [f'path: {name}, flows: "host0->gpu0", value: {rate} GB/s' for name, rate in (("x4", 6.4), ("x16", 25))]
    assert verdict_of(typed(*rows, gpus="NVIDIA A100-PCIE-40GB")) == "slow"


def test_a_slice_of_a_gpu_has_a_part_of_its_memory(typed):
    assert verdict_of(typed(f"path: MIG 1g.5gb, {WITHIN}value: 170 GB/s", gpus="NVIDIA A100-SXM4-40GB")) == "unknown"
    assert verdict_of(typed(f"path: a copy, {WITHIN}value: 170 GB/s", gpus="NVIDIA A100-SXM4-40GB")) == "slow"


TIMES = [("NVIDIA H100 80GB HBM3", "900 ms", "slow"), ("NVIDIA H100 80GB HBM3", "100 ms", "unknown"),
         ("", "9 s", "slow")]  # fmt: skip


@pytest.mark.parametrize(("gpu", "time", "verdict"), TIMES)
def test_the_time_of_a_long_copy_is_a_rate_of_its_bytes(typed, gpu, time, verdict):
    row = 'path: copy, flows: "host0->gpu0", value: {}, bytes: {}'
    assert verdict_of(typed(row.format(time, "1 GB"), gpus=gpu)) == verdict
    assert verdict_of(typed(row.format(time, "4 KiB"), gpus=gpu)) == "unknown"


def test_reads_of_a_gpus_memory_by_the_cpu_are_slow_on_healthy_machines(text):
    # gdrcopy's README
    sizes = "GPU id:0; name: Tesla V100-SXM2-32GB; Bus id: 0000:06:00\nselecting device 0\n"
    assert verdict_of(text(sizes + "gdr_copy_from_mapping 16777216 31645.4\n")) == "ok"
    assert verdict_of(text(sizes + "gdr_copy_from_mapping 16777216 131645.4\n")) == "slow"


def test_work_that_need_not_keep_the_memory_busy_is_not_slow(typed):
    row = f"path: decode of one request, {WITHIN}value: 520 GB/s"
    assert verdict_of(typed(row, gpus="NVIDIA H100 PCIe")) == "unknown"
