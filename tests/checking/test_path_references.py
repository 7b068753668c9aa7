"""Rows of one path compared: requests in flight, sizes a few bytes apart, several flows and each alone."""

from __future__ import annotations

import pytest
from checking.test_undescribed import checked

from lanewise.checking.causes.host_copies import slower_gpu_than_another
from lanewise.checking.checkup import Checkup, check
from lanewise.checking.symptom import RowSymptom
from lanewise.checking.verdict import Verdict
from lanewise.results.observation import Observation, Source
from lanewise.results.posted import PostedFacts

FIO = 'path: fio, flows: "host0->nvme0", bytes: 4 KiB, depth: 32'
SEND = 'path: ib_send_bw, flows: "host0->host1", line: 100 Gb/s'
ALONE = 'path: fio, flows: "host1->host0", value: 670000 IOPS, bytes: 4 KiB, line: 25 Gb/s'
FOUR = 'path: fio, flows: "host[1-4]->host0", value: {} IOPS, bytes: 4 KiB, line: 100 Gb/s'


def typed(*rows: str, stated: str = "") -> Checkup:
    head = f"stated: {{{stated}}}\n" if stated else ""
    return checked(f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows))


def slow_flows(checkup: Checkup) -> list[tuple[str, dict[str, int]]]:
    slow = [result.row for result in checkup.results if result.verdict is Verdict.SLOW]
    return [(row.flow, dict(row.settings)) for row in slow]


def first_causes(checkup: Checkup) -> list[str]:
    (finding,) = [finding for finding in checkup.findings if finding.kind == Verdict.SLOW]
    return [cause.key[0] for cause in finding.causes[:2]]


def test_short_requests_are_slow_if_fewer_of_them_in_flight_were_twice_as_fast():
    checkup = typed(f"{FIO}, value: 2 GB/s, threads: 1", f"{FIO}, value: 300 MB/s, threads: 16")
    assert slow_flows(checkup) == [("host0->nvme0", {"bytes": 4096, "depth": 32, "threads": 16})]


@pytest.mark.parametrize(
    "rows",
    [
        (f"{FIO}, value: 2 GB/s, threads: 1", f"{FIO}, value: 1.1 GB/s, threads: 16"),
        (f"{FIO}, value: 2 GB/s, threads: 16", f"{FIO}, value: 0.3 GB/s, threads: 1"),
        (f"{FIO}, value: 2 GB/s", f"{FIO}, value: 0.3 GB/s, threads: 16"),
        (f"{FIO}, value: 2 GB/s, threads: 1, mode: cached", f"{FIO}, value: 0.3 GB/s, threads: 1, mode: direct"),
    ],
    ids=["a little slower", "fewer are slower", "how many is not said", "the page cache gathers requests"],
)
def test_requests_that_differ_otherwise_or_little_are_no_measure_of_each_other(rows: tuple[str, ...]):
    assert typed(*rows).count(Verdict.SLOW) == 0


def test_a_size_a_byte_off_an_aligned_one_that_is_far_slower_is_slow_because_of_its_alignment():
    checkup = typed(f"{SEND}, value: 97 Gb/s, bytes: 65536", f"{SEND}, value: 22 Gb/s, bytes: 65535")
    assert slow_flows(checkup) == [("host0->host1", {"bytes": 65535})]
    assert first_causes(checkup)[0] == "requests"
    half = typed(f"{SEND}, value: 97 Gb/s, bytes: 65536", f"{SEND}, value: 22 Gb/s, bytes: 32768")
    assert half.count(Verdict.SLOW) == 0


def test_several_flows_are_slow_if_each_alone_and_the_line_allow_far_more():
    checkup = typed(ALONE, FOUR.format(1_500_000))
    assert slow_flows(checkup) == [("host1->host0, host2->host0, host3->host0, host4->host0", {"bytes": 4096})]
    assert typed(ALONE, FOUR.format(2_000_000)).count(Verdict.SLOW) == 0
    # Without the line nobody knows what the receiver can take.
    assert typed(ALONE, FOUR.format(1_500_000).replace(", line: 100 Gb/s", "")).count(Verdict.SLOW) == 0


def test_the_stated_slot_of_a_network_card_is_the_cause_where_it_carries_less_than_the_line():
    row = 'flows: "host0->host1", value: {} Gb/s, line: 10 Gb/s'
    assert first_causes(typed(row.format(3.5), stated="slot: gen2 x1"))[0] == "link"
    for rate, slot in ((1.0, "gen2 x1"), (3.5, "gen3 x8")):
        assert first_causes(typed(row.format(rate), stated=f"slot: {slot}"))[0] != "link"


def test_the_stated_slot_is_the_cause_too_where_the_card_writes_into_a_gpu():
    row = 'flows: "host1->gpu0", value: {} Gb/s, line: 100 Gb/s'
    assert first_causes(typed(row.format(55), stated="slot: gen3 x8"))[0] == "link"
    assert first_causes(typed(row.format(20), stated="slot: gen3 x8"))[0] != "link"


UDP = 'path: iperf UDP, flows: "host0->host1"'
COPY = 'flows: "gpu0->host0", bytes: 64 KiB, host memory: pinned'


def test_messages_over_a_network_that_stay_below_half_of_smaller_ones_are_slow_by_loss_or_congestion():
    checkup = typed(f"{UDP}, value: 990 Mb/s, bytes: 1472", f"{UDP}, value: 24 Mb/s, bytes: 60000")
    assert slow_flows(checkup) == [("host0->host1", {"bytes": 60000})]
    assert first_causes(checkup)[0] == "congestion"


@pytest.mark.parametrize(
    "rows",
    [
        ("value: 990 Mb/s, bytes: 1472", "value: 600 Mb/s, bytes: 60000"),
        ("value: 990 Mb/s, bytes: 1472", "value: 24 Mb/s, bytes: 9000", "value: 980 Mb/s, bytes: 60000"),
        ("value: 24 Mb/s, bytes: 64", "value: 990 Mb/s, bytes: 60000"),
    ],
    ids=["a little slower", "one size alone", "a smaller message"],
)
def test_messages_that_lose_less_or_in_one_size_alone_are_not_slow(rows: tuple[str, ...]):
    assert typed(*(f"{UDP}, {row}" for row in rows)).count(Verdict.SLOW) == 0


def test_short_copies_of_a_gpu_are_compared_with_those_of_another_program_in_the_same_size():
    checkup = typed(f"path: each, {COPY}, value: 6.3 GB/s", f"path: batch, {COPY}, value: 4.1 GB/s")
    assert [result.row.scenario for result in checkup.results if result.verdict is Verdict.SLOW] == ["batch"]
    assert first_causes(checkup)[0] == "software"
    other = COPY.replace("64 KiB", "256 KiB")
    assert typed(f"path: each, {other}, value: 20 GB/s", f"path: batch, {COPY}, value: 4.1 GB/s").exit_code != 1


RDMA = 'path: {}, flows: "host0->host1"'


def test_smaller_messages_of_one_program_may_be_slower_by_what_it_takes_to_start_them():
    one, other = RDMA.format("uc_oneway"), RDMA.format("ib_send_bw")
    large = f"{one}, value: 15.3 Gb/s, bytes: 1 MiB"
    assert typed(large, f"{one}, value: 10.8 Gb/s, bytes: 64 KiB").count(Verdict.SLOW) == 0
    # No start costs as much as that, and another program's rate is no matter of its sizes.
    assert slow_flows(typed(large, f"{one}, value: 3 Gb/s, bytes: 64 KiB")) == [("host0->host1", {"bytes": 65536})]
    assert slow_flows(typed(large, f"{other}, value: 10.8 Gb/s, bytes: 64 KiB")) == [("host0->host1", {"bytes": 65536})]


def test_a_row_whose_size_nobody_says_is_compared_with_a_long_copy_of_the_same_path():
    checkup = typed('path: CUDA, flows: "gpu0->host0", value: 25 GB/s',
                    'path: device_put, flows: "gpu0->host0", value: 2.7 GB/s, bytes: 10 GiB')  # fmt: skip
    assert [result.row.scenario for result in checkup.results if result.verdict is Verdict.SLOW] == ["device_put"]


BAR = 'flows: "host0->gpu0", engine: CPU'


def test_copies_of_a_gpu_that_stay_below_half_of_smaller_ones_are_slow_unless_they_are_pageable():
    rows = (f"{BAR}, value: 1 GB/s, bytes: 32 KiB", f"{BAR}, value: 13 MB/s, bytes: 64 KiB")
    assert slow_flows(typed(*rows)) == [("host0->gpu0", {"bytes": 65536})]
    assert typed(*(f"{row}, host memory: pageable" for row in rows)).count(Verdict.SLOW) == 0
    assert typed(rows[0], rows[1].replace("13 MB/s", "0.6 GB/s")).count(Verdict.SLOW) == 0


def test_short_requests_of_drives_at_once_are_slow_below_half_of_one_alone():
    row = 'path: {}, flows: "{}", value: {} IOPS, of: each, bytes: 4 KiB, depth: 192'
    alone = row.format("one", "nvme0->host0", 495_000).replace(", of: each", "")
    checkup = typed(alone, row.format("five", "nvme[0-4]->host0", 89_000))
    assert [flow for flow, _ in slow_flows(checkup)] == [f"nvme{n}->host0" for n in range(5)]
    slow = [finding for finding in checkup.findings if finding.kind == Verdict.SLOW]
    assert all("software" in [cause.key[0] for cause in finding.causes[:2]] for finding in slow)
    assert typed(alone, row.format("five", "nvme[0-4]->host0", 260_000)).count(Verdict.SLOW) == 0


def test_both_ways_of_one_drive_share_it():
    row = 'path: blocks, flows: "{}", value: {} MB/s, of: each, bytes: 16 KiB'
    alone, both = row.format("host0->nvme0", 1300), row.format("host0->nvme0, nvme0->host0", 500)
    assert typed(alone.replace(", of: each", ""), both).count(Verdict.SLOW) == 0


def test_long_reads_of_drives_at_once_may_share_the_link_of_a_switch_or_chipset():
    alone = 'path: one, flows: "nvme0->host0", value: 6.9 GB/s, bytes: 1 MiB, depth: 32'
    four = 'path: four, flows: "nvme[0-3]->host0", of: each, value: 1.7 GB/s, bytes: 1 MiB, depth: 32'
    slow = {flow for flow, _ in slow_flows(typed(alone, four))}
    assert "nvme1->host0" not in slow


def test_a_tool_s_own_ways_to_make_short_copies_are_no_measure_of_each_other():
    rows = [
        Observation(
            name, "host0->gpu0", "goodput", rate, "GB/s", Source.MEASURED, settings={"bytes": 131072, "blocks": 8192},
            path="host to device",
        )
        for name, rate in (("blocks by cuMemcpyBatchAsync", 40e9), ("blocks by cuMemcpyAsync", 12e9))
    ]  # fmt: skip
    assert check(rows).count(Verdict.SLOW) == 0


def test_a_copy_that_no_link_or_memory_slows_as_far_has_the_program_as_a_cause():
    rows = 'rows:\n  - {flows: "host0->gpu0", value: 0.11 GB/s, host memory: pinned}\n'
    assert "software" in first_causes(checked(f"lanewise-rows: 1\ngpus: NVIDIA H20\n{rows}"))


@pytest.mark.parametrize("fast", range(1, 9))
def test_the_gpu_that_another_is_compared_with_does_not_hang_on_the_order_of_a_set(fast: int):
    rates = {0: 3, fast: 25}
    rows = [f'flows: "gpu{gpu}->host0:0", value: {rate} GB/s, host memory: pinned' for gpu, rate in rates.items()]
    results = typed(*rows).results
    posted = PostedFacts({f"gpu{gpu}": "NVIDIA A100" for gpu in rates})
    (slow,) = [result for result in results if result.row.flow.startswith("gpu0")]
    causes = list(slower_gpu_than_another(RowSymptom(slow, results=results, posted=posted)))
    assert causes[0].evidence == f"gpu{fast}->host0:0 reached 25 GB/s by the same program"
