"""Rows of one program under two settings, of two programs, of repeats, and of short messages in bulk."""

from __future__ import annotations

import pytest

from lanewise.checking.checkup import Checkup, check
from lanewise.readers.kinds import read_results


def checked(*rows: str) -> Checkup:
    text = "lanewise-rows: 1\nrows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    results = read_results(text, "figures.yaml")
    return check(results.observations, posted=results.posted)


SERVICE = 'flows: "gpu0->gpu0", value: {} tokens/s, path: {}'


@pytest.mark.parametrize(
    ("slower", "faster", "value", "exit_code"),
    [
        ("llama without graphs", "llama with graphs", 84, 1),
        ("llama without graphs", "llama with graphs", 90, 3),
        ("llama", "llama --enable-graphs", 84, 1),
        ("llama graphs=off", "llama graphs=on", 84, 1),
        # Repeats, other work and other programs differ by more.
        ("run 1", "run 2", 84, 3),
        ("llama narrative", "llama code", 84, 3),
        ("engine A", "engine B", 84, 3),
    ],
)
def test_a_switch_that_brings_fifteen_per_cent_was_missing(slower: str, faster: str, value: float, exit_code: int):
    checkup = checked(SERVICE.format(value, slower), SERVICE.format(100, faster))
    assert checkup.exit_code == exit_code


def test_an_algorithm_that_a_collective_gains_by_is_no_fault():
    ring = 'flows: "gpu[0-3]->gpu[0-3]", metric: bus_bandwidth, bytes: 1 GB'
    checkup = checked(f"path: NCCL_ALGO=Ring, value: 84 GB/s, {ring}", f"path: NCCL_ALGO=Tree, value: 100 GB/s, {ring}")
    assert checkup.exit_code == 3


BULK = 'path: descriptors, flows: "host0->host1", bytes: {}, depth: {}, value: {} GB/s, line: 400 Gb/s'


def test_short_messages_in_bulk_are_slow_by_what_each_costs():
    (finding,) = checked(BULK.format("16K", 1000, 9)).findings
    assert finding.kind == "slow"
    assert finding.causes[0].key == ("requests",)
    assert "messages of 16 KiB: 549,316 of them a second" in finding.title


@pytest.mark.parametrize(
    "rows",
    [
        [BULK.format("16K", 8, 9)],  # they wait for answers
        [BULK.format("1K", 100000, 9)],  # the card may send no more
        [BULK.format("16K", 1000, 9), BULK.format("1M", 1000, 45)],  # the program fills the line with larger ones
        [BULK.format("16K", 1000, 40)],
    ],
)
def test_short_messages_that_wait_or_that_larger_ones_make_up_for_are_not_slow(rows: list[str]):
    assert checked(*rows).exit_code in (0, 3)
