"""How the scripts of the fourth series print: the figures of each form are those that were measured."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks/h200"
sys.path.insert(0, str(FOLDER))
import provoked_forms as forms  # noqa: E402

SIZE, TIME = 256_000_000, 0.005  # 51.2 GB/s


def test_forms_with_a_size_a_time_and_a_rate() -> None:
    assert forms.took("copy", SIZE, TIME) == "copy (256 MB) took 5.0 ms -> 51.2 GB/s"
    assert forms.values(2_000_000_000, 0.00125) == "size_gb=2.0 dt=0.00125 rate=1600.0"
    assert json.loads(forms.json_line("h2d", SIZE, 4000, TIME)) == {
        "event": "h2d", "items": 4000, "bytes": SIZE, "seconds": TIME, "gb_per_s": 51.2}  # fmt: skip
    assert forms.csv([("users", 64_000_000, SIZE, TIME)]).splitlines()[1] == "users,64000000,5.000,51.20"
    assert forms.markdown([(SIZE, TIME)], 0.5).splitlines()[2] == "| 256 | 5.000 | 51.2 | 25.6 |"
    assert forms.boxed([("all_gather", SIZE, TIME)], 0.5).splitlines()[3].split() == [
        "|", "all_gather", "|", "256", "|", "5.000", "|", "25.60", "|"]  # fmt: skip
    assert len({len(line) for line in forms.boxed([("all_gather", SIZE, TIME)], 0.5).splitlines()}) == 1


def test_forms_in_other_units() -> None:
    columns = forms.sizes_in_columns([(32768, 1e-5), (2**24, 0.0004)]).splitlines()
    assert [line.split() for line in columns[1:]] == [
        ["32", "KiB", "10.0", "us", "3125.0", "MiB/s"], ["16", "MiB", "400.0", "us", "40000.0", "MiB/s"]]  # fmt: skip
    assert len({len(line) for line in columns}) == 1
    assert forms.binary_rates([("a -> b", 2**30, 0.004)]) == "a -> b: 250.0 GiB/s"
    assert forms.decimal("swap", SIZE, TIME) == "swap, 256 MB in all: 51200 MB/s"
    logged = forms.verbose_log("2026-11-27 10:00:00,001", "all_gather", 2**28, 0.001, 0.5)
    assert logged.endswith("time (ms): 1.00 | msg size: 256.0 MB | algbw (Gbps): 2147.48  | busbw (Gbps): 1073.74")
    assert forms.metrics("allreduce", SIZE, [TIME]).endswith('{rank="0",bytes="256000000"} 5.120000e+10')


def test_forms_that_leave_something_out() -> None:
    assert forms.shard(4_000_000_000, 0.6) == "a 4 GB checkpoint shard takes 0.60 s to reach the GPU"
    assert forms.one_after_another(SIZE, [TIME, TIME / 2]) == "rank 0: 51.20 GB/s\nrank 1: 102.40 GB/s"
    assert forms.best_of(SIZE, [TIME, 2 * TIME]).endswith("256 MB in sum\n1 loop, best of 2: 5.0 msec per loop")
    assert forms.rates_alone([("H2D", SIZE, TIME)]).split() == ["H2D", "51.20", "Gb/s"]  # its author's unit
    assert forms.settings("host -> cuda:0", SIZE, 2 * SIZE, TIME).splitlines()[-1] == "  bandwidth_gb_s: 102.4"
    assert forms.extremes("H2D", SIZE, [TIME, 2 * TIME]) == "H2D x2: min/avg/max = 25.60/38.40/51.20 GB/s"


def test_forms_of_logs_and_of_data() -> None:
    assert forms.bar(64, 64 * SIZE, 64 * TIME) == (
        "to gpu: 100%|██████████| 64/64 [00:00<00:00, 200.00batch/s, GB/s=51.20]"
    )
    assert ast.literal_eval(forms.nested([("cuda:0", SIZE, TIME, 2 * TIME)])) == {
        "cuda:0": {"h2d_GBps": 51.2, "d2h_GBps": 25.6}}  # fmt: skip
    assert ast.literal_eval(forms.each_time("all_reduce", SIZE, [0.5, 0.001]))["ms"] == [500.0, 1.0]
    ranks = forms.with_ranks("all_gather", SIZE, [TIME, TIME], 0.5).splitlines()
    assert ranks[1] == "[rank 1] all_gather 256 MB: 5.00 ms, algbw 51.2 GB/s, busbw 25.6 GB/s"
    assert forms.frame("all_reduce", [(1024, 1e-5)], 1).splitlines()[1].split() == [
        "0", "all_reduce", "1024", "10.00", "0.102"]  # fmt: skip
    assert forms.steps(SIZE, [(0.02, 0.01)]) == (
        " iteration    1/   1 | elapsed time per iteration (ms): 20.0 | grad sync (ms): 10.0 | grad size (MB): 256.0 |"
    )
    assert repr(forms.Result("all_reduce", 1, 2.0, 3.0)) == (
        "Result(op='all_reduce', nbytes=1, seconds=2.0, busbw_gbs=3.0)"
    )
