"""Copies between GPUs through host memory: how their stages overlap, alone and beside the opposite copy.

A copy is pipelined in chunks. Its stages overlap, and between chunks there is a gap: 1/x = max(1/B1, 1/B2) + gap, with
B1 and B2 the rates of the stages alone. Both stages cross a port that the two GPUs share, in opposite directions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from lanewise.perf import packets
from lanewise.perf.known_parts import part_of
from lanewise.perf.resources import Resource, cite, weakest
from lanewise.perf.route_demand import summed
from lanewise.perf.uncertainty import Bound, figure_range
from lanewise.routes.model import Route
from lanewise.topology.model import System

Amounts: TypeAlias = Sequence[tuple[Resource, float]]

# The gap (s/B) of parts without a figure (staging.rate). From Ampere on the median of those that have one, from the
# smallest (RTX 5090 on Turin) to what RTX 3090 show in a virtual machine. Older GPUs: V100 of a DGX-2 9 to 13 ps, P100
# of a DGX-1 12 to 22 ps. A part's own figure may be of a faster host: Rome has up to 15 ps.
_GAPS: Mapping[Bound, float] = {"low": 50e-12, "nominal": 8e-12, "high": 5e-12}
_OLDER_GAPS: Mapping[Bound, float] = {"low": 50e-12, "nominal": 15e-12, "high": 8e-12}
_SLOW_HOST = 20e-12
# What a shared port passes of both stages together, as a share of what it passes one way: Gen3 0.71 on DGX-1 and DGX-2,
# 0.83 with two M60 of one board; from Gen4 on as peer writes both ways through one switch (0.95 to 0.97).
_PORT_SHARES = {3: (0.74, 0.68, 0.90)}
_PORT_SHARE = (0.95, 0.80, 1.0)


class Opposite(StrEnum):
    """Whether the opposite copy of a staged one runs too, and who was told to begin first."""

    NONE = "none"
    AFTER = "after"  # all of one direction is issued before the other, as programs usually do
    IN_TURNS = "in turns"  # copy by copy one of each direction


# What each of two opposite staged copies reaches, as a share of a lone one. While both run: 0.86 (three H200 machines;
# 0.86 and 0.87 of P100 and GTX 1070, whose sample issued copies of both directions in turns). Today's sample issues one
# direction first, and counts until the last copy ends: 0.70 (H100, H200, RTX 6000 Ada); 0.5 if the second one begins
# when the first has ended (copies of 4 GiB on a DGX-2).
_OPPOSITE_SHARES: dict[Opposite, dict[Bound, float]] = {
    Opposite.NONE: {"low": 1.0, "nominal": 1.0, "high": 1.0},
    Opposite.AFTER: {"low": 0.5, "nominal": 0.70, "high": 0.87},
    Opposite.IN_TURNS: {"low": 0.70, "nominal": 0.86, "high": 1.0},
}


@dataclass(frozen=True, slots=True)
class Staging:
    """A copy through host memory: the rate (B/s) of a lone one, nominal and at the ends of its range."""

    name: str
    basis: str
    rests_on: str
    rates: Mapping[Bound, float]
    opposite: Opposite = Opposite.NONE

    def rate(self, bound: Bound = "nominal") -> float:
        """The rate (B/s) that it can reach beside its opposite copy, if that runs."""
        return self.rates[bound] * _OPPOSITE_SHARES[self.opposite][bound]


def shared_port(routes: Sequence[Route], stages: Sequence[Amounts]) -> list[tuple[Resource, float]]:
    """What a byte takes of the link that both stages of a copy cross, the slowest and of these the one at the CPU."""
    if len(stages) != 2 or len(routes) != 1:
        return []
    first, second = routes[0].stages
    back = {hop.direction for hop in second.hops}
    shared = [hop for hop in first.hops if hop.reverse.direction in back and hop.link.gen and hop.link.lanes]
    if not shared:
        return []
    hop = min(reversed(shared), key=lambda hop: packets.raw_rate(hop.link.gen or 0, hop.link.lanes or 0))
    share, low, high = _PORT_SHARES.get(hop.link.gen or 0, _PORT_SHARE)
    # Of what crosses the link one way and the other: seconds a byte.
    ways = ((stages[0], hop.direction), (stages[1], hop.reverse.direction))
    times = [
        max(amount / r.capacity for r, amount in summed(amounts).items() if r.place == way) for amounts, way in ways
    ]
    raw = packets.raw_rate(hop.link.gen or 0, hop.link.lanes or 0)
    ends = sorted((hop.start, hop.end))
    return [(Resource(
        kind="staged_port", place=(*ends,), name=f"link {ends[0]}<->{ends[1]} (both stages of copies through it)",
        capacity=share * raw, basis="typical", low=low * raw, high=high * raw,
        rests_on=f"{share} of its rate one way, as other ports that pass both directions (DGX-1, DGX-2, two M60 of a "
        "board; peer writes both ways from Gen4 on)",
    ), raw * sum(times) / 2)]  # fmt: skip


def slowest_of(amounts: Amounts) -> Resource:
    """The resource that a stage alone would fill first."""
    return max(summed(amounts).items(), key=lambda item: item[1] / item[0].capacity)[0]


def staging(
    system: System, name: str, src: str, stages: Sequence[Amounts], cited: Sequence[tuple[str, str]]
) -> Staging:
    """The copy of flow `name` whose stages alone take `stages`; `cited` is the basis and the source of each."""
    part = part_of(system, src)
    figure = part.figure("staging.rate") if part is not None and part.kind == "gpu" else None
    bases, rests = [basis for basis, _ in cited], [text for _, text in cited]
    times = {bound: max(_time(amounts, bound) for amounts in stages) for bound in _BOUNDS}
    if part is not None and figure is not None and isinstance(figure.value, float):
        low, high = figure_range(figure)
        gaps: Mapping[Bound, float] = {
            "nominal": 1 / figure.value,
            "low": max(_GAPS["low"] if figure.basis == "typical" else _SLOW_HOST, 1 / (figure.value * low)),
            "high": min(_GAPS["high"], 1 / (figure.value * high)),
        }  # fmt: skip
        bases.append(figure.basis)
        rests.append(cite(part, "staging.rate", figure))
    else:
        gaps = _OLDER_GAPS if part is not None and (part.number("pcie.gen") or 4) < 4 else _GAPS
        bases.append("typical")
        rests.append(f"{gaps['nominal'] * 1e12:.0f} ps a byte between chunks, the median of GPUs that were measured")
    rates = {bound: 1 / (times[bound] + gaps[bound]) for bound in _BOUNDS}
    return Staging(f"staging of {name} through host memory", weakest(bases), "; ".join(rests), rates)


_BOUNDS: tuple[Bound, ...] = ("low", "nominal", "high")


def _time(amounts: Amounts, bound: Bound) -> float:
    """Seconds that a byte of one stage takes alone."""
    return max(amount / resource.at(bound) for resource, amount in summed(amounts).items())
