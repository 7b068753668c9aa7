"""Place devices: which host and port each should have, and which GPUs serve which tenant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanewise.errors import InputError, Unreachable
from lanewise.planning.choices import Pick
from lanewise.planning.confirm import Confirmation, TenantLatency
from lanewise.planning.positions import Move, apply
from lanewise.planning.question import Choices, Question
from lanewise.planning.score import Evaluate, Score, by_model
from lanewise.planning.search import Judge, JudgedPicks, SearchLimits, SearchResult, equals, search
from lanewise.topology.model import System

MOST_STEPS = 6
MOST_EQUAL = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """One placement: its moves in an order that works, the GPUs of each tenant, the system after it, its score.

    `confirmed` is the result of its simulation, None if it was not simulated.
    """

    moves: tuple[Move, ...]
    serving: Mapping[str, tuple[str, ...]]
    system: System
    score: Score
    confirmed: Confirmation | None = None

    @property
    def used(self) -> int:
        """How many GPUs serve."""
        return sum(map(len, self.serving.values()))


@dataclass(frozen=True, slots=True)
class Placement:
    """The best placement, today's (None: the work cannot run as things are), and the best for fewer moves in between.

    `doubt` says why the best is not proven to be best (empty: it is); `judged` counts placements evaluated.
    `equal` are up to MOST_EQUAL other placements as good as the best for as many moves and GPUs, in steady state.
    A `margin` (0.02: 2 %) is what was planned for beyond the demand, as `steady`, the best without one, would be late.
    """

    question: Question
    best: Candidate
    current: Candidate | None
    steps: tuple[Candidate, ...]
    doubt: str
    judged: int
    interrupted: bool = False
    margin: float = 0.0
    steady: Candidate | None = None
    equal: tuple[Candidate, ...] = ()

    @property
    def served(self) -> bool:
        """Whether every tenant gets what it wants in steady state."""
        return all(line.served for line in self.best.score.lines)

    @property
    def bounds_kept(self) -> bool | None:
        """Whether the simulation shows that each tenant has GPUs and keeps its bound; None if it was not simulated."""
        confirmed = self.best.confirmed
        return None if confirmed is None else confirmed.bounds_kept and all(self.best.serving.values())

    @property
    def late(self) -> tuple[TenantLatency, ...]:
        """The tenants that the best placement serves too late, as far as they were simulated."""
        return self.best.confirmed.late if self.best.confirmed is not None else ()


def place(question: Question, evaluate: Evaluate = by_model, limits: SearchLimits = SearchLimits()) -> Placement:  # noqa: B008
    """The best placement of a question; InputError if nothing can move or serve, Unreachable if none can run."""
    if not question.tenants and not question.flows:
        raise InputError("nothing to plan for", hint="give --service 'resnet50 170000 QPS', --flows or --pattern")
    if not question.tenants and not any(len(movable.positions) > 1 for movable in question.movables):
        raise _nothing_moves(question)
    limits = limits.of_demand() if question.tenants else limits
    choices = Choices(question)
    judged = JudgedPicks()

    def judge(pick: Pick) -> Score:
        return evaluate(apply(question.system, choices.moves(pick))[0], choices.work(pick))

    result = search(choices.problem, judge, limits, judged, most_moves=0)
    today = result.pick
    if not result.interrupted:
        result = search(choices.problem, judge, limits, judged)
    if result.pick is None and result.interrupted:
        raise KeyboardInterrupt
    if result.pick is None:
        raise judged.error or Unreachable("no placement can run this work", hint="let more devices move with --move")
    between = [] if result.interrupted else _between(choices, judge, limits, judged, result)
    best, *steps = [_candidate(choices, judged, pick) for pick in (result.pick, *between)]
    now = None if today is None else _candidate(choices, judged, today)
    count = len(judged.scores)
    equal: list[Candidate] = []
    interrupted = result.interrupted
    if not interrupted:
        try:
            ties = equals(choices.problem, judge, limits, judged, result.pick, MOST_EQUAL)
            equal = [_candidate(choices, judged, pick) for pick in ties]
        except KeyboardInterrupt:
            interrupted = True
    return Placement(question, best, now, tuple(steps), result.doubt, count, interrupted, equal=tuple(equal))


def unserved_error(placement: Placement) -> InputError:
    """The error that says what the best placement reaches of a demand, and what limits it."""
    line = min(
        (line for line in placement.best.score.lines if line.demand), key=lambda line: line.rate / (line.demand or 1.0)
    )
    none = "no placement found serves" if placement.doubt else "no placement serves"
    reached = f"the best reaches {line.rate:,.0f}, limited by {line.limit}"
    cause = f"{none} {line.demand:,.0f} QPS of {line.name}: {reached}"
    return InputError(cause, hint="ask for less, let more devices move (--move), or see the best with --anyway")


def _between(
    choices: Choices, judge: Judge, limits: SearchLimits, judged: JudgedPicks, result: SearchResult
) -> list[Pick]:
    """The best placement for each number of moves between none and those of the best, where it is another one."""
    assert result.pick is not None
    picks: list[Pick] = []
    fewer = SearchLimits(limits.tolerance, max(1, limits.candidates // 5))
    for number in range(1, min(choices.problem.moves(result.pick), MOST_STEPS + 1)):
        step = search(choices.problem, judge, fewer, judged, most_moves=number)
        if step.interrupted:
            break
        if step.pick is not None and choices.problem.moves(step.pick) == number:
            picks.append(step.pick)
    return picks


def _candidate(choices: Choices, judged: JudgedPicks, pick: Pick) -> Candidate:
    score = judged.scores[pick]
    assert score is not None
    system, moves = apply(choices.question.system, choices.moves(pick))
    serving = {served.tenant.name: served.gpus for served in choices.work(pick).services}
    return Candidate(moves, serving, system, score)


def _nothing_moves(question: Question) -> InputError:
    system = question.system
    hint = "name devices with --move 'gpu[0-3]' and ports with --at 'sw[0-1]', or give several systems to rank"
    if not question.movables:
        return InputError(f"nothing of {system.name} can move to another host", hint=hint)
    names = ", ".join(movable.device for movable in question.movables[:4])
    more = f" and {len(question.movables) - 4} more" if len(question.movables) > 4 else ""
    return InputError(f"{names}{more} can go nowhere else", hint=hint)
