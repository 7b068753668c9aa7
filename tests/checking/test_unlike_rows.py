"""Rows typed in beside each other that are no measure of each other, and what their names say of other things."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes

from lanewise import api
from lanewise.checking.checkup import Checkup


def checked(folder: Path, head: str, *rows: str) -> Checkup:
    """The check of rows below this head."""
    path = folder / "rows.yaml"
    text = "".join(f"  - {{{row}}}\n" for row in rows)
    path.write_text(f"lanewise-rows: 1\n{head}\nrows:\n{text}", encoding="utf-8")
    return api.check([path], None)


def verdicts(folder: Path, head: str, *rows: str) -> list[str]:
    """The verdicts in the order of the rows' values."""
    results = checked(folder, head, *rows).results
    return [each.verdict.value for each in sorted(results, key=lambda each: each.row.value or 0.0)]


COPY = 'flows: "host0->gpu0"'


def test_rows_of_other_gpus_are_judged_by_their_own(tmp_path: Path) -> None:
    rows = (f"{COPY}, value: 12.4 GB/s, gpu: Tesla V100-PCIE-16GB", f"{COPY}, value: 55 GB/s, gpu: RTX 5090")
    assert verdicts(tmp_path, "", *rows) == ["ok", "ok"]
    slow = (rows[0].replace("12.4", "3.1"), rows[1])
    assert verdicts(tmp_path, "", *slow) == ["slow", "ok"]
    services = ('flows: "gpu0->gpu0", value: 50 tokens/s, path: llama 8B', 'flows: "gpu0->gpu0", value: 90 tokens/s')
    both = [f"{row}, gpu: {gpu}" for row, gpu in zip(services, ("RTX 3090", "RTX 5090"), strict=True)]
    assert "slow" not in verdicts(tmp_path, "", *both)


def test_the_times_of_other_things_are_not_compared(tmp_path: Path) -> None:
    service = 'flows: "gpu0->gpu0"'
    unlike = (f"{service}, value: 70 s, path: mean TTFT", f"{service}, value: 0.3 s, path: median ITL")
    assert "slow" not in verdicts(tmp_path, "", *unlike)
    alike = (f"{service}, value: 70 s, path: mean TTFT before", f"{service}, value: 0.3 s, path: mean TTFT now")
    assert "slow" in verdicts(tmp_path, "", *alike)


def test_the_link_of_an_uplink_is_not_that_of_the_gpu(tmp_path: Path) -> None:
    row = f"{COPY}, value: 3.58 GB/s, host memory: pinned, bytes: 1 GiB, path: "
    found = checked(tmp_path, "gpus: NVIDIA GeForce RTX 4090", f"{row}uplink at Gen1 x16")
    assert [each.verdict.value for each in found.results] == ["slow"]
    assert {"link", "uplink", "common"} & set(first_causes(found))
    assert verdicts(tmp_path, "gpus: NVIDIA GeForce RTX 4090", f"{row}slot at Gen1 x16") == ["ok"]


@pytest.mark.parametrize("words", ["stated: {peer transport: NVLink NV12}", "topology: NV12", "stated: {nvlink: NV12}"])
def test_counted_nvlinks_of_gpus_that_nobody_named_judge_copies(words: str, tmp_path: Path) -> None:
    assert verdicts(tmp_path, words, 'flows: "gpu0->gpu1", value: 241 GB/s') == ["ok"]
    assert verdicts(tmp_path, words, 'flows: "gpu0->gpu1", value: 41 GB/s') == ["slow"]


def test_a_size_that_dips_in_one_column_is_not_slow_and_a_lone_one_is(tmp_path: Path) -> None:
    ring = 'flows: "gpu[0-7]", path: "all_reduce, {}", value: {} GB/s, bytes: {}'
    dip = [ring.format("out of place", 112, "64 MiB"), ring.format("in place", 290, "64 MiB")]
    assert "slow" in verdicts(tmp_path, "", *dip)
    assert "slow" not in verdicts(tmp_path, "", *dip, ring.format("out of place", 338, "128 MiB"))


def test_short_requests_of_other_benchmarks_are_not_compared(tmp_path: Path) -> None:
    read = 'flows: "disk0->host0", bytes: 4K, value: '
    rows = (f"{read}31 MB/s, path: iozone random read", f"{read}195 MB/s, path: fio random read")
    assert "slow" not in verdicts(tmp_path, "", *rows)
    assert "slow" in verdicts(tmp_path, "", *(row.replace("iozone", "fio") for row in rows))


def test_what_a_link_is_rated_at_says_nothing_of_short_copies(tmp_path: Path) -> None:
    row = f"{COPY}, value: 11.3 GB/s, bytes: {{}}, rated: 31.5 GB/s, host memory: pinned"
    assert "slow" not in verdicts(tmp_path, "", row.format("250 kB"))
    assert verdicts(tmp_path, "gpus: NVIDIA GeForce RTX 4090", row.format("1 GiB")) == ["slow"]


def test_what_memory_is_rated_at_bounds_it(tmp_path: Path) -> None:
    row = 'flows: "gpu0->gpu0", path: lookups, rated: 900 GB/s, value: '
    assert verdicts(tmp_path, "", f"{row}more than 900 GB/s") == ["fast"]
    assert verdicts(tmp_path, "", f"{row}700 GB/s") == ["ok"]
    ring = 'flows: "gpu[0-7]", path: all_reduce, rated: 600 GB/s, value: '
    assert verdicts(tmp_path, "gpus: NVIDIA A100", f"{ring}235 GB/s") == ["ok"]
    assert verdicts(tmp_path, "gpus: NVIDIA A100", f"{ring}75 GB/s") == ["slow"]


def test_a_copy_whose_bytes_nobody_says_how_to_count_is_slow_at_less(tmp_path: Path) -> None:
    row = 'flows: "gpu0->gpu0", bytes: 1G, value: 220 GB/s, path: '
    gpu = "gpus: NVIDIA GeForce RTX 4090"
    assert "slow" not in verdicts(tmp_path, gpu, f"{row}D2D copy")
    assert verdicts(tmp_path, gpu, f'{row}"D2D copy, read and write counted"') == ["slow"]
    assert verdicts(tmp_path, gpu, f"{row.replace('220', '450')}D2D copy of payload") == ["ok"]


def test_one_module_carries_no_more_for_one_thread(tmp_path: Path) -> None:
    head = "stated: {cpu: Ryzen 5 3500X, memory modules: 1 x DDR4-3200}"
    row = 'flows: "host0->host0", threads: 1, path: likwid, value: '
    assert verdicts(tmp_path, head, f"{row}60 GB/s") == ["fast"]
    assert verdicts(tmp_path, head, f"{row}12 GB/s") == ["slow"]
    assert "slow" not in verdicts(tmp_path, head, f"{row}12 GB/s, rated: 20 GB/s")


def test_more_modules_in_a_rows_name_are_the_cause(tmp_path: Path) -> None:
    row = 'flows: "host0->host0", value: {} GB/s, path: "memset, {}", memory modules: {}'
    rows = (row.format(6.5, "one SODIMM", "1 x 16 GB"), row.format(16.1, "two SODIMMs", "2 x 16 GB"))
    assert "memory channels" in first_causes(checked(tmp_path, "", *rows))
