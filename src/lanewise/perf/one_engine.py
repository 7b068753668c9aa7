"""GPUs with one copy engine: copies to and from host memory take turns on it.

While one of them runs the other one waits, so of two rates A and B that they reach alone r / A + s / B <= 1: with equal
sizes both together get 2 A B / (A + B), what one direction gets, however much their link carries both ways.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from lanewise.perf.resources import Resource, cite
from lanewise.perf.uncertainty import RANGES, independent, widest
from lanewise.topology.model import System

COUNT = "copy.engines"
_KINDS = ("h2d", "d2h")


def taking_turns(system: System, demands: Sequence[Mapping[Resource, float]]) -> list[dict[Resource, float]]:
    """What a byte of each flow holds of a copy engine that serves both directions; nothing where only one runs.

    `demands` are what a byte of each flow takes. A flow that is held back elsewhere leaves the engine to others.
    """
    users: dict[str, dict[int, Resource]] = defaultdict(dict)  # by GPU: the flows that use its engines
    for number, amounts in enumerate(demands):
        for engine in (each for each in amounts if each.kind in _KINDS):
            if system.number(engine.place[0], COUNT) == 1:
                users[engine.place[0]][number] = engine
    taken: list[dict[Resource, float]] = [{} for _ in demands]
    for gpu, engines in users.items():
        if len({engine.kind for engine in engines.values()}) < len(_KINDS):
            continue
        alone = {number: _alone(demands[number]) for number in engines}
        shared = _engine(system, gpu, list(engines.values()), max(alone.values()))
        for number, rate in alone.items():
            taken[number][shared] = shared.capacity / rate
    return taken


def _alone(amounts: Mapping[Resource, float]) -> float:
    return min(resource.capacity / amount for resource, amount in amounts.items() if amount)


def _engine(system: System, gpu: str, engines: Sequence[Resource], capacity: float) -> Resource:
    part = system.part(gpu)
    stated = cite(part, COUNT, part.figure(COUNT)) if part is not None else ""
    return Resource(
        kind="one_engine", place=(gpu,), name=f"copy engine of {gpu}, one for both directions", capacity=capacity,
        basis="typical" if any(engine.basis == "typical" for engine in engines) else "physics", rests_on=stated,
    ).within(independent(RANGES["physics"], widest([engine.factors for engine in engines])))  # fmt: skip
