"""A placement that keeps latency bounds: the steady state proposes it, the simulation confirms it.

The steady state ignores queueing, so a demand that just fits may be late. Then the plan is made again for a few per
cent more, and that placement is simulated at the demand itself.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise import units
from lanewise.errors import InputError
from lanewise.planning.confirm import Confirm, Confirmation, by_simulation
from lanewise.planning.place import Candidate, Placement, place
from lanewise.planning.question import Question
from lanewise.planning.score import Evaluate, by_model
from lanewise.planning.search import SearchLimits
from lanewise.planning.work import TenantGpus, Work

MARGINS = (0.01, 0.02, 0.04)


def place_within_bounds(
    question: Question,
    evaluate: Evaluate = by_model,
    limits: SearchLimits = SearchLimits(),  # noqa: B008
    confirm: Confirm = by_simulation,
) -> Placement:
    """The best placement by `place`, simulated; if it would be late, one with a margin for queueing."""
    placement = place(question, evaluate, limits)
    if not question.tenants or placement.interrupted:
        return placement
    return _BoundedPlacement(question, evaluate, limits, confirm).of(placement)


def late_error(placement: Placement) -> InputError:
    """The error for a late placement: how late, and what limits it.

    It never claims that no placement keeps the bound: only the proposed ones are simulated.
    """
    confirmed = placement.best.confirmed
    assert confirmed is not None
    worst = max(confirmed.late, key=lambda tenant: tenant.latency / (tenant.bound or 1.0))
    latency, bound = units.readable(worst.latency, "s", 3), units.readable(worst.bound, "s")
    reached = "its queue grows" if worst.grows else f"p{100 * worst.percentile:g} is {latency}"
    demand = f"the {bound} of {worst.tenant} at {worst.qps:,.0f} QPS"
    cause = f"no placement found keeps {demand}: {reached}, limited by {worst.limit}"
    return InputError(cause, hint="ask for less, let more devices move (--move), or see the best with --anyway")


class _BoundedPlacement:
    """The placements of one question, each simulated once."""

    def __init__(self, question: Question, evaluate: Evaluate, limits: SearchLimits, confirm: Confirm) -> None:
        self.question, self.evaluate, self.limits, self.confirm = question, evaluate, limits, confirm
        self.cache: dict[object, Confirmation] = {}

    def of(self, placement: Placement) -> Placement:
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
            raised = place(replace(self.question, tenants=tenants), self.evaluate, self.limits)
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
        return replace(candidate, score=self.evaluate(candidate.system, self._work(candidate)))

    def _between(self, placement: Placement, raised: Placement, best: Candidate) -> tuple[Candidate, ...]:
        """The placements with fewer moves than the best, with the best of the steady state alone."""
        steps = {_key(step): step for step in map(self._at_demand, raised.steps)}
        steps |= {_key(step): step for step in (*placement.steps, placement.best)}
        fewer = [step for step in steps.values() if step.moves and _key(step) != _key(best)]
        return tuple(sorted(fewer, key=lambda step: len(step.moves)))


def _key(candidate: Candidate) -> object:
    return candidate.moves, tuple(candidate.serving.items())
