"""The pool in memory: the rows of the last commit, and the immutable view that reads are answered from."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from lanewise.catalog import Catalog
from lanewise.director.attachments import placed, with_missing
from lanewise.director.records import BlockRecord, CompositionRecord, Health, PoolView
from lanewise.director.store.changes import Written
from lanewise.director.store.database import PoolRows
from lanewise.director.store.rows import (
    BlockRow,
    ClaimKind,
    ClaimRow,
    ClaimState,
    CompositionRow,
    Condition,
)
from lanewise.pool.model import (
    BlockState,
    Composition,
    CompositionState,
    Pool,
    Reservation,
    ReservationState,
    ResourceBlock,
)
from lanewise.topology.model import Device, System

_STATES = {
    ClaimState.COMPOSING: BlockState.COMPOSING,
    ClaimState.REMOVING: BlockState.COMPOSING,
    ClaimState.COMPOSED: BlockState.COMPOSED,
    ClaimState.RESERVED: BlockState.UNUSED,
}
_CONDITIONS = {Condition.FAILED: BlockState.FAILED, Condition.UNAVAILABLE: BlockState.UNAVAILABLE}


class PoolMirror:
    """What the store holds of the pool, followed commit by commit, joined with what the fabric has attached.

    The system of the view has a device bound where the fabric was last observed to have it.
    """

    def __init__(self) -> None:
        self._guard = threading.RLock()
        self._system = System("", {}, (), Catalog())
        self._servers: tuple[str, ...] = ()
        self._version = 0
        self._blocks: dict[str, BlockRow] = {}
        self._claims: dict[str, ClaimRow] = {}
        self._compositions: dict[str, CompositionRow] = {}
        self._reservations: dict[str, Reservation] = {}
        self._records: dict[str, BlockRecord] = {}
        self._pool_blocks: dict[str, ResourceBlock] = {}
        self._composed: dict[str, CompositionRecord] = {}
        self._view: PoolView | None = None

    def load(self, rows: PoolRows) -> None:
        """Take over everything the store has."""
        with self._guard:
            self._version = rows.version
            self._blocks = {row.name: row for row in rows.blocks}
            self._claims = {row.name: row for row in rows.claims if row.kind is ClaimKind.BLOCK}
            self._compositions = {row.name: row for row in rows.compositions}
            self._reservations = {row.name: row for row in rows.reservations}
            self._records = {name: self._block_record(name) for name in self._blocks}
            self._composed = {name: self._composition_record(name) for name in self._compositions}
            self._sort()
            self._view = None

    def apply(self, written: Iterable[Written], version: int) -> None:
        """Take over what one commit wrote."""
        with self._guard:
            blocks: set[str] = set()
            compositions: set[str] = set()
            for row in written:
                if isinstance(row, BlockRow):
                    self._blocks[row.name] = row
                    blocks.add(row.name)
                elif isinstance(row, ClaimRow) and row.kind is ClaimKind.BLOCK:
                    self._apply_claim(row)
                    blocks.add(row.name)
                    compositions.add(row.composition or "")
                elif isinstance(row, CompositionRow):
                    self._compositions[row.name] = row
                    compositions.add(row.name)
                elif isinstance(row, Reservation):
                    self._reservations[row.name] = row
            self._forget()
            self._refresh(blocks, compositions)
            self._version = max(self._version, version)

    def place(self, device: str, server: str | None) -> None:
        """Note that the fabric has a device at that server now, or at none."""
        with self._guard:
            self._system = placed(self._system, device, server)
            self._view = None

    def observe(self, device: str, server: str | None, version: int) -> None:
        """The same from an observation; ignored where an operation moves the device, or did so since that version."""
        record = self._records.get(device)
        if record is not None and record.version == version and record.block.state is not BlockState.COMPOSING:
            self.place(device, server)

    def discovered(self, system: System, servers: tuple[str, ...]) -> None:
        """Note what the fabric has now, with everything that is attached; blocks that it has not stay, free."""
        with self._guard:
            blocks = [Device(row.name, row.kind, row.part) for row in self._blocks.values()]
            self._system = with_missing(system, self._system, blocks)
            self._servers, self._view = servers, None
            self._sort()

    def view(self) -> PoolView:
        """The pool at the last commit."""
        view = self._view
        if view is not None:
            return view
        with self._guard:
            if self._view is None:
                pool = Pool(
                    self._system,
                    dict(self._pool_blocks),
                    self._servers,
                    {name: record.composition for name, record in self._composed.items()},
                    dict(self._reservations),
                )
                self._view = PoolView(self._version, pool, dict(self._records), dict(self._composed))
            return self._view

    def _sort(self) -> None:
        """Put the blocks in the order of the description."""
        order = [name for name in self._system.devices if name in self._records]
        self._pool_blocks = {name: self._records[name].block for name in order}

    def _apply_claim(self, row: ClaimRow) -> None:
        if row.state is not ClaimState.RELEASED:
            self._claims[row.name] = row
        elif row.name in self._claims and self._claims[row.name].since == row.since:
            del self._claims[row.name]

    def _forget(self) -> None:
        """Drop what has ended, as `load` would not find it."""
        for name, row in list(self._compositions.items()):
            if row.state is CompositionState.RELEASED:
                del self._compositions[name]
        for name, reservation in list(self._reservations.items()):
            if reservation.state is not ReservationState.ACTIVE:
                del self._reservations[name]

    def _refresh(self, blocks: set[str], compositions: set[str]) -> None:
        new = blocks - self._records.keys()
        for name in blocks:
            self._records[name] = record = self._block_record(name)
            self._pool_blocks[name] = record.block
            claim = self._claims.get(name)
            compositions.add(claim.composition or "" if claim else "")
        for name in sorted(compositions - {""}):
            if name in self._compositions:
                self._composed[name] = self._composition_record(name)
            else:
                self._composed.pop(name, None)
        if new:
            self._sort()
        self._view = None

    def _block_record(self, name: str) -> BlockRecord:
        row, claim = self._blocks[name], self._claims.get(name)
        state = _STATES[claim.state] if claim else BlockState.UNUSED
        state = _CONDITIONS.get(row.condition, state)
        holder = claim.composition if claim else None
        block = ResourceBlock(name, row.kind, name, row.part, state, holder, claim.reservation if claim else None)
        if row.condition is not Condition.OK:
            return BlockRecord(block, row.version, Health.CRITICAL, row.note)
        note = claim.note if claim else ""
        return BlockRecord(block, row.version, Health.WARNING if note else Health.OK, note)

    def _composition_record(self, name: str) -> CompositionRecord:
        row = self._compositions[name]
        claims = (claim for claim in self._claims.values() if claim.composition == name)
        mine = sorted(claims, key=lambda claim: (claim.since, claim.name))
        records = [self._records[claim.name] for claim in mine]
        notes = tuple(f"{record.block.name}: {record.note}" for record in records if record.note)
        health = max((record.health for record in records), key=list(Health).index, default=Health.OK)
        if row.state is CompositionState.FAILED:
            health = Health.CRITICAL
        composition = Composition(name, row.server, tuple(claim.name for claim in mine), row.requirements, row.state)
        return CompositionRecord(
            composition, row.version, row.created, row.changed, health, notes, row.client, row.p2p
        )  # fmt: skip
