"""Sizes of a sweep that were disturbed, and ratings of links beside messages that take longer to start than to move."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import verdict_of
from hypothesis import given
from hypothesis import strategies as st

from lanewise import api
from lanewise.checking.checkup import Checkup
from lanewise.checking.expectation import LONG_MESSAGE, expectation, starts_longer_than_it_moves
from lanewise.checking.lone_dips import without_lone_dips
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.readers.typed.figures import read_text
from lanewise.results.observation import Observation


def timed(size: int, seconds: float, scenario: str = "all_reduce", verdict: Verdict = Verdict.SLOW) -> PathResult:
    """The result of a typed time."""
    text = f'  - {{flows: "gpu[0-3]->gpu[0-3]", value: {seconds:.9g} s, path: {scenario}, bytes: {size}, ranks: 4}}\n'
    (row,) = read_text(f"lanewise-rows: 1\nrows:\n{text}", "f.yaml").observations
    assert row.metric == "time"
    return PathResult(row, expectation(row).expected, None, verdict)


def verdicts(*results: PathResult) -> list[Verdict]:
    return [result.verdict for result in without_lone_dips(results)]


def test_a_time_whose_two_longer_messages_took_half_was_disturbed() -> None:
    results = timed(2**20, 0.010), timed(2**21, 0.005), timed(2**22, 0.004)
    assert verdicts(*results) == [Verdict.UNKNOWN, Verdict.SLOW, Verdict.SLOW]


@pytest.mark.parametrize(
    "longer",
    [
        (timed(2**21, 0.0051), timed(2**22, 0.004)),
        (timed(2**21, 0.004), timed(2**22, 0.0051)),
        (timed(2**21, 0.004),),
        (timed(2**21, 0.004, "all_gather"), timed(2**22, 0.004, "all_gather")),
        (timed(2**18, 0.004), timed(2**19, 0.004)),
    ],
)
def test_one_longer_message_more_than_half_none_of_its_sweep_and_shorter_ones_show_no_disturbance(
    longer: tuple[PathResult, ...],
) -> None:
    assert verdicts(timed(2**20, 0.010), *longer)[0] is Verdict.SLOW


@given(st.permutations([timed(2**20, 0.010), timed(2**21, 0.005), timed(2**22, 0.004)]))
def test_the_order_of_the_rows_does_not_matter(results: list[PathResult]) -> None:
    disturbed = [each.row.settings["bytes"] for each in without_lone_dips(results) if each.verdict is Verdict.UNKNOWN]
    assert disturbed == [2**20]


def test_what_is_not_slow_stays_as_it_is() -> None:
    results = timed(2**20, 0.010, verdict=Verdict.OK), timed(2**21, 0.004), timed(2**22, 0.004)
    assert verdicts(*results)[0] is Verdict.OK


def collective(size: int, metric: str = "", ranks: int = 16) -> Observation:
    metric = f", metric: {metric}" if metric else ""
    text = f'{{flows: "gpu[0-7]->gpu[0-7]", value: 5 GB/s, path: all_reduce, bytes: {size}, ranks: {ranks}{metric}}}'
    (row,) = read_text(f"lanewise-rows: 1\nrows:\n  - {text}\n", "f.yaml").observations
    return row


@given(st.integers(1, 2**34))
def test_a_collective_starts_longer_than_it_moves_below_256_mib(size: int) -> None:
    assert starts_longer_than_it_moves(collective(size)) == (size < LONG_MESSAGE)


def checked(folder: Path, head: str, *rows: str) -> Checkup:
    path = folder / "question.txt"
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return api.check([path])


@pytest.mark.parametrize(("key", "size", "verdict"), [
    ("rated", "1 MiB", "unknown"), ("rated", "1 GiB", "slow"), ("expected", "1 MiB", "slow"),
])  # fmt: skip
def test_the_rating_of_a_link_says_nothing_of_a_short_collective(
    tmp_path: Path, key: str, size: str, verdict: str
) -> None:
    row = f'flows: "gpu[0-3]->gpu[0-3]", value: 5 GB/s, path: all_reduce, bytes: {size}, ranks: 4, {key}: 60 GB/s'
    assert verdict_of(checked(tmp_path, "", row)) == verdict
