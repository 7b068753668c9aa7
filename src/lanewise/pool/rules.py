"""Why a block cannot go to a server, in one sentence; empty where nothing is in the way."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Protocol

from lanewise.errors import LanewiseError
from lanewise.pool.equivalence import place
from lanewise.pool.model import PathRequirement, Pool, ResourceBlock
from lanewise.pool.operations import why_not_free
from lanewise.routes.find import route
from lanewise.topology.compose import attach
from lanewise.topology.model import Kind, System


class ServerSpace(Protocol):
    """What a server has left for devices added while it runs, as its driver says; None where it does not know."""

    @property
    def slots(self) -> int | None:
        """Hot-plug slots."""

    @property
    def buses(self) -> int | None:
        """PCIe bus numbers."""

    @property
    def bar_space(self) -> float | None:
        """Address space for BARs in B."""


def why_not(pool: Pool, block: str, server: str) -> str:
    """Why a block cannot be attached to a server: its state, the reach of the fabric, or the server's domains."""
    target = pool.block(block)
    reason = why_not_free(target)
    if reason:
        return f"block {block} is {reason}"
    try:
        attach(pool.system, target.device, server)
    except LanewiseError as error:
        return error.cause
    return ""


def why_no_space(system: System, server: str, devices: Iterable[str], space: ServerSpace | None) -> str:
    """Why a running server cannot take these devices: its hot-plug slots, bus numbers or address space for BARs."""
    if space is None:
        return ""
    names = list(devices)
    count = len(names)
    for left, noun in ((space.slots, "hot-plug slots"), (space.buses, "PCIe bus numbers")):
        if left is not None and left < count:
            return f"{server} has {left} {noun} left, and {count} devices need one each"
    gpus = [name for name in names if system.device(name).kind is Kind.GPU]  # no figure says it of other kinds
    needed = sum(system.number(name, "bar.size") or 0.0 for name in gpus)
    if space.bar_space is not None and space.bar_space < needed:
        left_gib, needed_gib = space.bar_space / 2**30, needed / 2**30
        return f"{server} has {left_gib:.4g} GiB of address space left, and the BARs need {needed_gib:.4g} GiB"
    return ""


def why_not_fitting(block: ResourceBlock, requirement: PathRequirement) -> str:
    """Why a block is not what a requirement asks for: its kind or its part."""
    if block.kind is not requirement.kind:
        return f"block {block.name} is a {block.kind}, not a {requirement.kind}"
    if requirement.part not in (None, block.part):
        return f"block {block.name} is a {block.part or 'device of no known part'}, not a {requirement.part}"
    return ""


def why_no_peers(system: System, devices: Iterable[str]) -> tuple[str, ...]:
    """Why attached GPUs and network cards do not meet in the fabric, one sentence for each pair of places.

    Their virtual domains, the policies and the peer scope of their CPUs decide; the data then goes up to the root
    ports, or through host memory.
    """
    members: dict[object, list[str]] = {}
    for name in devices:
        device = system.device(name)
        if device.kind in (Kind.GPU, Kind.NIC):
            domain = system.domain_of(name)
            same = members.setdefault((device.kind, device.part, place(system, name), domain and domain.name), [])
            if len(same) < 2:  # a pair of one place, and one of each of two
                same.append(name)
    alike = list(members.values())
    pairs = [(same[0], same[1]) for same in alike if len(same) == 2]
    pairs += [(first[0], second[0]) for first, second in combinations(alike, 2)]
    notes = (_why_no_peer(system, a, b) for a, b in pairs)
    return tuple(dict.fromkeys(note for note in notes if note))


def _why_no_peer(system: System, a: str, b: str) -> str:
    if {system.device(a).kind, system.device(b).kind} == {Kind.NIC}:
        return ""
    try:
        default = route(system, a, b)
    except LanewiseError as error:
        return error.cause
    if default.stages:
        return f"{a} and {b} exchange data through host memory: {default.note}"
    return f"{a} and {b}: {default.note}" if default.note else ""
