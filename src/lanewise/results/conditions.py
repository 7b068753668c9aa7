"""The conditions of a machine that decide what a path delivers: links, ACS, NUMA nodes, who is whose peer.

Read by discovery, judged by checking; all devices bear the names of the system (`gpu0`, `sw1`, `cpu0`).
"""

from __future__ import annotations

from dataclasses import dataclass

# What a driver says of a pair, as `nvidia-smi topo -p2p` writes it.
STATUS = {
    "OK": "peers",
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "DR": "disabled by a registry key",
    "NS": "not supported",
    "U": "unknown",
}

# Why clocks are not at their best, by the bits of nvmlClocksEventReasons (nvml.h).
CLOCK_REASONS = {
    0x1: "idle", 0x2: "clocks set by an application", 0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
    0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown", 0x80: "power brake",
    0x100: "display clocks", 0x200: "board limit", 0x400: "reliability",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LinkState:
    """The PCIe link from the `port` above (a PCI address, empty if unknown) down to a device.

    `gen` and `lanes` are the most that both ends can, `gen_now` and `lanes_now` what was trained when the dump was
    made; None is unknown. `device_gen` ... `port_lanes` say what each end can by itself. `above` is the device of the
    port. `under_load`: whether the link was busy then; None if the dump does not say (an idle GPU trains down).
    """

    device: str
    port: str
    gen: int | None
    lanes: int | None
    gen_now: int | None
    lanes_now: int | None
    under_load: bool | None
    source: str
    above: str = ""
    device_gen: int | None = None
    device_lanes: int | None = None
    port_gen: int | None = None
    port_lanes: int | None = None

    @property
    def narrow(self) -> bool:
        """Whether fewer lanes were in use than both ends have; idle links keep their width, so load does not matter."""
        return self.lanes is not None and self.lanes_now is not None and self.lanes_now < self.lanes

    @property
    def slow(self) -> bool:
        """Whether a lower generation was in use than both ends can; a fault only under load."""
        return self.gen is not None and self.gen_now is not None and self.gen_now < self.gen


@dataclass(frozen=True, slots=True)
class AcsState:
    """Whether a port's ACS redirects peer requests upstream; `device` is the switch or CPU that the port belongs to."""

    device: str
    port: str
    redirects: bool
    source: str


@dataclass(frozen=True, slots=True)
class NumaState:
    """The NUMA node that a device states, and that of the root port or host bridge above it; None is unknown."""

    device: str
    node: int | None
    root_node: int | None
    source: str

    @property
    def differs(self) -> bool:
        """Whether both are known and not the same."""
        return self.node is not None and self.root_node is not None and self.node != self.root_node


@dataclass(frozen=True, slots=True)
class PeerState:
    """What the driver says of device `a` reaching `b`: `ability` is read, write, nvlink or pci, `status` of STATUS."""

    a: str
    b: str
    ability: str
    status: str
    source: str

    @property
    def possible(self) -> bool | None:
        """Whether they are peers in this respect; None if the driver does not know."""
        return None if self.status == "U" else self.status == "OK"


@dataclass(frozen=True, slots=True)
class Throttle:
    """Why a GPU's clocks were throttled when the facts were read, in the driver's words; `idle` is no fault."""

    device: str
    reasons: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class OffBus:
    """A device whose configuration space reads all ones: it fell off the bus, or its power is off."""

    device: str
    address: str
    source: str


@dataclass(frozen=True, slots=True)
class PairState:
    """The class (PIX, PXB, PHB, NODE, SYS) of a GPU and a network card in `nvidia-smi topo -m`."""

    gpu: str
    card: str
    cls: str
    source: str


@dataclass(frozen=True, slots=True)
class MachineConditions:
    """All that dumps say of one machine, with the IOMMU's mode (off, passthrough, translate; empty: unknown).

    `under_load`: whether the machine copied while its links were read; None if nothing says so. `notes` say what the
    dumps hide.
    """

    links: tuple[LinkState, ...] = ()
    acs: tuple[AcsState, ...] = ()
    numa: tuple[NumaState, ...] = ()
    p2p: tuple[PeerState, ...] = ()
    throttles: tuple[Throttle, ...] = ()
    off_bus: tuple[OffBus, ...] = ()
    iommu: str = ""
    under_load: bool | None = None
    notes: tuple[str, ...] = ()
    pairs: tuple[PairState, ...] = ()

    def pairs_of(self, gpu: str) -> tuple[PairState, ...]:
        """The classes of a GPU and each network card, where a matrix shows them."""
        return tuple(pair for pair in self.pairs if pair.gpu == gpu)

    def link(self, device: str) -> LinkState | None:
        """The link above a device, None if no dump says anything about it."""
        return next((link for link in self.links if link.device == device), None)

    def redirecting(self, *devices: str) -> tuple[AcsState, ...]:
        """The ports of these switches and CPUs whose ACS redirects."""
        return tuple(state for state in self.acs if state.redirects and state.device in devices)

    def peers(self, a: str, b: str) -> tuple[PeerState, ...]:
        """What the driver says of `a` reaching `b`, by ability."""
        return tuple(state for state in self.p2p if (state.a, state.b) == (a, b))
