"""Questions about GPUs typed in: collectives, latencies and copies at once, compared by what differs between rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.checking.checkup import Checkup

RING = "gpu[0-3]->gpu[0-3]"


@pytest.fixture
def typed(tmp_path: Path):
    """A check of rows typed in, of GPUs of that name."""

    def check(*rows: str, gpus: str = "") -> Checkup:
        path = tmp_path / "rows.txt"
        named = f"gpus: {gpus}\n" if gpus else ""
        path.write_text(f"lanewise-rows: 1\n{named}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows), "utf-8")
        return api.check([path])

    return check


def test_a_collective_that_two_libraries_carry_need_not_be_named(typed):
    ours, theirs = f'path: ours, flows: "{RING}", value: ', f'path: RCCL, flows: "{RING}", value: '
    checkup = typed(f"{ours}63 GB/s, metric: bus_bandwidth", f"{theirs}233 GB/s, metric: bus_bandwidth")
    assert verdict_of(checkup) == "slow"
    assert first_causes(checkup)[0] == "software"
    assert (
        verdict_of(typed(f"{ours}200 GB/s, metric: bus_bandwidth", f"{theirs}233 GB/s, metric: bus_bandwidth"))
        != "slow"
    )


def test_collectives_of_different_names_are_no_measure_of_each_other(typed):
    gathered = f'path: all_gather, flows: "{RING}", value: 60 GB/s, metric: bus_bandwidth'
    reduced = f'path: all_reduce, flows: "{RING}", value: 200 GB/s, metric: bus_bandwidth'
    unnamed = f'path: ours, flows: "{RING}", value: 60 GB/s, metric: bus_bandwidth'
    assert verdict_of(typed(gathered, reduced)) == "unknown"
    assert verdict_of(typed(gathered, reduced, unnamed)) == "unknown"
    assert verdict_of(typed(reduced, unnamed)) == "slow"


def test_a_rate_among_all_gpus_is_of_a_collective_and_a_time_one_of_a_call(typed):
    rates = typed(
        f'path: dispatch, flows: "{RING}", value: 169 GB/s', f'path: combine, flows: "{RING}", value: 135 GB/s'
    )
    assert {result.row.metric for result in rates.results} == {"bus_bandwidth"}
    assert {result.row.settings["ranks"] for result in rates.results} == {4}
    times = [
        f'path: {name}, flows: "{RING}", value: {value} us, bytes: 4 KiB' for name, value in (("a", 19.4), ("b", 4))
    ]
    checkup = typed(*times)
    assert verdict_of(checkup) == "slow"
    assert [result.row.metric for result in checkup.results] == ["time"]
    assert first_causes(checkup)[0] == "software"


def test_a_latency_far_above_that_of_other_gpus_is_slow(typed):
    def rows(first: float) -> list[str]:
        return [f'flows: "gpu{at}->host0", value: {value} us, bytes: 1' for at, value in enumerate((first, 6.2, 4.7))]

    assert verdict_of(typed(*rows(120))) == "slow"
    assert verdict_of(typed(*rows(16))) == "unknown"
    # One other GPU says too little.
    assert verdict_of(typed(*rows(120)[:2])) == "unknown"


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ('flows: "gpu0->gpu1", value: 2.2 us, bytes: 4', "ok"),
        ('flows: "gpu0->gpu1", value: 45 us', "unknown"),  # a staged copy of Windows, perhaps
        ('flows: "gpu0->gpu1", value: 18 us, p2p: false', "ok"),
        ('flows: "gpu0->gpu1", value: 200 us', "slow"),
        ('flows: "gpu0->gpu1", value: 200 us, bytes: 1 MiB', "unknown"),
        ('flows: "host0->host1", value: 1.9 us, path: osu_latency', "ok"),
        ('flows: "host0->host1", value: 18 us, path: ib_write_lat', "unknown"),
        ('flows: "host0->host1", value: 95 us, path: ib_write_lat', "slow"),
        ('flows: "host0->host1", value: 95 us, path: TCP_RR', "unknown"),
        ('flows: "host0->host1", value: 12 ms, path: ping', "unknown"),  # of hosts far away
    ],
)
def test_small_messages_typed_in_are_held_against_those_of_other_machines(typed, row: str, verdict: str):
    assert verdict_of(typed(row)) == verdict


def test_small_messages_of_gpu_memory_are_held_against_those_of_host_memory(typed):
    host, gpu = 'flows: "host0->host1", value: 3.3 us, bytes: 8', 'flows: "gpu0->host1", value: {} us, bytes: {}'
    checkup = typed(host, gpu.format(19.7, 8))
    assert (verdict_of(checkup), first_causes(checkup)[0]) == ("slow", "software")
    assert "GDRCopy" in checkup.findings[0].title
    assert verdict_of(typed(host, gpu.format(6.1, 8))) == "ok"
    assert verdict_of(typed(host, gpu.format(190, 4 << 20))) == "ok"


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ("value: 1.6 us, metric: time, bytes: 10000000", "fast"),
        ("value: 1.6 ms, metric: time, bytes: 10000000", "unknown"),
        ("value: 1.6 us, metric: time, bytes: 1000", "unknown"),
        ("value: 94000 GB/s", "fast"),
        ("value: 940 GB/s", "unknown"),
    ],
)
def test_a_collective_faster_than_any_links_is_counted_otherwise(typed, row: str, verdict: str):
    assert verdict_of(typed(f'path: all_reduce, flows: "{RING}", {row}')) == verdict


@pytest.mark.parametrize(
    ("name", "cause"),
    [("12 threads read memory", "shared"), ("while the CPUs copy", "shared"), ("stress-ng in the background", "shared"),
     ("no pin_memory", "pageable")],
)  # fmt: skip
def test_what_a_row_says_of_its_run_is_a_cause(typed, name: str, cause: str):
    alone = 'path: "alone", flows: "host0->gpu0", value: 26 GB/s'
    other = "alone, pin_memory" if "pin" in name else "alone"
    checkup = typed(alone.replace('"alone"', f'"{other}"'), f'path: "{name}", flows: "host0->gpu0", value: 10.9 GB/s')
    assert first_causes(checkup)[0] == cause


def test_copies_at_once_carry_together_no_less_than_half_of_one_alone(typed):
    alone = 'path: write, flows: "gpu0->gpu4", value: 52.5 GB/s'
    pairs = 'path: to two roots, flows: "gpu0->gpu4, gpu0->gpu8", value: '
    checkup = typed(alone, f"{pairs}13.5 GB/s")
    assert verdict_of(checkup) == "slow"
    assert first_causes(checkup)[0] == "shared"
    assert verdict_of(typed(alone, f"{pairs}30 GB/s")) == "unknown"
    # Of other GPUs nothing is known.
    assert verdict_of(typed('flows: "gpu2->gpu3", value: 52.5 GB/s', f"{pairs}13.5 GB/s")) == "unknown"


def test_a_gpu_that_is_slower_to_one_host_than_to_others_has_a_lesser_route_there(typed):
    def rows(*rates: float) -> list[str]:
        return [f'flows: "gpu0->host{at}", value: {rate} GB/s' for at, rate in enumerate(rates, 1)]

    assert first_causes(typed(*rows(25, 39, 39))) == ["congestion", "link"]
    # All of them slow is no matter of one route.
    assert "congestion" not in first_causes(typed(*[f"{row}, line: 400 Gb/s" for row in rows(20, 20, 20)]))


def test_of_two_findings_on_one_path_the_one_that_is_far_more_off_is_first(typed):
    pageable = 'flows: "gpu0->host0", value: 1.4 GB/s, host memory: pageable'
    pinned = 'flows: "gpu0->host0", value: 12.6 GB/s, host memory: pinned'
    assert first_causes(typed(pageable, pinned, gpus="NVIDIA A100"))[0] == "pageable"
    mild = 'flows: "gpu0->host0", value: 4.5 GB/s, host memory: pageable'
    assert first_causes(typed(mild, pinned, gpus="NVIDIA A100"))[0] == "link"


def test_collectives_of_a_rack_with_nvswitches_have_its_bounds(typed):
    row = f'path: all_reduce, flows: "{RING}", bytes: 1 GiB, value: '
    assert verdict_of(typed(f"{row}300 GB/s", gpus="NVIDIA GB200")) == "slow"
    assert verdict_of(typed(f"{row}550 GB/s", gpus="NVIDIA GB200")) == "unknown"
    assert verdict_of(typed(f"{row}750 GB/s", gpus="NVIDIA GB200")) == "ok"
    # Twelve ranks are on other hosts too, and GH200 need not be joined by switches.
    assert verdict_of(typed(f"{row}300 GB/s, ranks: 12", gpus="NVIDIA GB200")) == "unknown"
    assert verdict_of(typed(f"{row}100 GB/s", gpus="NVIDIA GH200 480GB")) == "unknown"


HEADS = "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"


def _table(name: str, rates: list[tuple[int, float]]) -> str:
    lines = [f"{name}\n# all_reduce_perf\n{HEADS}"]
    lines += [
        f"  {size}  {size // 4}  float  sum  -1  100.0  {rate / 1.75:.2f}  {rate:.2f}  0\n" for size, rate in rates
    ]
    return "".join(lines)


def _check_text(text: str, tmp_path: Path) -> Checkup:
    path = tmp_path / "tables.txt"
    path.write_text(text, "utf-8")
    return api.check([path])


def test_of_two_tables_of_a_collective_the_slower_one_is_slow(tmp_path: Path):
    fast, slow = [(2**26, 380.0), (2**30, 390.0)], [(2**26, 200.0), (2**30, 250.0)]
    checkup = _check_text(_table("2.19.3", fast) + _table("2.20.3", slow), tmp_path)
    assert {result.row.scenario for result in checkup.results if result.verdict == "slow"} == {"all_reduce (2.20.3)"}
    assert first_causes(checkup)[0] == "software"


def test_a_dip_in_one_of_two_tables_is_none_of_the_whole(tmp_path: Path):
    fine, dip = [(2**26, 380.0), (2**30, 390.0)], [(2**26, 200.0), (2**30, 385.0)]
    assert verdict_of(_check_text(_table("first", fine) + _table("second", dip), tmp_path)) == "unknown"
