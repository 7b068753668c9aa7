"""Whatever is wrong in a study file is an error with file, line, cause and hint, and never a traceback."""

from __future__ import annotations

import contextlib
import copy
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from example_counts import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from studies.study_texts import BASE, changed

import lanewise
from lanewise.errors import LanewiseError
from lanewise.probes import model
from lanewise.results.run import StudyRun
from lanewise.studies.fitting import parse_unknown
from lanewise.studies.form import StudyForm
from lanewise.studies.reading import METRIC_UNITS, read_study

ROW = ("tables", 0, "rows", 0)
FIT = {"part": "a100-sxm-80gb", "figure": "engine.nvlink", "start": "200 GB/s", "low": "100 GB/s", "high": "300 GB/s"}
RIVAL: dict[str, Any] = {"name": "rival", "says": "so"}
CHART = {"title": "c", "table": "rates"}
SURFACE = {"title": "c", "kind": "surface", "table": "swept", "x": "nics", "by": "label"}
BARS = CHART | {"kind": "bar", "by_label": "GPUs"}
MIXED = {"title": "c", "kind": "surface", "tables": ["rates", "swept"], "x": "table", "by": "label"}


def with_swept(metric: str, unit: str, count: int, chart: dict[str, Any]) -> str:
    """The small study with one more table 'more' of a copy, swept over so many values, and a chart of it."""
    rows = [{"label": "a", "scenario": {"flows": "gpu0->gpu1"}}]
    swept = {"nics": list(range(1, count + 1))}
    table = {"name": "more", "metric": metric, "unit": unit, "system": "dgx", "sweep": swept, "rows": rows}
    return yaml.safe_dump(BASE | {"tables": [*BASE["tables"], table], "charts": [chart]}, sort_keys=False)


LACKING: dict[str, Any] = {"title": "c", "kind": "surface", "tables": ["rates", "more"], "x": "label", "by": "nics"}
TIMES = SURFACE | {"table": "more", "within": 0.05}
DRAWING = {"title": "d", "system": "dgx"}
FIT_TO_ZERO = yaml.safe_load(changed(*ROW, "published", value=0)) | {"fit": [FIT], "fit_tables": ["rates"]}
TWIN = {"name": "rates", "rows": []}

BAD = {
    "a sweep of one number": (changed("tables", 1, "sweep", value={"nics": 5}), "'nics' must be a list"),
    "a sweep over words": (changed("tables", 1, "sweep", value={"nics": ["a", "b"]}), "whole numbers, not 'a'"),
    "a sweep over nothing": (changed("tables", 1, "sweep", value={"nics": [None, 2]}), "whole numbers, not nothing"),
    "a sweep over lists": (changed("tables", 1, "sweep", value={"nics": [[1], 2]}), "whole numbers, not a list"),
    "a sweep over fractions": (changed("tables", 1, "sweep", value={"nics": [1.9, 2]}), "whole numbers, not '1.9'"),
    "a sweep that repeats": (changed("tables", 1, "sweep", value={"nics": [1, 1]}), "each of them once"),
    "a sweep that is a list": (changed("tables", 1, "sweep", value=[1]), "'sweep' must be 'name: value' lines"),
    "one number for a sweep": (changed("tables", 1, "rows", 0, "published", value=4), "'published' must be a list"),
    "a number too many": (changed("tables", 1, "rows", 0, "published", value=[1, 2, 3]), "3 published values for 2"),
    "a list without a sweep": (changed(*ROW, "published", value=[1]), "'published' must be a number, not a list"),
    "an infinite number": (changed(*ROW, "published", value=200).replace("200", "1.0e+999"), "a number, not 'inf'"),
    "a mark beside the sweep": (changed("tables", 1, "extrapolated", value=[9]), "9 is not among the values of nics"),
    "settings that are true": (changed(*ROW, "set", value={"nics": True}), "whole numbers, not 'True'"),
    "a table that is a word": (changed("tables", 0, value="abc"), "must be 'name: value' lines"),
    "tables that are a mapping": (changed("tables", value={"a": 1}), "'tables' must be a list"),
    "rows that are no list": (changed("tables", 0, "rows", value={"a": 1}), "'rows' must be a list"),
    "a table twice": (changed("tables", 2, value=TWIN), "two tables are called 'rates'"),
    "a label that is a list": (changed(*ROW, "label", value=["a"]), "'label' must be a text, not a list"),
    "a label that is a fraction": (changed(*ROW, "label", value=1.5), "'label' must be a text, not '1.5'"),
    "a scenario that is a word": (changed(*ROW, "scenario", value="abc"), "'scenario' must be 'name: value' lines"),
    "flows that are none": (changed(*ROW, "scenario", value={"flows": "a to b"}), "'a to b' is not a flow"),
    "no scenario": (changed(*ROW, "scenario", value=None), "no scenario"),
    "a time in bytes": (changed("tables", 0, "unit", value="us"), "'goodput' cannot be in 'us'"),
    "an unknown unit": (changed("tables", 0, "unit", value="knots"), "unknown unit 'knots'"),
    "an unknown metric": (changed("tables", 0, "metric", value="speed"), "unknown metric 'speed'"),
    "a derived row's unit": (changed(*ROW, value={"derive": "1", "metric": "my own", "unit": "foo"}), "unit 'foo'"),
    "a derived row's syntax": (changed(*ROW, "derive", value="1 +"), "cannot calculate '1 +'"),
    "hypotheses that are a number": (changed("hypotheses", value=5), "'hypotheses' must be a list"),
    "a hypothesis' fit": (changed("hypotheses", value=[RIVAL | {"fit": 5}]), "'fit' must be a list"),
    "a hypothesis' figures": (changed("hypotheses", value=[RIVAL | {"figures": 5}]), "must be 'name: value' lines"),
    "one part's figures": (changed("hypotheses", value=[RIVAL | {"figures": {"h200-sxm": 5}}]), "'name: value' lines"),
    "a figure's name": (changed("hypotheses", value=[RIVAL | {"figures": {"t4": {"a": 5}}}]), "unknown figure 'a'"),
    "a figure's unit": (
        changed("hypotheses", value=[RIVAL | {"figures": {"t4": {"memory.rate": "5 us"}}}]), "not in B/s"
    ),
    "a conclusion's syntax": (changed("conclusions", value=[{"says": "a", "test": "b b"}]), "cannot calculate 'b b'"),
    "a conclusion that is a word": (changed("conclusions", value=["abc"]), "must be 'name: value' lines"),
    "a chart of a number": (changed("charts", value=[{"title": "c", "tables": 5}]), "'tables' must be a list"),
    "a chart of no such table": (changed("charts", value=[CHART | {"table": "ratez"}]), "unknown table 'ratez'"),
    "a chart's kind": (changed("charts", value=[CHART | {"kind": "pie"}]), "unknown kind 'pie'"),
    "a share on lines": (changed("charts", value=[CHART | {"within": 0.05}]), "a line chart has no 'within'"),
    "rows of a bar chart": (changed("charts", value=[BARS]), "a bar chart has no 'by_label'"),
    "a surface without rows": (changed("charts", value=[SURFACE | {"by": None}]), "a surface needs 'by'"),
    "a surface of one axis": (changed("charts", value=[SURFACE | {"by": "nics"}]), "'x' and 'by' are both 'nics'"),
    "a surface's share": (changed("charts", value=[SURFACE | {"within": 5}]), "a share from 0 to below 1, not 5"),
    "a surface's share in words": (changed("charts", value=[SURFACE | {"within": "5 %"}]), "must be a number"),
    "a surface of two units": (changed("charts", value=[MIXED]), "its rows are in GB/s and QPS"),
    "a surface over what is lacking": (with_swept("goodput", "GB/s", 2, LACKING), "of table 'rates' has no 'nics'"),
    "a surface of cells of two rows": (changed("charts", value=[SURFACE | {"x": "table"}]), "fall into one cell"),
    "a surface of times": (with_swept("latency", "us", 2, TIMES), "of times the smallest are best"),
    "a surface too wide": (with_swept("latency", "us", 41, TIMES), "a surface takes 40 values of 'nics' at most"),
    "a chart's axis": (changed("charts", value=[CHART | {"x": "gpuz"}]), "unknown x 'gpuz'"),
    "a drawing of no such system": (changed("drawings", value=[DRAWING | {"system": "zzz"}]), "study 'zzz'"),
    "a drawing's settings": (changed("drawings", value=[DRAWING | {"set": 5}]), "'set' must be 'name: value' lines"),
    "a drawing's scenario": (changed("drawings", value=[DRAWING | {"scenario": "abc"}]), "must be 'name: value' lines"),
    "a table to fit to": (changed("fit_tables", value=["ratez"]), "unknown table 'ratez'"),
    "what to leave out": (changed("leave_out", value=["zzz"]), "unknown leave_out 'zzz'"),
    "a fit to nothing": (changed("fit", value=[FIT]), "no published row to fit to"),
    "a fit to zero": (yaml.safe_dump(FIT_TO_ZERO), "'one' is published as 0 and cannot be used in a relative fit"),
    "a fit from zero": (changed("fit", value=[FIT | {"low": 0}]), "'low' must be finite and above 0"),
    "a fit without end": (changed("fit", value=[FIT | {"high": "1e400 GB/s"}]), "'high' must be finite"),
    "a fit that runs backwards": (changed("fit", value=[FIT | {"low": "250 GB/s"}]), "low <= start <= high"),
    "a fit of a word": (changed("fit", value=[FIT | {"figure": "peer.access"}]), "is a word and cannot be fitted"),
    "the same fit twice": (changed("fit", value=[FIT, FIT]), "is fitted twice"),
    "a fit without a start": (changed("fit", value=[FIT | {"start": None}]), "'start' is missing"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "cause"), BAD.values(), ids=BAD)
def test_a_mistake_is_reported_with_file_line_cause_and_hint(text: str, cause: str) -> None:
    with pytest.raises(LanewiseError) as caught:
        read_study(text, "bad.yaml")
    error = caught.value
    assert cause in error.cause
    assert error.location is not None
    assert error.location.file == "bad.yaml"
    assert error.location.line
    assert error.hint


def test_the_small_study_itself_is_sound() -> None:
    assert len(read_study(yaml.safe_dump(BASE), "good.yaml").rows) == 3


def test_every_metric_of_the_model_has_a_unit() -> None:
    assert {*model.COPY_METRICS, *model.SERVICE_METRICS} <= set(METRIC_UNITS)


def test_an_own_name_for_a_computed_metric_is_fine() -> None:
    row = {"label": "x", "derive": "1 / 3", "metric": "share of link", "unit": "%"}
    assert read_study(changed(*ROW, value=row), "good.yaml").rows[0].metric == "share of link"


def run(text: str, folder: Path) -> StudyRun:
    path = folder / "own.yaml"
    path.write_text(text, encoding="utf-8")
    return lanewise.run_studies([path]).studies[0]


@pytest.mark.parametrize(
    ("fit", "cause"),
    [
        (FIT | {"part": "a100-sxm-88gb"}, "unknown part 'a100-sxm-88gb'"),
        (FIT | {"figure": "net.rate"}, "unknown gpu figure 'net.rate'"),
    ],
)
def test_a_fit_of_what_no_part_has_is_reported_where_it_stands(tmp_path: Path, fit: dict[str, str], cause: str) -> None:
    text = yaml.safe_dump(BASE | {"fit": [fit], "fit_tables": ["rates"]})
    with pytest.raises(LanewiseError) as caught:
        run(text, tmp_path)
    assert cause in caught.value.cause
    assert caught.value.location is not None
    assert (
        text.splitlines()[caught.value.location.line - 1].lstrip("- ").startswith("figure:")
    )  # the entry's first line


@pytest.mark.parametrize(
    "derive", ["'abc'", "rows('rates')", "1 > 0", "[1]", "max([])", "1e15 / 0", "use(1, 'a')", "v('rates', 'two')"]
)
def test_a_derived_row_that_is_no_number_is_reported_where_it_stands(tmp_path: Path, derive: str) -> None:
    row = {"label": "x", "derive": derive, "metric": "r", "unit": "1"}
    with pytest.raises(LanewiseError) as caught:
        run(changed("tables", 0, "rows", 1, value=row), tmp_path)
    assert caught.value.location is not None
    assert caught.value.location.line


def test_a_drawing_takes_a_demand_as_rows_do(tmp_path: Path) -> None:
    scenario = {"flows": "gpu0->gpu1, gpu2->gpu3", "demand": "5 GB/s"}
    drawn = run(changed("drawings", value=[DRAWING | {"scenario": scenario}]), tmp_path).drawings[0]
    loads = [load for line in drawn.outline.lines for load in (line.load_ab, line.load_ba) if load]
    assert max(loads) == pytest.approx(2.5e9)


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        ("{rows} rows, {compared} compared, worst {worst} %", r"3 rows, 2 compared, worst [+-][\d.]+ %"),
        ("{foo}", r"\{foo\}"),
        ("a { b", r"a \{ b"),
        ("{rows.__class__} {rows!r} {0}", r"\{rows.__class__\} \{rows!r\} \{0\}"),
    ],
)
def test_a_finding_takes_its_four_figures_and_nothing_else(tmp_path: Path, finding: str, said: str) -> None:
    assert re.fullmatch(said, run(changed("finding", value=finding), tmp_path).finding)


def test_a_finding_of_nothing_compared_says_so(tmp_path: Path) -> None:
    data = copy.deepcopy(BASE)
    data["finding"] = "{compared} compared, rms {rms}, worst {worst}"
    for table in data["tables"]:
        del table["rows"][0]["published"]
    assert run(yaml.safe_dump(data), tmp_path).finding == "0 compared, rms n/a, worst n/a"


@pytest.mark.parametrize(
    "unknown",
    [
        "l40s service.resnet50.server 1..1e400 QPS",
        "l40s service.resnet50.server 9..3 QPS",
        "l40s service.resnet50.server 0..3 QPS",
        "l40s peer.access 1..2",
        "l40s memory.rat 1..2 GB/s",
        "l40s memory.rate 1..2 us",
        "l40s",
    ],
)
def test_a_fit_on_the_command_line_needs_a_finite_rising_range(unknown: str) -> None:
    with pytest.raises(LanewiseError) as caught:
        parse_unknown(unknown)
    assert caught.value.location is not None
    assert caught.value.hint


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**17), st.floats(allow_nan=True), st.text(max_size=6),
    st.sampled_from(["gpu0->gpu1", "1e999", "~", "5 GB/s", "gpu[0-", "", "[", "v('a','b')", "-" * 3000, "rows()"]),
    st.lists(st.integers() | st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers() | st.none(), max_size=2),
)  # fmt: skip


@cache
def ready(name: str) -> Any:
    return yaml.safe_load((resources.files("lanewise") / "data" / "studies" / f"{name}.yaml").read_text("utf-8"))


def nodes(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every node but the top."""
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [found for key, value in steps for found in [(*path, key), *nodes(value, (*path, key))]]


@examples(120, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_ready_study_with_anything_replaced_reads_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    tree = copy.deepcopy(ready(data.draw(st.sampled_from(["composable-server", "network-division", "storage-fabric"]))))
    *way, last = data.draw(st.sampled_from(nodes(tree)))
    here = tree
    for step in way:
        here = here[step]
    here[last] = data.draw(ODD)
    path = tmp_path_factory.getbasetemp() / "mutated.yaml"
    path.write_text(yaml.dump(tree, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)), encoding="utf-8")
    with contextlib.suppress(LanewiseError):
        assert isinstance(lanewise.load_study(path), StudyForm)
