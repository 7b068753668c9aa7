"""Store and fabric compared: blocks that the fabric has, operations that a killed director left, what contradicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from lanewise.director.drivers.base import Driver, DriverError, Gone
from lanewise.director.engine_claims import settle
from lanewise.director.engine_steps import StepOutcome, StepsResult
from lanewise.director.engine_view import PoolMirror
from lanewise.director.records import EventKind, Health, PoolView, ProblemKind, TaskProblem
from lanewise.director.store.changes import Change
from lanewise.director.store.rows import BlockRow, ClaimRow, ClaimState, CompositionRow, Condition
from lanewise.pool.model import BlockState, CompositionState, Pool

_HELD = (ClaimState.COMPOSED, ClaimState.RESERVED)


@dataclass(frozen=True)
class FabricObservation:
    """Which server the fabric has each device bound to; `unclear` servers could not be observed: as last known."""

    present: frozenset[str]
    servers: dict[str, str] = field(default_factory=dict)
    twice: frozenset[str] = frozenset()
    unclear: frozenset[str] = frozenset()


def observe(
    driver: Driver, pool: Pool, present: frozenset[str], attempts: int, pause: Callable[[int], None]
) -> FabricObservation:
    """Ask the driver what every server has; `present` are the devices that it discovered."""
    servers: dict[str, str] = {}
    twice, unclear = set(), set()
    for server in pool.servers:
        bound = _observe(driver, server, attempts, pause)
        if bound is None:
            unclear.add(server)
            bound = _last_known(pool, server)
        for device in bound & pool.blocks.keys():
            if servers.setdefault(device, server) != server:
                twice.add(device)
    return FabricObservation(present, servers, frozenset(twice), frozenset(unclear))


def _last_known(pool: Pool, server: str) -> frozenset[str]:
    """What a server has as far as anybody knows: its composition's blocks, and what was discovered there."""
    owner = pool.composition_on(server)
    composed = [name for name in owner.blocks if pool.blocks[name].state is BlockState.COMPOSED] if owner else []
    return frozenset([*composed, *(name for name in pool.blocks if pool.system.devices[name].host == server)])


def _observe(driver: Driver, server: str, attempts: int, pause: Callable[[int], None]) -> frozenset[str] | None:
    for attempt in range(1, attempts + 1):
        try:
            return driver.observe(server)
        except Gone:
            return None
        except DriverError:
            if attempt < attempts:
                pause(attempt)
    return None


def register(change: Change, pool: Pool, rows: Iterable[BlockRow], adopt: bool) -> list[str]:
    """Add blocks that the store does not know; with `adopt`, what is attached becomes compositions: their names."""
    known = {row.name for row in rows}
    fresh = [
        BlockRow(block.name, block.kind, block.part, Condition.OK, "", change.version)
        for block in pool.blocks.values()
        if block.name not in known
    ]
    if fresh:
        change.insert(*fresh)
    # Not by the server's own name: in Redfish servers and composed systems are in one collection.
    adopted = [replace(one, name=f"{one.server}-composed") for one in pool.compositions.values()] if adopt else []
    for composition in adopted:
        row = CompositionRow(
            composition.name, change.version, composition.server, CompositionState.COMPOSED, "", change.now, change.now,
            change.version,
        )  # fmt: skip
        change.insert_composition(row)
        change.claim(composition.blocks, ClaimState.COMPOSED, composition=row.name, server=composition.server)
        text = f"{composition.server} came with {len(composition.blocks)} devices, which are composition {row.name}"
        change.report(
            EventKind.COMPOSITION_CREATED, text, composition=row.name, blocks=composition.blocks
        )  # fmt: skip
    if fresh and not adopted:
        change.report(EventKind.POOL_CHANGED, f"{len(fresh)} blocks are new", blocks=[row.name for row in fresh])
    return [composition.name for composition in adopted]


def compare(
    change: Change, names: Iterable[str], observation: FabricObservation, versions: dict[str, int], repair: bool = False
) -> list[str]:
    """Write what the fabric says of blocks that no operation is at work on; the blocks that are Failed by that.

    A block that changed since it was observed at that version is left alone. With `repair`, a Failed block is judged by
    what the fabric says now, too.
    """
    rows = {row.name: row for row in change.read_blocks(names)}
    claims = {claim.name: claim for claim in change.holders(rows)}
    compositions = {claim.composition for claim in claims.values() if claim.composition}
    servers = {name: change.composition(name).server for name in sorted(compositions)}
    failed, settled = [], set()
    for name, row in sorted(rows.items()):
        claim = claims.get(name)
        if row.version != versions.get(name) or (claim is not None and claim.state not in _HELD):
            continue
        server = servers.get(claim.composition or "") if claim else None
        if row.condition is Condition.FAILED and not repair:
            continue
        condition, note = _judged(name, server, observation, row)
        if repair and claim is not None and server is not None and _is_free(name, observation):
            change.set_claims([claim], ClaimState.RELEASED)
            settled.add(claim.composition)
            condition, note = Condition.OK, ""
        if (condition, note) == (row.condition, row.note):
            continue
        _write(change, row, condition, note, claim)
        if condition is Condition.FAILED:
            failed.append(name)
        settled.add(claim.composition if claim else None)
    for composition in sorted(filter(None, settled)):
        settle(change, composition)
    return failed


def _judged(name: str, server: str | None, observation: FabricObservation, row: BlockRow) -> tuple[Condition, str]:
    """Whether a block is as the store says: bound to `server`, or free if that is None."""
    if name not in observation.present:
        return Condition.UNAVAILABLE, "it left the fabric"
    if name in observation.twice:
        return Condition.FAILED, "the fabric has it at more than one server"
    where = observation.servers.get(name)
    if where is None and server is not None and server in observation.unclear:
        return row.condition, row.note  # nothing is known that speaks against it, and nobody else can get it
    if where == server:
        return Condition.OK, ""
    if server is None:
        return Condition.UNAVAILABLE, f"attached to {where}, but not by the director"
    return Condition.FAILED, f"composed for {server}, but the fabric has it at {where or 'no server'}"


def _is_free(name: str, observation: FabricObservation) -> bool:
    return name in observation.present and name not in observation.servers and not observation.unclear


def _write(change: Change, row: BlockRow, condition: Condition, note: str, claim: ClaimRow | None) -> None:
    change.update(replace(row, condition=condition, note=note, version=change.version))
    text = f"block {row.name} is {condition}" + (f": {note}" if note else "")
    change.report(
        EventKind.BLOCK_CHANGED, text, severity=Health.OK if condition is Condition.OK else Health.CRITICAL,
        composition=claim.composition if claim else None, blocks=[row.name],
    )  # fmt: skip


def judge_free(result: StepsResult, observation: FabricObservation) -> dict[str, str]:
    """Call unknown what an operation took for free and another server has; those servers by device."""
    elsewhere = {
        name: observation.servers[name]
        for name, state in result.states.items()
        if state is StepOutcome.FREE and name in observation.servers
    }
    for name, server in elsewhere.items():
        result.states[name] = StepOutcome.UNKNOWN
        result.notes[name] = note = f"the fabric has it at {server}, where the director did not attach it"
        result.problem = result.problem or TaskProblem(ProblemKind.UNKNOWN, f"{name}: {note}", name)
    return elsewhere


def place_all(mirror: PoolMirror, observation: FabricObservation, view: PoolView) -> None:
    """Show every block of the pool where the fabric has it; those of servers that could not be observed as before."""
    for name, record in view.blocks.items():
        where = observation.servers.get(name)
        device = view.pool.system.devices.get(name)
        before = device.host if device else None
        if where != before:
            mirror.observe(name, where, record.version)
