"""A route: the links that one flow crosses, in order, with its class and whether it is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lanewise.topology.model import Link, LinkKind


class Via(StrEnum):
    """How the data travels."""

    PCIE = "pcie"
    NVLINK = "nvlink"
    STAGED = "staged"
    NETWORK = "network"
    LOCAL = "local"


class LinkDirection(NamedTuple):
    """One direction of a link; `port` tells links of a CPU to the same device apart by their root port, else ''."""

    start: str
    end: str
    port: str
    kind: LinkKind


@dataclass(frozen=True, slots=True)
class Hop:
    """One link crossed from `start` to `end`: `down` from the link's end `a` (for PCIe the upstream one) to `b`."""

    link: Link
    down: bool

    @property
    def start(self) -> str:
        """The device the data leaves."""
        return self.link.a if self.down else self.link.b

    @property
    def end(self) -> str:
        """The device the data enters."""
        return self.link.b if self.down else self.link.a

    @property
    def direction(self) -> LinkDirection:
        """What two routes share when they share this link in this direction."""
        return LinkDirection(self.start, self.end, self.link.port, self.link.kind)

    @property
    def reverse(self) -> Hop:
        """The same link crossed in the opposite direction."""
        return Hop(self.link, down=not self.down)


@dataclass(frozen=True, slots=True)
class Route:
    """A route from `src` to `dst`: `cls` is PIX, PXB, PHB, NODE, SYS, NV#, NET or LOC, as nvidia-smi says.

    The class is that of the links crossed. A staged route has `stages` (its copies through host memory, one
    after the other), the hops of all of them, and the class of the direct route that it replaces. `reason`
    says what forbids a route that is not `allowed`; `note` why an allowed one takes this path. `memory_node` is the
    NUMA node of host memory that a flow names (host0:1), None for that of the device at the other end.
    """

    src: str
    dst: str
    via: Via
    cls: str
    hops: tuple[Hop, ...]
    allowed: bool = True
    reason: str = ""
    stages: tuple[Route, ...] = ()
    note: str = ""
    memory_node: int | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every device on the route, ends included."""
        return (self.src, *(hop.end for hop in self.hops)) if self.hops else (self.src,)

    def show(self) -> str:
        """The devices in order, for people; brackets mark host memory that a staged copy stops in."""
        stops = {stage.dst for stage in self.stages[:-1]}
        return " - ".join(f"[{name}]" if name in stops else name for name in self.nodes)


def reversed_hops(hops: tuple[Hop, ...]) -> tuple[Hop, ...]:
    """The same links from the other end, in the opposite direction."""
    return tuple(hop.reverse for hop in reversed(hops))
