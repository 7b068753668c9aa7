"""Where a request goes: the best offer, or the blocks it names, if the pool's rules and the server's room allow it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lanewise.director.drivers.base import Driver, DriverError, HotplugRoom
from lanewise.director.engine_claims import BlockPlacement, check_name
from lanewise.director.errors import BlockInUse, NoSpace
from lanewise.errors import Contradiction, InputError, unknown_name
from lanewise.pool import offers as pool_offers
from lanewise.pool.model import CompositionRequest, Offer, PathRequirement, Pool, ResourceBlock
from lanewise.pool.rules import ServerSpace, why_no_space
from lanewise.topology.compose import attach


class Rooms(Mapping[str, ServerSpace]):
    """What each server has left, read from the driver on request; not there if it cannot say."""

    def __init__(self, driver: Driver, servers: Sequence[str]) -> None:
        self._driver, self._servers = driver, servers
        self._known: dict[str, HotplugRoom | None] = {}

    def __getitem__(self, server: str) -> HotplugRoom:
        if server not in self._known:
            try:
                self._known[server] = self._driver.room(server)
            except DriverError:  # what it cannot say refuses nothing; the bind itself will tell
                self._known[server] = None
        room = self._known[server]
        if room is None:
            raise KeyError(server)
        return room

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def __len__(self) -> int:
        return len(self._servers)


@dataclass(frozen=True)
class Placer:
    """Chooses placements in a pool, and asks the driver what a server has left."""

    driver: Driver

    def offers(self, pool: Pool, request: CompositionRequest, most: int) -> tuple[Offer, ...]:
        """Ranked placements of a request, with predicted rates."""
        return pool_offers.offers(pool, request, most, Rooms(self.driver, pool.servers))

    def preview(
        self, pool: Pool, server: str, blocks: Sequence[str], requirements: Sequence[PathRequirement],
        extends: str | None,
    ) -> Offer:  # fmt: skip
        """What these blocks would get on that server."""
        rooms = Rooms(self.driver, pool.servers)
        return pool_offers.preview(pool, server, blocks, requirements, extends, rooms)

    def place(self, pool: Pool, request: CompositionRequest) -> BlockPlacement:
        """The placement of a request; errors as `Director.compose` says."""
        check_name(request.name)
        owner = None if request.extends is None else pool.composition(request.extends)
        server = request.server if owner is None else owner.server
        if server is not None and server not in pool.servers:
            raise unknown_name(f"server of {pool.system.name}", server, pool.servers)
        if owner is not None and request.server not in (None, owner.server):
            raise Contradiction(f"composition {owner.name} is on {owner.server}, not {request.server}")
        if not request.blocks and not request.requirements:
            raise InputError("a composition needs blocks", hint="name blocks, or say how many of which kind")
        if server is not None and request.blocks:
            self._check(pool, server, request.blocks)
        blocks = request.blocks
        # Blocks that somebody names are refused too where they would break a rate that was promised.
        if server is None or request.requirements or _promised(pool):
            best = self.offers(pool, request, 1)[0]
            server, blocks = best.server, best.blocks
        return BlockPlacement(server, blocks, request.requirements, request.name, request.extends)

    def _check(self, pool: Pool, server: str, blocks: Sequence[str]) -> None:
        """Errors for blocks that are not free, not reached by this server, or for which it has no room."""
        if len(set(blocks)) < len(blocks):
            raise Contradiction("a block is named twice")
        for name in blocks:
            check_block(pool, pool.block(name), server)
        devices = [pool.block(name).device for name in blocks]
        full = why_no_space(pool.system, server, devices, Rooms(self.driver, pool.servers).get(server))
        if full:
            raise NoSpace(full, hint="choose another server, or detach something from this one")


def _promised(pool: Pool) -> bool:
    """Whether any composition has been promised a rate."""
    return any(need.rate is not None for one in pool.compositions.values() for need in one.requirements)


def check_block(pool: Pool, block: ResourceBlock, server: str) -> None:
    """BlockInUse, Contradiction or Unreachable, with the reason, if a block cannot go to a server now."""
    holder = block.holder or block.reservation
    if holder is not None:
        raise BlockInUse(block.name, holder)
    attach(pool.system, block.device, server)
