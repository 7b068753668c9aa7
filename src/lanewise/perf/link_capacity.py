"""The capacity of a link in one direction: PCIe, NVLink, Infinity Fabric, network, or between sockets."""

from __future__ import annotations

from dataclasses import replace

from lanewise.catalog.typical import completed
from lanewise.perf import packets
from lanewise.perf.known_parts import is_of_amd, link_with_speed
from lanewise.perf.resources import UNKNOWN_LINK, Resource, cite, on_link
from lanewise.perf.socket_links import socket_direction
from lanewise.perf.uncertainty import RANGES, figure_range
from lanewise.routes.model import Hop
from lanewise.topology.model import Kind, LinkKind, System
from lanewise.units import show

# An InfiniBand data packet of 4,096 B carries LRH 8, BTH 12, RETH 16, ICRC 4 and VCRC 2 bytes beside its payload
# (InfiniBand Architecture Specification, vol. 1, ch. 5-9).
NETWORK_SHARE = 4096 / (4096 + 42)
# A RoCEv2 packet of Ethernet carries preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4 and a gap of 12
# bytes beside its payload (IEEE 802.3; InfiniBand Architecture Specification, annex A17). Its payload is the largest
# power of two that the port's MTU holds: 1,024 B at Ethernet's 1,500 B, 4,096 B at 4,200 B and more, as fabrics of 200
# Gb/s and more are set (92.6 Gb/s of 100 on l40s-cx6dx-pair, 392.6 of 400 on h100-roce-acs).
_ETHERNET_OVERHEAD, _SMALL_PAYLOAD, _LARGE_PAYLOAD, _FASTEST_OF_SMALL = 82, 1024, 4096, 12.5e9
# Median share of the raw rate that copies over all NVLinks of a GPU reach (published: H100 SXM 0.84 to V100 0.96), for
# links of a family that nobody measured.
NVLINK_SHARE = 0.90
# A copy by one DMA engine of an AMD GPU fills one Infinity Fabric link and a quarter of a second one: about 60 GB/s
# over the two links of a pair of MI300A, where several engines get 90 (ROCm/legacy-rocm-build issue 3496).
DMA_ENGINE_LINKS = 1.25
DMA_ENGINE_DOUBT = "one DMA engine does not fill several Infinity Fabric links: HSA_ENABLE_SDMA=0 copies by a kernel"
SLOWEST_SLOT, NEWEST_SLOT = (3, 4), (6, 16)  # generation and lanes
SLOWEST_NETWORK, FASTEST_NETWORK = 1.25e9, 100e9  # B/s: 10GbE and 800 Gb/s
NETWORK_DOUBT = "the rate of {} is not known: see ethtool or ibstat, or lanewise measure network"
SPEED_DOUBT = "the speed of link {} is not known: see LnkSta of lspci -vv while it is busy, or lanewise measure gpu"


def link_resource(system: System, hop: Hop) -> Resource | None:
    """The capacity of a link in the direction of `hop`, None where neither description nor part states a rate."""
    makers = {
        LinkKind.PCIE: _pcie, LinkKind.FABRIC: _pcie, LinkKind.SOCKET: socket_direction,
        LinkKind.NVLINK: _nvlink, LinkKind.NETWORK: _network,
    }  # fmt: skip
    return makers[hop.link.kind](system, hop)


def _pcie(system: System, hop: Hop) -> Resource | None:
    link = hop.link
    if link.rate is not None:
        return on_link(hop, "stated rate", link.rate * packets.PACKET_SHARE, "physics", "the description")
    if link.gen is not None and link.lanes is not None:
        capacity = packets.raw_rate(link.gen, link.lanes) * packets.PACKET_SHARE
        return on_link(hop, f"Gen{link.gen} x{link.lanes}", capacity, "physics", "PCIe base specification")
    return _of_unknown_speed(system, hop)


def _of_unknown_speed(system: System, hop: Hop) -> Resource:
    """A PCIe link whose speed nobody knows: from the slowest slots in use to what its ends can do.

    Of kind UNKNOWN_LINK where the ends are not known either, so that nothing tells the rate.
    """
    link, slow, fast = (link_with_speed(system, hop.link, bound) for bound in ("nominal", "low", "high"))
    is_known = link.gen is not None and link.lanes is not None
    gen, lanes = link.gen or NEWEST_SLOT[0], link.lanes or NEWEST_SLOT[1]
    fast_gen, fast_lanes = fast.gen or gen, fast.lanes or lanes
    slow_gen = hop.link.gen or min(slow.gen or gen, SLOWEST_SLOT[0])
    slow_lanes = hop.link.lanes or min(slow.lanes or lanes, SLOWEST_SLOT[1])
    label = f"of unknown speed, at most Gen{fast_gen} x{fast_lanes}" if is_known else "of unknown speed"
    rests = "what its ends can do" if is_known else "the slowest and the fastest slots in use"
    low, capacity, high = (packets.raw_rate(*speed) * packets.PACKET_SHARE
                           for speed in ((slow_gen, slow_lanes), (gen, lanes), (fast_gen, fast_lanes)))  # fmt: skip
    resource = on_link(hop, label, capacity, "typical", rests, SPEED_DOUBT.format(link.name))
    kind, (least, most) = resource.kind if is_known else UNKNOWN_LINK, RANGES["physics"]
    return replace(resource, low=min(low, capacity) * least, high=high * most, kind=kind)


def _nvlink(system: System, hop: Hop) -> Resource | None:
    """NVLinks of one direction; where nobody knows their number all that the GPU has, and perhaps one of them."""
    all_links = _all_nvlinks(system, hop)
    if all_links is None or hop.link.count_known or hop.link.rate is not None:
        return all_links
    doubt = f"the number of NVLinks of {hop.link.name} is unknown: state it (nvidia-smi topo -m prints NV#)"
    return replace(all_links, low=all_links.low / hop.link.count, doubt=doubt)


def _all_nvlinks(system: System, hop: Hop) -> Resource | None:
    if hop.link.rate is not None:
        rests = f"the description, times {NVLINK_SHARE} (median of the GPUs measured)"
        return on_link(hop, "stated rate", hop.link.rate * NVLINK_SHARE, "physics", rests)
    gpu = hop.start if system.device(hop.start).kind is Kind.GPU else hop.end
    part = system.part(gpu)
    if part is None:
        return None
    other = hop.end if gpu == hop.start else hop.start
    stem, key, word = "nvlink", "engine.nvlink", "NVLink"
    if system.device(other).kind is Kind.CPU and part.figure("c2c.links").known:
        stem, key, word = "c2c", f"engine.c2c_{'d2h' if gpu == hop.start else 'h2d'}", "NVLink-C2C"
    engine, links = part.figure(key), part.number(f"{stem}.links")
    label = f"{word} x{hop.link.count if hop.link.count_known else '?'}"
    if isinstance(engine.value, float) and links:
        fraction = hop.link.count / links
        rests = cite(part, key, engine) + ("" if fraction == 1 else f", times {hop.link.count} of {links:.0f} links")
        capacity, within = engine.value * fraction, figure_range(engine)
        return on_link(hop, label, capacity, engine.basis, rests).within(within)
    if not isinstance(name := part.figure(f"{stem}.part").value, str):
        return None
    generation = completed(system.catalog, system.catalog.get(name))
    goodput = generation.figure("nvlink.goodput")
    if isinstance(goodput.value, float):
        rests, within = cite(generation, "nvlink.goodput", goodput), figure_range(goodput)
        one = on_link(hop, label, goodput.value, goodput.basis, rests).within(within)
        return _by_one_engine(one, hop.link.count) if is_of_amd(generation) else _times(one, hop.link.count)
    raw = generation.figure("nvlink.link_rate")
    if not isinstance(raw.value, float):
        return None
    rate = raw.value * hop.link.count * NVLINK_SHARE
    rests = f"{cite(generation, 'nvlink.link_rate', raw)}, times {NVLINK_SHARE} (median of the GPUs measured)"
    return on_link(hop, label, rate, "typical", rests)


def _times(one: Resource, count: float) -> Resource:
    return replace(one, capacity=one.capacity * count, low=one.low * count, high=one.high * count)


def _by_one_engine(one: Resource, count: int) -> Resource:
    """Several Infinity Fabric links as one DMA engine fills them; a kernel fills them all."""
    filled = _times(one, min(count, DMA_ENGINE_LINKS))
    return replace(filled, low=one.low, high=one.high * count, doubt=DMA_ENGINE_DOUBT if count > 1 else "")


def _network(system: System, hop: Hop) -> Resource:
    rate = hop.link.rate
    if rate is not None:
        line = on_link(hop, show(rate, "GB/s"), rate, "physics", "the description's data rate")
        return _as_packets(system, hop, line)
    for end in (hop.start, hop.end):
        part = system.part(end)
        if part is not None and part.kind == "nic":
            figure = part.figure("net.rate")
            if isinstance(figure.value, float):
                line = on_link(hop, "network", figure.value, figure.basis, cite(part, "net.rate", figure))
                return _as_packets(system, hop, line.within(figure_range(figure)))
    low, high = SLOWEST_NETWORK * NETWORK_SHARE, FASTEST_NETWORK * NETWORK_SHARE
    doubt = NETWORK_DOUBT.format(hop.link.name)
    resource = on_link(hop, "of unknown rate", high, "typical", "the slowest and the fastest networks in use", doubt)
    return replace(resource, low=low, high=high, kind=UNKNOWN_LINK)


def _as_packets(system: System, hop: Hop, line: Resource) -> Resource:
    """The payload that a line carries: in packets of InfiniBand, or of RoCE where it or a card is of Ethernet."""
    parts = (system.part(end) for end in (hop.start, hop.end))
    cards = any(part is not None and part.kind == "nic" and part.text("net.kind") == "ethernet" for part in parts)
    if not cards and not hop.link.ethernet:
        return _times(line, NETWORK_SHARE)
    small, large = (payload / (payload + _ETHERNET_OVERHEAD) for payload in (_SMALL_PAYLOAD, _LARGE_PAYLOAD))
    share = small if line.capacity <= _FASTEST_OF_SMALL else large
    return replace(line, capacity=line.capacity * share, low=line.low * small, high=line.high * large)
