"""Matrices over all pairs of devices, each pair alone: goodput one way or both ways, peers on or off, and latency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lanewise.errors import Unreachable
from lanewise.perf.flow import Flow
from lanewise.perf.latency import SPREAD, latency
from lanewise.perf.predict import predict
from lanewise.topology.model import Kind, System


@dataclass(frozen=True, slots=True)
class RateMatrix:
    """`cells[i][j]` is the value from names[i] to names[j] in B/s or s; None on the diagonal or if unknown."""

    names: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    limits: tuple[tuple[str, ...], ...]
    unit: str
    title: str


def bandwidth_matrix(
    system: System, names: Sequence[str] | None = None, both_ways: bool = False, p2p: bool = True
) -> RateMatrix:
    """Goodput in B/s of every pair alone; `both_ways` gives the sum of the two directions, as the CUDA sample does."""

    def goodput(a: str, b: str) -> tuple[float | None, str]:
        back = [Flow(b, a, p2p=p2p)] if both_ways else []
        prediction = predict(system, [Flow(a, b, p2p=p2p), *back])
        unknown = prediction.why_unknown
        return (None, unknown) if unknown else (prediction.total, prediction.rates[0].limit)

    direction = "both ways, sum" if both_ways else "one way"
    return _matrix(system, names, goodput, "B/s", f"goodput, {direction}, P2P {'on' if p2p else 'off'}")


def latency_matrix(system: System, names: Sequence[str] | None = None, p2p: bool = True) -> RateMatrix:
    """Small-copy time in s of every pair as CUDA's sample times it; None where the API figure is unknown."""

    def copy_time(a: str, b: str) -> tuple[float | None, str]:
        pair = latency(system, a, b, p2p)
        return pair.api, pair.limit if pair.api is not None else pair.note

    spread = f"other drivers and CPUs: {SPREAD[0]} to {SPREAD[1]} times as long"
    return _matrix(system, names, copy_time, "s", f"latency of a small copy, P2P {'on' if p2p else 'off'}; {spread}")


def _matrix(
    system: System,
    names: Sequence[str] | None,
    value: Callable[[str, str], tuple[float | None, str]],
    unit: str,
    title: str,
) -> RateMatrix:
    """The `value` of each pair of devices with its limit, or with the reason why there is none."""
    ends = tuple(names) if names else tuple(system.of_kind(Kind.GPU))
    for name in ends:
        system.device(name)

    def cell(a: str, b: str) -> tuple[float | None, str]:
        try:
            return (None, "") if a == b else value(a, b)
        except Unreachable as error:
            return None, error.cause

    rows = [[cell(a, b) for b in ends] for a in ends]
    values = tuple(tuple(number for number, _ in row) for row in rows)
    return RateMatrix(ends, values, tuple(tuple(limit for _, limit in row) for row in rows), unit, title)
