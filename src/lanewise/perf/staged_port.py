"""The port that both stages of a copy through host memory cross: what it passes, beside the opposite copy too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.perf import packets
from lanewise.perf.known_parts import is_of_amd, settled_link
from lanewise.perf.measured_capacity import as_measured
from lanewise.perf.resources import Resource, cite, summed
from lanewise.perf.staging import NOT_MEASURED, Amounts, Stages, gap_of, stage_time, stages_of
from lanewise.routes.model import Hop, Route
from lanewise.topology.model import System

# What a shared port passes of both stages together, as a share of what it passes one way: 0.64 to 0.83 at Gen3 (DGX-1,
# DGX-2, TITAN RTX, two M60 of a board, a chassis of A100); at Gen4 0.41, 0.74 and 0.95 (A100 SXM and two hosts of A100
# PCIe): there reads starve behind writes on some hosts. Where the stages take turns, so do those of opposite copies:
# 6.1 GB/s in all of two RTX 3090, 5.9 of a lone copy.
_PORT_SHARES = {3: (0.75, 0.62, 0.88)}
_PORT_SHARE = (0.75, 0.39, 1.0)
_PORT_SHARE_IN_TURNS = (1.0, 0.85, 1.10)
# Beside posted writes of an EPYC: 0.96 and 1.09 of what stages in turns give on two hosts; 1.4 in a virtual machine.
_PORT_SHARE_BEHIND_WRITES = (1.0, 0.85, 1.45)
_TURNS = "both stages one after the other, as two RTX 3090 below a port"
_OVERLAP = (
    "{} of what it passes of a stage alone, as other ports that pass both stages (DGX-1, DGX-2, TITAN RTX, two M60 of "
    "a board, A100)"
)


def shared_port(system: System, routes: Sequence[Route], stages: Sequence[Amounts]) -> list[tuple[Resource, float]]:
    """What a byte takes of the link that both stages of a copy cross, the slowest and of these the one at the CPU."""
    hop = _shared_hop(system, routes, stages)
    if hop is None:
        return []
    # Of what crosses the link one way and the other: seconds a byte.
    ways = ((stages[0], hop.direction), (stages[1], hop.reverse.direction))
    times = [
        max(amount / r.capacity for r, amount in summed(amounts).items() if r.place == way) for amounts, way in ways
    ]
    time, shares = sum(times) / 2, _PORT_SHARES.get(settled_link(system, hop.link).gen or 0, _PORT_SHARE)
    in_turns = _time_in_turns(system, routes[0].src, stages)
    if stages_of(system, routes[0].src) is Stages.IN_TURNS:
        return [(_port(system, hop, _PORT_SHARE_IN_TURNS, _TURNS), _raw_rate(system, hop) * in_turns)]
    if gap_of(system, routes[0].src)[1] == NOT_MEASURED:
        nominal, low, high = shares
        shares = (nominal, min(low, _PORT_SHARE_IN_TURNS[1] * time / in_turns), high)
    return [(_port(system, hop, shares, _OVERLAP.format(shares[0])), _raw_rate(system, hop) * time)]


def beside_opposite_copy(
    system: System, routes: Sequence[Route], stages: Sequence[Amounts]
) -> list[tuple[Resource, float]]:
    """What a byte takes besides while the opposite copy runs: the gaps on the way to far memory, a port in turns.

    A far stage waits half of the gap between chunks, and the opposite copy does not fill it: 1/x = 1/C + gap of both
    together where both stages of each are far, 1/C + gap / 2 between the sockets. That gives 19.7 and 21.5 GB/s with
    A100 on EPYC 7002 or 7003 (two hosts: 20.95 and 19.1, 21.8 and 20), 20.0 with RTX 4090 (21) and A40 (20.2) on 7002.
    """
    if len(stages) != 2 or len(routes) != 1:
        return []
    src, far = routes[0].src, [resource for each in stages for resource, _ in each if resource.kind == "far_memory"]
    idle = gap_of(system, src)[0]["nominal"] * len(far) / 2
    amounts = [(resource, idle * resource.capacity) for resource in dict.fromkeys(far)]
    hop, turns = _shared_hop(system, routes, stages), _turns_at_port(system, routes[0])
    if hop is not None and turns:
        port = replace(_port(system, hop, _PORT_SHARE_BEHIND_WRITES, turns), kind="port_in_turns")
        amounts.append((port, _raw_rate(system, hop) * _time_in_turns(system, src, stages)))
    return amounts


def _shared_hop(system: System, routes: Sequence[Route], stages: Sequence[Amounts]) -> Hop | None:
    if len(stages) != 2 or len(routes) != 1:
        return None
    first, second = routes[0].stages
    back = {hop.direction for hop in second.hops}
    shared = [hop for hop in first.hops if hop.reverse.direction in back and _raw_rate(system, hop)]
    return min(reversed(shared), key=lambda hop: _raw_rate(system, hop), default=None)


def _raw_rate(system: System, hop: Hop) -> float:
    """Raw B/s of one direction of a link, 0 where its speed is not known."""
    link = settled_link(system, hop.link)
    return packets.raw_rate(link.gen, link.lanes) if link.gen and link.lanes else 0.0


def _port(system: System, hop: Hop, shares: tuple[float, float, float], rests_on: str) -> Resource:
    """What a link passes of both stages, nominal, least and most as shares of its raw rate."""
    (share, low, high), raw, ends = shares, _raw_rate(system, hop), sorted((hop.start, hop.end))
    port = Resource(
        kind="staged_port", place=(*ends,), name=f"link {ends[0]}<->{ends[1]} (both stages of copies through it)",
        capacity=share * raw, basis="typical", low=low * raw, high=high * raw, rests_on=rests_on,
    )  # fmt: skip
    return as_measured(system, port)


def _time_in_turns(system: System, src: str, stages: Sequence[Amounts]) -> float:
    """Seconds a byte of a copy whose stages take turns."""
    return sum(stage_time(amounts, "nominal") for amounts in stages) + gap_of(system, src)[0]["nominal"]


def _turns_at_port(system: System, route: Route) -> str:
    """What says that stages of opposite copies pass a port that they share in turns; '' if they overlap.

    Read requests do not pass posted writes, so they wait where a host takes writes slowly: two of EPYC, none of Intel.
    """
    gpu, cpu = system.part(route.src), system.part(route.stages[0].dst)
    figure = gpu.figure("staging.port") if gpu is not None and gpu.kind == "gpu" else None
    if gpu is None or figure is None or figure.value != Stages.IN_TURNS or cpu is None or not is_of_amd(cpu):
        return ""
    return cite(gpu, "staging.port", figure)
