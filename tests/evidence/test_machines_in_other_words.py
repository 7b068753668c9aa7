"""A machine described in other words has the same predictions, one of which less is said no surer ones."""

from __future__ import annotations

import hashlib
from functools import cache

import pytest
from evidence.description_rewritings import (
    COMPARISONS,
    SAME,
    SLOWER,
    Rewriting,
    Text,
    as_yaml,
    machine_text,
    predicted,
)

from lanewise import package_data
from lanewise.errors import LanewiseError
from lanewise.evidence.prediction import PredictedRow

_MOST = 4
# What nobody may rely on, and why (docs/decisions/0074).
NOT_THE_SAME = {
    "equal devices exchanged": "the order of a tool's copies is the order of the flows",
    "a card more": "a host bridge passes a share of what its described ports carry",
    "a drive more": "the same",
    "an empty switch more": "the same",
    "GPUs under names of one's own": "what NCCL was measured to do is kept by the names of GPUs",
    "CPUs under names of one's own": "the same of CPUs",
}
NOT_MONOTONE = {"half the memory": "a copy that the memory slows displaces less of the opposite one (within 7 %)"}


@cache
def rows_of(name: str) -> tuple[PredictedRow, ...]:
    return predicted(machine_text(name))


def sampled(rewriting: Rewriting, salt: str) -> list[tuple[str, Text]]:
    """A few machines that the rewriting changes, the same in every run, other ones for each rewriting."""
    names = sorted(package_data.names("evidence"), key=lambda name: hashlib.sha256(f"{salt} {name}".encode()).digest())
    found: list[tuple[str, Text]] = []
    for name in names[: 12 * _MOST]:
        text = machine_text(name)
        try:
            new = rewriting(text)
        except LanewiseError:
            continue
        if as_yaml(new) != as_yaml(text):
            found.append((name, new))
        if len(found) == _MOST:
            break
    return found


@pytest.mark.parametrize("what", [what for what in SAME if what not in NOT_THE_SAME])
def test_other_words_of_the_same_meaning_move_nothing(what: str) -> None:
    for name, text in sampled(SAME[what], what):
        moved = [old.row.path for old, new in zip(rows_of(name), predicted(text), strict=True)
                 if COMPARISONS[what].moved(old, new)]  # fmt: skip
        assert moved == [], name


@pytest.mark.parametrize("what", ["a card more", "a drive more"])
def test_a_device_that_nothing_uses_moves_no_rate_of_copies(what: str) -> None:
    for name, text in sampled(SAME[what], what):
        for old, new in zip(rows_of(name), predicted(text), strict=True):
            assert new.observation.value == pytest.approx(old.observation.value), (name, old.row.path)


@pytest.mark.parametrize("what", [what for what in SLOWER if what not in NOT_MONOTONE])
def test_what_is_slower_makes_nothing_faster(what: str) -> None:
    for name, text in sampled(SLOWER[what], what):
        faster = [old.row.path for old, new in zip(rows_of(name), predicted(text), strict=True)
                  if COMPARISONS[what].moved(old, new)]  # fmt: skip
        assert faster == [], name


# Machines whose ports, bridges and staged copies a link of unknown generation used to forget.
@pytest.mark.parametrize("name", ["p100-wilkes2", "m60-azure-nv12", "blackwell-two-pex8747", "mi25-haswell"])
def test_a_generation_that_is_not_stated_makes_nothing_surer(name: str) -> None:
    comparison = COMPARISONS["generation unknown"]
    for old, new in zip(rows_of(name), predicted(comparison.after(machine_text(name))), strict=True):
        assert not comparison.moved(old, new), old.row.path
