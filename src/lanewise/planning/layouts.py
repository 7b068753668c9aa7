"""Rank whole systems for the same work: the rates, what limits them, and why the next is worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lanewise.errors import InputError, LanewiseError
from lanewise.planning.score import DEMAND, Score
from lanewise.planning.search import TOLERANCE, lowest_equal
from lanewise.planning.work import Work
from lanewise.topology.model import System


@dataclass(frozen=True, slots=True)
class RankedSystem:
    """A system with its rank (from 1; equals share one), and why it is worse than the one before it."""

    rank: int
    system: System
    work: Work
    score: Score
    reason: str = ""

    @property
    def label(self) -> str:
        """The system's name, with the settings that are not its own defaults."""
        return label(self.system)


def label(system: System) -> str:
    """The name of a system, with the settings that are not its own defaults."""
    defaults = {name: parameter.default for name, parameter in system.parameters.items()}
    changed = ", ".join(f"{name} {value}" for name, value in system.settings.items() if defaults.get(name) != value)
    return f"{system.name} ({changed})" if changed else system.name


@dataclass(frozen=True, slots=True)
class Ranking:
    """Systems best first, and those that cannot run the work at all, with the reason."""

    by: str
    ranks: tuple[RankedSystem, ...]
    errors: tuple[tuple[System, LanewiseError], ...] = ()
    interrupted: ClassVar[bool] = False
    error: ClassVar[None] = None


def rank_layouts(systems: Sequence[System], score_of: Callable[[System], tuple[Work, Score]]) -> Ranking:
    """The systems ranked by what `score_of` gives each: its work and how well it does it.

    InputError without a system; the first reason as an error if none can run the work.
    """
    if not systems:
        raise InputError("no system to rank", hint="name systems: lanewise plan SYSTEM SYSTEM")
    scored: list[tuple[System, Work, Score]] = []
    cannot: list[tuple[System, LanewiseError]] = []
    for system in systems:
        try:
            scored.append((system, *score_of(system)))
        except LanewiseError as error:
            cannot.append((system, error))
    if not scored:
        raise cannot[0][1]
    scored.sort(key=lambda row: tuple(-goal for goal in row[2].goals))
    places: list[RankedSystem] = []
    for system, work, score in scored:
        before = places[-1] if places else None
        if before is not None and _equal(before.score, score):
            first = places[before.rank - 1].label
            places.append(RankedSystem(before.rank, system, work, score, f"as good as {first}"))
        else:
            why = "" if before is None else _why(places[before.rank - 1], score)
            places.append(RankedSystem(len(places) + 1, system, work, score, why))
    return Ranking(scored[0][1].by, tuple(places), tuple(cannot))


def _equal(first: Score, second: Score) -> bool:
    return all(min(a, b) >= lowest_equal(max(a, b), TOLERANCE) for a, b in zip(first.goals, second.goals, strict=True))


def _why(before: RankedSystem, score: Score) -> str:
    """In which goal it is worse, by how much, and the limits of both."""
    for number, (best, value) in enumerate(zip(before.score.goals, score.goals, strict=True)):
        if value < lowest_equal(best, TOLERANCE):
            what = ("slowest", "total") if before.work.by == "slowest" else ("total", "slowest")
            goal = "served" if before.work.services else what[number]
            less = f"{goal} {100 * (1 - value / best):.0f} % less than {before.label}"
            limit, limit_before = _behind(score), _behind(before.score)
            return f"{less}: {limit}, there too" if limit == limit_before else f"{less}: {limit}; there {limit_before}"
    return f"hardly less than {before.label}"


def _behind(score: Score) -> str:
    """The limit of most flows, and how many it limits."""
    if any(line.demand for line in score.lines):
        return "every demand is met" if score.limit == DEMAND else score.limit
    return f"{score.limited} flow{'' if score.limited == 1 else 's'} behind {score.limit}"
