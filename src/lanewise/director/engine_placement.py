"""Where a request goes: the best offer, or the blocks it names, if the pool's rules and the server's room allow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from lanewise.director.drivers.base import Driver, DriverError
from lanewise.director.engine_claims import BlockPlacement, check_name
from lanewise.director.errors import BlockInUse, NoSpace
from lanewise.errors import Contradiction, InputError, unknown_name
from lanewise.pool.model import CompositionRequest, NoOffer, Offer, PathRequirement, Pool, ResourceBlock
from lanewise.topology.compose import attach


def offers(pool: Pool, request: CompositionRequest, most: int = 5) -> tuple[Offer, ...]:
    """Ranked placements of a request in a pool; NoOffer if there is none."""
    ranked: tuple[Offer, ...] = import_module("lanewise.pool.offers").offers(pool, request, most)
    return ranked


def preview(pool: Pool, server: str, blocks: Sequence[str], requirements: Sequence[PathRequirement]) -> Offer:
    """What a given placement would do."""
    offer: Offer = import_module("lanewise.pool.offers").preview(pool, server, tuple(blocks), tuple(requirements))
    return offer


@dataclass(frozen=True)
class Placer:
    """Chooses placements in a pool, and asks the driver what a server has left."""

    driver: Driver

    def place(self, pool: Pool, request: CompositionRequest) -> BlockPlacement:
        """The placement of a request; errors as `Director.compose` says."""
        check_name(request.name)
        owner = None if request.extends is None else pool.composition(request.extends)
        server = request.server if owner is None else owner.server
        if server is not None and server not in pool.servers:
            raise unknown_name(f"server of {pool.system.name}", server, pool.servers)
        if owner is not None and request.server not in (None, owner.server):
            raise Contradiction(f"composition {owner.name} is on {owner.server}, not {request.server}")
        if request.blocks and server is not None:
            placement = self._named(pool, request, server)
        elif request.blocks or request.requirements:
            placement = _offered(pool, request)
        else:
            raise InputError("a composition needs blocks", hint="name blocks, or say how many of which kind")
        self._check_room(placement)
        return placement

    def _named(self, pool: Pool, request: CompositionRequest, server: str) -> BlockPlacement:
        """Exactly these blocks on this server."""
        names = tuple(dict.fromkeys(request.blocks))
        if len(names) < len(request.blocks):
            raise Contradiction("a block is named twice")
        for name in names:
            check_block(pool, pool.block(name), server)
        if request.requirements:
            offer = preview(pool, server, names, request.requirements)
            if not offer.met:
                worst = min((rate for rate in offer.rates if not rate.met), key=lambda rate: rate.rate)
                cause = f"{worst.device} would get {worst.rate / 1e9:.2f} GB/s on {server}, held by {worst.limit}"
                raise NoOffer(cause, limit=worst.limit, rate=worst.rate, nearest=offer)
        return BlockPlacement(server, names, request.requirements, request.name, request.extends)

    def _check_room(self, placement: BlockPlacement) -> None:
        """NoSpace if the driver says that the server has no room for so many devices more."""
        try:
            room = self.driver.room(placement.server)
        except DriverError:
            return  # what it cannot say refuses nothing; the bind itself will tell
        wanted = len(placement.blocks)
        for name, left in (("hot-plug slots", room.slots), ("PCIe bus numbers", room.buses)):
            if left is not None and left < wanted:
                cause = f"{placement.server} has {left} {name} left, and {wanted} are needed"
                raise NoSpace(cause, hint="choose another server, or detach something from this one")
        if room.bar_space is not None and room.bar_space <= 0:
            raise NoSpace(f"{placement.server} has no BAR space left", hint="choose another server")


def check_block(pool: Pool, block: ResourceBlock, server: str) -> None:
    """BlockInUse, Contradiction or Unreachable, with the reason, if a block cannot go to a server now."""
    holder = block.holder or block.reservation
    if holder is not None:
        raise BlockInUse(block.name, holder)
    attach(pool.system, block.device, server)


def _offered(pool: Pool, request: CompositionRequest) -> BlockPlacement:
    best = offers(pool, request, most=1)[0]
    return BlockPlacement(best.server, best.blocks, request.requirements, request.name, request.extends)
