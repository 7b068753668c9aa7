"""What an IOMMU that translates leaves of a ring through shared memory: a root port walks page tables, page by page.

Files of /dev/shm are of pages of 4 KiB. What the kernels of a ring load and store goes over many of them at once, so
that the IOMMU's cache (64 entries on Xeon E5; Neugebauer et al., "Understanding PCIe performance for end host
networking", SIGCOMM 2018) misses on each. A port then carries a page in a time that depends neither on its lanes nor on
how many GPUs run: RTX 4090 at two EPYC 7543, at x16 and at x8, two or four of a socket, get 4.0 to 4.65 GB/s each way,
RTX 4090 and RTX 3090 on three nodes with EPYC 7302 and 7402 3.3 to 4.0, while copies between them, staged in buffers of
the driver, lose nothing. A page written to the memory of the other socket takes four times as long on these three (1.2
to 1.6 GB/s) and ten times on the first (0.8); nobody published why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lanewise.collectives.learned import learned
from lanewise.routes.find import route
from lanewise.routes.paths import cpu_above
from lanewise.topology.model import Kind, System

PAGE = 4096  # B
# Measured / predicted from the others is 0.87 to 1.27 in a socket and 0.45 to 1.23 between two, on four nodes of one
# cluster; hosts of others may differ more.
_RANGE, _FAR_RANGE = (0.7, 1.5), (0.4, 1.5)


@dataclass(frozen=True, slots=True)
class PageWalks:
    """The rate (B/s) at which a ring passes shared memory of 4 KiB pages, from `low` to `high`, and what limits it."""

    low: float
    rate: float
    high: float
    limit: str
    rests_on: str


def page_walks(
    system: System, vendor: str, hops: Sequence[tuple[str, str]], peers: int, without: Collection[str]
) -> PageWalks | None:
    """What a rank gets of `hops` at once, from GPU to GPU through the receiver's memory, if the IOMMU translates.

    None where it is stated that it does not, or nobody measured it. Each rank sends to `peers` others; `vendor` is
    the CPUs'; figures of the machines `without` do not count.
    """
    if system.policies.iommu not in ("translate", None) or vendor != "amd" or not hops:
        return None
    near = learned("translated_page", [vendor], without)
    far = learned("translated_far_page", [vendor], without)
    busy: defaultdict[str, float] = defaultdict(float)  # us a page of each hop, by root port
    for sender, receiver in hops:
        crosses = cpu_above(system, sender) != cpu_above(system, receiver)
        busy[_root_port(system, sender)] += far.value if crosses else near.value
        busy[_root_port(system, receiver)] += near.value  # the buffer is in its memory
    port, time = max(busy.items(), key=lambda pair: pair[1])
    is_far = any(cpu_above(system, a) != cpu_above(system, b) for a, b in hops if _root_port(system, a) == port)
    low, high = _FAR_RANGE if is_far else _RANGE
    rate = peers * PAGE / (time * 1e-6)
    rests_on = "; ".join([near.rests_on, *([far.rests_on] if is_far else [])])
    return PageWalks(low * rate, rate, high * rate, f"address translation at root port {port}", rests_on)


def _root_port(system: System, gpu: str) -> str:
    hops = route(system, gpu, cpu_above(system, gpu)).hops
    cpu, port = next((hop.end, hop.link.port) for hop in hops if system.device(hop.end).kind is Kind.CPU)
    return f"{port} of {cpu}"
