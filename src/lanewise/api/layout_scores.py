"""The systems of a ranking scored on an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanewise.api.scenarios import Scenario, run_scenarios
from lanewise.engines.choice import open_engine
from lanewise.errors import LanewiseError
from lanewise.options.plan import PlanOptions
from lanewise.planning.answer import LayoutScores, score_layout
from lanewise.planning.score import Score
from lanewise.planning.work import Tenant, Work

if TYPE_CHECKING:
    from lanewise.topology.model import System

    LayoutQuestion = tuple[System, PlanOptions, tuple[Tenant, ...]]


def answer_layout(question: LayoutQuestion) -> tuple[Work, Score]:
    """Work and score of a system; called in workers."""
    return score_layout(*question)


def scores_on(on: str) -> LayoutScores:
    """What scores systems on the engine that `on` names."""

    def scores(
        systems: Sequence[System], options: PlanOptions, tenants: Sequence[Tenant]
    ) -> list[tuple[Work, Score] | LanewiseError]:
        scenarios = [Scenario((system, options, tuple(tenants)), str(place)) for place, system in enumerate(systems)]
        with open_engine(on) as engine:
            answers = dict(run_scenarios(scenarios, answer_layout, engine))
        return [answers[place] for place in range(len(systems))]

    return scores
