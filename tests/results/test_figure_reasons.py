"""Why one figure is less than another, as their words say."""

from __future__ import annotations

from itertools import permutations
from re import Pattern
from typing import cast

import pytest

from lanewise.results import figure_reasons
from lanewise.results.figure_reasons import explained


class CountingPattern:
    """A pattern that counts how often it is looked for."""

    def __init__(self, pattern: Pattern[str]) -> None:
        self.pattern = pattern
        self.searches = 0

    def search(self, words: str) -> object:
        self.searches += 1
        return self.pattern.search(words)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> CountingPattern:
    pattern = CountingPattern(figure_reasons._DUPLEX)
    monkeypatch.setattr(figure_reasons, "_DUPLEX", cast("Pattern[str]", pattern))
    return pattern


def test_words_are_looked_at_once_however_many_others_they_are_compared_with(counting: CountingPattern):
    names = [f"a copy of the program number {number}" for number in range(40)]
    assert not any(explained(one, other) for one, other in permutations(names, 2))
    assert counting.searches == len(names)


@pytest.mark.parametrize(
    ("slower", "faster"),
    [
        ("PCIe Gen3 slot", "PCIe Gen4 slot"), ("llama 70B", "llama 8B"), ("4 KiB messages", "1 MiB messages"),
        ("one thread", "several threads"), ("O_DIRECT", "plain"),
        ("plain", "from page cache"), ("both ways", "plain"),
    ],
)  # fmt: skip
def test_each_kind_of_reason_explains_in_one_direction_alone(slower: str, faster: str):
    assert explained(slower, faster)
    assert not explained(faster, slower)
