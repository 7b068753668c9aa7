"""The PCIe tree of one server of a fabric, as QEMU's emulated ports and switches, with a hot-plug slot a device."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise

from lanewise.errors import Contradiction, unknown_name
from lanewise.topology.model import Kind, System
from lanewise.topology.trees import PCIE_AND_FABRIC, Graph

EMULATED = (Kind.SSD, Kind.NIC)
_MOST_SLOTS = 200  # a guest has 256 bus numbers, of which every slot takes one


@dataclass(frozen=True, slots=True)
class EmulatedSlot:
    """The slot of a device: its number, as the guest names it, its port's name in QEMU, the switches above it."""

    number: int
    port: str
    switches: tuple[str, ...]


@dataclass(slots=True)
class EmulatedTree:
    """The options that make QEMU build a server's root ports and switches, and the slots of its devices."""

    options: list[str] = field(default_factory=list)
    slots: dict[str, EmulatedSlot] = field(default_factory=dict)


def pool_devices(system: System, hardware: Collection[str] = ()) -> tuple[str, ...]:
    """The devices that servers are given; Contradiction for a kind that is not emulated, unless it is `hardware`."""
    ends = [device for device in system.devices.values() if device.kind not in (Kind.CPU, Kind.SWITCH)]
    for device in ends:
        if device.kind not in EMULATED and device.name not in hardware:
            cause = f"'{device.name}' is a {device.kind}, which QEMU does not emulate"
            raise Contradiction(cause, location=device.location, hint="describe drives (ssd) and network cards (nic)")
    for name in sorted(set(hardware) - {device.name for device in ends}):
        raise unknown_name(f"device of {system.name}", name, [device.name for device in ends])
    return tuple(device.name for device in ends)


def emulated_tree(system: System, server: str, devices: Collection[str]) -> EmulatedTree:
    """The tree a server would see with every one of the `devices` it can reach, each by a shortest path from a CPU.

    Contradiction if the server reaches more devices than it has slots.
    """
    tree = EmulatedTree()
    parents: dict[str, str] = {}
    number = 0
    for path in sorted(_paths(system, server, devices), key=len):
        for parent, name in pairwise(path):
            if name not in parents:
                number += 1
                parents[name] = parent
                _add(tree, system, parents, name, number)
    if len(tree.slots) > _MOST_SLOTS:
        cause = f"{server} reaches {len(tree.slots)} devices; an emulated server has {_MOST_SLOTS} slots"
        raise Contradiction(cause, hint="describe fewer devices, or fewer links to this server")
    return tree


def _paths(system: System, server: str, devices: Collection[str]) -> list[tuple[str, ...]]:
    graph = Graph(system.devices, system.links, PCIE_AND_FABRIC)
    paths = [path for cpu in system.of_kind(Kind.CPU, host=server) for path in graph.reach(cpu).values()]
    return [path for path in paths if path[-1] in devices]


def _add(tree: EmulatedTree, system: System, parents: dict[str, str], name: str, number: int) -> None:
    """A port with what hangs at it: a switch, or a slot that is still empty."""
    switches: tuple[str, ...] = ()
    above = parents[name]
    while above in parents:
        switches = (above, *switches)
        above = parents[above]
    port = f"{parents[name]}.{name}"
    kind, bus = ("xio3130-downstream", f",bus={parents[name]}") if switches else ("pcie-root-port", "")
    hotplug = "off" if system.devices[name].kind is Kind.SWITCH else "on"
    tree.options += ["-device", f"{kind},id={port}{bus},chassis=1,slot={number},hotplug={hotplug}"]
    if system.devices[name].kind is Kind.SWITCH:
        tree.options += ["-device", f"x3130-upstream,id={name},bus={port}"]
    else:
        tree.slots[name] = EmulatedSlot(number, port, switches)
