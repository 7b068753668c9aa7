"""Scenarios: each once, in batches of measured time, kept in Parquet, resumed after whatever ended the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import engine_work
import pytest
from engine_work import Rate
from hypothesis import given
from hypothesis import strategies as st

import lanewise
from lanewise import package_data
from lanewise.api.scenarios import Scenario, ScenarioProgress, run_scenarios, scenario_key
from lanewise.api.sweep import combinations
from lanewise.cli import verbs
from lanewise.cli.scenario_status import ScenarioStatus, progress_text
from lanewise.engines.batch_size import BatchSizer
from lanewise.engines.local import InlineEngine, LocalEngine
from lanewise.engines.work import WorkerLost
from lanewise.errors import InputError
from lanewise.options.plan import PlanOptions
from lanewise.options.predict import PredictOptions, ServiceOptions
from lanewise.options.system import SystemOptions
from lanewise.options.workers import WorkerOptions
from lanewise.planning.layouts import Ranking

parquet: Any = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: lanewise[parquet]")

from lanewise.api.scenario_store import ScenarioStore  # noqa: E402 - after the skip

SCENARIOS = [Scenario(number, scenario_key("test", number)) for number in range(20)]


def open_rates(folder: Path) -> ScenarioStore[Rate]:
    columns = {"name": "string", "value": "double"}
    return ScenarioStore(folder, Rate, columns, lambda rate: [{"name": rate.name, "value": rate.value}])


def names_of(folder: Path) -> list[str]:
    return sorted(name for file in folder.glob("*.parquet") for name in parquet.read_table(file)["name"].to_pylist())


ALL_NAMES = sorted(f"row {number}" for number in range(20))


def test_a_finished_scenario_never_runs_again(tmp_path: Path) -> None:
    engine_work.CALLS.clear()
    with open_rates(tmp_path) as store:
        first = list(run_scenarios(SCENARIOS[:8], engine_work.named_rate, InlineEngine(), store))
    with open_rates(tmp_path) as store:
        answers = dict(run_scenarios(SCENARIOS, engine_work.named_rate, InlineEngine(), store))
    assert sorted(engine_work.CALLS) == list(range(20))
    assert answers == {number: Rate(f"row {number}", number / 3) for number in range(20)}
    assert dict(first).items() <= answers.items()
    assert names_of(tmp_path) == ALL_NAMES


@pytest.mark.parametrize("after", [0, 1, 7, 19])
def test_a_run_that_is_interrupted_resumes_to_the_same_rows(tmp_path: Path, after: int) -> None:
    def interrupt(progress: ScenarioProgress) -> None:
        if progress.finished >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), open_rates(tmp_path) as store:
        list(run_scenarios(SCENARIOS, engine_work.named_rate, InlineEngine(), store, interrupt))
    kept = names_of(tmp_path)
    assert after <= len(kept) < 20
    (tmp_path / ".part-00009.parquet.partial").write_bytes(b"cut off by a kill")
    with open_rates(tmp_path) as store:
        list(run_scenarios(SCENARIOS, engine_work.named_rate, InlineEngine(), store))
    assert names_of(tmp_path) == ALL_NAMES


def test_a_folder_of_other_scenarios_is_refused(tmp_path: Path) -> None:
    with open_rates(tmp_path) as store:
        list(run_scenarios(SCENARIOS[:3], engine_work.named_rate, InlineEngine(), store))
    with pytest.raises(InputError, match="another command, or of another version"), open_rates(tmp_path) as store:
        list(run_scenarios(SCENARIOS[1:], engine_work.named_rate, InlineEngine(), store))


def test_the_version_is_part_of_a_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scenario_key("test", 3) == SCENARIOS[3].key != scenario_key("test", 4)
    monkeypatch.setattr("lanewise.api.scenarios.installed_version", lambda: "9.9")
    assert scenario_key("test", 3) != SCENARIOS[3].key


def test_a_folder_is_of_one_process_at_a_time(tmp_path: Path) -> None:
    with open_rates(tmp_path), pytest.raises(InputError, match="another process writes to this folder"):
        open_rates(tmp_path)
    open_rates(tmp_path).close()


def test_one_scenario_that_kills_its_workers_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.engines.local.RETRIES", 0)
    with LocalEngine(1) as engine, open_rates(tmp_path) as store, pytest.raises(WorkerLost, match="1 of 20 scenarios"):
        list(run_scenarios(SCENARIOS, engine_work.named_rate_of_survivor, engine, store))
    assert names_of(tmp_path) == sorted(set(ALL_NAMES) - {"row 13"})


@given(st.floats(1e-6, 10), st.integers(1, 64))
def test_batches_grow_to_the_time_they_should_take(seconds: float, workers: int) -> None:
    sizer, size = BatchSizer(), 0
    for _ in range(12):
        size = sizer.size(10**9, workers)
        sizer.add(size, size * seconds)
    assert size == 1 or 0.4 < size * seconds < 1.1 or size >= 4**10
    assert sizer.size(1, workers) == 1
    assert sizer.size(100 * workers, workers) <= 50


def test_the_last_batches_are_small_so_that_all_workers_end_together() -> None:
    sizer = BatchSizer()
    for _ in range(10):
        sizer.add(1000, 1e-3)
    assert [sizer.size(remaining, 2) for remaining in (1000, 100, 8, 1)] == [250, 25, 2, 1]


def test_a_sweep_is_every_combination_with_the_rates_of_lone_predictions(tmp_path: Path) -> None:
    options = PredictOptions(flows="host0->gpu0, gpu0->host0", sweep=("path=3..4", "gpus=1,2"))
    where = WorkerOptions(results=tmp_path)
    answers = list(lanewise.predict_sweep(SystemOptions("composable-server-gen4"), options, ServiceOptions(), where))
    assert [dict(answer.settings) for answer in answers] == list(combinations(options.sweep))
    for answer in answers:
        alone = lanewise.predict(lanewise.load_system("composable-server-gen4", answer.settings), str(options.flows))
        assert [row.value for row in answer.rows] == [*(rate.rate for rate in alone.rates), alone.total]
    columns = parquet.read_table(tmp_path).to_pydict()  # of all parts: as many as the machine's speed makes
    assert columns["path"] == [3] * 6 + [4] * 6
    assert columns["gpus"] == [1, 1, 1, 2, 2, 2] * 2
    assert columns["value"] == [row.value for answer in answers for row in answer.rows]
    again = lanewise.predict_sweep(SystemOptions("composable-server-gen4"), options, ServiceOptions(), where)
    assert list(again) == answers


def test_a_study_on_workers_is_the_same_study_and_resumes(tmp_path: Path) -> None:
    where = WorkerOptions(results=tmp_path)
    alone = lanewise.run_studies(["gpu-server-routes"]).studies
    assert lanewise.run_studies(["gpu-server-routes"], workers=where).studies == alone
    parts = sorted((tmp_path / "gpu-server-routes").glob("*.parquet"))  # one where no scenario takes long
    assert parquet.read_table(parts[0])["value"].to_pylist()[0] == alone[0].rows[0].value
    assert lanewise.run_studies(["gpu-server-routes"], workers=where).studies == alone
    assert sorted((tmp_path / "gpu-server-routes").glob("*.parquet")) == parts, "nothing was predicted again"


def test_measured_machines_are_scored_the_same_on_workers(tmp_path: Path) -> None:
    for name in ("a10-gold-6438y", "h100-single-two-nccl", "h200-vm-kv"):
        text, _ = package_data.text("evidence", name, "machine")
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    alone = lanewise.accuracy(folder=tmp_path)
    parts: list[Path] = []
    for again in (False, True):
        score = lanewise.accuracy(folder=tmp_path, workers=WorkerOptions(results=tmp_path / "finished"))
        assert score.rows == alone.rows
        assert score.total == alone.total
        before, parts = parts, sorted((tmp_path / "finished").glob("*.parquet"))
        assert not again or parts == before, "a machine was scored again"


def test_systems_are_ranked_the_same_on_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.api.layout_scores.open_engine", lambda on: InlineEngine())
    systems = ["cirrascale-typical", "cirrascale-1cpu", "composable-server-gen4"]  # the last has too few GPUs
    options = PlanOptions(flows="gpu0->gpu7", by="total")
    alone, ranked = lanewise.plan(systems, options), lanewise.plan(systems, options, "local:2")
    assert isinstance(alone, Ranking)
    assert isinstance(ranked, Ranking)
    assert [(each.label, each.score, each.reason) for each in ranked.ranks] == [
        (each.label, each.score, each.reason) for each in alone.ranks
    ]
    assert [str(error) for _, error in ranked.errors] == [str(error) for _, error in alone.errors] != []
    with pytest.raises(InputError, match="no effect with one system"):
        lanewise.plan("cirrascale-typical", options, "local:2")


def test_a_combination_that_cannot_be_is_a_row_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["predict", "composable-server-gen4", "--flows", "host0->gpu1", "--sweep", "path=4", "--sweep", "gpus=1,2"]
    assert verbs.run(sweep) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[-1].strip() == "1 scenario cannot be predicted"
    assert "unknown device" in text


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--sweep", "path=1..2", "--sweep", "path=3"], "--sweep names path twice"),
        (["--on", "local:2"], "--on and --results have no effect without --sweep"),
        (["--sweep", "path=1..2", "--on", "slurm"], "'slurm' is no engine"),
        (["--sweep", "lane=1..2", "--sweep", "gpus=1"], "lane"),
        (["--sweep", "path=1..2", "--flows", "host0->gpu9"], "none of 2 scenarios can be predicted: unknown device"),
    ],
)
def test_what_cannot_be_swept_is_one_error(
    capsys: pytest.CaptureFixture[str], arguments: list[str], cause: str
) -> None:
    assert verbs.run(["predict", "composable-server-gen4", "--flows", "host0->gpu0", *arguments]) == 2
    assert cause in capsys.readouterr().err


def test_a_resume_says_what_was_kept_and_rates_come_once_they_rest_on_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, rates = ScenarioStatus(), []

    def show(progress: ScenarioProgress) -> None:
        rates.append(progress.rate)
        status.show(progress)

    with open_rates(tmp_path) as store:
        list(run_scenarios(SCENARIOS[:8], engine_work.named_rate, InlineEngine(), store, show))
    assert capsys.readouterr().err == "", "a short run says nothing in a log"
    assert set(rates) == {0.0}, "of a moment no rate follows"
    monkeypatch.setattr("lanewise.api.scenarios.LEAST_PACE", 0.0)
    with open_rates(tmp_path) as store:
        list(run_scenarios(SCENARIOS, engine_work.named_rate, InlineEngine(), store, show))
    assert capsys.readouterr().err == "8 of 20 scenarios were finished before, 12 remain\n"
    assert rates[-1] > 0


def test_a_log_that_has_a_state_ends_with_the_count_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    for first, text in ((0.0, ""), (-3600.0, "7 of 9 scenarios\n9 of 9 scenarios\n")):
        status = ScenarioStatus()
        status._shown += first
        for finished in (7, 9):
            status.show(ScenarioProgress(finished, 9))
        status.end(WorkerOptions(), stopped=False)
        assert capsys.readouterr().err == text


def test_progress_has_the_rate_and_the_time_left() -> None:
    assert progress_text(ScenarioProgress(0, 10_000)) == "0 of 10,000 scenarios"
    text = progress_text(ScenarioProgress(1234, 10_000, 92.3, 95.0))
    assert text == "1,234 of 10,000 scenarios, 92/s, 1 min 35 s left"
    assert progress_text(ScenarioProgress(1, 9, 0.25, 32.0), "row") == "1 of 9 rows, 0.25/s, 32 s left"
