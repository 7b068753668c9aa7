"""What flows compete for: each link direction, engine, window, drive and memory as one capacity with its source."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from lanewise.catalog import Figure, Part
from lanewise.perf.known_parts import part_of
from lanewise.perf.uncertainty import RANGES, Bound, Range, figure_range
from lanewise.routes.model import Hop, LinkDirection
from lanewise.topology.model import System
from lanewise.units import readable

# A link of which neither the speed nor its ends are known, and a network of unknown rate.
UNKNOWN_LINK = "unknown_link"
# Read requests on a link: they pass between the data, so a full link does not hold the reads to the rate of its data.
REQUESTS = "requests"
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


def on_link(hop: Hop, label: str, capacity: float, basis: str, rests_on: str, doubt: str = "") -> Resource:
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


def summed(amounts: Iterable[tuple[Resource, float]]) -> dict[Resource, float]:
    """The amounts of each resource added up, in the order in which the resources come."""
    total: dict[Resource, float] = defaultdict(float)  # a link direction or a device has one entry, whoever made it
    for resource, amount in amounts:
        total[resource] += amount
    return dict(total)
