"""The network card that carries a connection's route, and the NUMA node and CPUs that a measurement is bound to."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lanewise.control.interfaces import NET
from lanewise.control.sysfs import node_in
from lanewise.errors import CannotMeasure, InputError
from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes import machine


@dataclass(frozen=True, slots=True)
class NumaPlacement:
    """A NUMA node (None: any) with the CPUs to run on (empty: any), and the network card it is chosen by."""

    card: str = ""
    card_node: int | None = None
    node: int | None = None
    cpus: tuple[int, ...] = ()


def placement_near(card: str, card_node: int | None, side: NetworkSideOptions) -> NumaPlacement:
    """On the node that the options of this side name, else on that of the card, if it has one."""
    node = side.node if side.node is not None else card_node
    if side.no_bind or node is None:
        return NumaPlacement(card, card_node)
    return NumaPlacement(card, card_node, node, cpus_of(node))


def node_of_interface(name: str) -> int | None:
    """The NUMA node of an interface's card, looking below VLANs, bonds and bridges; None if it has none."""
    if not name or name == "lo":
        return None
    below = sorted((NET / name).glob("lower_*"))
    if below:
        nodes = {node_of_interface(path.name.removeprefix("lower_")) for path in below}
        return nodes.pop() if len(nodes) == 1 else None
    return node_in(NET / name)


def cpus_of(node: int) -> tuple[int, ...]:
    """The CPUs of a NUMA node that this process may use; CannotMeasure where the node or all of them are missing."""
    if not (machine.SYS / f"devices/system/node/node{node}").is_dir():
        raise CannotMeasure(f"this machine has no NUMA node {node}", hint="numactl --hardware lists them")
    usable = tuple(sorted(machine.cpus_of(node, machine.SYS) & os.sched_getaffinity(0)))
    if not usable:
        raise CannotMeasure(f"no CPU of NUMA node {node} may be used here", hint="--node N, --no-bind, or taskset")
    return usable


def check(side: NetworkSideOptions) -> None:
    """InputError or CannotMeasure for a NUMA node that this side cannot be bound to, before anything starts."""
    if side.node is not None and side.no_bind:
        raise InputError("--node and --no-bind contradict each other", hint="choose one")
    if side.node is not None:
        cpus_of(side.node)
