"""Drives and cards of unknown rate: what drives read and write of their slots, as far as the catalogue knows them.

A data sheet states what a drive's largest model reads, and what it writes into flash that is erased. Both are shares of
the raw rate of its link: of 44 drives reads are 0.88 in the median, of 41 writes 0.63. A drive of which nothing
is known has these medians; a card has what its link carries, as nothing says more of it.

The low end of reads is that of every unknown figure (a slower drive may be in the slot). That of writes is lower: after
its cache a client drive on Gen5 x4 writes 1.4 GB/s (TechPowerUp, Corsair MP700 ELITE 2 TB, page 6), 0.09 of the slot,
and the models below 1 TB of a data centre drive on Gen4 x4 write 0.7 to 1.4 (ServeTheHome, Micron 7450), again 0.09.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace

from lanewise.perf import packets
from lanewise.perf.resources import END_DOUBT, NO_RATE, UNKNOWN_END, UNKNOWN_LINK, Resource, link_resource
from lanewise.perf.uncertainty import RANGES, UNKNOWN
from lanewise.routes.model import Hop
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import Kind, System

LEAST_WRITES = 0.09  # of the raw rate of the slot, see above
_WRITES = "write.rate"
DRIVE_DOUBT = f"{NO_RATE} known: what drives do in such a slot"
WRITE_DOUBT = "a full cache or a small model writes a tenth of what the slot carries"


def unknown_end(system: System, device: str, hop: Hop, key: str = "") -> Iterator[tuple[Resource, float]]:
    """A byte of a drive or card of unknown rate; `key` is the figure that a drive does not state."""
    link = link_resource(system, hop)
    if link is None or link.kind == UNKNOWN_LINK:
        return
    end = replace(link, kind=UNKNOWN_END, place=(device, key), name=f"{device}, of unknown rate", doubt=END_DOUBT)
    end = end.within(RANGES[UNKNOWN])
    share, count = _median_share(system, key) if system.device(device).kind is Kind.SSD else (None, 0)
    if share is not None:
        raw = end.capacity / packets.PACKET_SHARE
        least, doubt = (LEAST_WRITES * raw, f"; {WRITE_DOUBT}") if key == _WRITES else (end.low, "")
        doubt = DRIVE_DOUBT + doubt
        end = replace(
            end, capacity=share * raw, low=min(end.low, least), basis="typical", doubt=doubt,
            rests_on=f"{share:.2f} of the raw rate of its link, median of {count} drives that state their {key}",
        )  # fmt: skip
    yield end, 1.0


@memoized_by_figures
def _median_share(system: System, key: str) -> tuple[float | None, int]:
    """What drives of the catalogue read or write of the raw rate of their own links: the median, and of how many."""
    shares = []
    for part in (each for each in system.catalog.parts.values() if each.kind == "ssd"):
        gen, lanes, rate = part.number("pcie.gen"), part.number("pcie.lanes"), part.number(key)
        if gen and lanes and rate:
            shares.append(rate / packets.raw_rate(round(gen), round(lanes)))
    return (statistics.median(shares), len(shares)) if shares else (None, 0)
