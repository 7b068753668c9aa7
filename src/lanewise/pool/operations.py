"""What changes a pool: claims, attachments, reservations, failures; each returns a new pool or is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from lanewise.errors import Contradiction, unknown_name
from lanewise.pool.model import (
    BlockState,
    Composition,
    CompositionState,
    Pool,
    Reservation,
    ReservationState,
    ResourceBlock,
)
from lanewise.pool.states import block_in, composition_in, reservation_in
from lanewise.topology.compose import attach, detach
from lanewise.topology.model import ENDPOINTS, Kind, System
from lanewise.topology.trees import TREE, Graph

_C = CompositionState


def pool_of(system: System) -> Pool:
    """The pool of a system: what a fabric can give to servers, and each server's blocks of today as its composition.

    A block is a GPU, network card or drive that no server has by its own slots: it is bound to none, or hangs below a
    fabric. The composition of blocks that are attached already has its server's name.
    """
    fixed = _in_own_slots(system)
    servers = tuple(host for host in system.hosts if system.of_kind(Kind.CPU, host=host))
    compositions: dict[str, Composition] = {}
    blocks: dict[str, ResourceBlock] = {}
    for name, device in system.devices.items():
        if device.kind not in ENDPOINTS or device.kind is Kind.RAID or name in fixed:
            continue
        state = BlockState.UNUSED if device.host is None else BlockState.COMPOSED
        blocks[name] = ResourceBlock(name, device.kind, name, device.part, state, device.host)
        if device.host is not None:
            listed = compositions.get(device.host)
            before = () if listed is None else listed.blocks
            compositions[device.host] = Composition(device.host, device.host, (*before, name), (), _C.COMPOSED)
    return Pool(system, blocks, servers, compositions)


def claim(pool: Pool, composition: Composition) -> Pool:
    """The pool with a new composition, Composing, that claims its blocks; nothing is attached yet.

    UnknownName for a server or block that does not exist, Contradiction for a block that is not free, a name that is
    taken or a server that is composed already.
    """
    _check_new(pool, composition)
    check_server(pool, composition.server)
    taken = [block_in(pool.block(name), BlockState.COMPOSING, composition.name) for name in composition.blocks]
    fresh = replace(composition, state=_C.COMPOSING)
    return _with(pool, blocks=taken, compositions=[fresh])


def with_block(pool: Pool, composition: str, block: str) -> Pool:
    """The pool with a block attached to the server of a composition, claimed by it if it was not yet.

    Contradiction if the block is held, reserved or out of order, Unreachable if no path leads to it.
    """
    owner, target = pool.composition(composition), pool.block(block)
    if owner.state in (_C.RELEASED, _C.RELEASING):
        raise Contradiction(f"composition {composition} is {owner.state} and takes no blocks")
    if target.state is BlockState.UNUSED:
        target = block_in(target, BlockState.COMPOSING, composition)
    composed = block_in(target, BlockState.COMPOSED, composition)
    system = pool.system
    if system.device(target.device).host != owner.server:
        system = attach(system, target.device, owner.server)
    listed = owner if block in owner.blocks else replace(owner, blocks=(*owner.blocks, block))
    return _with(replace(pool, system=system), blocks=[composed], compositions=[listed])


def without_block(pool: Pool, composition: str, block: str) -> Pool:
    """The pool with a block of a composition detached and free; one that is out of order stays so, and is not free.

    Contradiction if the composition has no such block.
    """
    owner, target = pool.composition(composition), pool.block(block)
    if block not in owner.blocks:
        holder = f"is in use by {target.holder}" if target.holder else "is free"
        raise Contradiction(f"composition {composition} has no block {block}, which {holder}")
    system = pool.system if pool.system.device(target.device).host is None else detach(pool.system, target.device)
    left = replace(owner, blocks=tuple(name for name in owner.blocks if name != block))
    out_of_order = target.state in (BlockState.FAILED, BlockState.UNAVAILABLE)
    freed = replace(target, holder=None) if out_of_order else block_in(target, BlockState.UNUSED)
    return _with(replace(pool, system=system), blocks=[freed], compositions=[left])


def settled(pool: Pool, composition: str) -> Pool:
    """The pool with a composition Composed if all its blocks are, else Failed."""
    owner = pool.composition(composition)
    good = all(pool.block(name).state is BlockState.COMPOSED for name in owner.blocks)
    return _with(pool, compositions=[composition_in(owner, _C.COMPOSED if good else _C.FAILED)])


def released(pool: Pool, composition: str) -> Pool:
    """The pool with every block of a composition Unused and the composition Released."""
    owner = pool.composition(composition)
    pool = _with(pool, compositions=[composition_in(owner, _C.RELEASING)])
    for name in owner.blocks:
        pool = without_block(pool, composition, name)
    return _with(pool, compositions=[composition_in(pool.composition(composition), _C.RELEASED)])


def with_block_state(pool: Pool, block: str, state: BlockState) -> Pool:
    """The pool with a block Failed or Unavailable, or well again: Composed if it is attached, Unused if nobody's.

    A claimed block is freed by `without_block`, and attached by `with_block`, alone.
    """
    target = pool.block(block)
    if state is BlockState.UNUSED and target.holder is not None:
        raise Contradiction(f"block {block} is in use by {target.holder} and cannot become Unused")
    host = pool.system.device(target.device).host
    if state is BlockState.COMPOSED and target.holder and host != pool.composition(target.holder).server:
        raise Contradiction(f"block {block} is attached to {host or 'no server'} and cannot become Composed")
    return _with(pool, blocks=[block_in(target, state)])


def reserve(pool: Pool, reservation: Reservation) -> Pool:
    """The pool with free blocks and a server kept for a client; Contradiction for a block that is not free."""
    if reservation.name in pool.reservations:
        raise Contradiction(f"reservation {reservation.name} exists already")
    check_server(pool, reservation.server)
    kept = []
    for name in dict.fromkeys(reservation.blocks):
        block = pool.block(name)
        if not block.free:
            raise Contradiction(f"block {name} cannot be reserved: it is {why_not_free(block)}")
        kept.append(replace(block, reservation=reservation.name))
    active = replace(reservation, state=ReservationState.ACTIVE)
    return replace(_with(pool, blocks=kept), reservations={**pool.reservations, active.name: active})


def apply(pool: Pool, reservation: str, composition: str, now: float) -> Pool:
    """The pool with a reservation Applied: its blocks claimed by a new composition; Contradiction once it expired.

    `now` is in s since 1970.
    """
    pool = expire(pool, now)
    kept = pool.reservation(reservation)
    pool = _ended(pool, kept, ReservationState.APPLIED)
    return claim(pool, Composition(composition, kept.server, kept.blocks, kept.requirements))


def cancel(pool: Pool, reservation: str) -> Pool:
    """The pool with a reservation Cancelled and its blocks free."""
    return _ended(pool, pool.reservation(reservation), ReservationState.CANCELLED)


def expire(pool: Pool, now: float) -> Pool:
    """The pool with every active reservation whose time is over (s since 1970) Expired, and its blocks free."""
    for reservation in list(pool.reservations.values()):
        if reservation.state is ReservationState.ACTIVE and reservation.expires <= now:
            pool = _ended(pool, reservation, ReservationState.EXPIRED)
    return pool


def check_server(pool: Pool, server: str) -> None:
    """UnknownName for a server that the pool lacks, Contradiction for one that is composed or reserved."""
    if server not in pool.servers:
        raise unknown_name(f"server of {pool.system.name}", server, pool.servers)
    taken = pool.composition_on(server)
    if taken is not None:
        hint = f"attach blocks to {taken.name}, or release it"
        raise Contradiction(f"{server} is composed already, by {taken.name}", hint=hint)
    for reservation in pool.reservations.values():
        if reservation.state is ReservationState.ACTIVE and reservation.server == server:
            raise Contradiction(f"{server} is reserved by {reservation.name}")


def why_not_free(block: ResourceBlock) -> str:
    """What keeps a block from being claimed, to be read after 'it is'; empty if it is free."""
    if block.holder is not None:
        return f"in use by {block.holder}"
    if block.reservation is not None:
        return f"reserved by {block.reservation}"
    return "" if block.state is BlockState.UNUSED else str(block.state)


def _check_new(pool: Pool, composition: Composition) -> None:
    if composition.name in pool.compositions:
        raise Contradiction(f"composition {composition.name} exists already", hint="choose another name")
    if len(set(composition.blocks)) < len(composition.blocks):
        raise Contradiction(f"composition {composition.name} names a block twice")


def _ended(pool: Pool, reservation: Reservation, state: ReservationState) -> Pool:
    over = reservation_in(reservation, state)
    freed = [replace(pool.block(name), reservation=None) for name in reservation.blocks]
    return replace(_with(pool, blocks=freed), reservations={**pool.reservations, over.name: over})


def _with(pool: Pool, blocks: Iterable[ResourceBlock] = (), compositions: Iterable[Composition] = ()) -> Pool:
    return replace(
        pool,
        blocks={**pool.blocks, **{block.name: block for block in blocks}},
        compositions={**pool.compositions, **{one.name: one for one in compositions}},
    )


def _in_own_slots(system: System) -> frozenset[str]:
    """The devices bound to a host that plain PCIe, without a fabric, leads to from a CPU."""
    tree = Graph(system.devices, system.links, TREE)
    reached = chain.from_iterable(tree.reach(cpu) for cpu in system.of_kind(Kind.CPU))
    return frozenset(name for name in reached if system.devices[name].host is not None)
