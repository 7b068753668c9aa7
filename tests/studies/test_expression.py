"""The expression language of studies: what it computes, what it refuses, and what a publication does not tell."""

from __future__ import annotations

import math
from typing import Any

import pytest
from in_display_units import observation

from lanewise.errors import FormatError, LanewiseError, Location
from lanewise.results.observation import Basis, Observation, Source
from lanewise.studies.conclusions import conclude
from lanewise.studies.form import ConclusionForm
from lanewise.studies.rows import NotStated, StudyRows, ValueKind


def row(
    label: str, value: float | None, published: float | None = None, table: str = "t", **settings: int
) -> Observation:
    return observation(
        label, "", "goodput", value, "GB/s", Source.PREDICTED, table=table, settings=settings, basis=Basis.PHYSICS,
        limit="link a->b", use={"host link": 0.95}, published=published,
    )  # fmt: skip


ROWS = [
    row("a", 10.0, 11.0, gpus=1), row("a", 20.0, 19.0, gpus=2), row("b", 30.0, gpus=1), row("c", None, 5.0, gpus=1),
    row("own", 1.0, table="unpublished"),
]  # fmt: skip


def ask(text: str, kind: ValueKind = ValueKind.PREDICTED) -> Any:
    return StudyRows(ROWS, kind).evaluate(text, {"n": 2})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - 4 / 2", 5),
        ("-n < 0 <= n and not n == 3", True),
        ("n if n > 5 else [n, 'x'][1]", "x"),
        ("v('t', 'a', gpus=2) / v('t', 'a', gpus=n - 1)", 2),
        ("[r.value for r in rows('t') if r.label != 'b']", [10, 20]),
        ("all(r.value > 5 for r in rows('t', gpus=1))", True),
        ("any(x > y for x in [1, 2] for y in [1, 5])", True),
        ("[x * 10 for x in [x + 1 for x in [1, 2]]]", [20, 30]),
        ("[a - b for a, b in [[3, 1], [9, 4]]]", [2, 5]),
        ("sum(r.gpus for r in rows('t')) + len(rows() + rows())", 12),
        ("round(mean([1, 2]), 1) + rms([3, -3]) + max(1, 2) + abs(-1)", 7.5),
        ("sorted(r.label for r in rows('t', label='a'))", ["a", "a"]),
        ("'link' in rows('t')[0].limit and use(rows('t')[0], 'host|x') > 0.9", True),
        ("(x for x in [1])", [1]),
    ],
)
def test_it_computes(text: str, value: Any) -> None:
    assert ask(text) == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    "text",
    [
        "", "1 +", "x", "__import__('os')", "().__class__", "rows()[0].__class__", "rows.x", "'a'.upper()", "lambda: 1",
        "{1}", "{}", "f'{n}'", "1j", "b'a'", "...", "None", "2 ** 9", "1 // 2", "1 % 2", "~1", "[1][0:1]", "[*rows()]",
        "1e400", "9999999999999999999", "1e15 * 1e15 * 1e300", "round(1e308 * 10)", "round(5, -1000000000)",
        "len([1] * 99999999999999)", "'a' * 9", "'a' + 'b'", "1 + 'a'", "1 / 0", "1 < 'a'", "max([])", "rms([])",
        "mean([])", "[1][5]", "[1]['a']", "use(1, 'a')", "use(rows()[0], 5)", "predicted_use('a', 'b')",
        "v('t')", "v('t', 'a')", "v('t', 'zzz')",
        "v(['t'], 'a')", "v('t', ['a'])", "v('zzz', 'a')", "rows('zzz')", "rows(5)", "rows(gpuz=4)",
        "rows(**n)", "abs", "max(rows(), key=len)", "zzz(1)", "len(5)", "sum([[1], [2]], [])", "sum(['a'])", "all(5)",
        "rows()[0].zzz", "n.value", "[x for x in 5]", "[1 for x, y in [1]]", "[1 for x, y in [[1]]]", "n(1)",
        "(n := 1)", "abs(rows()[0])", "\x00", "1" * 3000, "-" * 5000 + "1",
        "(" * 300 + "1" + ")" * 300, "+".join(["1"] * 400),
        "sum(1 for a in rows() for b in rows() for c in rows() for d in rows() for e in rows())",
        "-" * 60 + "1", "[" * 60 + "]" * 60,
    ],
)  # fmt: skip
def test_it_refuses_with_a_hint(text: str) -> None:
    with pytest.raises(LanewiseError) as caught:
        ask(text)
    assert caught.value.cause
    assert caught.value.hint


def test_loops_inside_each_other_run_out_of_steps() -> None:
    many = StudyRows([row(str(i), 1.0) for i in range(1000)], ValueKind.PREDICTED)
    with pytest.raises(FormatError, match="too many steps"):
        many.evaluate("sum(len(rows()) for a in rows() for b in rows() for c in rows() for d in rows())")


@pytest.mark.parametrize("field", ["limit", "basis", "predicted", "residual_pct", "low", "high"])
def test_a_publication_tells_no_field_of_the_prediction(field: str) -> None:
    with pytest.raises(NotStated, match="is not published"):
        ask(f"rows('t')[0].{field}", ValueKind.PUBLISHED)


def test_a_publication_tells_no_use_but_may_be_asked_about_the_rows_that_a_predicted_use_selects() -> None:
    with pytest.raises(NotStated):
        ask("use(rows('t')[0], 'host')", ValueKind.PUBLISHED)
    chosen = "[r.value for r in rows('t', label='a') if predicted_use(r, 'host') > 0.9]"
    assert ask(chosen, ValueKind.PUBLISHED) == [11, 19]
    assert ask(chosen) == [10, 20]


def test_what_has_no_value_is_not_stated_rather_than_unknown() -> None:
    for text, kind in (
        ("v('t', 'c')", ValueKind.PREDICTED),
        ("v('t', 'b')", ValueKind.PUBLISHED),
        ("rows('unpublished')", ValueKind.PUBLISHED),
        ("rows('t', label='b')[0].published", ValueKind.PREDICTED),
        ("rows('t')[0].low", ValueKind.PREDICTED),
    ):
        with pytest.raises(NotStated):
            ask(text, kind)


def claim(test: str, shows: str = "") -> ConclusionForm:
    return ConclusionForm("it is so", test, shows, Location("s.yaml", 7))


def test_a_verdict_on_what_no_publication_tells_is_not_stated() -> None:
    entry = claim("all('link' in r.limit for r in rows('t'))", "[r.value for r in rows('t', label='a')]")
    found = conclude(entry, ROWS)
    assert found.holds is True
    assert found.shown == "predicted 10.0, 20.0, published 11.0, 19.0; published values: not stated"


def test_a_verdict_that_a_missing_row_prevents_is_open() -> None:
    assert conclude(claim("v('t', 'c') > 1"), ROWS).holds is None
    assert conclude(claim("v('t', 'c') > 1"), ROWS).shown == "published values: true"


@pytest.mark.parametrize(
    ("test", "shows"),
    [
        ("v('t', 'zzz') > 1", ""), ("rows('t')", ""), ("1", ""), ("max([]) > 1", ""), ("1 > 0", "rows('t')"),
        ("1 > 0", "zzz"),
    ],
)  # fmt: skip
def test_a_conclusion_that_is_wrong_in_itself_is_an_error_with_its_place(test: str, shows: str) -> None:
    with pytest.raises(LanewiseError) as caught:
        conclude(claim(test, shows), ROWS)
    assert caught.value.location == Location("s.yaml", 7)


def test_a_value_that_is_not_finite_counts_as_a_number_nowhere() -> None:
    with pytest.raises(FormatError):
        StudyRows([row("x", math.inf)], ValueKind.PREDICTED).evaluate("v('t', 'x') - v('t', 'x')")
