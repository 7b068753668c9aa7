"""What an IOMMU that translates may cost copies from and to host memory: its interval begins lower.

Each page that a device touches needs its translation. With pages of 4 KiB the IOMMU's own cache (IOTLB) misses nearly
every time at such rates, with pages of 2 MiB hardly ever. At 200 Gb/s network cards lost up to 20 % to it, on Xeon and
on EPYC, and nothing with pages of 2 MiB (Farshin et al., "Overcoming the IOTLB wall for multi-100-Gbps Linux-based
networking", PeerJ Computer Science 9:e1385, 2023). So 20 GB/s is the least that was seen of a root port, of both
directions together, and what is predicted without an IOMMU the most: a description does not know the pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise.perf import packets
from lanewise.perf.resources import Resource
from lanewise.routes.model import Hop
from lanewise.topology.model import Kind, LinkKind, System

LEAST = 0.8 * 200e9 / 8  # B/s
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
