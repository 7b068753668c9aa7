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


def test_copies_at_once_carry_together_no_less_than_half_of_one_alone(typed):
    alone = 'path: write, flows: "gpu0->gpu4", value: 52.5 GB/s'
    pairs = 'path: to two roots, flows: "gpu0->gpu4, gpu1->gpu8", value: '
    checkup = typed(alone, f"{pairs}13.5 GB/s")
    assert verdict_of(checkup) == "slow"
    assert first_causes(checkup)[0] == "shared"
    assert verdict_of(typed(alone, f"{pairs}30 GB/s")) == "unknown"
    # Of other GPUs nothing is known.
    assert verdict_of(typed('flows: "gpu2->gpu3", value: 52.5 GB/s', f"{pairs}13.5 GB/s")) == "unknown"
