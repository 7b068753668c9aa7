"""What is predicted of the collectives of a measured machine, a curve for each set of ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from lanewise.collectives.curve import predict_collective
from lanewise.collectives.model import Collective, CollectivePoint, CollectiveSettings
from lanewise.collectives.ranks import rank_set
from lanewise.errors import Unreachable, error_location
from lanewise.evidence.model import EvidenceRow, MeasuredCollective
from lanewise.results.observation import Basis, Observation, Source
from lanewise.routes.find import route
from lanewise.routes.model import Via
from lanewise.topology.model import System

LONG, MIDDLE, SHORT = "256 MiB and up", "1 to 256 MiB", "below 1 MiB, time"
_MIDDLE_FROM, _LONG_FROM = 2.0**20, 2.0**28


def collective_points(
    system: System, rows: Sequence[EvidenceRow], without: frozenset[str]
) -> dict[int, CollectivePoint | str]:
    """Of each row that is a collective, by its place: the point predicted, or why there is none.

    No figure that was learned on the machines `without` is used.
    """
    curves: dict[tuple[str, str, CollectiveSettings], list[tuple[int, MeasuredCollective]]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.collective is not None and not row.skip:
            measured = row.collective
            curves[measured.name, measured.ranks, measured.settings].append((place, measured))
    points: dict[int, CollectivePoint | str] = {}
    for (name, ranks, settings), members in curves.items():
        sizes = [measured.size for _, measured in members]
        with error_location(rows[members[0][0]].location):
            try:
                curve = predict_collective(system, Collective(name), ranks, sizes, replace(settings, without=without))
            except Unreachable as error:
                points |= {place: f"no route: {error.cause}" for place, _ in members}
                continue
        points |= {place: point for (place, _), point in zip(members, curve.points, strict=True)}
    return points


def collective_observation(
    machine: str, system: System, row: EvidenceRow, measured: MeasuredCollective, point: CollectivePoint | str | None
) -> Observation:
    """The row as an observation: bus bandwidth, or time where the row is one."""
    metric = "time" if row.latency else "busbw"
    blank = Observation(
        scenario=row.path, flow=row.text, metric=metric, value=None, display_unit="us" if row.latency else "GB/s",
        source=Source.PREDICTED, system=machine, published=row.value, path=_kind(system, measured),
        note=row.skip or (point if isinstance(point, str) else ""),
    )  # fmt: skip
    if not isinstance(point, CollectivePoint):
        return blank
    value, low, high = point.bus_bandwidth, point.low, point.high
    if row.latency:
        value, low, high = point.time, point.time * value / high, point.time * value / low
    chosen = f"{point.algorithm} {point.protocol}"
    if measured.algorithm and measured.algorithm != point.algorithm:
        chosen += f", ran {measured.algorithm}"
    return replace(
        blank, value=value, low=low, high=high, basis=Basis("calibrated"), limit=point.limit, note=chosen,
        rests_on=("NCCL's time model, rates and ramps of other machines",),
    )  # fmt: skip


def _kind(system: System, measured: MeasuredCollective) -> str:
    """The kind of a row: what joins the ranks, and the class of the size."""
    ranks = rank_set(system, measured.ranks)
    node = max(ranks.nodes, key=len)
    nvlink = measured.settings.p2p is not False and all(
        route(system, node[0], other).via is Via.NVLINK for other in node[1:]
    )
    fabric = "Infinity Fabric" if ranks.maker == "AMD" else "NVLink" if nvlink and len(node) > 1 else "PCIe"
    if len(node) == 1:
        fabric = "network alone"
    elif len(ranks.nodes) > 4:
        fabric += ", more than four nodes"
    return f"collective, {fabric}, {size_class(measured.size)}"


def size_class(size: float) -> str:
    """The class of a message size (B)."""
    return LONG if size >= _LONG_FROM else MIDDLE if size >= _MIDDLE_FROM else SHORT
