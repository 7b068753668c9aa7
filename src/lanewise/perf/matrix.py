"""Matrices over all pairs of devices, each pair alone: goodput one way or both ways, peers on or off, and latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.errors import Unreachable
from lanewise.perf.flow import Flow
from lanewise.perf.latency import Latency, latency
from lanewise.perf.predict import predict
from lanewise.topology.model import Kind, System


@dataclass(frozen=True, slots=True)
class RateMatrix:
    """`cells[i][j]` is the value from names[i] to names[j] in B/s or s; None on the diagonal or for no way."""

    names: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    limits: tuple[tuple[str, ...], ...]
    unit: str
    title: str


def bandwidth_matrix(
    system: System, names: Sequence[str] | None = None, both_ways: bool = False, p2p: bool = True
) -> RateMatrix:
    """Goodput in B/s of every pair alone; `both_ways` gives the sum of the two directions, as the CUDA sample does."""
    ends = _ends(system, names)
    cells, limits = [], []
    for a in ends:
        row = [_pair(system, a, b, both_ways, p2p) for b in ends]
        cells.append(tuple(value for value, _ in row))
        limits.append(tuple(limit for _, limit in row))
    direction = "both ways, sum" if both_ways else "one way"
    return RateMatrix(
        tuple(ends), tuple(cells), tuple(limits), "B/s", f"goodput, {direction}, P2P {'on' if p2p else 'off'}"
    )


def latency_matrix(system: System, names: Sequence[str] | None = None, p2p: bool = True) -> RateMatrix:
    """Small-copy time in s of every pair as CUDA's sample times it; None where the API figure is unknown."""
    ends = _ends(system, names)
    rows = [[_latency(system, a, b, p2p) for b in ends] for a in ends]
    return RateMatrix(
        tuple(ends),
        tuple(tuple(cell.api if cell else None for cell in row) for row in rows),
        tuple(tuple(_limit(cell) for cell in row) for row in rows),
        "s",
        f"latency of a small copy, P2P {'on' if p2p else 'off'}",
    )


def _limit(cell: Latency | None) -> str:
    """The limit of a latency, or the reason why it is unknown."""
    if cell is None:
        return ""
    return cell.limit if cell.api is not None else cell.note


def _latency(system: System, a: str, b: str, p2p: bool) -> Latency | None:
    try:
        return None if a == b else latency(system, a, b, p2p)
    except Unreachable:
        return None


def _ends(system: System, names: Sequence[str] | None) -> list[str]:
    ends = list(names) if names else system.of_kind(Kind.GPU)
    for name in ends:
        system.device(name)
    return ends


def _pair(system: System, a: str, b: str, both_ways: bool, p2p: bool) -> tuple[float | None, str]:
    if a == b:
        return None, ""
    flows = [Flow(a, b, p2p=p2p)] + ([Flow(b, a, p2p=p2p)] if both_ways else [])
    try:
        prediction = predict(system, flows)
    except Unreachable as error:
        return None, error.cause
    return prediction.total, prediction.flows[0].limit
