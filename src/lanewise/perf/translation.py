"""What an IOMMU that translates may cost copies from and to host memory: its interval begins lower.

Each page that a device touches needs its translation. With pages of 4 KiB the IOMMU's own cache (IOTLB) misses nearly
every time at such rates, with pages of 2 MiB hardly ever. At 200 Gb/s network cards lost up to 20 % to it, on Xeon and
on EPYC, and nothing with pages of 2 MiB (Farshin et al., "Overcoming the IOTLB wall for multi-100-Gbps Linux-based
networking", PeerJ Computer Science 9:e1385, 2023). So 20 GB/s is the least that was seen of a root port, of both
directions together, and what is predicted without an IOMMU the most: a description does not know the pages.

On three nodes with EPYC 7002 pinned copies to the host get 0.81 to 0.85 of what they get in passthrough, 21.1 to 21.95
GB/s, and copies from it 0.97 (`memory.translated_writes`): reads of several pages are in flight at once, writes are
posted in order. A Core i5-12600K of another maker, whose link of Gen5 carries 53 GB/s to pages of 2 MiB, writes 20.5 to
ordinary ones: 187 to 200 ns a page of 4 KiB on all four. So that is what CPUs get that nobody measured. Copies staged
in the driver's own buffers lose nothing there.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from lanewise.catalog import Figure
from lanewise.perf import packets
from lanewise.perf.resources import Resource, cite
from lanewise.routes.model import Hop
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import Kind, LinkKind, System

LEAST = 0.8 * 200e9 / 8  # B/s
_WRITES = "memory.translated_writes"
TRANSLATED_WRITES = "translated_writes"  # the kind of what GPUs write through a root port
DOUBT = "the IOMMU translates: from pages of 4 KiB a root port may get as little as 20 GB/s (PeerJ CS 9:e1385)"


def translation_demand(system: System, src: str, dst: str, hops: Sequence[Hop]) -> Iterator[tuple[Resource, float]]:
    """A byte of what the IOMMU translates at a root port, where a PCIe segment begins or ends in host memory.

    Peer traffic is left out: what pages a GPU's memory is mapped in nobody published.
    """
    if system.policies.iommu != "translate" or Kind.CPU not in (system.device(src).kind, system.device(dst).kind):
        return
    for hop in hops:
        cpu = next((name for name in (hop.start, hop.end) if system.device(name).kind is Kind.CPU), None)
        link = hop.link
        if link.kind is LinkKind.PCIE and cpu is not None and link.gen is not None and link.lanes is not None:
            raw = 2 * packets.raw_rate(link.gen, link.lanes)  # both directions: nominally it limits nothing
            if raw > LEAST:
                yield Resource(
                    kind="translation", place=(cpu, link.port, "translation"),
                    name=f"address translation at root port {link.port} of {cpu}", capacity=raw, basis="physics",
                    rests_on="both directions of its link", doubt=DOUBT, low=LEAST, high=raw,
                ), 1.0  # fmt: skip
                if system.device(src).kind is Kind.GPU:
                    yield from _writes(system, cpu, link.port, raw)


def in_buffers_of_the_driver(amounts: Iterable[tuple[Resource, float]]) -> list[tuple[Resource, float]]:
    """The amounts of a stage of a copy through host memory, whose buffers have larger pages."""
    return [(resource, amount) for resource, amount in amounts if resource.kind != TRANSLATED_WRITES]


def _writes(system: System, cpu: str, port: str, raw: float) -> Iterator[tuple[Resource, float]]:
    """What GPUs' copies to host memory get where it was measured; from larger pages all that the link carries."""
    part = system.part(cpu)
    own = part.figure(_WRITES) if part is not None else None
    figure = own if own is not None and own.known else _typical_writes(system)
    if figure is not None and isinstance(figure.value, float):
        yield Resource(
            kind=TRANSLATED_WRITES, place=(cpu, port, TRANSLATED_WRITES),
            name=f"address translation at root port {port} of {cpu} (writes)", capacity=min(figure.value, raw),
            basis=figure.basis, rests_on=cite(part, _WRITES, figure) if part and figure is own else figure.source,
            doubt=DOUBT, low=LEAST, high=raw,
        ), 1.0  # fmt: skip


@memoized_by_figures
def _typical_writes(system: System) -> Figure | None:
    """The median over CPUs of which it was measured; None without any."""
    cpus = (part for part in system.catalog.parts.values() if part.kind == "cpu")
    stated = {figure.source: figure.value for part in cpus if (figure := part.figure(_WRITES)).known}
    values = [value for value in stated.values() if isinstance(value, float)]
    source = "median of CPUs whose IOMMU translates pages of 4 KiB"
    return Figure(statistics.median(values), "B/s", source, basis="typical") if values else None
