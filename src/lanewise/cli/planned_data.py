"""What `lanewise plan` answers, as data for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise.cli import planned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.planning.ask import Ask
    from lanewise.planning.confirm import Confirmation
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.pins import Pinning
    from lanewise.planning.place import Candidate, Placement
    from lanewise.planning.score import Line, Score


def data(found: Placement | Ranking | Pinning, ask: Ask, name: str, parts: list[str]) -> dict[str, Any]:
    """The answer for programs."""
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.pins import Pinning

    if isinstance(found, Ranking):
        return _ranking_data(found, ask)
    return _pinning_data(found) if isinstance(found, Pinning) else _placement_data(found, name, parts)


def _score_data(score: Score) -> dict[str, Any]:
    name, use = score.busiest
    return {
        "limit": score.limit,
        "busiest": {"resource": name, "use": use} if name else None,
        "lines": [_line_data(line) for line in score.lines],
    }


def _line_data(line: Line) -> dict[str, Any]:
    return {
        "name": line.name, "rate": line.rate, "unit": line.unit, "wanted": line.wanted, "served": line.served,
        "limit": line.limit, "basis": line.basis, "rests_on": line.rests_on, "gpus": list(line.gpus),
    }  # fmt: skip


def _ranking_data(found: Ranking, ask: Ask) -> dict[str, Any]:
    return {
        "answer": "ranking",
        "pattern": ask.pattern,
        "by": found.by,
        "ranks": [
            {
                "rank": each.rank, "system": each.system.name, "settings": dict(each.system.settings),
                "total": each.score.total, "slowest": each.score.slowest, "why": each.why or None,
                **_score_data(each.score),
            }
            for each in found.places
        ],
        "cannot": [{"system": system.name, "why": error.cause} for system, error in found.cannot],
    }  # fmt: skip


def _candidate_data(found: Candidate | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "moves": [
            {"device": move.device, "from": move.was.host, "to": move.to.host, "at": move.to.at} for move in found.moves
        ],
        "serving": {name: list(gpus) for name, gpus in found.serving.items()},
        "simulated": _confirmation_data(found.confirmed),
        **_score_data(found.score),
    }


def _confirmation_data(found: Confirmation | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "kept": found.kept,
        "seconds": found.seconds,
        "why_not": found.why or None,
        "tenants": [
            {
                "name": each.tenant, "qps": each.qps, "percentile": each.percentile, "bound": each.bound,
                "latency": None if each.bound is None else each.latency,
                "valid": None if each.bound is None else each.valid,
                "reason": each.reason or None, "limit": each.limit or None, "queue_grows": each.grows,
            }
            for each in found.tenants
        ],
    }  # fmt: skip


def _placement_data(found: Placement, name: str, parts: Sequence[str]) -> dict[str, Any]:
    from lanewise.planning.spots import commands

    system = found.question.system
    return {
        "answer": "placement",
        "system": system.name,
        "settings": dict(system.settings),
        "today": _candidate_data(found.today),
        "between": [_candidate_data(each) for each in found.between],
        "best": _candidate_data(found.best),
        "commands": commands(system, planned.split(name)[0], found.best.moves, parts),
        "served": found.served,
        "kept": found.kept,
        "margin": found.margin,
        "proven": not found.doubt,
        "doubt": found.doubt or None,
        "judged": found.tried,
    }


def _pinning_data(found: Pinning) -> dict[str, Any]:
    from lanewise.planning.pins import lines

    return {
        "answer": "pins",
        "system": found.system.name,
        "settings": dict(found.system.settings),
        "pins": [
            {
                "gpu": p.gpu, "host": p.host, "card": p.card, "class": p.cls, "index": p.index, "numa": p.numa,
                "sends": p.out.rate, "receives": p.into.rate, "limit": p.out.limit, "environment": line,
            }
            for p, line in zip(found.pins, lines(found), strict=True)
        ],
        "proven": not found.doubt,
        "doubt": found.doubt or None,
        "slowest_over_further_classes": found.further.slowest if found.further else None,
    }  # fmt: skip
