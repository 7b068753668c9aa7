"""Copy engines of GPUs: what a copy takes of one, by direction and by the slowest link of its path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lanewise.catalog import Part
from lanewise.catalog.keys import GENERATIONS
from lanewise.perf import packets
from lanewise.perf.host_reads import read_factor
from lanewise.perf.known_parts import link_with_speed, maker, part_of
from lanewise.perf.resources import LABELS, Resource, cite, weakest
from lanewise.perf.segments import Segment, link_speed, slowest_link
from lanewise.perf.uncertainty import CARRIED_OVER, RANGES, Range, figure_range, product, widest
from lanewise.topology.model import Kind, Link, LinkKind, System

ENGINE_DOUBT = "no copy-engine figure known: a ceiling, CUDA copies reach 84 to 87 % of it"
# The figures engine.<name>.gen<n> of an engine; the second is used where a part does not state the first.
_ENGINE_FIGURES = {"p2p_write": ("p2p_write", "d2h"), "p2p_read": ("p2p_read", "h2d")}
# Reads wait for their data, and only so many may be outstanding (PCI Express Base Specification, tags): a host that
# answers later gives less. Copies from memory of 15 hosts that are not named and held out got 0.66 to 1.10 of what is
# predicted, 14 of them from 0.81 on, and copies to it, which wait for credits alone, 0.94 and more.
UNNAMED_READS = (0.80, 1.0)
# What a GPU reads of a peer, of what it reads of a host: 0.84 (A40), 0.92 (Arc Pro B70), 0.95 (RTX PRO 6000), 1.05 (RTX
# A6000), 1.06 (P100).
_READS_OF_PEERS = (0.84, 1.07)


def copy_demand(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    """What a byte takes of the copy engine that moves a segment's data; nothing where its rate is not known."""
    kinds: tuple[str, ...]
    match system.device(segment.src).kind, system.device(segment.dst).kind:
        case Kind.CPU, Kind.GPU:
            gpu, kinds = segment.dst, ("h2d",)
        case Kind.GPU, Kind.CPU:
            gpu, kinds = segment.src, ("d2h",)
        case Kind.GPU, Kind.GPU:
            gpu, kinds = segment.requester, ("p2p_read",) if segment.is_read else ("p2p_write",)
        case Kind.GPU, _ if segment.is_read:
            yield from _reads_of_gpu(system, segment.src, segment.hops[0].link)
            return
        case _:
            return
    slowest = slowest_link(system, segment)
    if slowest is None:
        return
    for kind in kinds:
        demand = engine_demand(system, gpu, kind, slowest, system.part(segment.src) if kind == "h2d" else None)
        if demand is not None:
            engine, amount = demand
            ends = (slowest_link(system, segment, bound) for bound in ("low", "high"))
            least, most = (link_speed(link) / link_speed(slowest) for link in ends)
            if least < most:  # behind a chipset that is not named
                engine = replace(engine, low=engine.low * least, high=engine.high * most)
            unnamed = kind == "h2d" and system.part(segment.src) is None
            yield engine.within(widest([engine.factors, UNNAMED_READS])) if unnamed else engine, amount


def _reads_of_gpu(system: System, gpu: str, link: Link) -> Iterator[tuple[Resource, float]]:
    """A byte that a drive or card reads of a GPU over the GPU's own `link`; it takes no engine from copies."""
    if link.kind is not LinkKind.PCIE:
        return
    demand = engine_demand(system, gpu, "d2h", link_with_speed(system, link))
    if demand is not None:
        sends, amount = demand
        yield replace(sends, kind="completions", name=f"reads of {gpu} by drives and cards"), amount


def engine_demand(
    system: System, device: str, kind: str, link: Link, cpu: Part | None = None
) -> tuple[Resource, float] | None:
    """A GPU's engine (h2d, d2h, p2p_write, p2p_read), and what a byte takes of it on a path as fast as link.

    The engine's capacity is its figure of the newest generation; a byte over a slower path holds it longer. A figure of
    another generation is scaled by the ratio of raw rates: an engine that keeps 80 % of a Gen4 link busy is taken to
    keep 80 % of a Gen3 link busy. Peer writes leave through the engine that writes to the host, and peer reads through
    the one that reads it, so those figures are taken. Of host memory `cpu` says which CPU it is at, as hosts differ by
    maker. None where the part states none.
    """
    part = part_of(system, device)
    if part is None or part.kind != "gpu" or link.gen is None or link.lanes is None:
        return None
    for name in _ENGINE_FIGURES.get(kind, (kind,)):
        figures = {gen: key for gen in GENERATIONS if part.figure(key := f"engine.{name}.gen{gen}").known}
        if figures:
            engine, amount = _engine(part, device, kind, figures, (link.gen, link.lanes))
            factor = read_factor(system, part, _nearest(figures, link.gen), cpu)
            if cpu is not None and factor != 1:
                engine = replace(engine, rests_on=f"{engine.rests_on}, times {factor:.3g} at CPUs of {maker(cpu)}")
                amount /= factor
            return engine if name == kind else engine.within(_stand_in(system, part, kind, engine)), amount
    return None


def _stand_in(system: System, part: Part, kind: str, engine: Resource) -> Range:
    """How far copies with peers are from those with the host; a typical figure of these is unknown in two ways."""
    same = (each for each in system.catalog.parts.values() if each.kind == "gpu" and maker(each) == maker(part))
    measured = any(each.figure(f"engine.{kind}.gen{gen}").known for each in same for gen in GENERATIONS)
    own = RANGES[CARRIED_OVER if measured else "planning"]
    own = widest([own, _READS_OF_PEERS]) if kind == "p2p_read" else own
    return product(engine.factors, own) if engine.basis == "typical" else widest([engine.factors, own])


def _nearest(figures: dict[int, str], gen: int) -> int:
    return min(figures, key=lambda generation: (abs(generation - gen), -generation))


def _engine(
    part: Part, device: str, kind: str, figures: dict[int, str], speed: tuple[int, int]
) -> tuple[Resource, float]:
    best = part.number(figures[max(figures)]) or 0.0
    gen = _nearest(figures, speed[0])
    figure = part.figure(figures[gen])
    scale = packets.raw_rate(*speed) / packets.raw_rate(gen, 16)
    rests = cite(part, figures[gen], figure)
    if scale != 1:
        rests += f", scaled by {scale:.3g} to Gen{speed[0]} x{speed[1]}"
    basis = weakest([figure.basis, "physics" if scale == 1 else "calibrated"])
    resource = Resource(
        kind=kind, place=(device,), name=f"{LABELS[kind]} of {device}", capacity=best, basis=basis, rests_on=rests
    ).within(widest([figure_range(figure), *([] if scale == 1 else [RANGES[CARRIED_OVER]])]))
    return resource, best / ((part.number(figures[gen]) or best) * scale)
