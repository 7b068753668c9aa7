"""Latency: wire nanoseconds and API microseconds, which are different quantities and kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.catalog.typical import completed
from lanewise.perf.known_parts import number_of
from lanewise.perf.resources import cite, weakest
from lanewise.perf.uncertainty import Range, figure_range
from lanewise.routes.find import route as find_route
from lanewise.routes.model import Hop, Route, Via
from lanewise.topology.model import Kind, LinkKind, System

WIRE_S_PER_M = 5e-9  # signal speed in copper and fibre is about two thirds of light's
# An API figure is a whole: it already holds the wire time of its own machine, about one switch or root complex.
REFERENCE_WIRE = 100e-9
# What other drivers and CPUs make of it: of 18 latencies that machines of the evidence measured, each beside the figure
# of others, all but one (reads over NVSwitches of V100) take 0.8 to 1.5 times as long (docs/accuracy.md, small copies).
SPREAD = (0.8, 1.5)


@dataclass(frozen=True, slots=True)
class Latency:
    """A small copy from `src` to `dst`: `wire` in s (one way), `api` in s as CUDA's own sample times it, or None.

    Another driver and CPU take from `low` to `high`, in s; None where `api` is. `range` is how far a GPU of which
    nobody measured it may be from `api`, as factors.
    """

    src: str
    dst: str
    route: Route
    wire: float
    api: float | None
    basis: str
    limit: str
    rests_on: tuple[str, ...]
    note: str = ""
    range: Range = (1.0, 1.0)

    @property
    def low(self) -> float | None:
        """The least that others take, s."""
        return None if self.api is None else SPREAD[0] * self.range[0] * self.api

    @property
    def high(self) -> float | None:
        """The most that others take, s."""
        return None if self.api is None else SPREAD[1] * self.range[1] * self.api


def latency(system: System, src: str, dst: str, p2p: bool = True) -> Latency:
    """The latency of a small copy; the API figure is None where the catalogue has none for a GPU of that maker."""
    path = find_route(system, src, dst, p2p)
    a, b = path.src, path.dst
    wire = one_way(system, path.hops)
    gpu = next((name for name in (a, b) if system.device(name).kind is Kind.GPU), None)
    key = {Via.STAGED: "latency.api_staged", Via.NVLINK: "latency.api_nvlink"}.get(path.via, "latency.api_p2p")
    named = system.part(gpu) if gpu else None
    part = completed(system.catalog, named) if named is not None else None
    figure = part.figure(key) if part else None
    if part is None or figure is None or not isinstance(figure.value, float):
        note = f"no figure {key} for {part.name if part else 'these ends'}: only the wire time is known"
        return Latency(a, b, path, wire, None, "physics", "wire", ("switch and root-complex latencies",), note)
    limit = "CUDA API (staged copy)" if path.via is Via.STAGED else "CUDA API (peer copy)"
    basis = weakest(["calibrated", figure.basis])
    beyond = max(0.0, wire - REFERENCE_WIRE) if path.via is not Via.NVLINK else 0.0
    unmeasured = figure_range(figure) if figure.basis == "typical" else (1.0, 1.0)
    rests = (cite(part, key, figure),)
    return Latency(a, b, path, wire, figure.value + beyond, basis, limit, rests, range=unmeasured)


def one_way(system: System, hops: Sequence[Hop]) -> float:
    """Wire time of a small packet in s: cables, switches' cut-through, root complexes and inter-socket links passed."""
    keys = {Kind.SWITCH: "switch.cut_through", Kind.CPU: "latency.root_complex"}
    passed = [(hop.end, key) for hop in hops[:-1] if (key := keys.get(system.device(hop.end).kind))]
    sockets = [hop.start for hop in hops if hop.link.kind is LinkKind.SOCKET]
    wires = sum((hop.link.length or 0.0) * WIRE_S_PER_M for hop in hops)
    forwarding = sum(number_of(system, name, key) or 0.0 for name, key in passed)
    return wires + forwarding + sum(system.number(name, "latency.intersocket") or 0.0 for name in sockets)
