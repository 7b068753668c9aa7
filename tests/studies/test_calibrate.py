"""Calibration on a probe made up for the purpose: unknown predictions, plateaus, and what does not bind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.errors import InputError, LanewiseError, Location
from lanewise.results.observation import Observation, Source
from lanewise.results.plan import Copies, Plan
from lanewise.studies.calibrate import CalibrationTarget, calibrate, leave_out
from lanewise.studies.form import FitForm
from lanewise.topology.model import System

GPU = "a100-sxm-80gb"
Numbers = Callable[[str], float]


class MadeUp:
    """Predicts by a formula over the figures of one GPU; the scenario's name chooses the formula."""

    def __init__(self, **formulas: Callable[[Numbers], float | None]) -> None:
        self.formulas = formulas
        self.asked = 0

    def run(self, plan: Plan) -> Iterator[Observation]:
        self.asked += 1
        value = self.formulas[plan.scenario.name](lambda key: plan.system.catalog.get(GPU).number(key) or 0.0)
        yield Observation(plan.scenario.name, "", "goodput", value, "GB/s", Source.PREDICTED)


@pytest.fixture(scope="module")
def system() -> System:
    return lanewise.load_system("dgx-a100-network")


def unknown(figure: str, start: float, low: float, high: float) -> FitForm:
    return FitForm(
        GPU, figure, start, low, high, "B/s" if "engine" in figure else "1", "as noted", Location("s.yaml", 3)
    )


def target(system: System, name: str, value: float, group: str = "") -> CalibrationTarget:
    return CalibrationTarget(Plan(system, Copies((), name), "goodput", "GB/s"), value, group)


ENGINE, TAGS = "engine.h2d.gen4", "pcie.tags"


def test_a_row_without_a_prediction_neither_pulls_the_fit_nor_counts_in_the_rms(system: System) -> None:
    probe = MadeUp(seen=lambda n: n(ENGINE), dark=lambda n: None)
    targets = [target(system, "seen", 20.0), target(system, "dark", 1.0), target(system, "seen", 20.0)]
    fit, _ = calibrate(probe, builtin(), [unknown(ENGINE, 5, 1, 100)], targets)
    assert fit.values[0].value == pytest.approx(20, rel=1e-4)
    assert fit.values[0].used == 2
    assert fit.rms_pct == pytest.approx(0, abs=0.01)
    assert fit.without_prediction == 1
    assert math.isnan(fit.residuals[1])


def test_without_unknowns_it_only_compares(system: System) -> None:
    probe = MadeUp(seen=lambda n: 11.0, dark=lambda n: None)
    fit, _ = calibrate(probe, builtin(), [], [target(system, "seen", 10.0), target(system, "dark", 10.0)])
    assert fit.rms_pct == pytest.approx(10)
    assert probe.asked == 2


def test_a_start_on_a_plateau_is_left_for_one_that_binds(system: System) -> None:
    # min(20, 2 * tags) is flat from 10 tags on; the value 8 lies at 4 tags.
    probe = MadeUp(low=lambda n: min(20.0, 2 * n(TAGS)))
    fit, _ = calibrate(probe, builtin(), [unknown(TAGS, 200, 1, 1000)], [target(system, "low", 8.0)])
    assert fit.values[0].value == pytest.approx(4, rel=1e-3)
    assert fit.rms_pct < 0.1


def test_what_moves_nothing_keeps_its_start_and_says_so(system: System) -> None:
    probe = MadeUp(seen=lambda n: n(ENGINE))
    fits = [unknown(ENGINE, 5, 1, 100), unknown(TAGS, 32, 1, 1000)]
    fit, _ = calibrate(probe, builtin(), fits, [target(system, "seen", 20.0), target(system, "seen", 21.0)])
    assert [value.note for value in fit.values] == ["as noted", "does not bind"]
    assert fit.values[1].value == pytest.approx(32)


def test_groups_left_out_are_predicted_by_a_fit_that_did_not_see_them(system: System) -> None:
    probe = MadeUp(seen=lambda n: n(ENGINE), dark=lambda n: None)
    targets = [target(system, "seen", 10.0, "a"), target(system, "seen", 20.0, "b"), target(system, "dark", 5.0, "c")]
    fit, search = calibrate(probe, builtin(), [unknown(ENGINE, 12, 1, 100)], targets)
    left = leave_out(search, fit)
    assert [(group.group, group.rows) for group in left] == [("a", 1), ("b", 1), ("all groups", 2)]
    assert left[0].worst_pct == pytest.approx(100, rel=1e-3)
    assert left[1].worst_pct == pytest.approx(-50, rel=1e-3)
    assert left[2].rms_pct == pytest.approx(math.sqrt((100**2 + 50**2) / 2), rel=1e-3)


def test_fewer_predictions_than_unknowns_are_an_error(system: System) -> None:
    probe = MadeUp(dark=lambda n: None)
    with pytest.raises(InputError, match="0 observations that have a prediction"):
        calibrate(probe, builtin(), [unknown(ENGINE, 5, 1, 100)], [target(system, "dark", 20.0)])


def test_a_part_that_is_not_there_is_reported_where_the_fit_stands(system: System) -> None:
    with pytest.raises(LanewiseError) as caught:
        calibrate(MadeUp(), builtin(), [unknown("net.rate", 5, 1, 100)], [])
    assert caught.value.location == Location("s.yaml", 3)


def test_a_hypothesis_without_a_fit_leaves_out_what_it_cannot_predict_and_counts_it() -> None:
    run = lanewise.run_studies(["gpu-server-routes"]).studies[0]
    dark = [row for row in run.rows if row.value is None and row.published and "unknown, as" not in row.note]
    rival = next(h for h in run.hypotheses if h.name.startswith("peer writes"))
    assert len(dark) == 3
    assert "3 rows without a prediction left out" in rival.note
    assert rival.rms_pct is not None
    assert rival.rms_pct < 20
