"""A run survives the way to text and back, and a damaged file says what is wrong with it."""

from __future__ import annotations

import json
import math

import jsonschema
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from in_display_units import observation
from oracles.run_schema import run_schema

from lanewise.errors import FormatError
from lanewise.results.codec import SCHEMA, run_from_json, run_to_json
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.outline import Outline, OutlineBox, OutlineLine, OutlinePath, OutlineSpan
from lanewise.results.run import (
    Chart,
    Conclusion,
    Drawing,
    FittedValue,
    Hypothesis,
    LeftOut,
    Run,
    Series,
    StudyRun,
)
from lanewise.results.service_result import Advice, ResourceUtilization, SearchRun, ServiceResult, Stage

texts = st.text(max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
maybe = st.none() | numbers
counts = st.integers(0, 10**6)


def tuples(of: st.SearchStrategy, size: int = 3) -> st.SearchStrategy:
    return st.lists(of, max_size=size).map(tuple)


observations = st.builds(
    Observation,
    scenario=texts,
    flow=texts,
    metric=texts,
    value=maybe,
    display_unit=texts,
    source=st.sampled_from(Source),
    study=texts,
    system=texts,
    table=texts,
    settings=st.dictionaries(texts, counts, max_size=3),
    basis=st.none() | st.sampled_from(Basis),
    limit=texts,
    rests_on=tuples(texts),
    low=maybe,
    high=maybe,
    use=st.dictionaries(texts, numbers, max_size=3),
    published=maybe,
    extrapolated=st.booleans(),
    note=texts,
    samples=tuples(numbers),
    comparisons=st.dictionaries(texts, numbers, max_size=2),
)
services = st.builds(
    ServiceResult, texts, texts, texts, texts, st.sampled_from(Source), numbers, numbers, counts, counts, numbers,
    numbers, numbers, st.booleans(), texts, texts, texts,
    rests_on=tuples(texts), percentiles=tuples(st.tuples(numbers, numbers)),
    stages=tuples(st.builds(Stage, texts, numbers, numbers)),
    utilization=tuples(st.builds(ResourceUtilization, texts, numbers, tuples(numbers), texts)),
    series_step=numbers, batch=numbers,
    peak=st.none() | st.tuples(numbers, numbers),
    search_runs=tuples(st.builds(SearchRun, st.floats(1e-3, 1e9), counts, st.booleans(), numbers, counts, texts)),
    steady=maybe,
    advice=tuples(st.builds(Advice, texts, maybe)), goodput=numbers, duration=numbers, seed=counts,
    settings=st.dictionaries(texts, counts, max_size=2), assumptions=tuples(texts), note=texts,
)  # fmt: skip
points = st.tuples(numbers | texts, maybe)
charts = st.builds(
    Chart, texts, st.sampled_from(["line", "bar"]), texts, texts,
    tuples(st.builds(Series, texts, texts, tuples(points), tuples(st.booleans()), texts)), texts,
)  # fmt: skip
leaves = st.builds(OutlineBox, texts, texts, texts, texts, texts, st.booleans(), st.just(()), tuples(texts))
boxes = st.recursive(
    leaves, lambda inner: st.builds(OutlineBox, texts, texts, texts, children=tuples(inner)), max_leaves=4
)
lines = st.builds(OutlineLine, texts, texts, texts, texts, st.booleans(), maybe, maybe, maybe, maybe)
outlines = st.builds(
    Outline, texts, texts, tuples(boxes), tuples(lines), tuples(st.builds(OutlineSpan, texts, tuples(texts))),
    tuples(st.builds(OutlinePath, texts, counts, tuples(texts))), tuples(texts),
)  # fmt: skip
studies = st.builds(
    StudyRun, texts, texts, texts, texts, tuples(observations),
    tuples(st.builds(Conclusion, texts, st.none() | st.booleans(), texts)),
    tuples(st.builds(FittedValue, texts, numbers, texts, counts, maybe, maybe, texts)),
    tuples(st.builds(LeftOut, texts, counts, numbers, numbers)),
    tuples(st.builds(Hypothesis, texts, texts, maybe, maybe, counts, texts)),
    tuples(charts, 2), tuples(st.builds(Drawing, texts, outlines, texts), 2), tuples(texts), texts,
    tuples(services, 1),
)  # fmt: skip
named = st.dictionaries(texts, texts, max_size=3)
runs = st.builds(Run, tuples(studies, 2), texts, texts, texts, named, tuples(services, 2))


def observed(**changes: object) -> Observation:
    fields = {
        "scenario": "s",
        "flow": "f",
        "metric": "m",
        "value": 1.0,
        "unit": "GB/s",
        "source": Source.PREDICTED,
    }
    return observation(**{**fields, **changes})  # type: ignore[arg-type]


def one_row(row: Observation) -> Run:
    return Run((StudyRun("a", "A", "", "", (row,)),), "now", "1")


@examples(60)
@given(runs)
def test_a_run_comes_back_as_it_was(run: Run) -> None:
    assert run_from_json(run_to_json(run), "run.json") == run


@settings(max_examples=25, deadline=None)
@given(runs)
def test_what_is_written_satisfies_the_json_schema(run: Run) -> None:
    jsonschema.Draft202012Validator(run_schema()).validate(json.loads(run_to_json(run)))


def test_the_json_schema_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(run_schema())


def test_the_residual_is_written_and_not_read_back() -> None:
    text = run_to_json(one_row(observed(value=11.0, published=10.0)))
    row = json.loads(text)["studies"][0]["rows"][0]
    assert row["residual_pct"] == pytest.approx(10.0)
    row_text = text.replace('"residual_pct": 10.0', '"residual_pct": 99.0')
    assert run_from_json(row_text, "x").studies[0].rows[0].residual_pct == pytest.approx(10.0)


def test_a_value_that_is_not_finite_becomes_null_with_a_note() -> None:
    row = run_from_json(run_to_json(one_row(observed(value=math.inf, note="why"))), "x").studies[0].rows[0]
    assert (row.value, row.note) == (None, "why; value was inf")


def test_a_sample_that_is_not_finite_is_refused_by_name() -> None:
    with pytest.raises(FormatError, match=r"run\.studies\[0\]\.rows\[0\]\.samples\[1\] is nan"):
        run_to_json(one_row(observed(samples=(1.0, math.nan))))


def test_a_field_added_later_is_passed_over() -> None:
    data = json.loads(run_to_json(one_row(observed())))
    data["studies"][0]["mood"] = "good"
    assert run_from_json(json.dumps(data), "x") == one_row(observed())


def test_a_file_from_before_services_and_other_methods_still_reads() -> None:
    data = json.loads(run_to_json(one_row(observed())))
    assert data.pop("services") == data["studies"][0].pop("services") == []
    assert data["studies"][0]["rows"][0].pop("comparisons") == {}
    assert run_from_json(json.dumps(data), "old.json") == one_row(observed())
    jsonschema.Draft202012Validator(run_schema()).validate(data)


def test_a_latency_that_is_not_finite_is_refused_by_name() -> None:
    loaded = ServiceResult(
        "a", "w", "Server", "s", Source.PREDICTED, 1.0, 1.0, 1, 1, 1.0, 0.99, math.inf, False, "", "", ""
    )
    with pytest.raises(FormatError, match=r"run\.services\[0\]\.latency is inf"):
        run_to_json(Run((), "now", "1", services=(loaded,)))


def test_residuals_of_other_methods_are_those_of_the_row() -> None:
    row = observed(value=11.0, published=10.0, comparisons={"a": 9.0, "b": 10.0})
    assert row.comparison_residuals_pct == {"a": pytest.approx(-10.0), "b": 0.0}
    assert observed(comparisons={"a": 9.0}).comparison_residuals_pct == {"a": None}
    assert observed(published=0.0, comparisons={"a": 9.0}).comparison_residuals_pct == {"a": None}


GOOD = run_to_json(one_row(observed()))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "the file is empty"),
        (GOOD[:-40], "ends in the middle of a run"),
        ("{oops}", "not JSON"),
        ("# mine\nlanewise: 1\nsystem: s\n", "a description, not a run"),
        ("[1]", "names no schema"),
        ("{}", "names no schema"),
        (GOOD.replace(SCHEMA, "lanewise.run/3"), 'its schema is "lanewise.run/3"'),
        (GOOD.replace('"value": 1000000000.0', '"value": "fast"'), 'value should be a number, not "fast"'),
        (GOOD.replace('"value": 1000000000.0', '"value": true'), "value should be a number, not true"),
        (GOOD.replace('"value": 1000000000.0', '"value": NaN'), "NaN is not a JSON number"),
        (GOOD.replace('"source": "predicted"', '"source": "guessed"'), "source should be one of published"),
        (GOOD.replace('"display_unit": "GB/s",', ""), "lacks 'display_unit'"),
        (GOOD.replace('"rests_on": []', '"rests_on": "all"'), "rests_on should be a list"),
        (GOOD.replace('"use": {}', '"use": []'), "use should be an object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_damaged_file_names_the_place_the_cause_and_the_next_step(text: str, cause: str) -> None:
    with pytest.raises(FormatError) as caught:
        run_from_json(text, "old/run.json")
    assert cause in caught.value.cause
    assert caught.value.location is not None
    assert caught.value.location.file == "old/run.json"
    assert caught.value.hint


@examples(60)
@given(st.integers(0, len(GOOD) - 2))
def test_a_run_cut_anywhere_is_refused(length: int) -> None:
    with pytest.raises(FormatError):
        run_from_json(GOOD[:length], "run.json")
