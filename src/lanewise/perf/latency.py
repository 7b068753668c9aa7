"""Latency: wire nanoseconds and API microseconds, which are different quantities and kept apart."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.perf.resources import cite, weakest
from lanewise.perf.route_demand import one_way
from lanewise.routes.find import route as find_route
from lanewise.routes.model import Route, Via
from lanewise.topology.model import Kind, System

# An API figure is a whole: it already holds the wire time of its own machine, about one switch or root complex.
REFERENCE_WIRE = 100e-9


@dataclass(frozen=True, slots=True)
class Latency:
    """A small copy from `src` to `dst`: `wire` in s (one way), `api` in s as CUDA's own sample times it, or None."""

    src: str
    dst: str
    route: Route
    wire: float
    api: float | None
    basis: str
    limit: str
    rests_on: tuple[str, ...]
    note: str = ""


def latency(system: System, src: str, dst: str, p2p: bool = True) -> Latency:
    """The latency of a small copy; the API figure is None where the catalogue has none for that GPU."""
    path = find_route(system, src, dst, p2p)
    a, b = path.src, path.dst
    wire = one_way(system, path.hops)
    gpu = next((name for name in (a, b) if system.device(name).kind is Kind.GPU), None)
    key = {Via.STAGED: "latency.api_staged", Via.NVLINK: "latency.api_nvlink"}.get(path.via, "latency.api_p2p")
    part = system.part(gpu) if gpu else None
    figure = part.figure(key) if part else None
    if part is None or figure is None or not isinstance(figure.value, float):
        note = f"no figure {key} for {part.name if part else 'these ends'}: only the wire time is known"
        return Latency(a, b, path, wire, None, "physics", "wire", ("switch and root-complex latencies",), note)
    limit = "CUDA API (staged copy)" if path.via is Via.STAGED else "CUDA API (peer copy)"
    basis = weakest(["calibrated", figure.basis])
    beyond = max(0.0, wire - REFERENCE_WIRE) if path.via is not Via.NVLINK else 0.0
    return Latency(a, b, path, wire, figure.value + beyond, basis, limit, (cite(part, key, figure),))
