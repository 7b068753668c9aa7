"""What flows compete for: each link direction, engine, window, drive and memory as one capacity with its source."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from lanewise.catalog import Figure, Part
from lanewise.catalog.keys import GENERATIONS
from lanewise.catalog.typical import completed
from lanewise.perf import packets
from lanewise.perf.known_parts import link_with_speed, part_of
from lanewise.perf.uncertainty import CARRIED_OVER, RANGES, Bound, Range, figure_range, product, widest
from lanewise.routes.model import Hop, LinkDirection
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import Kind, Link, LinkKind, System
from lanewise.units import readable, show

# An InfiniBand data packet of 4,096 B carries LRH 8, BTH 12, RETH 16, ICRC 4 and VCRC 2 bytes beside its payload
# (InfiniBand Architecture Specification, vol. 1, ch. 5-9).
NETWORK_SHARE = 4096 / (4096 + 42)
# Median share of the raw rate that copies over all NVLinks of a GPU reach (published: H100 SXM 0.84 to V100 0.96), for
# links of a family that nobody measured.
NVLINK_SHARE = 0.90
# A copy by one DMA engine of an AMD GPU fills one Infinity Fabric link and a quarter of a second one: about 60 GB/s
# over the two links of a pair of MI300A, where several engines get 90 (ROCm/legacy-rocm-build issue 3496).
DMA_ENGINE_LINKS = 1.25
ENGINE_DOUBT = "no copy-engine figure known: a ceiling, CUDA copies reach 84 to 87 % of it"
DMA_ENGINE_DOUBT = "one DMA engine does not fill several Infinity Fabric links: HSA_ENABLE_SDMA=0 copies by a kernel"
# Share of the raw rate of an inter-socket link that carries data: least, typical, most. UPI: GPUs get 0.42 (two H100
# read the far memory of an Ice Lake), 0.43 or more (one H100 on Sapphire Rapids), 0.38 and both ways 0.32 (four B300 of
# each Xeon 6767P), so the typical one is that of the CPUs that were measured (_socket_share). Cores get 0.82: Intel's
# MLC reads 50.9 GB/s from the far socket of two Xeon Platinum 8269 over three links of 20.8 (public notes). QPI is
# taken to be alike. xGMI: the measurements named in perf/sockets.py. POWER9: unknown.
SOCKET_SHARE = {"qpi": (0.31, 0.40, 0.82), "upi": (0.31, 0.40, 0.82), "xgmi": (0.57, 0.70, 0.87),
                "xbus": (0.50, 0.75, 0.89)}  # fmt: skip
# Width and speed of xGMI links are settings: 36.8 to 55.6 GB/s on links of 64. The range has the least share, too.
SOCKET_SETTINGS = (0.65, 1.50)
SOCKET_DOUBT = (
    "the link between the sockets is not known: name the CPUs, or measure a copy from the far socket's memory"
)
# A link of which neither the speed nor its ends are known, and a network of unknown rate.
UNKNOWN_LINK = "unknown_link"
# Read requests on a link: they pass between the data, so a full link does not hold the reads to the rate of its data.
REQUESTS = "requests"
SLOWEST_SLOT, NEWEST_SLOT = (3, 4), (6, 16)  # generation and lanes
SLOWEST_NETWORK, FASTEST_NETWORK = 1.25e9, 100e9  # B/s: 10GbE and 800 Gb/s
UNKNOWN_END = "unknown_end"  # the kind of a drive or card of unknown rate
NO_RATE = "no figure for the rate of the drive"  # what doubts of ends of unknown rate begin with
END_DOUBT = f"{NO_RATE} or card known: a ceiling of the links"
# By the figure that a drive or card of unknown rate does not state: what would tell its rate.
WHY_UNKNOWN = {
    "read.rate": "read rate of {} unknown: name its part, state read.rate, or run lanewise measure storage",
    "write.rate": "write rate of {} unknown: name its part, state write.rate, or run lanewise measure storage",
    "": "network rate of {} unknown: name its part, state net.rate, or run lanewise measure network",
}
NETWORK_DOUBT = "the rate of {} is not known: see ethtool or ibstat, or lanewise measure network"
SPEED_DOUBT = "the speed of link {} is not known: see LnkSta of lspci -vv while it is busy, or lanewise measure gpu"

BASIS_ORDER = ("physics", "calibrated", "typical", "planning", "fitted")
# Kinds of resource as they are printed, copy engines first.
_ENGINES = {
    "h2d": "copy engine (host to device)", "d2h": "copy engine (device to host)",
    "p2p_write": "copy engine (peer write)", "p2p_read": "copy engine (peer read)",
}  # fmt: skip
LABELS = {
    **_ENGINES, "drive_reads": "drive reads", "drive_writes": "drive writes", "raid_controller": "RAID controller",
    "memory": "memory", "ports_in": "network ports (in)", "ports_out": "network ports (out)",
    "peer_root_port": "peer writes through the root complex", "peers_both_ways": "peers both ways",
    "peer_socket": "peer writes between sockets",
    "host_link": "reads over the host link", "host_bridge": "host bridge", "far_memory": "memory of the far socket",
}  # fmt: skip
# The figures engine.<name>.gen<n> of an engine; the second is used where a part does not state the first.
_ENGINE_FIGURES = {"p2p_write": ("p2p_write", "d2h"), "p2p_read": ("p2p_read", "h2d")}


@dataclass(frozen=True, slots=True)
class Resource:
    """A capacity that flows share: `capacity` in B/s, or in B for a window (then a byte's demand is in s).

    `kind` (a code: "link", "h2d", "memory", ...) and `place` (a device; the direction of a link) make two of them the
    same one; `name` is printed. `low` and `high` are the range of its capacity, by default that of its basis. `basis`
    is one of catalog.BASES; `rests_on` says what it comes from, `doubt` what a reader must know before trusting it.
    """

    kind: str
    place: tuple[str, ...]
    name: str = field(compare=False)
    capacity: float = field(compare=False)
    basis: str = field(compare=False)
    rests_on: str = field(compare=False)
    doubt: str = field(default="", compare=False)
    low: float = field(default=math.nan, compare=False)
    high: float = field(default=math.nan, compare=False)
    beside: bool = field(default=False, compare=False)  # what traffic the other way leaves of it

    def __post_init__(self) -> None:
        if math.isnan(self.low) or math.isnan(self.high):
            low, high = RANGES[self.basis]
            object.__setattr__(self, "low", self.capacity * low)
            object.__setattr__(self, "high", self.capacity * high)

    @property
    def factors(self) -> Range:
        """Its range as factors of the capacity."""
        return self.low / self.capacity, self.high / self.capacity

    def within(self, factors: Range) -> Resource:
        """The same with `low` and `high` as these factors of the capacity."""
        low, high = self.capacity * factors[0], self.capacity * factors[1]
        # dataclasses.replace takes three times as long, and this is called for nearly every resource.
        return Resource(
            self.kind, self.place, self.name, self.capacity, self.basis, self.rests_on, self.doubt,
            low, high, self.beside,
        )  # fmt: skip

    def of_kind(self, kind: str) -> Resource:
        """The same of another kind."""
        return Resource(
            kind, self.place, self.name, self.capacity, self.basis, self.rests_on, self.doubt, self.low, self.high,
            self.beside,
        )  # fmt: skip

    def with_capacity(self, capacity: float) -> Resource:
        """The same with another capacity; the ends of its range stay."""
        return Resource(
            self.kind, self.place, self.name, capacity, self.basis, self.rests_on, self.doubt, self.low, self.high,
            self.beside,
        )  # fmt: skip

    @property
    def link(self) -> LinkDirection | None:
        """The direction of a link that this is the capacity of, if it is one."""
        return self.place if isinstance(self.place, LinkDirection) and self.kind == "link" else None

    def at(self, bound: Bound) -> float:
        """Its capacity, nominal or at an end of its range."""
        return {"low": self.low, "nominal": self.capacity, "high": self.high}[bound]

    @property
    def is_engine(self) -> bool:
        """Whether it is a copy engine of a GPU."""
        return self.kind in _ENGINES


def weakest(bases: list[str]) -> str:
    """The weakest of several bases: fitted before calibrated before physics."""
    return max(bases, key=BASIS_ORDER.index, default="physics")


def cite(part: Part, key: str, figure: Figure) -> str:
    """One line that says where a figure comes from."""
    return _cited(part.name, key, figure)


@lru_cache(maxsize=4096)
def _cited(name: str, key: str, figure: Figure) -> str:
    words = [f"carried over from {figure.carried_from}" if figure.carried_from else "", figure.condition]
    condition = "".join(f", {text}" for text in words if text)
    value = figure.value if isinstance(figure.value, str) else readable(figure.value, figure.unit)
    return f"{name} {key} = {value}{condition} ({figure.source})"


def link_resource(system: System, hop: Hop) -> Resource | None:
    """The capacity of a link in the direction of `hop`, None where neither description nor part states a rate."""
    makers = {
        LinkKind.PCIE: _pcie, LinkKind.FABRIC: _pcie, LinkKind.SOCKET: _socket,
        LinkKind.NVLINK: _nvlink, LinkKind.NETWORK: _network,
    }  # fmt: skip
    return makers[hop.link.kind](system, hop)


def _pcie(system: System, hop: Hop) -> Resource | None:
    link = hop.link
    if link.rate is not None:
        return _on_link(hop, "stated rate", link.rate * packets.PACKET_SHARE, "physics", "the description")
    if link.gen is not None and link.lanes is not None:
        capacity = packets.raw_rate(link.gen, link.lanes) * packets.PACKET_SHARE
        return _on_link(hop, f"Gen{link.gen} x{link.lanes}", capacity, "physics", "PCIe base specification")
    return _of_unknown_speed(system, hop)


def _of_unknown_speed(system: System, hop: Hop) -> Resource:
    """A PCIe link whose speed nobody knows: from the slowest slots in use to what its ends can do.

    Of kind UNKNOWN_LINK where the ends are not known either, so that nothing tells the rate.
    """
    link, least, most = (link_with_speed(system, hop.link, bound) for bound in ("nominal", "low", "high"))
    is_known = link.gen is not None and link.lanes is not None
    gen, lanes = link.gen or NEWEST_SLOT[0], link.lanes or NEWEST_SLOT[1]
    fast_gen, fast_lanes = most.gen or gen, most.lanes or lanes
    slow_gen = hop.link.gen or min(least.gen or gen, SLOWEST_SLOT[0])
    slow_lanes = hop.link.lanes or min(least.lanes or lanes, SLOWEST_SLOT[1])
    label = f"of unknown speed, at most Gen{fast_gen} x{fast_lanes}" if is_known else "of unknown speed"
    rests = "what its ends can do" if is_known else "the slowest and the fastest slots in use"
    low, capacity, high = (packets.raw_rate(*speed) * packets.PACKET_SHARE
                           for speed in ((slow_gen, slow_lanes), (gen, lanes), (fast_gen, fast_lanes)))  # fmt: skip
    resource = _on_link(hop, label, capacity, "typical", rests, SPEED_DOUBT.format(link.name))
    kind = resource.kind if is_known else UNKNOWN_LINK
    return replace(resource, low=min(low, capacity), high=high, kind=kind)


def _socket(system: System, hop: Hop) -> Resource | None:
    """All traffic of one direction: measured, else as many links as there are times the rate of one."""
    part = part_of(system, hop.start)
    if part is None:
        return None
    kind, rate = part.text("intersocket.kind") or "inter-socket", part.figure("intersocket.rate")
    if isinstance(rate.value, float):
        rests = cite(part, "intersocket.rate", rate)
        return _on_link(hop, kind, rate.value, rate.basis, rests).within(figure_range(rate))
    one = socket_link(system, part, hop)
    if one is None:
        return None
    count = socket_links(part, hop)
    if not hop.link.count_known:
        most, doubt = round(part.number("intersocket.links") or 1), "the number of inter-socket links is unknown"
        return replace(one, name=f"link {hop.start}->{hop.end} ({kind} x?)", capacity=one.capacity * count,
                       low=one.low, high=one.high * most, doubt=doubt)  # fmt: skip
    name = f"link {hop.start}->{hop.end} ({kind} x{count})"
    return replace(one, name=name, capacity=one.capacity * count, low=one.low * count, high=one.high * count)


def socket_links(part: Part, hop: Hop) -> int:
    """How many links join two sockets; where nobody knows, one xGMI link fewer than the CPU has.

    GPU servers take the lanes of one or two of the four for PCIe: three in AMD's MI100 node (ROCm documentation) and on
    ASUS K15PG-D24, two on ASRock Rack TURIN2D24G-2L+ (github.com/voipmonitor/rtx6kpro, hardware/gpu-configs.md).
    """
    if hop.link.count_known:
        return hop.link.count
    most = round(part.number("intersocket.links") or 1)
    return most if part.text("intersocket.kind") in ("upi", "qpi", "xbus") else max(1, most - 1)


def socket_link(system: System, part: Part, hop: Hop) -> Resource | None:
    """The data that one inter-socket link of a CPU carries in the direction of `hop`, None if unknown."""
    measured, raw = part.figure("intersocket.link_rate"), part.figure("intersocket.raw")
    stated = hop.link.rate / socket_links(part, hop) if hop.link.rate is not None else None  # raw, of one link
    kind = part.text("intersocket.kind") or "xgmi"
    if isinstance(measured.value, float) and measured.basis != "typical" and stated in (None, raw.value):
        resource = _on_link(hop, "one link", measured.value, measured.basis,
                            cite(part, "intersocket.link_rate", measured))  # fmt: skip
        least = SOCKET_SHARE[kind][0] * raw.value if kind in SOCKET_SHARE and isinstance(raw.value, float) else math.inf
        settings = widest([SOCKET_SETTINGS, (least / measured.value, 1.0)])
        return resource.within(widest([figure_range(measured), *([] if stated else [settings])]))
    raw = raw if stated is None else Figure(stated, "B/s", "the description", basis="physics")
    if not isinstance(raw.value, float) or kind not in SOCKET_SHARE:
        return None
    low, nominal, high = _socket_share(system, kind)
    factors = (low / nominal, high / nominal)
    doubt = ""
    if raw.basis == "typical":  # neither the kind of the link nor its rate is known, nor its settings
        factors, doubt = product(factors, product(figure_range(raw), (SOCKET_SETTINGS[0], 1.0))), SOCKET_DOUBT
    rests = f"{cite(part, 'intersocket.raw', raw)}, times {nominal:.2g} (measured on other CPUs, {low} to {high})"
    resource = _on_link(hop, "one link", raw.value * nominal, "typical", rests, doubt).within(factors)
    if stated is not None or not isinstance(measured.value, float):
        return resource
    # Of a CPU that is not named: what such links were measured to carry, within the range of what its links may be.
    capacity = min(max(measured.value, resource.low), resource.high)
    return replace(resource, capacity=capacity, rests_on=cite(part, "intersocket.link_rate", measured))


@memoized_by_figures
def _socket_share(system: System, kind: str) -> tuple[float, float, float]:
    """Least, typical and most of its raw rate that a link carries of `kind`; of Intel's the median of CPUs measured."""
    low, nominal, high = SOCKET_SHARE[kind]
    if kind not in ("upi", "qpi"):
        return low, nominal, high
    cpus = [part for part in system.catalog.parts.values() if part.kind == "cpu"]
    over_upi = [part for part in cpus if part.text("intersocket.kind") == "upi"]
    rates = [(part.number("intersocket.link_rate"), part.number("intersocket.raw")) for part in over_upi]
    shares = {rate / raw for rate, raw in rates if rate and raw}  # inherited ones once
    return low, statistics.median(shares or [nominal]), high


def _nvlink(system: System, hop: Hop) -> Resource | None:
    if hop.link.rate is not None:
        rests = f"the description, times {NVLINK_SHARE} (median of the GPUs measured)"
        return _on_link(hop, "stated rate", hop.link.rate * NVLINK_SHARE, "physics", rests)
    gpu = hop.start if system.device(hop.start).kind is Kind.GPU else hop.end
    part = system.part(gpu)
    if part is None:
        return None
    other = hop.end if gpu == hop.start else hop.start
    stem, key, word = "nvlink", "engine.nvlink", "NVLink"
    if system.device(other).kind is Kind.CPU and part.figure("c2c.links").known:
        stem, key, word = "c2c", f"engine.c2c_{'d2h' if gpu == hop.start else 'h2d'}", "NVLink-C2C"
    engine, links = part.figure(key), part.number(f"{stem}.links")
    label = f"{word} x{hop.link.count}"
    if isinstance(engine.value, float) and links:
        fraction = hop.link.count / links
        rests = cite(part, key, engine) + ("" if fraction == 1 else f", times {hop.link.count} of {links:.0f} links")
        capacity, within = engine.value * fraction, figure_range(engine)
        return _on_link(hop, label, capacity, engine.basis, rests).within(within)
    if not isinstance(name := part.figure(f"{stem}.part").value, str):
        return None
    generation = completed(system.catalog, system.catalog.get(name))
    goodput = generation.figure("nvlink.goodput")
    if isinstance(goodput.value, float):
        rests, within = cite(generation, "nvlink.goodput", goodput), figure_range(goodput)
        one = _on_link(hop, label, goodput.value, goodput.basis, rests).within(within)
        return _by_one_engine(one, hop.link.count) if is_of_amd(generation) else _times(one, hop.link.count)
    raw = generation.figure("nvlink.link_rate")
    if not isinstance(raw.value, float):
        return None
    rate = raw.value * hop.link.count * NVLINK_SHARE
    rests = f"{cite(generation, 'nvlink.link_rate', raw)}, times {NVLINK_SHARE} (median of the GPUs measured)"
    return _on_link(hop, label, rate, "typical", rests)


def is_of_amd(part: Part) -> bool:
    """Whether AMD makes a part; one of the kind nvlink is Infinity Fabric between GPUs then."""
    return maker(part) == "AMD"


def _times(one: Resource, count: float) -> Resource:
    return replace(one, capacity=one.capacity * count, low=one.low * count, high=one.high * count)


def _by_one_engine(one: Resource, count: int) -> Resource:
    """Several Infinity Fabric links as one DMA engine fills them; a kernel fills them all."""
    filled = _times(one, min(count, DMA_ENGINE_LINKS))
    return replace(filled, low=one.low, high=one.high * count, doubt=DMA_ENGINE_DOUBT if count > 1 else "")


def _network(system: System, hop: Hop) -> Resource:
    rate = hop.link.rate
    if rate is not None:
        return _on_link(hop, show(rate, "GB/s"), rate * NETWORK_SHARE, "physics", "the description's data rate")
    for end in (hop.start, hop.end):
        part = system.part(end)
        if part is not None and part.kind == "nic":
            figure = part.figure("net.rate")
            if isinstance(figure.value, float):
                capacity, source = figure.value * NETWORK_SHARE, cite(part, "net.rate", figure)
                return _on_link(hop, "network", capacity, figure.basis, source).within(figure_range(figure))
    low, high = SLOWEST_NETWORK * NETWORK_SHARE, FASTEST_NETWORK * NETWORK_SHARE
    doubt = NETWORK_DOUBT.format(hop.link.name)
    resource = _on_link(hop, "of unknown rate", high, "typical", "the slowest and the fastest networks in use", doubt)
    return replace(resource, low=low, high=high, kind=UNKNOWN_LINK)


def _on_link(hop: Hop, label: str, capacity: float, basis: str, rests_on: str, doubt: str = "") -> Resource:
    return Resource(
        kind="link", place=hop.direction, name=f"link {hop.start}->{hop.end} ({label})",
        capacity=capacity, basis=basis, rests_on=rests_on, doubt=doubt,
    )  # fmt: skip


def figure_resource(system: System, device: str, key: str, kind: str, scale: float = 1.0) -> Resource | None:
    """The capacity that figure `key` of a device's part states, None where it is unknown."""
    part = part_of(system, device)
    figure = part.figure(key) if part is not None else None
    if part is None or figure is None or not isinstance(figure.value, float):
        return None
    return Resource(
        kind=kind, place=(device,), name=f"{LABELS[kind]} of {device}", capacity=figure.value * scale,
        basis=figure.basis, rests_on=cite(part, key, figure),
    ).within(figure_range(figure))  # fmt: skip


def figure_demand(
    system: System, device: str, key: str, kind: str, scale: float = 1.0
) -> Iterator[tuple[Resource, float]]:
    """A byte of the capacity that figure `key` of a device's part states; nothing where it is unknown."""
    resource = figure_resource(system, device, key, kind, scale)
    if resource is not None:
        yield resource, 1.0


def engine_demand(system: System, device: str, kind: str, link: Link) -> tuple[Resource, float] | None:
    """A GPU's engine (h2d, d2h, p2p_write, p2p_read), and what a byte takes of it on a path as fast as link.

    The engine's capacity is its figure of the newest generation; a byte over a slower path holds it longer. A figure of
    another generation is scaled by the ratio of raw rates: an engine that keeps 80 % of a Gen4 link busy is taken to
    keep 80 % of a Gen3 link busy. Peer writes leave through the engine that writes to the host, and peer reads through
    the one that reads it, so those figures are taken. None where the part states none.
    """
    part = part_of(system, device)
    if part is None or part.kind != "gpu" or link.gen is None or link.lanes is None:
        return None
    for name in _ENGINE_FIGURES.get(kind, (kind,)):
        figures = {gen: key for gen in GENERATIONS if part.figure(key := f"engine.{name}.gen{gen}").known}
        if figures:
            engine, amount = _engine(part, device, kind, figures, (link.gen, link.lanes))
            return engine if name == kind else engine.within(_stand_in(system, part, kind, engine)), amount
    return None


def _stand_in(system: System, part: Part, kind: str, engine: Resource) -> Range:
    """How far copies with peers are from those with the host; a typical figure of these is unknown in two ways."""
    same = (each for each in system.catalog.parts.values() if each.kind == "gpu" and maker(each) == maker(part))
    measured = any(each.figure(f"engine.{kind}.gen{gen}").known for each in same for gen in GENERATIONS)
    own = RANGES[CARRIED_OVER if measured else "planning"]
    return product(engine.factors, own) if engine.basis == "typical" else widest([engine.factors, own])


def maker(part: Part) -> str:
    """The first word of its title."""
    return part.title.partition(" ")[0]


def _engine(
    part: Part, device: str, kind: str, figures: dict[int, str], speed: tuple[int, int]
) -> tuple[Resource, float]:
    best = part.number(figures[max(figures)]) or 0.0
    gen = min(figures, key=lambda generation: (abs(generation - speed[0]), -generation))
    figure = part.figure(figures[gen])
    scale = packets.raw_rate(*speed) / packets.raw_rate(gen, 16)
    rests = cite(part, figures[gen], figure)
    if scale != 1:
        rests += f", scaled by {scale:.3g} to Gen{speed[0]} x{speed[1]}"
    basis = weakest([figure.basis, "physics" if scale == 1 else "calibrated"])
    resource = Resource(
        kind=kind, place=(device,), name=f"{LABELS[kind]} of {device}", capacity=best, basis=basis, rests_on=rests
    ).within(widest([figure_range(figure), *([] if scale == 1 else [RANGES[CARRIED_OVER]])]))
    return resource, best / ((part.number(figures[gen]) or best) * scale)
