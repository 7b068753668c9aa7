"""The model without what costs its time, for studies whose measured rows are tested and not their predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lanewise.api import studies
from lanewise.probes.model import ModelProbe
from lanewise.results.observation import Observation
from lanewise.results.plan import STEADY, Plan, Service


class SteadyProbe(ModelProbe):
    """Predicts every service in steady state: milliseconds a row in place of a search by simulation."""

    def run(self, plan: Plan) -> Iterator[Observation]:
        """The observation of the plan, whatever method it names."""
        scenario = plan.scenario
        if isinstance(scenario, Service):
            plan = replace(plan, scenario=replace(scenario, method=STEADY))
        yield from super().run(plan)


def without_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies run without their rival hypotheses and without leaving groups out of their fit, which fit many times."""
    load = studies.load_study
    monkeypatch.setattr(studies, "load_study", lambda ref: replace(load(ref), hypotheses=(), leave_out=()))
