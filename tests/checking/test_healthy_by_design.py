"""Rows typed in of which the lesser is so by design: their names or notes say why, and none is called slow."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import verdict_of

from lanewise import api

A100 = "gpus: NVIDIA A100-SXM4-80GB\n"
MIXED = "gpus: {gpu0: NVIDIA GeForce RTX 3090, gpu1: NVIDIA GeForce GTX 1080 Ti}\n"


def verdict(folder: Path, stated: str, *rows: str) -> str:
    """The verdict on rows typed in."""
    path = folder / "rows.txt"
    path.write_text(f"lanewise-rows: 1\n{stated}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows))
    return verdict_of(api.check([path]))


HEALTHY = {
    "a cache": (
        "",
        "path: page cache, flows: nvme0->host0, value: 8.2 GB/s",
        "path: direct, flows: nvme0->host0, value: 3.3 GB/s",
    ),
    "read again": (
        "",
        "path: SSD, flows: nvme0->host0, value: 1.1 GB/s, note: first read of a new file",
        "path: SSD again, flows: nvme0->host0, value: 9.8 GB/s, note: second read",
    ),
    "fast cells are full": (
        "",
        "path: QLC fresh, flows: host0->nvme0, value: 2.9 GB/s",
        "path: QLC after 200 GB, flows: host0->nvme0, value: 190 MB/s",
    ),
    "wireless": (
        "",
        "path: Wi-Fi, flows: host0->router, value: 420 Mb/s",
        "path: cable, flows: host0->router, value: 941 Mb/s",
    ),
    "a mobile network": (
        "",
        "path: LTE, flows: host0->internet, value: 41 Mb/s",
        "path: fibre, flows: host0->internet, value: 930 Mb/s",
    ),
    "files in memory": (
        "",
        "path: tmpfs, flows: host0->vol0, value: 3.1 GB/s",
        "path: ext4, flows: host0->vol0, value: 0.8 GB/s",
    ),
    "two models of GPUs": (MIXED, "flows: host0->gpu0, value: 25.1 GB/s", "flows: host0->gpu1, value: 12.4 GB/s"),
    "sizes in names": (
        "",
        "path: sysbench 1K blocks, flows: host0->host0, value: 6.5 GB/s",
        "path: sysbench 1M blocks, flows: host0->host0, value: 31 GB/s",
    ),
    "other work": (
        "",
        "path: lz4 decompress, flows: host0->host0, value: 3.9 GB/s",
        "path: zstd decompress, flows: host0->host0, value: 1.2 GB/s",
    ),
    "pageable memory by its name": (A100, "path: cudaMemcpy pageable, flows: host0->gpu0, value: 9.1 GB/s"),
    "pageable memory of OpenCL": (A100, "path: enqueueWriteBuffer, flows: host0->gpu0, value: 7.2 GB/s"),
    "pageable memory by one core": (
        A100,
        "path: pageable, flows: host0->gpu0, value: 4.6 GB/s",
        "path: pinned, flows: host0->gpu0, value: 24.6 GB/s",
    ),
    "UDP as nobody asked for more": ("", "path: UDP, flows: host0->host1, value: 1.05 Mb/s, line: 10 Gb/s"),
}

SLOW = {
    "two programs": (
        "",
        "path: fio, flows: nvme0->host0, value: 3.3 GB/s",
        "path: cp, flows: nvme0->host0, value: 0.9 GB/s",
    ),
    "two like GPUs": (A100, "flows: host0->gpu0, value: 24.6 GB/s", "flows: host0->gpu1, value: 6.1 GB/s"),
    "larger blocks get less": (
        "",
        "path: sysbench 1K blocks, flows: host0->host0, value: 16.5 GB/s",
        "path: sysbench 1M blocks, flows: host0->host0, value: 3 GB/s",
    ),
    "pinned memory": (A100, "path: cudaMemcpy pinned, flows: host0->gpu0, value: 9.1 GB/s"),
    "pageable memory far below": (A100, "path: pageable, flows: host0->gpu0, value: 1.6 GB/s"),
    "UDP with more asked for": ("", "path: UDP -b 10G, flows: host0->host1, value: 2.1 Gb/s, line: 10 Gb/s"),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_less_by_design_is_not_called_slow(name: str, tmp_path: Path):
    assert verdict(tmp_path, *HEALTHY[name]) in ("ok", "unknown")


@pytest.mark.parametrize("name", SLOW)
def test_what_no_design_explains_is_still_slow(name: str, tmp_path: Path):
    assert verdict(tmp_path, *SLOW[name]) == "slow"


def test_what_was_not_asked_for_says_what_to_measure(tmp_path: Path):
    path = tmp_path / "rows.txt"
    path.write_text("lanewise-rows: 1\nrows:\n  - {path: UDP, flows: host0->host1, value: 1.05 Mb/s, line: 10 Gb/s}\n")
    assert "-b 0" in api.check([path]).results[0].note
