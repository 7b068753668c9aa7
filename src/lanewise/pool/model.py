"""A pool: the devices that a fabric can give to servers (blocks), who has them, what is requested and offered.

States carry the words of Redfish's `CompositionState`. Rates are B/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from lanewise.errors import LanewiseError, Location, unknown_name
from lanewise.topology.model import Kind, System

_Entry = TypeVar("_Entry")


SHORT = 1e-6
"""A rate is as much as another if less than this part of it is missing."""


def is_enough(rate: float, required: float | None) -> bool:
    """Whether a rate is what was requested."""
    return required is None or rate >= required * (1 - SHORT)


class BlockState(StrEnum):
    """What a block is doing, in Redfish's words; Composing also while a block is being taken out."""

    UNUSED = "Unused"
    COMPOSING = "Composing"
    COMPOSED = "Composed"
    FAILED = "Failed"
    UNAVAILABLE = "Unavailable"


class CompositionState(StrEnum):
    """What a composition is doing; Changing while blocks are added or removed, Released is its end."""

    COMPOSING = "Composing"
    COMPOSED = "Composed"
    CHANGING = "Changing"
    RELEASING = "Releasing"
    RELEASED = "Released"
    FAILED = "Failed"


class ReservationState(StrEnum):
    """What became of a reservation; all but Active are ends."""

    ACTIVE = "Active"
    APPLIED = "Applied"
    EXPIRED = "Expired"
    CANCELLED = "Cancelled"


@dataclass(frozen=True, slots=True)
class ResourceBlock:
    """A device that can be given to a server; `name` is the name of the `device`, `part` that of its catalogue part.

    `holder` is the composition that claims it, `reservation` the active reservation that keeps it (one or neither).
    """

    name: str
    kind: Kind
    device: str
    part: str | None = None
    state: BlockState = BlockState.UNUSED
    holder: str | None = None
    reservation: str | None = None

    @property
    def free(self) -> bool:
        """Whether anybody may claim it."""
        return self.state is BlockState.UNUSED and self.holder is None and self.reservation is None


@dataclass(frozen=True, slots=True)
class PathRequirement:
    """`count` devices of a kind (GPU, SSD or NIC), each with at least `rate` B/s while everything is active.

    The rate is from host memory to a GPU or network card, and from a drive to host memory. `part` names the only
    catalogue part that will do. `nics` network cards come along, each near the devices that it serves.
    """

    kind: Kind
    count: int
    rate: float | None = None
    part: str | None = None
    nics: int = 0


@dataclass(frozen=True, slots=True)
class CompositionRequest:
    """What is requested: `requirements`, on `server` if one is named, or exactly these `blocks`.

    With `extends`, the blocks are added to that composition. `name` is the composition's name, '' to have one made.
    """

    requirements: tuple[PathRequirement, ...] = ()
    server: str | None = None
    blocks: tuple[str, ...] = ()
    name: str = ""
    extends: str | None = None


@dataclass(frozen=True, slots=True)
class Composition:
    """A server with the blocks given to it; a server has at most one composition that is not Released."""

    name: str
    server: str
    blocks: tuple[str, ...]
    requirements: tuple[PathRequirement, ...] = ()
    state: CompositionState = CompositionState.COMPOSING


@dataclass(frozen=True, slots=True)
class Reservation:
    """Blocks, and a server, kept for a client until `expires` (s since 1970)."""

    name: str
    server: str
    blocks: tuple[str, ...]
    expires: float
    requirements: tuple[PathRequirement, ...] = ()
    client: str = ""
    state: ReservationState = ReservationState.ACTIVE


@dataclass(frozen=True)
class Pool:
    """Servers and blocks with their compositions and reservations; `system` shows what is attached now."""

    system: System
    blocks: Mapping[str, ResourceBlock]
    servers: tuple[str, ...]
    compositions: Mapping[str, Composition] = field(default_factory=dict)
    reservations: Mapping[str, Reservation] = field(default_factory=dict)

    def block(self, name: str) -> ResourceBlock:
        """The block of that name; UnknownName with the nearest names otherwise."""
        return _named(self.blocks, name, f"block of {self.system.name}")

    def composition(self, name: str) -> Composition:
        """The composition of that name; UnknownName otherwise."""
        return _named(self.compositions, name, f"composition of {self.system.name}")

    def reservation(self, name: str) -> Reservation:
        """The reservation of that name; UnknownName otherwise."""
        return _named(self.reservations, name, f"reservation of {self.system.name}")

    def composition_on(self, server: str) -> Composition | None:
        """The composition of a server that is not Released, None if it has none."""
        live = (one for one in self.compositions.values() if one.server == server)
        return next((one for one in live if one.state is not CompositionState.RELEASED), None)

    def free(self, kind: Kind | None = None) -> tuple[ResourceBlock, ...]:
        """The blocks that anybody may claim, in the order of the description; of one kind if given."""
        free = [block for block in self.blocks.values() if block.free and kind in (None, block.kind)]
        order = {name: number for number, name in enumerate(self.system.devices)}
        return tuple(sorted(free, key=lambda block: order[block.device]))


@dataclass(frozen=True, slots=True)
class PathRate:
    """The predicted rate of one device's path, all compositions active at once (the worst case), in B/s.

    `path` holds the devices passed, in the direction of the data; `low` and `high` bound the rate; `limit` is what
    holds it, with its basis and sources; `alone` is the rate with only this composition active, `required` the least.
    """

    device: str
    kind: Kind
    path: tuple[str, ...]
    rate: float
    low: float
    high: float
    alone: float
    limit: str
    basis: str
    sources: tuple[str, ...]
    required: float | None = None
    doubt: str = ""

    @property
    def hops(self) -> int:
        """Links on the path."""
        return len(self.path) - 1

    @property
    def met(self) -> bool:
        """Whether the rate is at least what was requested, within a millionth."""
        return is_enough(self.rate, self.required)


@dataclass(frozen=True, slots=True)
class TenantLoss:
    """What a device of another composition gets before and after an offer, all compositions active, in B/s.

    `required` is the rate that its composition requested.
    """

    composition: str
    device: str
    before: float
    after: float
    required: float | None = None

    @property
    def lost(self) -> float:
        """The loss in B/s."""
        return self.before - self.after

    @property
    def breaks(self) -> bool:
        """Whether the device had what its composition requested, and would have it no longer."""
        return is_enough(self.before, self.required) and not is_enough(self.after, self.required)


@dataclass(frozen=True, slots=True)
class Offer:
    """A server and blocks for `requirements`, with predicted rates of every path of the composition in B/s.

    `rates` are those of the blocks offered and, where they extend a composition, of its other devices too; `total` is
    their sum. A network card that came along with other devices (`paired`, with the device it serves) has the rate to
    that device and is not in the sum. `losses` lists devices of other compositions that get less. `notes` says which
    devices do not meet in the fabric. `alike` are other free servers cabled alike.
    """

    server: str
    blocks: tuple[str, ...]
    rates: tuple[PathRate, ...]
    losses: tuple[TenantLoss, ...]
    total: float
    requirements: tuple[PathRequirement, ...] = ()
    paired: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether every path has what was requested, and everybody else keeps it."""
        return all(rate.met for rate in self.rates) and not any(loss.breaks for loss in self.losses)

    @property
    def lost(self) -> float:
        """What other compositions lose together, in B/s."""
        return sum(loss.lost for loss in self.losses)

    @property
    def hops(self) -> int:
        """Links on all paths together."""
        return sum(rate.hops for rate in self.rates)


class NoOffer(LanewiseError):
    """Nothing in the pool gives what was requested; `limit` is the link or device that is too narrow, '' if none.

    `rate` is what it would give in B/s, None where no path exists; `nearest` is the nearest offer that can be had,
    the first of the `alternatives`: on another server, with fewer devices, with a lower rate.
    """

    def __init__(
        self,
        cause: str,
        *,
        limit: str = "",
        rate: float | None = None,
        nearest: Offer | None = None,
        alternatives: tuple[Offer, ...] = (),
        location: Location | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(cause, location=location, hint=hint)
        self.limit = limit
        self.rate = rate
        self.nearest = nearest or next(iter(alternatives), None)
        self.alternatives = alternatives


def _named(table: Mapping[str, _Entry], name: str, kind: str) -> _Entry:
    try:
        return table[name]
    except KeyError:
        raise unknown_name(kind, name, table) from None
