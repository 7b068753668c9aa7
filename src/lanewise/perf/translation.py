"""What an IOMMU that translates may cost copies from and to host memory: its interval begins lower.

Each page that a device touches needs its translation. With pages of 4 KiB the IOMMU's own cache (IOTLB) misses nearly
every time at such rates, with pages of 2 MiB hardly ever. At 200 Gb/s network cards lost up to 20 % to it, on Xeon and
on EPYC, and nothing with pages of 2 MiB (Farshin et al., "Overcoming the IOTLB wall for multi-100-Gbps Linux-based
networking", PeerJ Computer Science 9:e1385, 2023). So 20 GB/s is the least that was seen of a root port, of both
directions together, and what is predicted without an IOMMU the most: a description does not know the pages.

On three nodes with EPYC 7002 pinned copies to the host get 0.81 to 0.85 of what they get in passthrough, 21.1 to 21.95
GB/s, and copies from it 0.97, 25.15 to 25.25 (`memory.translated_writes` and `_reads`). A Core i5-12600K of another
maker, whose link of Gen5 carries 53 GB/s to pages of 2 MiB and 45 from them, writes 20.5 to ordinary ones and reads
21.8: 187 to 200 ns a page of 4 KiB written on all four, 162 to 188 ns a page read. So that is what CPUs get that nobody
measured. One walk after the other serves both directions: a byte read takes 1 / 25.2 of it, a byte written 1 / 21.5,
which is 23.2 GB/s of both in all where that Core has 22.6. Copies staged in the driver's own buffers lose nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lanewise.catalog import Figure
from lanewise.perf import packets
from lanewise.perf.resources import Resource, cite
from lanewise.routes.model import Hop
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import Kind, LinkKind, System

LEAST = 0.8 * 200e9 / 8  # B/s
_WRITES, _READS = "memory.translated_writes", "memory.translated_reads"
TRANSLATED_WRITES = "translated_writes"  # the kind of walks for what GPUs write and read through a root port
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
                if Kind.GPU in (system.device(src).kind, system.device(dst).kind):
                    key = _READS if system.device(dst).kind is Kind.GPU else _WRITES
                    yield from _walks(system, cpu, link.port, raw, key)


def in_buffers_of_the_driver(amounts: Iterable[tuple[Resource, float]]) -> list[tuple[Resource, float]]:
    """The amounts of a stage of a copy through host memory, whose buffers have larger pages."""
    return [(resource, amount) for resource, amount in amounts if resource.kind != TRANSLATED_WRITES]


def with_walks_in_turn(amounts: Mapping[Resource, float]) -> dict[Resource, float]:
    """The amounts where walks for both directions of a root port are one resource: the seconds that a byte takes.

    How little both get together is the range of the port's translations.
    """
    return dict(_in_seconds(*pair) if pair[0].kind == TRANSLATED_WRITES else pair for pair in amounts.items())


def _in_seconds(walks: Resource, amount: float) -> tuple[Resource, float]:
    place = (*walks.place[:2], TRANSLATED_WRITES)
    return replace(walks, place=place, capacity=1.0, low=1.0, high=walks.factors[1]), amount / walks.capacity


def _walks(system: System, cpu: str, port: str, raw: float, key: str) -> Iterator[tuple[Resource, float]]:
    """What GPUs write or read where it was measured; from larger pages all that the link carries."""
    part = system.part(cpu)
    own = part.figure(key) if part is not None else None
    figure = own if own is not None and own.known else _typical(system, key)
    if figure is not None and isinstance(figure.value, float):
        yield Resource(
            kind=TRANSLATED_WRITES, place=(cpu, port, key),
            name=f"address translation at root port {port} of {cpu} ({key.rpartition('_')[2]})",
            capacity=min(figure.value, raw), basis=figure.basis,
            rests_on=cite(part, key, figure) if part and figure is own else figure.source,
            doubt=DOUBT, low=LEAST, high=raw,
        ), 1.0  # fmt: skip


@memoized_by_figures
def _typical(system: System, key: str) -> Figure | None:
    """The median over CPUs of which it was measured; None without any."""
    cpus = (part for part in system.catalog.parts.values() if part.kind == "cpu")
    stated = {figure.source: figure.value for part in cpus if (figure := part.figure(key)).known}
    values = [value for value in stated.values() if isinstance(value, float)]
    source = "median of CPUs whose IOMMU translates pages of 4 KiB"
    return Figure(statistics.median(values), "B/s", source, basis="typical") if values else None
