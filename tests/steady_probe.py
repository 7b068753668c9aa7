"""The model without its simulation, for studies whose measured rows are tested and not their predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
