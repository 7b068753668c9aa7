"""Place devices: which host and port each should have, and which GPUs serve which tenant.

The steady state proposes a placement, the simulation confirms its latency bounds. The steady state ignores queueing, so
a demand that just fits may be late. Then the plan is made again for a few per cent more, and that placement is
simulated at the demand itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lanewise import units
from lanewise.errors import InputError, Unreachable
from lanewise.planning.confirm import Confirm, Confirmation, TenantLatency, by_simulation
from lanewise.planning.positions import Move, apply
from lanewise.planning.question import Choices, Question
from lanewise.planning.score import Evaluate, Score, by_model
from lanewise.planning.search import PlacementSearch, SearchLimits
from lanewise.planning.solver import Pick
from lanewise.planning.work import TenantGpus, Work
from lanewise.topology.model import System

MOST_STEPS = 6
MOST_EQUAL = 3
MARGINS = (0.01, 0.02, 0.04)


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

    @property
    def error(self) -> InputError | None:
        """What says that it does not fit: what the best reaches of a demand or a bound, and what limits it."""
        hint = "ask for less, let more devices move (--move), or see the best with --anyway"
        if not self.served:
            line = min(
                (line for line in self.best.score.lines if line.demand), key=lambda line: line.rate / (line.demand or 1)
            )
            none = "no placement found serves" if self.doubt else "no placement serves"
            reached = f"the best reaches {line.rate:,.0f}, limited by {line.limit}"
            return InputError(f"{none} {line.demand:,.0f} QPS of {line.name}: {reached}", hint=hint)
        if self.late:  # only proposed placements are simulated, so another one may keep the bound
            worst = max(self.late, key=lambda tenant: tenant.latency / (tenant.bound or 1.0))
            latency, bound = units.readable(worst.latency, "s", 3), units.readable(worst.bound, "s")
            reached = "its queue grows" if worst.grows else f"p{100 * worst.percentile:g} is {latency}"
            demand = f"the {bound} of {worst.tenant} at {worst.qps:,.0f} QPS"
            return InputError(f"no placement found keeps {demand}: {reached}, limited by {worst.limit}", hint=hint)
        return None


def place_within_bounds(
    question: Question,
    limits: SearchLimits = SearchLimits(),  # noqa: B008
    confirm: Confirm = by_simulation,
) -> Placement:
    """The best placement by `place`, simulated; if it would be late, one with a margin for queueing."""
    placement = place(question, limits=limits)
    if not question.tenants or placement.interrupted:
        return placement
    return _BoundedPlacement(question, limits, confirm).simulated(placement)


def place(question: Question, evaluate: Evaluate = by_model, limits: SearchLimits = SearchLimits()) -> Placement:  # noqa: B008
    """The best placement of a question; InputError if nothing can move or serve, Unreachable if none can run."""
    if not question.tenants and not question.flows:
        raise InputError("nothing to plan for", hint="give --service 'resnet50 170000 QPS', --flows or --pattern")
    if not question.tenants and not any(len(movable.positions) > 1 for movable in question.movables):
        raise _nothing_moves(question)
    choices = Choices(question)

    def judge(pick: Pick) -> Score:
        return evaluate(apply(question.system, choices.moves(pick))[0], choices.work(pick))

    search = PlacementSearch(choices.problem, judge, limits.of_demand() if question.tenants else limits)
    result = search.best(most_moves=0)
    today = result.pick
    if not result.interrupted:
        result = search.best()
    if result.pick is None and result.interrupted:
        raise KeyboardInterrupt
    if result.pick is None:
        raise search.error or Unreachable("no placement can run this work", hint="let more devices move with --move")
    between = [] if result.interrupted else _between(search, result.pick)
    best, *steps = [_candidate(choices, search, pick) for pick in (result.pick, *between)]
    now = None if today is None else _candidate(choices, search, today)
    count = len(search.scores)
    equal: list[Candidate] = []
    interrupted = result.interrupted
    if not interrupted:
        try:
            equal = [_candidate(choices, search, pick) for pick in search.equals(result.pick, MOST_EQUAL)]
        except KeyboardInterrupt:
            interrupted = True
    return Placement(question, best, now, tuple(steps), result.doubt, count, interrupted, equal=tuple(equal))


def _between(search: PlacementSearch, best: Pick) -> list[Pick]:
    """The best placement for each number of moves between none and those of the best, where it is another one."""
    picks: list[Pick] = []
    for number in range(1, min(search.problem.moves(best), MOST_STEPS + 1)):
        step = search.best(number, max(1, search.limits.candidates // 5))
        if step.interrupted:
            break
        if step.pick is not None and search.problem.moves(step.pick) == number:
            picks.append(step.pick)
    return picks


def _candidate(choices: Choices, search: PlacementSearch, pick: Pick) -> Candidate:
    score = search.scores[pick]
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


class _BoundedPlacement:
    """The placements of one question, each simulated once."""

    def __init__(self, question: Question, limits: SearchLimits, confirm: Confirm) -> None:
        self.question, self.limits, self.confirm = question, limits, confirm
        self.cache: dict[object, Confirmation] = {}

    def simulated(self, placement: Placement) -> Placement:
        """The placement with the results of the simulation; Ctrl-C keeps those made so far."""
        try:
            placement = replace(placement, best=self._simulated(placement.best))
            if placement.served and placement.late:
                placement = self._with_margin(placement)
            placement = replace(
                placement, current=None if placement.current is None else self._simulated(placement.current)
            )
            for number, step in enumerate(placement.steps):
                between = (*placement.steps[:number], self._simulated(step), *placement.steps[number + 1 :])
                placement = replace(placement, steps=between)
        except KeyboardInterrupt:
            return replace(placement, interrupted=True)
        return placement

    def _simulated(self, candidate: Candidate) -> Candidate:
        key = _key(candidate)
        if key not in self.cache:
            self.cache[key] = self.confirm(candidate.system, self._work(candidate))
        return replace(candidate, confirmed=self.cache[key])

    def _work(self, candidate: Candidate) -> Work:
        """The work of the question on the GPUs of that placement."""
        services = tuple(TenantGpus(tenant, candidate.serving[tenant.name]) for tenant in self.question.tenants)
        return Work(self.question.flows, services, self.question.by)

    def _with_margin(self, placement: Placement) -> Placement:
        """The first placement planned for more that keeps the bounds at the demand; `placement` if none does."""
        late = {tenant.tenant for tenant in placement.late}
        for margin in MARGINS:
            tenants = tuple(t.raised(1.0 + margin) if t.name in late else t for t in self.question.tenants)
            raised = place(replace(self.question, tenants=tenants), limits=self.limits)
            if raised.interrupted:
                raise KeyboardInterrupt
            best = self._simulated(self._at_demand(raised.best))
            assert best.confirmed is not None
            if not (best.confirmed.reason or best.confirmed.late) and all(line.served for line in best.score.lines):
                return replace(
                    placement, best=best, steps=self._between(placement, raised, best), doubt=raised.doubt,
                    judged=placement.judged + raised.judged, margin=margin, steady=placement.best,
                )  # fmt: skip
            late |= {tenant.tenant for tenant in best.confirmed.late}
        return placement

    def _at_demand(self, candidate: Candidate) -> Candidate:
        """The placement with its score at the demand."""
        return replace(candidate, score=by_model(candidate.system, self._work(candidate)))

    def _between(self, placement: Placement, raised: Placement, best: Candidate) -> tuple[Candidate, ...]:
        """The placements with fewer moves than the best, with the best of the steady state alone."""
        steps = {_key(step): step for step in map(self._at_demand, raised.steps)}
        steps |= {_key(step): step for step in (*placement.steps, placement.best)}
        fewer = [step for step in steps.values() if step.moves and _key(step) != _key(best)]
        return tuple(sorted(fewer, key=lambda step: len(step.moves)))


def _key(candidate: Candidate) -> object:
    return candidate.moves, tuple(candidate.serving.items())
