"""How the scripts of the fifth series print: the figures of each form are those that were measured."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks/h200"
sys.path.insert(0, str(FOLDER))
import provoked_prints as prints  # noqa: E402

SIZE, TIME = 256_000_000, 0.005  # 51.2 GB/s


def test_plain_forms() -> None:
    assert prints.tuples([("h2d", SIZE, TIME)]) == "('h2d', 256000000, 0.005, 51.2)"
    assert prints.above("D2H", 2**30, [0.02]).splitlines() == ["D2H, buffer = 1024 MiB", "  iter 0:   20.000 ms"]
    assert prints.block(4, 1e-5) == "Size: 4 bytes\nTime: 10.00 us\nBandwidth: 0.000400 GB/s"
    assert prints.sent("handed over", SIZE, TIME) == "handed over 0.26 GB in 0.0050 s = 51.20 GB/s"
    assert prints.before_after([("before", "512 MB", 0.01)]) == "before  (512 MB):   10.00 ms per call"
    assert prints.upright("broadcast", SIZE, TIME) == (
        "Op: broadcast | Payload: 0.26 GB | Time: 5.00 ms | Rate: 51.2 GB/s"
    )
    assert prints.words("sum", SIZE, TIME) == "sum: 256.0 megabytes in 5.000 ms, 51.2 GB per second"


def test_forms_with_other_units() -> None:
    assert prints.bits("allreduce", 2**26, 0.01) == "allreduce 64M: 10.0 ms/iter, 53.7 Gbit/s"
    assert prints.finished("to 1", SIZE, 0.5) == "INFO:sync:to 1 (256.0 MB) finished in 0.50 seconds [512.0 MB/sec]"
    assert prints.pages(4096, 2**28, 0.128).endswith("4096/4096 pages (256 MiB), 31.2 us/page, 2000 MiB/s")
    assert prints.thousands("up", 64_000_000, SIZE, TIME) == (
        "up: 64,000,000 elements, 256,000,000 bytes, 5,000 us => 51.20 GBytes/s"
    )
    assert prints.grads(1000, SIZE, TIME).endswith("params=1,000  bytes=256,000,000  time=5.00 ms  bw=51.2 GB/s")
    assert prints.arrows([(2**16, 1e-5), (2**22, 1e-4)]).splitlines() == [
        "  64 KiB →      10.0 µs →    6.6 GB/s", "   4 MiB →     100.0 µs →   41.9 GB/s"]  # fmt: skip


def test_tables() -> None:
    grid = prints.grid([(2**20, 1e-4, 2e-4), (2**21, 1e-4, 1e-4)]).splitlines()
    assert grid[3].split() == ["│", "1", "│", "10.486", "│", "5.243", "│"]
    assert grid[4].startswith("├")
    assert len({len(line) for line in grid}) == 1
    table = prints.kernels([("Copy", 2 * SIZE, [0.001, 0.003])]).splitlines()
    assert table[1].split() == ["Copy:", "512000.0", "0.002000", "0.001000", "0.003000"]
    assert len({len(line) for line in table}) == 1
    rich = prints.rich("title", [(SIZE, TIME)]).splitlines()
    assert rich[4].split() == ["│", "0", "│", "256.0", "│", "5.00", "│", "51.20", "│"]
    assert len({len(line) for line in rich[1:]}) == 1
    assert prints.matrix("GB/s", SIZE, [[TIME, 0.05], [0.05, TIME]]) == "GB/s\n[[51.2  5.1]\n [ 5.1 51.2]]"


def test_forms_of_notebooks_and_profilers() -> None:
    cells = prints.notebook("torch.Size([8, 2])", 64, "x.cpu()", [0.1, 0.2], 2)
    assert cells.splitlines()[1] == "Out[4]: (torch.Size([8, 2]), 64)"
    assert cells.endswith("%timeit x.cpu()\n150 ms ± 50 ms per loop (mean ± std. dev. of 2 runs, 2 loops each)")
    assert [prints.short(each) for each in (2.5, 0.0123, 4.5e-5, 3e-8)] == ["2.5 s", "12.3 ms", "45 µs", "30 ns"]
    profile = prints.lines("upload", ("    a", "    b"), (11, 10), (0.001, 0.003)).splitlines()
    assert profile[2] == "Total time: 0.004 s"
    assert profile[-1].split() == ["23", "10", "3000.0", "300.0", "75.0", "b"]
    found = prints.described("all_gather", [1.0, 2.0, 3.0, 4.0]).splitlines()
    assert found[1].split() == ["count", "4.000000"]
    assert [line.split()[1] for line in found[2:9]] == [
        "2.500000", "1.290994", "1.000000", "1.750000", "2.500000", "3.250000", "4.000000"]  # fmt: skip


def test_forms_of_logs() -> None:
    assert prints.tracing("T", "all_reduce", SIZE, 20, TIME, 0.5) == (
        "T  INFO comm_bench::run: finished op=all_reduce ranks=2 bytes=256000000 iters=20 mean=5.000ms busbw=25.6GB/s"
    )
    assert prints.go_log("T", 160, 16384, 0.0032) == "T tp: 160 x all_reduce(16384 B) took 3.200ms, 20.0us each"
    assert prints.by_gpu("reduce_scatter", SIZE, [TIME, TIME], 0.5).splitlines()[1] == (
        "[gpu1] reduce_scatter(256.0 MB)  avg 5.000 ms  bus 25.60 GB/sec"
    )


def test_every_form_is_used_once() -> None:
    tree = ast.parse((FOLDER / "provoked_notebooks.py").read_text())
    used = [node.attr for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "prints"
            and node.attr != "gb_per_s"]  # fmt: skip
    made = {name for name, _ in inspect.getmembers(prints, inspect.isfunction)} - {"gb_per_s", "short"}
    assert sorted(used) == sorted(made)
