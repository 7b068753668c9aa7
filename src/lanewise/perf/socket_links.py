"""The rate of inter-socket links: what one carries of data, how many join two sockets, all traffic of a direction."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

from lanewise.catalog import Figure, Part
from lanewise.perf.known_parts import part_of
from lanewise.perf.resources import Resource, cite, on_link
from lanewise.perf.uncertainty import figure_range, product, widest
from lanewise.routes.model import Hop
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import System

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
    "the link between the sockets is not known: name the CPUs, write rate: at that link, or measure a copy from the "
    "far socket's memory"
)


def socket_direction(system: System, hop: Hop) -> Resource | None:
    """All traffic of one direction: measured, else as many links as there are times the rate of one."""
    part = part_of(system, hop.start)
    if part is None:
        return None
    kind, rate = part.text("intersocket.kind") or "inter-socket", part.figure("intersocket.rate")
    if isinstance(rate.value, float):
        rests = cite(part, "intersocket.rate", rate)
        return on_link(hop, kind, rate.value, rate.basis, rests).within(figure_range(rate))
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
        resource = on_link(hop, "one link", measured.value, measured.basis,
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
    resource = on_link(hop, "one link", raw.value * nominal, "typical", rests, doubt).within(factors)
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
