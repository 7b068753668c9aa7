"""The class of every pair, as nvidia-smi topo -m shows it, and who can be peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.errors import Unreachable
from lanewise.routes import paths
from lanewise.routes.find import route
from lanewise.routes.model import Via
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.topology.model import System


@dataclass(frozen=True, slots=True)
class Matrix:
    """`cells[i][j]` is the class of the way from names[i] to names[j], X for itself, - where there is none."""

    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    sockets: tuple[str, ...]
    numa: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Peers:
    """Two GPUs, whether they may be peers, and why not."""

    one: str
    other: str
    allowed: bool
    why: str


def class_matrix(system: System, names: Sequence[str] | None = None) -> Matrix:
    """The classes between GPUs and network cards, or between the named devices; UnknownName for an unknown one."""
    ends = list(names) if names else system.of_kind(Kind.GPU, Kind.NIC)
    sockets = tuple(_socket(system, name) for name in ends)
    numa = tuple(system.device(socket).numa if socket != "-" else None for socket in sockets)
    cells = tuple(tuple(_cell(system, a, b) for b in ends) for a in ends)
    return Matrix(tuple(ends), cells, sockets, numa)


def peers(system: System) -> tuple[Peers, ...]:
    """Every pair of GPUs with its verdict."""
    gpus = system.of_kind(Kind.GPU)
    return tuple(_verdict(system, a, b) for i, a in enumerate(gpus) for b in gpus[i + 1 :])


def _verdict(system: System, a: str, b: str) -> Peers:
    try:
        found = route(system, a, b)
    except Unreachable as error:
        return Peers(a, b, False, error.cause)
    if found.via is Via.NETWORK:
        return Peers(a, b, False, "they are in different hosts")
    return Peers(a, b, found.via is not Via.STAGED, found.why.removeprefix("staged because "))


def _cell(system: System, a: str, b: str) -> str:
    if a == b:
        return "X"
    try:
        return route(system, a, b).cls
    except Unreachable:
        return "-"


def _socket(system: System, name: str) -> str:
    try:
        return paths.root_of(system, name)
    except Unreachable:
        return "-"
