"""The search: the solver proposes, the evaluator judges exactly, and a judged placement is never proposed again.

It goes through the goals in their order and then through the costs. A goal is settled when the solver's bound says
that no unseen placement can beat the best by more than the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lanewise.errors import LanewiseError
from lanewise.planning.score import SHORT, Score
from lanewise.planning.solver import Exhausted, Pick, Problem, SolverModel

Judge = Callable[[Pick], Score]
TOLERANCE = 0.005
CANDIDATES = 120


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """When to stop: goals closer than `tolerance` (relative) are equal; at most `candidates` are judged."""

    tolerance: float = TOLERANCE
    candidates: int = CANDIDATES

    def of_demand(self) -> SearchLimits:
        """The limits for stated demands: a placement that misses a demand is never equal to one that meets it."""
        return replace(self, tolerance=min(self.tolerance, SHORT))


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best placement judged (None: none can be built) and why it is not proven to be the best (empty: it is)."""

    pick: Pick | None
    doubt: str = ""
    interrupted: bool = False


class PlacementSearch:
    """The searches of one problem: `scores` of the picks judged so far (None: it cannot be built), the last `error`."""

    def __init__(self, problem: Problem, judge: Judge, limits: SearchLimits) -> None:
        self.problem, self.judge, self.limits = problem, judge, limits
        self.scores: dict[Pick, Score | None] = {}
        self.error: LanewiseError | None = None

    def best(self, most_moves: int | None = None, candidates: int | None = None) -> SearchResult:
        """The best placement that moves at most `most_moves` devices; Ctrl-C keeps the best so far."""
        run = _SolverLoop(self, most_moves, self.limits.candidates if candidates is None else candidates)
        unsound = "cards are chosen by what else is placed, so the solver's bound proves nothing"
        try:
            run.run()
        except KeyboardInterrupt:
            return SearchResult(run.best(), "interrupted", interrupted=True)
        return SearchResult(run.best(), run.doubt if self.problem.sound else unsound)

    def equals(self, best: Pick, most: int) -> list[Pick]:
        """At most `most` other placements with the goals, the moves and the devices in use of the best.

        Those already judged come first; the solver proposes the rest, none that only swaps devices that are alike.
        """
        cost = self.problem.cost(best)

        def equal() -> list[Pick]:
            picks = acceptable(self.scores, self.limits.tolerance, None)
            return [pick for pick in picks if pick != best and self.problem.cost(pick) == cost]

        run = _SolverLoop(self, None, self.limits.candidates)
        try:
            for _ in range(most - len(equal())):
                pick = run.propose_equal(cost)
                if pick is None:
                    break
        except Exhausted:
            pass  # what is judged by then is enough
        return equal()[:most]


def choose(problem: Problem, scores: dict[Pick, Score | None], tolerance: float) -> Pick | None:
    """The best of judged placements: goals in order, within the tolerance fewest moves, then fewest devices in use.

    What is left equal is decided by the least use of the busiest resource, then by the order of devices and options.
    """
    best = acceptable(scores, tolerance, None)
    if not best:
        return None

    def cost(pick: Pick) -> tuple[tuple[int, int], float, Pick]:
        score = scores[pick]
        assert score is not None
        return problem.cost(pick), round(score.busiest[1], 6), pick

    return min(best, key=cost)


def acceptable(scores: dict[Pick, Score | None], tolerance: float, depth: int | None) -> list[Pick]:
    """The placements that nothing judged beats in the first `depth` goals (None: all) by more than the tolerance."""
    picks = [pick for pick, score in scores.items() if score is not None]
    goals = {pick: score.goals for pick, score in scores.items() if score is not None}
    for number in range(len(goals[picks[0]]) if picks and depth is None else depth or 0):
        peak = max((goals[pick][number] for pick in picks), default=0.0)
        picks = [pick for pick in picks if goals[pick][number] >= lowest_equal(peak, tolerance)]
    return picks


def lowest_equal(peak: float, tolerance: float) -> float:
    """The smallest value that is as good as `peak`; peaks below zero count too."""
    return peak - tolerance * abs(peak) - 1e-9


class _SolverLoop:
    """One running search: the solver's model without what is judged, and how many were judged in it."""

    def __init__(self, search: PlacementSearch, most_moves: int | None, candidates: int) -> None:
        self.search, self.most_moves, self.candidates = search, most_moves, candidates
        self.problem, self.tolerance = search.problem, search.limits.tolerance
        self.solver = SolverModel(search.problem, most_moves)
        self.count, self.doubt = 0, ""
        for pick in search.scores:
            self.solver.forbid(pick)

    def run(self) -> None:
        """Settle each goal, then the costs; `doubt` says what had to be left open."""
        # A third of the candidates is kept for the costs: a good plan should not move devices for nothing.
        goals = [(self._settle, depth, self.candidates * 2 // 3) for depth in range(len(self.problem.goals))]
        for settle, depth, most in [*goals, (self._cheapen, len(goals), self.candidates)]:
            try:
                settled = settle(depth, max(1, most))
            except Exhausted:
                self.doubt = "the solver gave up on its bound"
                continue
            if not settled:
                self.doubt = f"stopped after {self.candidates:,} candidate{'' if self.candidates == 1 else 's'}"

    def _settle(self, depth: int, most: int) -> bool:
        """Raise goal number `depth` until the bound says that it is done (True) or `most` have been judged."""
        while True:
            peak = self._peak(depth)
            proposal = self.solver.best(self.problem.goals[depth], self._floors(depth))
            if proposal is None or (peak is not None and proposal.bound <= peak + self.tolerance * abs(peak) + 1e-9):
                return True
            if self.count >= most:
                return False
            self._judge(proposal.pick)

    def _cheapen(self, depth: int, most: int) -> bool:
        """Look for equals of the best that cost less, until there are none (True) or `most` have been judged."""
        while True:
            pick = self.solver.cheapest(self._floors(depth), self._cost())
            if pick is None:
                return True
            if self.count >= most:
                return False
            self._judge(pick)

    def propose_equal(self, cost: tuple[int, int]) -> Pick | None:
        """Judge one more placement that costs no more and may reach the goals of the best; None if there is none."""
        pick = self.solver.cheapest(self._floors(len(self.problem.goals)), (cost[0], cost[1] + 1))
        if pick is not None:
            self._judge(pick)
        return pick

    def best(self) -> Pick | None:
        """The best judged so far among those that may be chosen."""
        return choose(self.problem, self._allowed(), self.tolerance)

    def _allowed(self) -> dict[Pick, Score | None]:
        most = self.most_moves
        scores = self.search.scores
        return {pick: scores[pick] for pick in scores if most is None or self.problem.moves(pick) <= most}

    def _peak(self, depth: int) -> float | None:
        scores = self._allowed()
        picks = acceptable(scores, self.tolerance, depth)
        return max((score.goals[depth] for pick in picks if (score := scores[pick])), default=None)

    def _floors(self, depth: int) -> list[tuple[str, float]]:
        peaks = [(goal, self._peak(number)) for number, goal in enumerate(self.problem.goals[:depth])]
        return [(goal, lowest_equal(peak, self.tolerance)) for goal, peak in peaks if peak is not None]

    def _cost(self) -> tuple[int, int] | None:
        best = self.best()
        return None if best is None else self.problem.cost(best)

    def _judge(self, pick: Pick) -> None:
        self.count += 1
        try:
            self.search.scores[pick] = self.search.judge(pick)
        except LanewiseError as error:
            self.search.scores[pick], self.search.error = None, error
        self.solver.forbid(pick)
