"""Bytes of data in the packets of a link: what CPUs split, and the completions of a host's reads."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.perf import packets
from lanewise.perf.resources import cite
from lanewise.topology.model import System

# x8 of Gen1, packets of 128 B, read requests of 512 B: 1.4 to 1.6 of 2.0 GB/s.
SMALL_COMPLETIONS = (
    "completions of 64 B on links with packets of 128 B, whose DMA reads get 0.70 to 0.80 (Oracle, 'Expected PCI-E "
    "bandwidth', blogs.oracle.com/pyakutis)"
)


@dataclass(frozen=True, slots=True)
class Payload:
    """Bytes of data in each packet on a link, and where this size comes from ('': the default of 256 B)."""

    size: float
    basis: str = "physics"
    rests_on: str = ""


DEFAULT = Payload(packets.DEFAULT_PAYLOAD)


def completions(system: System, payload: Payload, cpu: str) -> Payload:
    """The payload of a host's completions: its CPU's figure, or 64 B where packets hold less than 256 B.

    A completion may end at any multiple of 64 B (PCI Express Base Specification, read completion boundary). Hosts whose
    packets hold 256 B were measured and fill them; on links with packets of 128 B reads get 0.70 to 0.80, as
    completions of 64 B give (0.75; full ones 0.85).
    """
    unknown = not system.number(cpu, "completion.payload")
    if unknown and packets.COMPLETION_BOUNDARY < payload.size < packets.DEFAULT_PAYLOAD:
        return Payload(packets.COMPLETION_BOUNDARY, "typical", SMALL_COMPLETIONS)
    return split(system, payload, cpu, "completion.payload")


def split(system: System, payload: Payload, cpu: str, key: str) -> Payload:
    """The payload of packets that a CPU splits to the size of its figure `key`."""
    part = system.part(cpu)
    figure = part.figure(key) if part is not None else None
    if part is None or figure is None or not isinstance(figure.value, float) or not 0 < figure.value < payload.size:
        return payload
    return Payload(figure.value, figure.basis, f"{figure.value:.0f} B packets from {cpu} on: {cite(part, key, figure)}")
