"""Collectives whose bus bandwidth falls as messages grow: slow by their own smaller messages."""

from __future__ import annotations

import pytest
from checking.test_undescribed import checked, nccl_table

from lanewise.checking.verdict import Verdict


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_collective_that_falls_at_larger_messages_is_slow_there(hosts: int):
    table = nccl_table({2**24: 24.0, 2**25: 29.0, 2**26: 5.3, 2**27: 5.2}, "Unheard Of")
    if hosts == 2:
        table = table.replace("on  node device  7", "on  other device  7")
    checkup = checked(table)
    slow = {result.row.settings["bytes"] for result in checkup.results if result.verdict is Verdict.SLOW}
    assert slow == {2**26, 2**27}
    assert (checkup.count(Verdict.SLOW), checkup.exit_code) == (4, 1)
    (finding,) = [finding for finding in checkup.findings if finding.kind == Verdict.SLOW]
    keys = [cause.key[0] for cause in finding.causes[:2]]
    assert keys == (["algorithm"] if hosts == 1 else ["congestion", "algorithm"])
    assert "29 GB/s" in finding.causes[0].evidence


@pytest.mark.parametrize(
    "rates",
    [{2**24: 29.0, 2**25: 18.0}, {2**24: 29.0, 2**25: 23.0, 2**26: 30.0}, {2**18: 2.0, 2**19: 0.9}],
    ids=["another protocol", "a little in one size", "short messages"],
)
def test_smaller_losses_and_short_messages_are_not_slow(rates: dict[int, float]):
    assert checked(nccl_table(rates, "Unheard Of")).count(Verdict.SLOW) == 0


DIP = {2**23: 12.0, 2**24: 29.0, 2**25: 19.0, 2**26: 40.0}


def test_one_size_slower_than_smaller_and_larger_ones_in_both_columns_is_slow_by_the_choice_of_nccl():
    checkup = checked(nccl_table(DIP, "Unheard Of"))
    slow = [result.row.settings["bytes"] for result in checkup.results if result.verdict is Verdict.SLOW]
    assert slow == [2**25, 2**25]
    (finding,) = [finding for finding in checkup.findings if finding.kind == Verdict.SLOW]
    assert [cause.key[0] for cause in finding.causes] == ["algorithm"]
    assert "29 GB/s" in finding.causes[0].evidence


def test_one_size_that_is_slower_in_one_column_alone_is_not_slow():
    table = nccl_table(DIP, "Unheard Of").replace("19.00 0 1.0 1.0 19.00", "19.00 0 1.0 1.0 31.00")
    assert "31.00" in table
    assert checked(table).count(Verdict.SLOW) == 0


ALL_GPUS = 'path: {}, flows: "gpu[0-7]->gpu[0-7]", value: {} GB/s, metric: bus_bandwidth, bytes: 1 GiB'


@pytest.mark.parametrize(
    ("name", "rate", "slow"),
    [("mscclpp all_reduce", 175, 1), ("mscclpp all_reduce", 190, 0), ("mscclpp AllGather", 175, 0)],
    ids=["far slower", "a little slower", "another collective"],
)
def test_a_collective_is_compared_with_the_same_one_by_another_library(name: str, rate: int, slow: int):
    rows = (ALL_GPUS.format("all_reduce", 245), ALL_GPUS.format(name, rate))
    checkup = checked("lanewise-rows: 1\nrows:\n" + "".join(f"  - {{{row}}}\n" for row in rows))
    assert checkup.count(Verdict.SLOW) == slow
    causes = [finding.causes[0].key for finding in checkup.findings if finding.kind == Verdict.SLOW]
    assert causes == [("software",)] * slow
