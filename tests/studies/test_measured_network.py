"""The study of the Network division takes the user's measured peaks in place of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from steady_probe import SteadyProbe

from lanewise import api, load_study
from lanewise.results.match import service_path
from lanewise.results.observation import Observation
from lanewise.results.run import Run
from lanewise.results.sample import Sample, summarise
from lanewise.studies.measured import MeasuredRun, find

BYTES = 150_528
SERVER, OFFLINE = "ResNet-50 Server", "ResNet-50 Offline"
GPUS = "host0->gpu0, host0->gpu1"


def peak(division: str, qps: float, flow: str = GPUS, **how: str) -> tuple[Observation, ...]:
    """The rows of one peak: rate and ingress, as `lanewise loadtest peak` writes them."""
    samples = [
        Sample("Server 15 ms", flow, metric, value, unit, {"bytes": BYTES}, {"model": "resnet50"} | how,
               service_path(division))
        for metric, value, unit in (("qps", qps, "1/s"), ("goodput", qps * BYTES, "GB/s"))
    ]  # fmt: skip
    return summarise(samples)


def offline(division: str, qps: float, metric: str = "offline", scenario: str = "Server 15 ms", verdict: str = ""
            ) -> tuple[Observation, ...]:  # fmt: skip
    """The Offline rate that a search for a peak writes (`offline`), or that of a run of its own (`completed`)."""
    how = {"model": "resnet50"} | ({"verdict": verdict} if verdict else {})
    return summarise([Sample(scenario, GPUS, metric, qps, "1/s", {"bytes": BYTES}, how, service_path(division))])


def measured(*runs: tuple[Observation, ...]) -> dict[tuple[str, str], float | None]:
    """What the rows of the ready study find in these runs, in the unit of their table."""
    named = [MeasuredRun(f"run{number}.json", rows) for number, rows in enumerate(runs)]
    answers = {(row.table, row.label): find(row, named) for row in load_study("network-division").rows}
    return {key: row.display(row.value) for key, row in answers.items() if row is not None}


def test_closed_and_network_peaks_of_one_run_answer_rates_ingress_and_share(tmp_path: Path) -> None:
    rows = peak("closed", 50_000.0) + peak("network", 49_000.0)
    api.save_run(Run((), "2026-11-23T08:00:00+00:00", "0", rows=rows), tmp_path / "run.json")
    study = api.run_studies(["network-division"], probe=SteadyProbe(), measured=[tmp_path / "run.json"]).studies[0]
    answered = {(row.table, row.scenario): row.measured for row in study.rows if row.measured}
    assert {key: row.display(row.value) for key, row in answered.items()} == {
        ("rates", "Closed"): 50_000.0, ("rates", "Network"): 49_000.0, ("shares", SERVER): pytest.approx(98.0),
        ("ingress", "Network"): pytest.approx(49_000 * BYTES / 1e9),
    }  # fmt: skip
    share = answered["shares", SERVER]
    assert (share.metric, share.path) == ("share", "service, network")
    assert "over the Closed peak of run.json" in share.note
    assert any("measured values" in conclusion.shown for conclusion in study.conclusions)


def test_the_closed_peak_may_be_of_a_run_of_its_own() -> None:
    assert measured(peak("closed", 50_000.0), peak("network", 45_000.0))["shares", SERVER] == pytest.approx(90.0)


def test_the_closed_peak_of_the_same_run_goes_before_another_ones() -> None:
    found = measured(peak("closed", 50_000.0) + peak("network", 45_000.0), peak("closed", 60_000.0))
    assert found["shares", SERVER] == pytest.approx(90.0)


@pytest.mark.parametrize(
    "closed",
    [
        peak("closed", 50_000.0, "host0->gpu0"),
        peak("closed", 50_000.0, precision="fp32"),
        peak("closed", 50_000.0, model="bert"),
        peak("network", 50_000.0),
    ],
    ids=["one device", "precision", "model", "no Closed at all"],
)
def test_a_peak_of_other_accelerators_is_no_base_of_a_share(closed: tuple[Observation, ...]) -> None:
    found = measured(closed, peak("network", 45_000.0, precision="fp16"))
    assert ("shares", SERVER) not in found
    assert found["rates", "Network"] == 45_000.0


def test_a_network_peak_is_no_closed_one() -> None:
    assert ("rates", "Closed") not in measured(peak("network", 45_000.0))
    assert ("rates", "Network") not in measured(peak("closed", 45_000.0))


def test_offline_rates_of_searches_and_of_valid_offline_runs_answer_offline_shares() -> None:
    searches = offline("closed", 50_000.0) + offline("network", 49_000.0) + peak("network", 40_000.0)
    found = measured(searches)
    assert found["shares", OFFLINE] == pytest.approx(98.0)
    assert ("shares", SERVER) not in found  # a Closed Offline rate is no base of a peak
    runs = [
        offline(side, qps, "completed", "Offline 60000/s", "VALID")
        for side, qps in (("closed", 60e3), ("network", 57e3))
    ]
    assert measured(searches, *runs)["shares", OFFLINE] == pytest.approx(95.0)  # the last run goes first
    (row,) = (row for row in load_study("network-division").rows if row.label == OFFLINE)
    answer = find(row, [MeasuredRun("both.json", searches)])
    assert answer is not None
    assert answer.note.startswith("both.json: Offline run of Server 15 ms, ")
    assert "; over the Closed rate of both.json: Offline run of Server 15 ms" in answer.note


@pytest.mark.parametrize("verdict", ["INVALID", "ended early"])
def test_an_offline_run_that_is_not_valid_is_no_evidence(verdict: str) -> None:
    sides = [offline(side, 50e3, "completed", "Offline 60000/s", verdict) for side in ("closed", "network")]
    assert ("shares", OFFLINE) not in measured(*sides)


def test_what_a_server_run_completed_is_no_offline_rate() -> None:
    sides = [offline(side, 50e3, "completed", "Server 15 ms") for side in ("closed", "network")]
    assert ("shares", OFFLINE) not in measured(*sides)
