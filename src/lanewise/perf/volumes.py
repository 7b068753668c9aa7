"""Storage volumes: how a flow to or from a volume spreads over its drives (RAID-0, 5, 10)."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.perf.flow import Flow
from lanewise.perf.resources import Use, figure_resource
from lanewise.routes.endpoints import endpoint
from lanewise.topology.model import System, Volume


@dataclass(frozen=True, slots=True)
class Pieces:
    """A flow as (source, target, share of each byte) pieces that run in step, and what it uses besides their routes."""

    parts: tuple[tuple[str, str, float], ...]
    extra: tuple[Use, ...] = ()


def expand(system: System, flow: Flow) -> Pieces:
    """One piece for a flow between devices, one a drive for a volume; UnknownName for an end that is not there."""
    reads, writes = system.volumes.get(flow.src), system.volumes.get(flow.dst)
    if reads is None and writes is None:
        return Pieces(((endpoint(system, flow.src, flow.dst), endpoint(system, flow.dst, flow.src), 1.0),))
    sources = [(d, read_share(reads)) for d in reads.drives] if reads else [(flow.src, 1.0)]
    targets = [(d, write_share(writes)) for d in writes.drives] if writes else [(flow.dst, 1.0)]
    parts = tuple((endpoint(system, s, t), endpoint(system, t, s), a * b) for s, a in sources for t, b in targets)
    return Pieces(parts, tuple(_controllers(system, reads, "read.rate") + _controllers(system, writes, "write.rate")))


def read_share(volume: Volume) -> float:
    """What each drive reads of one byte: every drive holds data, so 1/n for RAID-0, 10 and (flash skips parity) 5."""
    return 1.0 / len(volume.drives)


def write_share(volume: Volume) -> float:
    """What each drive writes of one byte: 1/n for RAID-0, 2/n for RAID-10, 1/(n-1) for full stripes of RAID-5."""
    n = len(volume.drives)
    return {0: 1.0 / n, 10: 2.0 / n, 5: 1.0 / (n - 1)}[volume.raid]


def _controllers(system: System, volume: Volume | None, key: str) -> list[Use]:
    if volume is None or volume.controller is None:
        return []
    resource = figure_resource(system, volume.controller, key, "RAID controller")
    return [Use(resource, 1.0)] if resource is not None else []
