"""Doubts of a prediction: one sentence for all links that it holds for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lanewise.perf.doubts import merge_doubts
from lanewise.perf.link_capacity import SPEED_DOUBT

LINKS = [f"cpu{cpu}--ssd{drive}" for cpu in range(2) for drive in range(4)]


def test_links_of_unknown_speed_are_named_together() -> None:
    doubts = ["no figure for the rate of the drive known", *map(SPEED_DOUBT.format, LINKS), "", "another"]
    assert merge_doubts(doubts) == (
        "no figure for the rate of the drive known; the speed of link cpu0--ssd[0-3], cpu1--ssd[0-3] is not known: see "
        "LnkSta of lspci -vv while it is busy, or lanewise measure gpu; another"
    )


@given(st.lists(st.sampled_from(["", "{} braces stay", *LINKS])))
def test_no_doubt_is_lost_and_none_comes_twice(parts: list[str]) -> None:
    doubts = [SPEED_DOUBT.format(part) if part in LINKS else part for part in parts]
    merged = merge_doubts(doubts)
    assert merged.count("the speed of link") == any(part in LINKS for part in parts)
    assert merged.count("{} braces stay") == ("{} braces stay" in parts)
    assert merge_doubts([merged]) == merged
