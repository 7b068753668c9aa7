"""The class of every pair as `nvidia-smi topo -m` prints it, what that hides, and which GPUs are peers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

from lanewise.errors import Unreachable
from lanewise.routes.classify import NET, topo_class
from lanewise.routes.endpoints import memory_node
from lanewise.routes.find import route
from lanewise.routes.model import Via
from lanewise.routes.paths import cpu_above
from lanewise.topology.model import Kind, System

SELF, APART = "X", "-"


@dataclass(frozen=True, slots=True)
class ClassMatrix:
    """`cells[i][j]` is the class between names[i] and names[j]: X on the diagonal, '-' where there is no path.

    `sockets` and `numa` are the affinity of each name (None if unbound); `notes` say where data takes another
    path than the class suggests.
    """

    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    sockets: tuple[str | None, ...]
    numa: tuple[int | None, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Peers:
    """Two GPUs, whether they may reach each other's memory, and if not, why."""

    a: str
    b: str
    allowed: bool
    reason: str = ""


def class_matrix(system: System, names: Sequence[str] | None = None) -> ClassMatrix:
    """The class of every pair of `names` (default: GPUs and network cards); UnknownName for an unknown."""
    chosen = tuple(names) if names is not None else tuple(system.of_kind(Kind.GPU, Kind.NIC))
    for name in chosen:
        system.device(name)
    classes = {pair: _cell(system, *pair) for pair in combinations(chosen, 2)}
    both = {**classes, **{(b, a): cls for (a, b), cls in classes.items()}}
    cells = tuple(tuple(SELF if a == b else both[a, b] for b in chosen) for a in chosen)
    notes = dict.fromkeys(note for a, b in classes if (note := _note(system, a, b, classes[a, b])))
    cpus = tuple(_cpu(system, name) for name in chosen)
    numas = tuple(memory_node(system, cpu, name) if cpu else None for name, cpu in zip(chosen, cpus, strict=True))
    return ClassMatrix(chosen, cells, cpus, numas, tuple(notes))


def peers(system: System) -> tuple[Peers, ...]:
    """Every pair of GPUs: whether the two are peers, over NVLink or PCIe, and if not, why."""
    pairs = combinations(system.of_kind(Kind.GPU), 2)
    verdicts = ((a, b, _why_not_peers(system, a, b)) for a, b in pairs)
    return tuple(Peers(a, b, not reason, reason) for a, b, reason in verdicts)


def _why_not_peers(system: System, a: str, b: str) -> str:
    try:
        first = route(system, a, b)
    except Unreachable as error:
        return error.cause
    if first.via is Via.NVLINK or first.via is Via.PCIE:
        return ""
    host_a, host_b = system.device(a).host, system.device(b).host
    return first.note if host_a == host_b else f"{a} is on {host_a} and {b} on {host_b}"


def _cell(system: System, a: str, b: str) -> str:
    if system.device(a).host == system.device(b).host:
        with suppress(Unreachable):
            return topo_class(system, a, b)
    with suppress(Unreachable):
        return route(system, a, b).cls
    return APART


def _note(system: System, a: str, b: str, shown: str) -> str:
    if shown in (APART, NET):
        return ""
    try:
        taken = route(system, a, b)
    except Unreachable as error:  # two uplinks of one switch, to sockets that nothing joins
        return f"{a} - {b} is shown as {shown}, but no route joins them: {error.cause}"
    if taken.cls == shown:
        return ""
    note = taken.note.removesuffix(f"; nvidia-smi shows {shown}")
    reason = f": {note}" if note else ""
    return f"{a} - {b} is shown as {shown}, but its data goes {taken.show()} ({taken.cls}){reason}"


def _cpu(system: System, name: str) -> str | None:
    try:
        return cpu_above(system, name)
    except Unreachable:
        return None
