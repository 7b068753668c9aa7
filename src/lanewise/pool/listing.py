"""What a Redfish service says of its pool, in its own words: a service need not be a director of ours."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.pool.model import PathRate


@dataclass(frozen=True, slots=True)
class ListedBlock:
    """A resource block: its type and state in Redfish's words, the composed system that has it ('' if none).

    `server` is the server it is attached to now, `part` its catalogue part; '' if unknown or none.
    """

    name: str
    type: str
    state: str
    system: str = ""
    server: str = ""
    reserved: bool = False
    health: str = ""
    notes: tuple[str, ...] = ()
    part: str = ""


@dataclass(frozen=True, slots=True)
class ListedSystem:
    """A composed system with its blocks; `rates` are the predicted ones, empty where the service predicts none."""

    name: str
    server: str
    blocks: tuple[str, ...]
    state: str = ""
    health: str = ""
    rates: tuple[PathRate, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolListing:
    """The blocks and composed systems of a service; `servers` are the blocks that are whole servers."""

    service: str
    servers: tuple[ListedBlock, ...]
    blocks: tuple[ListedBlock, ...]
    systems: tuple[ListedSystem, ...]


@dataclass(frozen=True, slots=True)
class ServiceEvent:
    """An event of a service: its time as the service writes it, severity, sentence, and the resource it is about."""

    id: str
    time: str
    severity: str
    text: str
    origin: str = ""
