"""A placement that holds under latency bounds: steady state proposes, the simulation confirms, a margin where it must.

A demand that just fits in steady state may be late: queues need room. Then the plan is made again for a few per cent
more than was asked, and what that proposes is simulated at the demand itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.errors import InputError
from lanewise.planning.confirm import by_simulation
from lanewise.planning.place import place
from lanewise.planning.score import by_model
from lanewise.planning.search import Limits
from lanewise.planning.work import Serving, Work

if TYPE_CHECKING:
    from lanewise.planning.confirm import Confirm, Confirmation
    from lanewise.planning.place import Candidate, Placement
    from lanewise.planning.question import Question
    from lanewise.planning.score import Evaluate

MARGINS = (0.01, 0.02, 0.04)


def hold(
    question: Question,
    evaluate: Evaluate = by_model,
    limits: Limits = Limits(),  # noqa: B008
    confirm: Confirm = by_simulation,
) -> Placement:
    """The best placement as `place` finds it, simulated, and with room for queues where it would be late otherwise."""
    found = place(question, evaluate, limits)
    if not question.tenants or found.interrupted:
        return found
    return _Holding(question, evaluate, limits, confirm).of(found)


def unkept(placement: Placement) -> InputError:
    """The error that says how late the best placement is, and what limits it there.

    Never that none can keep the bound: what the margins propose is simulated, the rest is not.
    """
    confirmed = placement.best.confirmed
    assert confirmed is not None
    worst = max(confirmed.late, key=lambda each: each.latency / (each.bound or 1.0))
    latency, bound = units.readable(worst.latency, "s", 3), units.readable(worst.bound, "s")
    reached = "its queue grows" if worst.grows else f"p{100 * worst.percentile:g} is {latency}"
    asked = f"the {bound} of {worst.tenant} at {worst.qps:,.0f} QPS"
    cause = f"no placement found keeps {asked}: {reached}, limited by {worst.limit}"
    return InputError(cause, hint="ask for less, let more devices move (--move), or see the best with --anyway")


class _Holding:
    """One question's placements under simulation, each simulated once."""

    def __init__(self, question: Question, evaluate: Evaluate, limits: Limits, confirm: Confirm) -> None:
        self.question, self.evaluate, self.limits, self.confirm = question, evaluate, limits, confirm
        self.known: dict[object, Confirmation] = {}

    def of(self, found: Placement) -> Placement:
        """The placement with what the simulation says of it; Ctrl-C keeps what is there."""
        try:
            found = replace(found, best=self._seen(found.best))
            if found.served and found.late:
                found = self._with_room(found)
            found = replace(found, today=None if found.today is None else self._seen(found.today))
            for number, each in enumerate(found.between):
                between = (*found.between[:number], self._seen(each), *found.between[number + 1 :])
                found = replace(found, between=between)
        except KeyboardInterrupt:
            return replace(found, interrupted=True)
        return found

    def _seen(self, candidate: Candidate) -> Candidate:
        key = _key(candidate)
        if key not in self.known:
            self.known[key] = self.confirm(candidate.system, self._work(candidate))
        return replace(candidate, confirmed=self.known[key])

    def _work(self, candidate: Candidate) -> Work:
        """What was asked for, on the GPUs of that placement."""
        services = tuple(Serving(each, candidate.serving[each.name]) for each in self.question.tenants)
        return Work(self.question.flows, services, self.question.by)

    def _with_room(self, found: Placement) -> Placement:
        """The first placement for a little more than was asked that holds at what was asked; `found` if none does."""
        late = {each.tenant for each in found.late}
        for margin in MARGINS:
            tenants = tuple(each.raised(1.0 + margin) if each.name in late else each for each in self.question.tenants)
            raised = place(replace(self.question, tenants=tenants), self.evaluate, self.limits)
            if raised.interrupted:
                raise KeyboardInterrupt
            best = self._seen(self._as_asked(raised.best))
            assert best.confirmed is not None
            if not (best.confirmed.why or best.confirmed.late) and all(line.served for line in best.score.lines):
                return replace(
                    found, best=best, between=self._between(found, raised, best), doubt=raised.doubt,
                    tried=found.tried + raised.tried, margin=margin, steady=found.best,
                )  # fmt: skip
            late |= {each.tenant for each in best.confirmed.late}
        return found

    def _as_asked(self, candidate: Candidate) -> Candidate:
        """The placement with the score it has for what was asked."""
        return replace(candidate, score=self.evaluate(candidate.system, self._work(candidate)))

    def _between(self, found: Placement, raised: Placement, best: Candidate) -> tuple[Candidate, ...]:
        """The placements on the way to the best, the one that steady state alone would have chosen among them."""
        steps = {_key(each): each for each in map(self._as_asked, raised.between)}
        steps |= {_key(each): each for each in (*found.between, found.best)}
        fewer = [each for each in steps.values() if each.moves and _key(each) != _key(best)]
        return tuple(sorted(fewer, key=lambda each: len(each.moves)))


def _key(candidate: Candidate) -> object:
    return candidate.moves, tuple(candidate.serving.items())
