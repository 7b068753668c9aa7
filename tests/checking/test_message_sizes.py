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
    [{2**24: 29.0, 2**25: 18.0}, {2**24: 29.0, 2**25: 5.0, 2**26: 30.0}, {2**18: 2.0, 2**19: 0.9}],
    ids=["another protocol", "one size alone", "short messages"],
)
def test_smaller_losses_single_sizes_and_short_messages_are_not_slow(rates: dict[int, float]):
    assert checked(nccl_table(rates, "Unheard Of")).count(Verdict.SLOW) == 0
