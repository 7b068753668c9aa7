"""Which state a block, a composition or a reservation may go to; anything else is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from lanewise.errors import Contradiction
from lanewise.pool.model import (
    BlockState,
    Composition,
    CompositionState,
    Pool,
    Reservation,
    ReservationState,
    ResourceBlock,
)

_State = TypeVar("_State", bound=StrEnum)
_B, _C, _R = BlockState, CompositionState, ReservationState

# A composition that could not be made is Released at once, and one of which a device is in use is Composed again.
# A block that failed or went away keeps its holder, so it may come back to it; nobody else gets it until it is Unused.
BLOCK_TRANSITIONS: Mapping[BlockState, frozenset[BlockState]] = {
    _B.UNUSED: frozenset({_B.COMPOSING, _B.FAILED, _B.UNAVAILABLE}),
    _B.COMPOSING: frozenset({_B.COMPOSED, _B.UNUSED, _B.FAILED, _B.UNAVAILABLE}),
    _B.COMPOSED: frozenset({_B.COMPOSING, _B.UNUSED, _B.FAILED, _B.UNAVAILABLE}),
    _B.FAILED: frozenset({_B.UNUSED, _B.COMPOSING, _B.COMPOSED, _B.UNAVAILABLE}),
    _B.UNAVAILABLE: frozenset({_B.UNUSED, _B.COMPOSING, _B.COMPOSED, _B.FAILED}),
}
COMPOSITION_TRANSITIONS: Mapping[CompositionState, frozenset[CompositionState]] = {
    _C.COMPOSING: frozenset({_C.COMPOSED, _C.RELEASING, _C.RELEASED, _C.FAILED}),
    _C.COMPOSED: frozenset({_C.CHANGING, _C.RELEASING, _C.FAILED}),
    _C.CHANGING: frozenset({_C.COMPOSED, _C.FAILED}),
    _C.RELEASING: frozenset({_C.RELEASED, _C.COMPOSED, _C.FAILED}),
    _C.FAILED: frozenset({_C.COMPOSED, _C.CHANGING, _C.RELEASING}),
    _C.RELEASED: frozenset(),
}
RESERVATION_TRANSITIONS: Mapping[ReservationState, frozenset[ReservationState]] = {
    _R.ACTIVE: frozenset({_R.APPLIED, _R.EXPIRED, _R.CANCELLED}),
    _R.APPLIED: frozenset(),
    _R.EXPIRED: frozenset(),
    _R.CANCELLED: frozenset(),
}


def block_in(block: ResourceBlock, state: BlockState, holder: str | None = None) -> ResourceBlock:
    """The block in another state, in use by `holder` (None: as before); Contradiction if it may not go there.

    An Unused block has no holder. A block that is reserved, or in use by another, cannot be claimed.
    """
    _check(f"block {block.name}", block.state, state, BLOCK_TRANSITIONS)
    if state is BlockState.UNUSED:
        return replace(block, state=state, holder=None)
    claimed = holder or block.holder
    if state in (BlockState.COMPOSING, BlockState.COMPOSED):
        if claimed is None:
            raise Contradiction(f"block {block.name} cannot become {state}: no composition claims it")
        _check_claim(block, claimed)
    return replace(block, state=state, holder=claimed)


def composition_in(composition: Composition, state: CompositionState) -> Composition:
    """The composition in another state; Contradiction if it may not go there."""
    check_composition(composition.name, composition.state, state)
    return replace(composition, state=state)


def check_composition(name: str, before: CompositionState, after: CompositionState) -> None:
    """Contradiction if a composition may not go from a state to another."""
    _check(f"composition {name}", before, after, COMPOSITION_TRANSITIONS)


def reservation_in(reservation: Reservation, state: ReservationState) -> Reservation:
    """The reservation in another state; Contradiction if it may not go there, as after it expired."""
    _check(f"reservation {reservation.name}", reservation.state, state, RESERVATION_TRANSITIONS)
    return replace(reservation, state=state)


def inconsistencies(pool: Pool) -> list[str]:
    """What contradicts itself in a pool, one sentence each: claims, compositions, reservations, attachments."""
    return [*_claims(pool), *_servers(pool), *_reservations(pool)]


def _check(subject: str, before: _State, after: _State, legal: Mapping[_State, frozenset[_State]]) -> None:
    if after in legal[before]:
        return
    following = " or ".join(sorted(legal[before]))
    hint = f"from {before} it can become {following}" if following else f"{before} is an end"
    raise Contradiction(f"{subject} is {before} and cannot become {after}", hint=hint)


def _check_claim(block: ResourceBlock, holder: str) -> None:
    if block.holder not in (None, holder):
        hint = f"detach it from {block.holder} first"
        raise Contradiction(f"block {block.name} is in use by {block.holder}", hint=hint)
    if block.reservation is not None:
        hint = "apply the reservation, cancel it, or wait until it expires"
        raise Contradiction(f"block {block.name} is reserved by {block.reservation}", hint=hint)


def _claims(pool: Pool) -> list[str]:
    problems = []
    listed: dict[str, str] = {}
    for composition in pool.compositions.values():
        for name in composition.blocks:
            if composition.state is CompositionState.RELEASED:
                problems.append(f"composition {composition.name} is Released and still lists {name}")
            elif name in listed:
                problems.append(f"block {name} is in {listed[name]} and in {composition.name}")
            listed[name] = composition.name
    for name, block in pool.blocks.items():
        if block.holder != listed.get(name):
            problems.append(f"block {name} is claimed by {block.holder} but listed by {listed.get(name)}")
        if block.state in (_B.UNUSED, _B.COMPOSING, _B.COMPOSED) and (block.holder is None) != (
            block.state is _B.UNUSED
        ):
            problems.append(f"block {name} is {block.state} with holder {block.holder}")
        host = pool.system.device(block.device).host
        if block.state is BlockState.COMPOSED and host != pool.compositions[block.holder or ""].server:
            problems.append(f"block {name} is Composed by {block.holder} but attached to {host}")
        if block.state is BlockState.UNUSED and host is not None:
            problems.append(f"block {name} is Unused but attached to {host}")
    return problems


def _servers(pool: Pool) -> list[str]:
    live = [one for one in pool.compositions.values() if one.state is not CompositionState.RELEASED]
    first: dict[str, str] = {}
    problems = []
    for composition in live:
        if composition.server in first:
            problems.append(f"{composition.server} is composed by {first[composition.server]} and {composition.name}")
        first[composition.server] = composition.name
    return problems


def _reservations(pool: Pool) -> list[str]:
    keeps = {
        name: one.name
        for one in pool.reservations.values()
        if one.state is ReservationState.ACTIVE
        for name in one.blocks
    }
    return [
        f"block {name} is reserved by {block.reservation} but kept by {keeps.get(name)}"
        for name, block in pool.blocks.items()
        if block.reservation != keeps.get(name)
    ]
