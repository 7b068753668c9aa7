"""Drives and cards at the ends of a route: their rates, or what drives of unknown rate make of their slots.

A data sheet states what a drive's largest model reads, and what it writes into flash that is erased. Both are shares of
the raw rate of its link: of 44 drives reads are 0.88 in the median, of 41 writes 0.63. A drive of which nothing
is known has these medians; a card has what its link carries, as nothing says more of it.

A host with two sockets, or whose CPU could have a second one, has drives for data centres. Their data sheets state what
they write for good, those of client drives what goes into a cache of one bit a cell (TechPowerUp and ServeTheHome,
below). So of these 20 write 0.50 of their link in the median: 0.76, 0.50 and 0.42 of Gen3, Gen4 and Gen5, whose flash
fell behind the links. Of them those of the generation that is nearest to the slot's count; reads are 0.83 to 0.88.
Where nobody knows the generation of the slot either, it may be older than the newest that its ends can do: what counts
is the median rate of such drives of that generation and of older ones, 6.45 and 3.65 GB/s in a slot of four lanes.

The low end of reads is that of every unknown figure (a slower drive may be in the slot). That of writes is lower: after
its cache a client drive on Gen5 x4 writes 1.4 GB/s (TechPowerUp, Corsair MP700 ELITE 2 TB, page 6), 0.09 of the slot,
and the models below 1 TB of a data centre drive on Gen4 x4 write 0.7 to 1.4 (ServeTheHome, Micron 7450), again 0.09.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from lanewise.perf import packets
from lanewise.perf.known_parts import link_with_speed
from lanewise.perf.link_capacity import NETWORK_SHARE, link_resource
from lanewise.perf.resources import UNKNOWN_LINK, Resource, figure_demand
from lanewise.perf.uncertainty import RANGES, UNKNOWN
from lanewise.routes.model import Hop, Route
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import Kind, LinkKind, System

UNKNOWN_END = "unknown_end"  # the kind of a drive or card of unknown rate
NO_RATE = "no figure for the rate of the drive"  # what doubts of ends of unknown rate begin with
END_DOUBT = f"{NO_RATE} or card known: a ceiling of the links"
# By the figure that a drive or card of unknown rate does not state: what would tell its rate.
WHY_UNKNOWN = {
    "read.rate": "read rate of {} unknown: name its part, state read.rate, or run lanewise measure storage",
    "write.rate": "write rate of {} unknown: name its part, state write.rate, or run lanewise measure storage",
    "": "network rate of {} unknown: name its part, state net.rate, or run lanewise measure network",
}
# The series for desktops and laptops, by the titles of the catalogue; the others are for data centres.
_CLIENT = re.compile(r"\b(?:9[6-9]0|SN\d+X?|P5 Plus|T70[05]|P41|FireCuda|KC3000|XG6|PM981a?)\b")
LEAST_WRITES = 0.09  # of the raw rate of the slot, see above
_WRITES = "write.rate"
DRIVE_DOUBT = f"{NO_RATE} known: what drives do in such a slot"
WRITE_DOUBT = "a full cache or a small model writes a tenth of what the slot carries"


def end_demand(system: System, route: Route) -> Iterator[tuple[Resource, float]]:
    """What a byte takes of the drives, network ports and RAID controllers of a route."""
    first, last = route.hops[0], route.hops[-1]
    for name, hop, key, kind in (
        (route.src, first, "read.rate", "drive_reads"), (route.dst, last, "write.rate", "drive_writes")
    ):  # fmt: skip
        if system.device(name).kind in (Kind.SSD, Kind.RAID):
            yield from list(figure_demand(system, name, key, kind)) or _unknown_end(system, name, hop, key)
    # A port is full duplex: what a card sends from its host does not slow what it brings in.
    for name, hop, kind in ((route.src, first, "ports_in"), (route.dst, last, "ports_out")):
        if system.device(name).kind is Kind.NIC:
            # A card is as wide as its cables; where none is described, as one port.
            cables = sum(link.kind is LinkKind.NETWORK for link in system.links_at(name))
            known = list(figure_demand(system, name, "net.rate", kind, max(1, cables) * NETWORK_SHARE))
            yield from known or (_unknown_end(system, name, hop) if not cables else ())
    for name in route.nodes[1:-1]:
        if system.device(name).kind is Kind.RAID:
            yield from figure_demand(system, name, "read.rate", "raid_controller")


def _unknown_end(system: System, device: str, hop: Hop, key: str = "") -> Iterator[tuple[Resource, float]]:
    """A byte of a drive or card of unknown rate; `key` is the figure that a drive does not state."""
    link = link_resource(system, hop)
    if link is None or link.kind == UNKNOWN_LINK:
        return
    end = replace(link, kind=UNKNOWN_END, place=(device, key), name=f"{device}, of unknown rate", doubt=END_DOUBT)
    end = end.within(RANGES[UNKNOWN])
    share, drives = None, ""
    speed = link_with_speed(system, hop.link)
    if system.device(device).kind is Kind.SSD:
        server = _is_server(system, device)
        if hop.link.gen is not None or hop.link.rate is not None or speed.gen is None:
            share, drives = _median_share(system, key, server, speed.gen)
        else:
            share, drives = _median_rate(system, key, server, speed.gen)
    if share is not None:
        raw = end.capacity / packets.PACKET_SHARE
        least, doubt = (LEAST_WRITES * raw, f"; {WRITE_DOUBT}") if key == _WRITES else (end.low, "")
        doubt = DRIVE_DOUBT + doubt
        end = replace(
            end, capacity=share * raw, low=min(end.low, least), basis="typical", doubt=doubt,
            rests_on=f"{share:.2f} of the raw rate of its link, median of {drives} that state their {key}",
        )  # fmt: skip
    yield end, 1.0


def _is_server(system: System, device: str) -> bool:
    """Whether a drive's host has two sockets, or a CPU that could have a second one beside it."""
    cpus = system.of_kind(Kind.CPU, host=system.device(device).host)
    return len(cpus) > 1 or any((system.number(cpu, "cpu.sockets_max") or 1) > 1 for cpu in cpus)


def _drives(system: System, key: str, server: bool) -> Iterator[tuple[int, float, float]]:
    """Generation of each drive that states `key`, what its link carries and the figure; a server's are no client's."""
    for part in (each for each in system.catalog.parts.values() if each.kind == "ssd"):
        gen, lanes, rate = part.number("pcie.gen"), part.number("pcie.lanes"), part.number(key)
        if gen and lanes and rate and not (server and _CLIENT.search(part.title)):
            yield round(gen), packets.raw_rate(round(gen), round(lanes)), rate


@memoized_by_figures
def _median_share(system: System, key: str, server: bool, gen: int | None) -> tuple[float | None, str]:
    """What drives of the catalogue read or write of the raw rate of their own links: the median, and of which drives.

    Of a server's those for data centres, of the PCIe generation nearest to that of the slot.
    """
    shares: dict[int, list[float]] = defaultdict(list)
    for own, raw, rate in _drives(system, key, server):
        shares[own].append(rate / raw)
    if not shares:
        return None, ""
    nearest = min(shares, key=lambda each: (abs(each - (gen or max(shares))), -each))
    chosen = shares[nearest] if server else [share for each in shares.values() for share in each]
    drives = f"{len(chosen)} data centre drives of Gen{nearest}" if server else f"{len(chosen)} drives"
    return statistics.median(chosen), drives


@memoized_by_figures
def _median_rate(system: System, key: str, server: bool, newest: int) -> tuple[float | None, str]:
    """The same of a slot of unknown generation: the median rate a lane, as a share of the newest that it can be."""
    lane = packets.raw_rate(newest, 1)
    rates = [rate * packets.raw_rate(own, 1) / raw for own, raw, rate in _drives(system, key, server) if own <= newest]
    drives = f"{len(rates)} {'data centre ' if server else ''}drives up to Gen{newest}"
    return (statistics.median(rates) / lane, drives) if rates else (None, "")
