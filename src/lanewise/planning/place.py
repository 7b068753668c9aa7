"""Place devices: which host and port each should have, and which GPUs serve which tenant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.errors import InputError, Unreachable
from lanewise.planning.choices import Pick
from lanewise.planning.question import Choices, Question
from lanewise.planning.score import Evaluate, Score, by_model
from lanewise.planning.search import Found, Judge, Limits, Seen, search
from lanewise.planning.spots import Move, apply

if TYPE_CHECKING:
    from lanewise.planning.confirm import Confirmation, Confirmed
    from lanewise.topology.model import System

MOST_STEPS = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """One placement: its moves in an order that works, the GPUs of each tenant, the system after it, its score.

    `confirmed` is what the simulation says of it, None where nobody asked.
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

    `doubt` says why the best is not proven to be best (empty: it is); `tried` counts placements judged.
    A `margin` (0.02: 2 %) is what was planned for beyond the demand, as `steady`, the best without one, would be late.
    """

    question: Question
    best: Candidate
    today: Candidate | None
    between: tuple[Candidate, ...]
    doubt: str
    tried: int
    interrupted: bool = False
    margin: float = 0.0
    steady: Candidate | None = None

    @property
    def served(self) -> bool:
        """Whether every tenant gets what it wants in steady state."""
        return all(line.served for line in self.best.score.lines)

    @property
    def kept(self) -> bool | None:
        """Whether the simulation shows that each tenant has GPUs and keeps its bound; None where nobody asked."""
        told = self.best.confirmed
        return None if told is None else told.kept and all(self.best.serving.values())

    @property
    def late(self) -> tuple[Confirmed, ...]:
        """The tenants that the best placement serves too late, as far as they were simulated."""
        return self.best.confirmed.late if self.best.confirmed is not None else ()


def place(question: Question, evaluate: Evaluate = by_model, limits: Limits = Limits()) -> Placement:  # noqa: B008
    """The best placement of a question; InputError if nothing can move or serve, Unreachable if none can run."""
    if not question.tenants and not question.flows:
        raise InputError("nothing to plan for", hint="give --service 'resnet50 170000 QPS', --flows or --pattern")
    if not question.tenants and not any(len(each.spots) > 1 for each in question.movables):
        raise _nothing_moves(question)
    limits = limits.of_demand() if question.tenants else limits
    choices = Choices(question)
    seen = Seen()

    def judge(pick: Pick) -> Score:
        return evaluate(apply(question.system, choices.moves(pick))[0], choices.work(pick))

    found = search(choices.problem, judge, limits, seen, most_moves=0)
    today = found.pick
    if not found.interrupted:
        found = search(choices.problem, judge, limits, seen)
    if found.pick is None and found.interrupted:
        raise KeyboardInterrupt
    if found.pick is None:
        raise seen.refused or Unreachable("no placement can run this work", hint="let more devices move with --move")
    between = [] if found.interrupted else _between(choices, judge, limits, seen, found)
    best, *others = [_candidate(choices, seen, pick) for pick in (found.pick, *between)]
    now = None if today is None else _candidate(choices, seen, today)
    return Placement(question, best, now, tuple(others), found.doubt, len(seen.scores), found.interrupted)


def unserved(placement: Placement) -> InputError:
    """The error that says what the best placement reaches of a demand, and what limits it."""
    line = min(
        (line for line in placement.best.score.lines if line.wanted), key=lambda each: each.rate / (each.wanted or 1.0)
    )
    none = "no placement found serves" if placement.doubt else "no placement serves"
    reached = f"the best reaches {line.rate:,.0f}, limited by {line.limit}"
    cause = f"{none} {line.wanted:,.0f} QPS of {line.name}: {reached}"
    return InputError(cause, hint="ask for less, let more devices move (--move), or see the best with --anyway")


def _between(choices: Choices, judge: Judge, limits: Limits, seen: Seen, found: Found) -> list[Pick]:
    """The best placement for each number of moves between none and those of the best, where it is another one."""
    assert found.pick is not None
    picks: list[Pick] = []
    fewer = Limits(limits.tolerance, max(1, limits.candidates // 5))
    for number in range(1, min(choices.problem.moves(found.pick), MOST_STEPS + 1)):
        step = search(choices.problem, judge, fewer, seen, most_moves=number)
        if step.interrupted:
            break
        if step.pick is not None and choices.problem.moves(step.pick) == number:
            picks.append(step.pick)
    return picks


def _candidate(choices: Choices, seen: Seen, pick: Pick) -> Candidate:
    score = seen.scores[pick]
    assert score is not None
    system, moves = apply(choices.question.system, choices.moves(pick))
    serving = {each.tenant.name: each.gpus for each in choices.work(pick).services}
    return Candidate(moves, serving, system, score)


def _nothing_moves(question: Question) -> InputError:
    system = question.system
    hint = "name devices with --move 'gpu[0-3]' and ports with --at 'sw[0-1]', or give several systems to rank"
    if not question.movables:
        return InputError(f"nothing of {system.name} can move to another host", hint=hint)
    names = ", ".join(each.device for each in question.movables[:4])
    more = f" and {len(question.movables) - 4} more" if len(question.movables) > 4 else ""
    return InputError(f"{names}{more} can go nowhere else", hint=hint)
