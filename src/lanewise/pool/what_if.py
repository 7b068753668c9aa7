"""What a pool would be after changes that nobody makes: compositions made, changed and released in memory alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lanewise.errors import Contradiction, LanewiseError
from lanewise.perf.flow import Flow
from lanewise.pool.loads import active_blocks, active_flow
from lanewise.pool.model import Composition, CompositionState, PathRate, Pool
from lanewise.pool.offers import preview
from lanewise.pool.operations import claim, released, settled, with_block, without_block


class ChangeKind(StrEnum):
    """What a change does."""

    COMPOSE = "compose"
    ATTACH = "attach"
    DETACH = "detach"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class PoolChange:
    """One change of a composition: its blocks attached or detached, itself made on `server` or released."""

    kind: ChangeKind
    composition: str
    blocks: tuple[str, ...] = ()
    server: str = ""


def changed(pool: Pool, changes: Iterable[PoolChange]) -> Pool:
    """The pool after the changes in turn; UnknownName, Contradiction or Unreachable for one that is impossible.

    A server that is composed already gets the blocks of a `compose` as an addition.
    """
    for change in changes:
        pool = _changed(pool, change)
    return pool


def _changed(pool: Pool, change: PoolChange) -> Pool:
    name = change.composition
    match change.kind:
        case ChangeKind.RELEASE:
            return released(pool, name)
        case ChangeKind.DETACH:
            for block in change.blocks:
                pool = without_block(pool, name, block)
            return pool
        case ChangeKind.COMPOSE:
            if not change.blocks:
                raise Contradiction(f"composition {name} would have no blocks", hint="name blocks")
            owner = pool.composition_on(change.server)
            name = owner.name if owner else name
            if owner is None:
                pool = claim(pool, Composition(name, change.server, change.blocks))
    for block in change.blocks:
        pool = with_block(pool, name, block)
    return settled(pool, name) if pool.composition(name).state is CompositionState.COMPOSING else pool


def predicted_rates(pool: Pool) -> dict[str, tuple[PathRate, ...]]:
    """The rates of all compositions of a pool by name, all active at once; none where they cannot be predicted."""
    rates: dict[str, tuple[PathRate, ...]] = {}
    for name, owner in pool.compositions.items():
        if owner.state is CompositionState.RELEASED:
            continue
        try:
            rates[name] = preview(pool, owner.server, (), extends=name).rates
        except LanewiseError:
            rates[name] = ()
    return rates


def active_flows(pool: Pool) -> tuple[Flow, ...]:
    """The flows of all compositions, as they are while everything is active."""
    return tuple(
        active_flow(pool.block(name).kind, pool.block(name).device, owner.server)
        for owner in pool.compositions.values()
        if owner.state is not CompositionState.RELEASED
        for name in active_blocks(pool, owner)
    )
