"""Sweeps: their points, the table's arithmetic, what is extrapolated, the run file, going on, and a study beside it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_display_units import sample
from loadtest.known_runner import KnownRunner
from steady_probe import SteadyProbe, without_rivals

from lanewise import api
from lanewise.cli import verbs
from lanewise.errors import InputError, UnknownName
from lanewise.loadtest import selftest, sweep
from lanewise.loadtest.peak import find
from lanewise.options.loadtest import PeakOptions, SweepOptions
from lanewise.report.sweep import as_chart
from lanewise.report.text.loadtest import render_sweep
from lanewise.results.codec import run_from_json, run_to_json
from lanewise.results.observation import Source

FOUR = SweepOptions(devices=("gpu0", "gpu1", "gpu2", "gpu3"), batch=8, streams=2)
BYTES = 150_528


def made(point: sweep.SweepPoint, qps: float | None) -> sweep.SweepResult:
    """A point as a search would have told it."""
    if qps is None:
        return sweep.failed(point, 0.015, "no such device")
    settings = {"bytes": BYTES, **point.settings}
    flow = ", ".join(f"host0->{device}" for device in point.options.devices)
    rows = (("qps", qps, "1/s"), ("goodput", qps * BYTES / 1e9, "GB/s"), ("p99", 12.0, "ms"))
    return sweep.SweepResult(
        point, tuple(sample("Server 15 ms", flow, name, v, unit, settings, {}, "service") for name, v, unit in rows)
    )


def swept(
    *rates: float | None, axis: str = sweep.GPUS, values: tuple[str, ...] = ("1", "2", "4")
) -> list[sweep.SweepResult]:
    return [made(*pair) for pair in zip(sweep.points(axis, values, FOUR), rates, strict=True)]


def test_points_over_gpus_take_the_first_devices_and_the_others_change_one_thing_alone() -> None:
    gpus = sweep.points(sweep.GPUS, ["1", "3"], FOUR)
    assert [point.options.devices for point in gpus] == [("gpu0",), ("gpu0", "gpu1", "gpu2")]
    batches = sweep.points(sweep.BATCH, ["1", "16"], FOUR)
    assert [point.options.batch for point in batches] == [1, 16]
    streams = sweep.points(sweep.STREAMS, ["4"], FOUR, {"path": 3})
    assert streams[0].settings == {"gpus": 4, "batch": 8, "streams": 4, "path": 3}
    paths = sweep.points(sweep.PATH, ["gpu0", "gpu2, gpu3"], FOUR)
    assert [(p.name, p.x, p.options.devices) for p in paths] == [
        ("gpu0", 1, ("gpu0",)),
        ("gpu2,gpu3", 2, ("gpu2", "gpu3")),
    ]
    assert paths[1].settings == {"gpus": 2, "batch": 8, "streams": 2, "path": 2}
    folders = [point.folder for point in (*gpus, *batches, *streams, *paths)]
    assert len(set(folders)) == len(folders)


@pytest.mark.parametrize(
    ("axis", "values", "says"),
    [
        (sweep.GPUS, ["5"], "5 GPUs, but --devices names 4"),
        (sweep.GPUS, ["2", "2"], "has 2 twice"),
        (sweep.BATCH, ["0"], "'0' is no number"),
        (sweep.STREAMS, ["many"], "'many' is no number"),
        (sweep.PATH, ["gpu0", " "], "path 2 of the sweep names no device"),
    ],
)
def test_a_point_that_cannot_be_is_refused_before_anything_runs(axis: str, values: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        sweep.points(axis, values, FOUR)


rates = st.floats(1.0, 1e7)


@given(one=rates, two=rates, four=rates, link=st.floats(1e6, 1e12), to=st.integers(5, 64))
def test_speed_ups_shares_and_the_straight_line_are_what_they_are_called(
    one: float, two: float, four: float, link: float, to: int
) -> None:
    rows = sweep.table(swept(one, two, four), "2", link, [to])
    assert [row.qps for row in rows[:3]] == pytest.approx([one, two, four])
    assert [row.speedup for row in rows[:3]] == pytest.approx([one / two, 1.0, four / two])
    assert [row.share for row in rows[:3]] == pytest.approx([qps * BYTES / link for qps in (one, two, four)])
    last = rows[3]
    assert (last.source, last.x, last.p99) == (Source.EXTRAPOLATED, to, None)
    assert last.qps == pytest.approx(four / 4 * to)
    assert last.goodput == pytest.approx(four / 4 * to * BYTES)


def test_a_line_starts_at_the_largest_count_that_was_measured() -> None:
    rows = sweep.table(swept(100.0, 190.0, None), extrapolate=[16, 8, 8])
    assert [(row.point, row.qps) for row in rows[3:]] == [("8", 760.0), ("16", 1520.0)]
    assert "straight line from 2" in rows[3].note
    assert sweep.table(swept(None, None, None), extrapolate=[8])[3:] == []


def test_a_point_that_failed_is_a_row_with_its_reason_and_without_a_baseline_there_is_no_speed_up() -> None:
    rows = sweep.table(swept(None, 190.0, 350.0))
    assert (rows[0].qps, rows[0].note) == (None, "no such device")
    assert [row.speedup for row in rows] == [None] * 3
    data = sweep.as_data(sweep.GPUS, rows)
    text = render_sweep(data)
    assert "note: no speed-ups, as the baseline 1 has no rate" in text
    assert text.splitlines()[1].split(maxsplit=1) == ["1", "no such device"]


def test_what_was_predicted_and_what_limits_stand_beside_each_point_and_in_the_run_file() -> None:
    one, two, gone = swept(100.0, 190.0, None)
    peak, *others = one.samples
    peak = replace(peak, how={"limit": "the engine: a batch takes 1 ms"})
    found = [replace(one, predicted=105.0, samples=(peak, *others)), replace(two, predicted=171.0), gone]
    rows = sweep.table(found, extrapolate=[8])
    assert [row.predicted for row in rows] == [105.0, 171.0, None, None]
    assert [row.residual_pct for row in rows[:3]] == [pytest.approx(5.0), pytest.approx(-10.0), None]
    data = sweep.as_data(sweep.GPUS, rows)
    heads, first, *_ = (re.split(r"  +", line) for line in render_sweep(data).splitlines())
    assert dict(zip(heads, first, strict=False)).items() >= {("predicted", "105"), ("off, %", "+5.0")}
    assert "the engine" in first
    assert ">predicted before<" in as_chart(data)
    run = api.as_sweep_run(SweepOptions(extrapolate=(8,)), found)
    assert run_from_json(run_to_json(run), "x") == run
    beside = [row for row in run.rows if row.source is Source.PREDICTED]
    assert [(row.settings["gpus"], row.measured_residual_pct) for row in beside] == [
        (1, pytest.approx(5.0)),
        (2, pytest.approx(-10.0)),
    ]


def test_a_note_is_told_once_and_names_its_points_unless_it_is_of_all() -> None:
    one, two, gone = swept(1.0, 2.0, None)
    told = [replace(one, notes=("of all", "late")), replace(two, notes=("of all",)), gone]
    assert sweep.doubts(told) == ["of all", "1: late"]


def test_the_data_of_a_sweep_refuse_a_baseline_that_is_no_point() -> None:
    options = SweepOptions(gpus=("1", "2", "4"), devices=("gpu0", "gpu1", "gpu2", "gpu3"), baseline="3")
    with pytest.raises(UnknownName, match="unknown point of this sweep '3'"):
        api.sweep_data(options, swept(100.0, 190.0, 350.0))
    assert api.sweep_data(replace(options, baseline="2"), swept(100.0, None, None))["baseline"] == "2"


def test_a_baseline_or_an_extrapolation_that_makes_no_sense_is_refused() -> None:
    points = sweep.points(sweep.GPUS, ["1", "4"], FOUR)
    with pytest.raises(UnknownName, match="3"):
        sweep.check_baseline("3", points)
    with pytest.raises(InputError, match="to 4 GPUs within the sweep, which goes to 4"):
        sweep.check_extrapolated(sweep.GPUS, [4, 8], points)
    with pytest.raises(InputError, match="over batch is not extrapolated"):
        sweep.check_extrapolated(sweep.BATCH, [8], sweep.points(sweep.BATCH, ["1"], FOUR))


def test_a_run_holds_every_point_apart_and_marks_what_is_extrapolated() -> None:
    found = swept(100.0, None, 390.0)
    run = api.as_sweep_run(SweepOptions(extrapolate=(8,)), found)
    assert run_from_json(run_to_json(run), "x") == run
    rows = {(row.metric, row.settings["gpus"], row.source): row for row in run.rows}
    assert rows["qps", 1, Source.MEASURED].value == 100.0
    assert rows["qps", 2, Source.MEASURED].value is None
    assert rows["qps", 2, Source.MEASURED].note == "no such device"
    drawn = rows["goodput", 8, Source.EXTRAPOLATED]
    assert drawn.value == pytest.approx(780.0 * BYTES)
    assert drawn.extrapolated
    assert drawn.scenario == "Server 15 ms, extrapolated"
    assert drawn.settings["bytes"] == BYTES
    assert api.render_report(run).count("Server 15 ms, extrapolated") > 0


def test_a_search_becomes_a_point_and_is_read_back_as_it_was() -> None:
    found = find(KnownRunner(times=(0.001,)), PeakOptions(seconds=20.0), 840.0)
    (point,) = sweep.points(sweep.BATCH, ["1"], FOUR)
    told = sweep.point_result(point, replace(found, setup={"devices": "gpu0", "sample bytes": BYTES}))
    assert told.value("qps") == pytest.approx(found.qps)
    assert found.best is not None
    assert told.value("goodput") == pytest.approx(found.best.qps * BYTES)
    assert told.value("p99") == pytest.approx(found.best.latency["p99"])
    assert any("no MLPerf submission" in note for note in told.notes)
    text = sweep.to_json(told, "as asked")
    assert sweep.from_json(text, point, "as asked") == told
    earlier = {name: value for name, value in json.loads(text).items() if name != "predicted"}
    assert sweep.from_json(json.dumps(earlier), point, "as asked") == replace(told, predicted=None)
    for other, asked in ((text, "otherwise"), (text[:-9], "as asked"), ("[]", "as asked"), ("{}", "as asked")):
        assert sweep.from_json(other, point, asked) is None


@pytest.mark.parametrize(
    ("axis", "values", "label"),
    [
        (sweep.GPUS, ("1", "2", "4"), ">GPUs<"),
        (sweep.BATCH, ("1", "8", "64"), ">largest batch, queries<"),
        (sweep.PATH, ("gpu0", "gpu1", "gpu2,gpu3"), ">gpu2,gpu3<"),
    ],
)
def test_a_chart_has_units_on_its_axes_and_tells_extrapolated_points_from_measured_ones(
    axis: str, values: tuple[str, ...], label: str
) -> None:
    found = swept(100.0, None, 390.0, axis=axis, values=values)
    counts = [8] if axis == sweep.GPUS else []
    svg = as_chart(sweep.as_data(axis, sweep.table(found, link=1e9, extrapolate=counts), link=1e9))
    assert all(text in svg for text in (label, ">queries/s<", ">GB/s<", ">measured<", ">link<"))
    assert (">extrapolated<" in svg) is bool(counts)
    assert as_chart(sweep.as_data(axis, sweep.table(swept(None, None, None)), link=None)).startswith("<svg")


def test_the_composable_server_study_takes_the_users_rows_and_draws_them(tmp_path, monkeypatch) -> None:
    without_rivals(monkeypatch)
    ask = SweepOptions(devices=tuple(f"gpu{i}" for i in range(6)), batch=64)
    kept = []
    for path, share in ((3, 0.99), (4, 0.96)):
        found = [
            made(point, 60_000.0 * point.x * share)
            for point in sweep.points(sweep.GPUS, ["3", "4", "6"], ask, {"path": path})
        ]
        kept.append(tmp_path / f"path{path}.json")
        api.save_run(api.as_sweep_run(SweepOptions(extrapolate=(8,)), found), kept[-1])
    box = [made(point, 60_000.0 * point.x) for point in sweep.points(sweep.GPUS, ["3", "4"], ask)]
    api.save_run(api.as_sweep_run(SweepOptions(), box), tmp_path / "box.json")
    runs = api.run_studies(
        ["composable-server"],
        probe=SteadyProbe(),
        measured=[f"none5={tmp_path / 'box.json'}", *(f"gen5={path}" for path in kept)],
    )
    study = runs.studies[0]
    seen = {
        (row.table, row.scenario, row.settings.get("gpus")): row.display(row.measured.value)
        for row in study.rows
        if row.measured
    }
    assert seen["gen5", "path 4", 6] == pytest.approx(60_000 * 6 * 0.96 * BYTES / 1e9)
    assert seen["gen5", "path 3", 4] == pytest.approx(60_000 * 4 * 0.99 * BYTES / 1e9)
    assert seen["gen5 normalized", "path 4", 4] == pytest.approx(0.96)  # computed from the user's rows
    assert seen["no switch QPS", "TX2550 M7", 4] == pytest.approx(240_000.0)
    assert ("gen5", "path 4", 5) not in seen  # not measured
    assert ("no switch QPS", "TX2550 M7", 8) not in seen  # extrapolated is not measured
    assert not any(table == "gen4" for table, _, _ in seen)
    charts = {chart.title: chart for chart in study.charts}
    drawn = [s for s in charts["Gen5, H100 NVL: goodput against path"].series if s.source == "measured"]
    assert any(("path 4", pytest.approx(60_000 * 4 * 0.96 * BYTES / 1e9)) in series.points for series in drawn)
    assert ">measured<" in api.render_report(runs)


@pytest.mark.parametrize(
    ("settings", "scenario"),
    [({"gpus": 4, "path": 4}, "Server 15 ms"), ({"gpus": 4}, "Server 15 ms"), ({"gpus": 4, "path": 3}, "Server 30 ms")],
    ids=["another path", "no path", "another bound"],
)
def test_a_peak_of_another_path_or_bound_does_not_stand_for_a_row(settings: dict[str, int], scenario: str) -> None:
    from lanewise.results.sample import summarise
    from lanewise.studies.measured import MeasuredRun, find

    row = next(
        row for row in api.load_study("composable-server").rows
        if (row.table, row.settings.get("gpus"), row.settings.get("path")) == ("gen5", 4, 3)
    )  # fmt: skip

    def measured(scenario: str, **settings: int) -> MeasuredRun:
        peak = sample(scenario, "", "goodput", 9.0, "GB/s", {"bytes": BYTES, **settings}, {}, "service")
        return MeasuredRun("run", summarise([peak]))

    assert find(row, [measured("Server 15 ms", gpus=4, path=3)])
    assert find(row, [measured(scenario, **settings)]) is None


def test_a_sweep_runs_tells_what_failed_writes_everything_and_goes_on(
    loadgen, tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", "absent-libcuda.so")  # a GPU cannot be measured, on any machine
    monkeypatch.setattr(selftest, "holds", lambda *_: True)  # the generator alone is not tried
    search = ["--engine", "synthetic", "--service", "1 ms", "--bound", "500 ms", "--seconds", "1", "--results", "kept"]
    asked = ["loadtest", "sweep", *search, "--paths", "cpu; gpu97", "-o", "run.json", "--chart", "c.svg", "--json"]
    assert verbs.run(asked) == 0
    first = capsys.readouterr()
    good, bad = json.loads(first.out)["rows"]
    assert good["speedup"] == 1.0
    assert good["qps"] > 0
    assert bad["qps"] is None
    assert bad["note"]
    assert (tmp_path / "c.svg").read_text().startswith("<svg")
    run = api.load_run(tmp_path / "run.json")
    assert {row.settings["path"] for row in run.rows} == {1, 2}
    assert verbs.run(asked) == 0
    second = capsys.readouterr()
    assert json.loads(second.out) == json.loads(first.out)
    assert "loading" not in second.err.split("point 2")[0]  # the finished point was not opened again


def test_a_sweep_without_any_rate_ends_with_exit_code_1_and_draws_nothing(
    loadgen, tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", "absent-libcuda.so")
    asked = ["loadtest", "sweep", "--engine", "synthetic", "--service", "1 ms", "--paths", "gpu97; gpu98"]
    assert verbs.run([*asked, "--results", "kept", "--chart", "c.svg"]) == 1
    shown = capsys.readouterr()
    assert "gpu98" in shown.out
    assert "c.svg not written: no point has a rate" in shown.err
    assert not (tmp_path / "c.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "a sweep over nothing"),
        (("--gpus", "1", "--batches", "2"), "a sweep over GPUs and batch"),
        (("--batches", "1", "--extrapolate", "8"), "over batch is not extrapolated"),
        (("--gpus", "1", "--extrapolate", "x"), "is not a whole number"),
        (("--batches", "1", "--link", "0 GB/s"), "--link is a rate of 0"),
        (("--batches", "1", "--chart", "no/such/c.svg"), "no/such"),
    ],
)
def test_what_cannot_be_swept_is_said_at_once(lanewise, arguments: tuple[str, ...], says: str) -> None:
    done = lanewise("loadtest", "sweep", "--engine", "synthetic", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "hint:" in done.stderr
