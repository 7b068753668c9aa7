"""What the director writes in one transaction: the begin of an operation (claims, intent, event) and its end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256

from lanewise.director.engine_steps import StepOutcome, StepsResult
from lanewise.director.errors import Expired, OperationRunning
from lanewise.director.records import Action, EventKind, Health, Task, TaskState
from lanewise.director.store.changes import Change
from lanewise.director.store.rows import (
    BlockRow,
    ClaimKind,
    ClaimRow,
    ClaimState,
    CompositionRow,
    Condition,
    IntentRow,
    IntentState,
    Step,
    StepVerb,
)
from lanewise.errors import Contradiction, InputError
from lanewise.pool.model import CompositionRequest, CompositionState, PathRequirement, Reservation, ReservationState

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RUNNING = (CompositionState.COMPOSING, CompositionState.CHANGING, CompositionState.RELEASING)


@dataclass(frozen=True)
class Order:
    """Who asks for a change: the task it becomes, the client, an idempotency key, and exactly what was requested."""

    task: str
    client: str = ""
    key: str = ""
    fingerprint: str = ""
    version: int | None = None


@dataclass(frozen=True)
class BlockPlacement:
    """The server and blocks that a request gets."""

    server: str
    blocks: tuple[str, ...]
    requirements: tuple[PathRequirement, ...] = ()
    name: str = ""
    extends: str | None = None


@dataclass(frozen=True)
class Begun:
    """An operation whose claims are committed, or the name of the task that an earlier request with its key became."""

    task: Task | None = None
    intent: IntentRow | None = None
    repeated: str = ""


def fingerprint(action: str, *details: object) -> str:
    """The SHA-256 of a request, to tell a repeated one from another with the same key."""
    plain = [asdict(each) if isinstance(each, CompositionRequest) else each for each in details]
    return sha256(json.dumps([action, plain], sort_keys=True, default=str).encode()).hexdigest()


def check_name(name: str) -> None:
    """InputError for a name of a composition that could not be part of an address."""
    if name and not _NAME.fullmatch(name):
        hint = "letters, digits, '.', '_' and '-', at most 64, the first a letter or digit"
        raise InputError(f"'{name[:80]}' is no name of a composition", hint=hint)


def begin_addition(change: Change, order: Order, placement: BlockPlacement) -> Begun:
    """Claim a placement for a new composition or one that it extends, before any device is bound."""
    change.expire()
    earlier = change.repeated(order.client, order.key, order.fingerprint)
    if earlier is not None:
        return Begun(repeated=earlier)
    action = Action.COMPOSE
    if placement.extends is None:
        name = _new_composition(change, order, placement)
    else:
        name, action = placement.extends, Action.ATTACH
        row = idle_composition(change, name, order.version)
        if row.state is CompositionState.FAILED:
            hint = f"detach what failed, or release {name}"
            raise Contradiction(f"composition {name} is Failed and takes no blocks", hint=hint)
        merged = (*row.requirements, *placement.requirements)
        change.change_composition(row, CompositionState.CHANGING, requirements=merged)
    server = placement.server if placement.extends is None else None
    change.claim(placement.blocks, ClaimState.COMPOSING, composition=name, server=server)
    return _begin(change, order, action, name, placement.server, placement.blocks, StepVerb.BIND)


def begin_application(change: Change, order: Order, reservation: str, name: str) -> Begun:
    """Make a composition of what a reservation keeps; Expired if its time is over."""
    earlier = change.repeated(order.client, order.key, order.fingerprint)
    if earlier is not None:
        return Begun(repeated=earlier)
    row = change.reservation(reservation)
    if (row.state is ReservationState.ACTIVE and row.expires <= change.now) or row.state is ReservationState.EXPIRED:
        raise Expired(f"reservation {reservation} has expired", hint="make a new one")
    if row.state is not ReservationState.ACTIVE:
        raise Contradiction(f"reservation {reservation} is {row.state}")
    placement = BlockPlacement(row.server, row.blocks, row.requirements, name)
    composition = _new_composition(change, order, placement)
    claims = change.claims_of_reservation(reservation)
    for kind, state in ((ClaimKind.SERVER, ClaimState.COMPOSED), (ClaimKind.BLOCK, ClaimState.COMPOSING)):
        taken = [replace(claim, composition=composition, reservation=None) for claim in claims if claim.kind is kind]
        change.set_claims(taken, state)
    change.check(row.blocks)
    change.update(replace(row, state=ReservationState.APPLIED))
    change.report(
        EventKind.RESERVATION_ENDED, f"reservation {reservation} is applied", reservation=reservation, blocks=row.blocks
    )
    return _begin(change, order, Action.COMPOSE, composition, row.server, row.blocks, StepVerb.BIND)


def begin_removal(change: Change, order: Order, composition: str, block: str | None) -> Begun:
    """Mark one block of a composition, or all of them to end it, as being removed, before any device is unbound."""
    change.expire()
    earlier = change.repeated(order.client, order.key, order.fingerprint)
    if earlier is not None:
        return Begun(repeated=earlier)
    row = idle_composition(change, composition, order.version)
    claims = [claim for claim in change.claims_of(composition) if claim.kind is ClaimKind.BLOCK]
    leaving = [claim for claim in claims if block in (None, claim.name)]
    if block is not None and not leaving:
        has = ", ".join(sorted(claim.name for claim in claims)) or "no blocks"
        raise Contradiction(f"composition {composition} has no block {block}", hint=f"it has {has}")
    change.set_claims(leaving, ClaimState.REMOVING)
    action, state = Action.DETACH, CompositionState.CHANGING
    if block is None:
        action, state = Action.RELEASE, CompositionState.RELEASING
    change.change_composition(row, state)
    names = [claim.name for claim in leaving]
    return _begin(change, order, action, composition, row.server, names, StepVerb.UNBIND)


def begin_reservation(change: Change, order: Order, placement: BlockPlacement, seconds: float) -> Reservation:
    """Keep a server and blocks for a client, unless an earlier request with its key did so."""
    change.expire()
    earlier = change.repeated(order.client, order.key, order.fingerprint)
    if earlier is not None:
        return change.reservation(earlier)
    name, expires = order.task, change.now + seconds
    row = Reservation(name, placement.server, placement.blocks, expires, placement.requirements, order.client)
    change.insert(row)
    change.claim(placement.blocks, ClaimState.RESERVED, reservation=name, server=placement.server)
    change.remember(order.client, order.key, order.fingerprint, name)
    text = f"{placement.server} and {_listed(placement.blocks)} are reserved for {seconds:g} s"
    change.report(EventKind.RESERVATION_CREATED, text, blocks=placement.blocks, reservation=name)
    return row


@dataclass
class End:
    """How an operation ended: where its devices are, and notes on links that trained down."""

    result: StepsResult
    links: Mapping[str, str] = field(default_factory=dict)


def finish(change: Change, task: Task, intent: IntentRow, end: End) -> Task:
    """Write the end state of an operation: what is bound is Composed, what is free anybody's, the rest Failed."""
    if not change.end_intent(task.name):
        return change.task(task.name)
    problem, notes = end.result.problem, end.result.notes
    owned = change.claims_of(intent.composition)
    blocks = {row.name: row for row in change.touch(claim.name for claim in owned if claim.kind is ClaimKind.BLOCK)}
    left, changed = [], []
    for claim in owned:
        if claim.name in end.result.states and claim.kind is ClaimKind.BLOCK:
            claim, block = _ended_block(change, claim, blocks[claim.name], end, intent.action)
            changed += [block] if block != blocks[claim.name] else []
            blocks[claim.name] = block
        left.append(claim)
    change.update(*changed)
    row = change.composition(intent.composition)
    kept = [claim for claim in left if claim.kind is ClaimKind.BLOCK and claim.state is not ClaimState.RELEASED]
    over = not kept and (intent.action is Action.RELEASE or (intent.action is Action.COMPOSE and problem is not None))
    good = all(blocks[claim.name].condition is Condition.OK for claim in kept)
    state = CompositionState.RELEASED if over else CompositionState.COMPOSED if good else CompositionState.FAILED
    ended = [
        replace(claim, version=change.version, state=ClaimState.RELEASED if over else claim.state)
        for claim, before in zip(left, owned, strict=True)
        if over or claim is not before
    ]
    change.update(*ended)
    change.change_composition(row, state)
    done = replace(
        task, state=TaskState.EXCEPTION if problem else TaskState.COMPLETED, changed=change.now, percent=100,
        problem=problem, messages=(*task.messages, *_messages(intent, end)),
    )  # fmt: skip
    change.update(done)
    severity = Health.CRITICAL if notes else Health.WARNING if problem else Health.OK
    _report_end(change, done, severity, over, end.links)
    return done


def _report_end(change: Change, task: Task, severity: Health, released: bool, links: Mapping[str, str]) -> None:
    how = f"failed: {task.problem.cause}" if task.problem else "is done"
    change.report(
        EventKind.COMPOSITION_RELEASED if released else EventKind.COMPOSITION_CHANGED,
        f"{task.composition}: {task.action} of {_listed(task.blocks)} {how}", severity=severity,
        composition=task.composition, blocks=task.blocks, task=task.name,
    )  # fmt: skip
    for block, note in links.items():
        change.report(
            EventKind.LINK_TRAINED_DOWN, f"{block}: {note}", severity=Health.WARNING, composition=task.composition,
            blocks=[block], task=task.name,
        )  # fmt: skip


def _ended_block(
    change: Change, claim: ClaimRow, block: BlockRow, end: End, action: Action
) -> tuple[ClaimRow, BlockRow]:
    """The claim and the block after an operation on it."""
    state, note = end.result.states[claim.name], end.result.notes.get(claim.name, "")
    adding = action in (Action.COMPOSE, Action.ATTACH)
    if state is StepOutcome.UNKNOWN or (state is StepOutcome.BOUND and adding and note):
        failed = replace(block, condition=Condition.FAILED, note=note)
        return replace(claim, state=ClaimState.COMPOSED), failed
    if state is StepOutcome.BOUND:
        link = end.links.get(claim.name, "" if adding else claim.note)
        return replace(claim, state=ClaimState.COMPOSED, note=link), block
    condition, why = (Condition.UNAVAILABLE, "it left the fabric") if state is StepOutcome.GONE else (Condition.OK, "")
    return replace(claim, state=ClaimState.RELEASED), replace(block, condition=condition, note=why)


def settle(change: Change, name: str) -> None:
    """Write a composition's state after what happened to its blocks; while an operation runs, its end will do so."""
    row = change.composition(name)
    if row.state in _RUNNING:
        change.change_composition(row, row.state)
        return
    blocks = [claim.name for claim in change.claims_of(name) if claim.kind is ClaimKind.BLOCK]
    good = all(block.condition is Condition.OK for block in change.touch(blocks))
    change.change_composition(row, CompositionState.COMPOSED if good else CompositionState.FAILED)


def note_links(change: Change, notes: Mapping[str, str]) -> None:
    """Write what is wrong with the links of composed devices, '' for those that are well, where that is news."""
    for claim in change.holders(notes):
        note = notes[claim.name]
        if claim.state is not ClaimState.COMPOSED or note == claim.note:
            continue
        change.set_claims([replace(claim, note=note)], claim.state)
        kind = EventKind.LINK_TRAINED_DOWN if note else EventKind.BLOCK_CHANGED
        change.report(
            kind, f"{claim.name}: {note or 'its link is well again'}", severity=Health.WARNING if note else Health.OK,
            composition=claim.composition, blocks=[claim.name],
        )  # fmt: skip


def change_p2p(change: Change, name: str, allowed: bool, version: int | None) -> CompositionRow:
    """Write whether the devices of a composition may reach each other; the composition as it was before."""
    row = idle_composition(change, name, version)
    change.change_composition(row, row.state, p2p=allowed)
    text = f"{name}: peer-to-peer is {'allowed' if allowed else 'forbidden'}"
    change.report(EventKind.COMPOSITION_CHANGED, text, composition=name)
    return row


def idle_composition(change: Change, name: str, version: int | None = None) -> CompositionRow:
    """A composition that no operation is at work on; OperationRunning, StaleVersion or UnknownName otherwise."""
    row = change.composition(name, version)
    if row.state in _RUNNING:
        raise OperationRunning(name)
    return row


def _new_composition(change: Change, order: Order, placement: BlockPlacement) -> str:
    name = placement.name or f"{placement.server}-{change.version}"
    row = CompositionRow(
        name, change.version, placement.server, CompositionState.COMPOSING, order.client, change.now, change.now,
        change.version, placement.requirements,
    )  # fmt: skip
    change.insert_composition(row)
    return name


def _begin(
    change: Change, order: Order, action: Action, composition: str, server: str, blocks: Sequence[str], verb: StepVerb
) -> Begun:
    ordered = tuple(sorted(blocks))
    steps = tuple(Step(f"{order.task}-{number}", verb, server, block) for number, block in enumerate(ordered))
    task = Task(
        order.task, action, composition, ordered, TaskState.RUNNING, change.now, change.now, client=order.client
    )  # fmt: skip
    intent = IntentRow(order.task, action, composition, IntentState.OPEN, steps)
    change.open_intent(intent)
    change.insert(task)
    change.remember(order.client, order.key, order.fingerprint, order.task)
    kind = EventKind.COMPOSITION_CREATED if action is Action.COMPOSE else EventKind.COMPOSITION_CHANGED
    text = f"{composition}: {action} of {_listed(ordered)} on {server}"
    change.report(kind, text, composition=composition, blocks=ordered, task=order.task)
    return Begun(task, intent)


def _messages(intent: IntentRow, end: End) -> list[str]:
    states = [f"{step.block} is {end.result.states[step.block]}" for step in intent.steps]
    notes = [f"{block}: {note}" for block, note in {**end.result.notes, **end.links}.items()]
    problem = end.result.problem
    return [*([problem.cause] if problem else []), *notes, *states]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown or "nothing"
