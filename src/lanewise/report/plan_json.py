"""The JSON of `lanewise plan`: ranked systems, a placement, or pinned network cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise.options.plan import PlanOptions
from lanewise.planning.confirm import Confirmation
from lanewise.planning.layouts import Ranking
from lanewise.planning.pins import Pinning
from lanewise.planning.pins import lines as environment
from lanewise.planning.place import Candidate, Placement
from lanewise.planning.positions import commands
from lanewise.planning.score import Score
from lanewise.report.json import json_document, system_head


@json_document("plan")
def plan(answer: Placement | Ranking | Pinning, options: PlanOptions, ref: str, parts: list[str]) -> dict[str, Any]:
    """The answer for programs."""
    if isinstance(answer, Ranking):
        return _ranking_data(answer, options)
    return _pinning_data(answer) if isinstance(answer, Pinning) else _placement_data(answer, ref, parts)


def _score_data(score: Score) -> dict[str, Any]:
    name, use = score.busiest
    lines = [
        {
            "name": line.name, "rate": line.rate, "unit": line.unit, "wanted": line.demand, "served": line.served,
            "limit": line.limit, "basis": line.basis, "rests_on": line.rests_on, "gpus": line.gpus,
        }
        for line in score.lines
    ]  # fmt: skip
    return {"limit": score.limit, "busiest": {"resource": name, "use": use} if name else None, "lines": lines}


def _ranking_data(ranking: Ranking, options: PlanOptions) -> dict[str, Any]:
    ranks = [
        {
            "rank": place.rank, **system_head(place.system), "total": place.score.total,
            "slowest": place.score.slowest, "why": place.reason or None, **_score_data(place.score),
        }
        for place in ranking.ranks
    ]  # fmt: skip
    cannot = [{"system": system.name, "why": error.cause} for system, error in ranking.errors]
    return {"answer": "ranking", "pattern": options.pattern, "by": ranking.by, "ranks": ranks, "cannot": cannot}


def _candidate_data(candidate: Candidate | None) -> dict[str, Any] | None:
    if candidate is None:
        return None
    moves = [
        {"device": move.device, "from": move.origin.host, "to": move.to.host, "at": move.to.at}
        for move in candidate.moves
    ]
    simulated = _confirmation_data(candidate.confirmed)
    return {"moves": moves, "serving": candidate.serving, "simulated": simulated, **_score_data(candidate.score)}


def _confirmation_data(confirmation: Confirmation | None) -> dict[str, Any] | None:
    if confirmation is None:
        return None
    tenants = [
        {
            "name": tenant.tenant, "qps": tenant.qps, "percentile": tenant.percentile, "bound": tenant.bound,
            "latency": None if tenant.bound is None else tenant.latency,
            "valid": None if tenant.bound is None else tenant.valid,
            "reason": tenant.reason or None, "limit": tenant.limit or None, "queue_grows": tenant.grows,
        }
        for tenant in confirmation.tenants
    ]  # fmt: skip
    return {
        "kept": confirmation.bounds_kept, "seconds": confirmation.seconds, "why_not": confirmation.reason or None,
        "tenants": tenants,
    }  # fmt: skip


def _placement_data(placement: Placement, ref: str, parts: Sequence[str]) -> dict[str, Any]:
    system = placement.question.system
    return {
        "answer": "placement", **system_head(system), "today": _candidate_data(placement.current),
        "between": [_candidate_data(candidate) for candidate in placement.steps],
        "best": _candidate_data(placement.best), "equal": [_candidate_data(candidate) for candidate in placement.equal],
        "commands": commands(system, ref, placement.best.moves, parts), "served": placement.served,
        "kept": placement.bounds_kept, "margin": placement.margin, "proven": not placement.doubt,
        "doubt": placement.doubt or None, "judged": placement.judged,
    }  # fmt: skip


def _pinning_data(pinning: Pinning) -> dict[str, Any]:
    pins = [
        {
            "gpu": p.gpu, "host": p.host, "card": p.card, "class": p.route_class, "index": p.index, "numa": p.numa,
            "sends": p.sends.rate, "receives": p.receives.rate, "limit": p.sends.limit, "environment": line,
        }
        for p, line in zip(pinning.pins, environment(pinning), strict=True)
    ]  # fmt: skip
    return {
        "answer": "pins", **system_head(pinning.system), "pins": pins, "proven": not pinning.doubt,
        "doubt": pinning.doubt or None,
        "slowest_over_further_classes": pinning.further.slowest if pinning.further else None,
    }  # fmt: skip
