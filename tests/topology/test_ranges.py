"""Ranges and arithmetic, against slow and simple oracles."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import FormatError, LanewiseError
from lanewise.topology.ranges import expand, fold
from lanewise.topology.scope import evaluate, fill, holds

STEM = st.from_regex(r"[a-z_]{1,4}", fullmatch=True)
SPAN = st.tuples(st.integers(0, 30), st.integers(0, 5))
ITEM = st.one_of(SPAN.map(lambda s: f"{s[0]}-{s[0] + s[1]}"), st.integers(0, 40).map(str))
PIECES = st.lists(st.tuples(STEM, st.lists(ITEM, min_size=1, max_size=3)), min_size=1, max_size=3)


def oracle(pieces: list[tuple[str, list[str]]]) -> list[str]:
    """Every name, built one bracket at a time."""
    found = [""]
    for stem, items in pieces:
        longer = []
        for start in found:
            for item in items:
                low, _, high = item.partition("-")
                longer += [start + stem + str(number) for number in range(int(low), int(high or low) + 1)]
        found = longer
    return found


@given(PIECES)
def test_ranges_expand_as_the_oracle_does(pieces: list[tuple[str, list[str]]]) -> None:
    pattern = "".join(f"{stem}[{','.join(items)}]" for stem, items in pieces)
    assert expand(pattern) == oracle(pieces)


@given(st.lists(st.from_regex(r"[a-z]{1,2}[0-9]{0,2}(\.[0-9])?", fullmatch=True), max_size=20))
def test_folding_keeps_names_and_order(names: list[str]) -> None:
    assert [name for pattern in fold(names) for name in expand(pattern)] == names


def test_runs_fold_into_ranges() -> None:
    assert fold(["gpu8", "gpu9", "gpu10", "a", "gpu0"]) == ["gpu[8-10]", "a", "gpu0"]


def test_leading_zeros_are_kept() -> None:
    assert expand("n[08-11]") == ["n08", "n09", "n10", "n11"]


@given(st.integers(0, 50), st.integers(-9, 60))
def test_a_range_ends_at_or_one_below_its_start_or_runs_backwards(low: int, high: int) -> None:
    if high < low - 1:
        with pytest.raises(LanewiseError, match="backwards"):
            expand(f"g[{low}-{high}]")
    else:
        assert len(expand(f"g[{low}-{high}]")) == high - low + 1


TERM = st.one_of(st.integers(0, 99).map(str), st.sampled_from(["a", "b"]))
ARITHMETIC = st.recursive(
    TERM,
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
        lambda t: f"({t[0]} {t[1]} {t[2]})"
    ),
    max_leaves=6,
)


@given(ARITHMETIC, st.integers(-20, 20), st.integers(-20, 20))
def test_arithmetic_is_that_of_python(text: str, a: int, b: int) -> None:
    try:
        expected = eval(text, {"__builtins__": {}}, {"a": a, "b": b})
    except ZeroDivisionError:
        with pytest.raises(LanewiseError, match="divides by zero"):
            evaluate(text, {"a": a, "b": b})
        return
    if abs(expected) < 1e6:
        # A step on the way may grow too large.
        with suppress(FormatError):
            assert evaluate(text, {"a": a, "b": b}) == expected


@given(st.text(max_size=40))
def test_any_text_is_calculated_or_refused(text: str) -> None:
    for read in (evaluate, holds, fill):
        with suppress(LanewiseError):
            read(text, {"a": 1})


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "a.b",
        "[1][0]",
        "'x'",
        "1.5",
        "2**9",
        "a if a else b",
        "lambda: 1",
        "min(*[1])",
        "True + 1.0",
    ],
)
def test_nothing_but_arithmetic_is_calculated(text: str) -> None:
    with pytest.raises(LanewiseError):
        evaluate(text, {"a": 1, "b": 2})


def test_min_and_max_help_to_split_a_range() -> None:
    values = {"gpus": 3}
    assert fill("gpu[0-{min(gpus, 2)-1}]", values) == "gpu[0-1]"
    assert expand(fill("gpu[2-{max(gpus, 2)-1}]", {"gpus": 1})) == []
