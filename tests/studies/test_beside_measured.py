"""A study beside measured runs: each row finds the value of its own flows, in its own unit, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_display_units import observation

from lanewise import api
from lanewise.errors import InputError
from lanewise.report.accuracy import accuracy_page
from lanewise.results.codec import run_from_json, run_to_json
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Run, StudyRun
from lanewise.studies.measured import MeasuredRun, find
from lanewise.studies.reading import read_study

STUDY = """
lanewise: 1
study: pair
systems: {pair: h200-pair}
tables:
  - name: copies
    metric: goodput
    unit: GB/s
    system: pair
    rows:
      - {label: in, scenario: {flows: "host0->gpu0"}, published: 55}
      - {label: both in, scenario: {flows: "host0->gpu0, host0->gpu1"}}
      - {label: peers, scenario: {flows: "gpu0->gpu1"}}
      - {label: pulled, scenario: {flows: "gpu0->gpu1 read"}}
      - {label: staged, scenario: {flows: "gpu0->gpu1", p2p: false}}
      - {label: out, scenario: {flows: "gpu0->host0"}}
      - {label: two over one, derive: "v('copies', 'both in') / v('copies', 'in')", unit: "1", metric: ratio}
  - {name: time, metric: latency, unit: ns, system: pair, rows: [{label: small, scenario: {flows: "gpu0->gpu1"}}]}
conclusions:
  - {says: two beat one, test: "v('copies', 'both in') > v('copies', 'in')", shows: "v('copies', 'in')"}
  - {says: out as in, test: "v('copies', 'out') > 0"}
"""


def seen(flow: str, value: float | None, **more: object) -> Observation:
    fields = {"scenario": "made up", "metric": "goodput", "unit": "GB/s", "source": Source.MEASURED, **more}
    return observation(flow=flow, value=value, **fields)  # type: ignore[arg-type]


ROWS = (
    seen("host0->gpu0", 27.0, settings={"bytes": 150_528}),
    seen("host0->gpu0", 55.5, settings={"bytes": 2**29}, samples=(55.4, 55.5, 55.6), low=55.4, high=55.6),
    seen("host0->gpu0", 51.0, settings={"bytes": 2**29}, how={"engine": "SM"}),
    seen("host0->gpu0", 40.0, settings={"bytes": 2**30}, how={"flows": "host0->gpu0, gpu0->host0"}),
    seen("host0->gpu0", 54.0, settings={"bytes": 2**30}, how={"flows": "host0->gpu0, host0->gpu1"}),
    seen("made up", 108_000.0, metric="total", unit="MB/s", how={"flows": "host0->gpu1, host0->gpu0"}),
    seen("gpu0->gpu1", 390.0, how={"p2p": "on"}),
    seen("gpu0->gpu1", 370.0, how={"p2p": "on", "flows": "gpu0->gpu1 read"}),
    seen("gpu0->gpu1", 38.0, path="peer, staged"),
    seen("gpu0->host0", None, note="no room"),
    seen("gpu0->gpu1", 2.2, metric="latency", unit="us", how={"p2p": "on"}),
)


def run(*rows: Observation) -> Run:
    return Run((), "2026-11-20T14:00:00+00:00", "0", rows=rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pair.yaml").write_text(STUDY, encoding="utf-8")
    api.save_run(run(*ROWS), tmp_path / "run.json")
    return tmp_path


@pytest.fixture
def study(folder: Path) -> StudyRun:
    return api.run_studies([folder / "pair.yaml"], measured=[folder / "run.json"]).studies[0]


def values(study: StudyRun) -> dict[str, float | None]:
    return {row.scenario: row.display(row.measured.value) if row.measured else None for row in study.rows}


def test_each_row_finds_the_measured_value_of_the_same_flows_at_once(study: StudyRun) -> None:
    assert values(study) == {
        "in": 55.5, "both in": pytest.approx(108.0), "peers": 390.0, "pulled": 370.0, "staged": 38.0, "out": None,
        "two over one": pytest.approx(108 / 55.5), "small": pytest.approx(2200.0),
    }  # fmt: skip


def test_of_several_that_fit_the_large_copy_by_the_copy_engine_is_taken_and_it_is_said(study: StudyRun) -> None:
    found = study.rows[0].measured
    assert found is not None
    assert found.note == "run.json: made up, 512 MiB, median of 3; taken out of 3 that fit"
    assert (found.low, found.high, len(found.samples)) == (55.4e9, 55.6e9, 3)


def test_the_residual_against_the_measured_value_is_the_predictions(study: StudyRun) -> None:
    first = study.rows[0]
    assert first.value is not None
    assert first.measured_residual_pct == pytest.approx(100 * (first.value - 55.5e9) / 55.5e9)
    assert first.residual_pct == pytest.approx(100 * (first.value - 55e9) / 55e9)


def test_a_conclusion_says_what_measured_values_say(study: StudyRun) -> None:
    assert "measured 55.5" in study.conclusions[0].shown
    assert "measured values: true" in study.conclusions[0].shown
    assert "measured values: not stated" in study.conclusions[1].shown


def test_measured_values_are_saved_read_back_and_counted_in_the_accuracy(study: StudyRun) -> None:
    whole = Run((study,), "", "0")
    assert run_from_json(run_to_json(whole), "x") == whole
    assert '"measured_residual_pct": ' in run_to_json(whole)
    page = accuracy_page(whole)
    assert "7 rows have a measured value" in page
    copies = page.split("### copies")[1].split("###")[0]
    assert "| published GB/s | predicted GB/s |" in copies
    assert "| in | host0->gpu0 | 55 |" in copies
    assert "## Against measured values, by study" in page


def test_memory_of_another_numa_node_answers_only_where_nothing_nearer_was_measured(folder: Path) -> None:
    far = seen("host0:1->gpu0", 51.0, settings={"bytes": 2**30}, how={"NUMA node": "1"})
    for rows, value in (((far,), 51.0), ((far, ROWS[1]), 55.5)):
        api.save_run(run(*rows), folder / "run.json")
        first = api.run_studies([folder / "pair.yaml"], measured=[folder / "run.json"]).studies[0].rows[0]
        assert first.measured is not None
        assert first.display(first.measured.value) == value


def test_settings_that_both_name_must_agree() -> None:
    text = STUDY.replace("{label: in,", "{label: in, set: {gpus: 2},")
    asked = read_study(text, "pair.yaml").rows[0]
    for gpus, fits in ((2, True), (4, False)):
        found = find(asked, [MeasuredRun("run", (seen("host0->gpu0", 1.0, settings={"gpus": gpus, "threads": 4}),))])
        assert bool(found) is fits


def test_a_study_of_several_systems_asks_which_one_was_measured(folder: Path) -> None:
    with pytest.raises(InputError, match=r"run\.json does not say on which system of expansion-chassis") as caught:
        api.run_studies(["expansion-chassis"], measured=[folder / "run.json"])
    assert caught.value.hint.startswith("--measured xeon=run.json")


def test_a_run_named_for_a_system_answers_its_rows_alone(folder: Path) -> None:
    found = api.run_studies(["expansion-chassis"], measured=[f"epyc={folder / 'run.json'}"]).studies[0]
    told = {row.system for row in found.rows if row.measured}
    assert told == {"falcon-4010-epyc"}


def test_a_run_without_measured_rows_is_refused(folder: Path) -> None:
    api.save_run(run(), folder / "empty.json")
    with pytest.raises(InputError, match="holds no measured rows"):
        api.run_studies([folder / "pair.yaml"], measured=[folder / "empty.json"])


def test_a_new_study_says_how_to_lay_it_beside_a_measurement() -> None:
    text, _ = api.new_study("mine")
    assert "lanewise study run mine.yaml --measured measured.json" in text


def test_of_two_runs_that_both_fit_the_last_one_named_wins(folder: Path) -> None:
    for name, value in (("old.json", 50.0), ("new.json", 51.0)):
        api.save_run(run(seen("host0->gpu0", value)), folder / name)
    both = [folder / "old.json", folder / "new.json"]
    for order, value in ((both, 51.0), (both[::-1], 50.0)):
        first = api.run_studies([folder / "pair.yaml"], measured=order).studies[0].rows[0]
        assert first.measured is not None
        assert first.display(first.measured.value) == value


def test_what_other_tools_call_their_flows_is_passed_over_when_it_cannot_be_read(folder: Path) -> None:
    api.save_run(run(seen("host0:0->host0:0", 9.0), seen("all of it", 8.0), ROWS[1]), folder / "run.json")
    first = api.run_studies([folder / "pair.yaml"], measured=[folder / "run.json"]).studies[0].rows[0]
    assert first.measured is not None
    assert first.display(first.measured.value) == 55.5


@pytest.mark.parametrize("kind", ["line", "bar"])
def test_a_chart_of_the_study_draws_the_measured_values(folder: Path, kind: str) -> None:
    chart = f"charts: [{{title: Copies, kind: {kind}, table: copies, x: label}}]\n"
    (folder / "pair.yaml").write_text(STUDY + chart, encoding="utf-8")
    found = api.run_studies([folder / "pair.yaml"], measured=[folder / "run.json"])
    (drawn,) = found.studies[0].charts
    told = next(series for series in drawn.series if series.source == "measured")
    assert dict(told.points)["in"] == 55.5
    assert ">measured<" in api.render_report(found)
