"""The director: offers, compositions and reservations, over a store that decides claims and a driver."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from lanewise.director import engine_claims as claims
from lanewise.director.drivers.base import Driver, DriverError, FabricEventKind
from lanewise.director.engine_claims import Begun, BlockPlacement, End, Order
from lanewise.director.engine_fabric import FabricReader, news
from lanewise.director.engine_placement import Placer
from lanewise.director.engine_reconcile import FabricObservation, compare, judge_free, observe, place_all, register
from lanewise.director.engine_steps import ATTEMPTS, StepOutcome, StepRunner
from lanewise.director.engine_tasks import EventBoard, TaskBoard
from lanewise.director.engine_view import PoolMirror
from lanewise.director.errors import BlockInUse, StaleVersion, StoreError
from lanewise.director.records import Event, PoolView, ReconcileReport, Task
from lanewise.director.store.changes import Change
from lanewise.director.store.database import Store
from lanewise.director.store.rows import IntentRow
from lanewise.errors import InputError, LanewiseError
from lanewise.pool.model import (
    BlockState,
    CompositionRequest,
    Offer,
    PathRequirement,
    Pool,
    Reservation,
    ReservationState,
)
from lanewise.pool.operations import pool_of
from lanewise.topology.compose import reached_from

_Result = TypeVar("_Result")
RACES = 8  # placements tried when another client took a block of the offer meanwhile
WORKERS = 8  # operations at once; with more, their ends hold up the claims of others


def _pause(attempt: int) -> None:
    time.sleep(0.05 * 2**attempt)


class Director:
    """One director over one store and one fabric; its methods may be called from any thread.

    Every change is one transaction (claims, intent, event), then idempotent driver steps one by one, then a transaction
    with the end state. A change returns its Task once the claims are committed and, with `wait`, once the steps have
    ended; without `wait` the steps run in a thread of the director. A task that failed says so in `problem`: nothing
    is raised after the claims are committed. `key` makes a repeated call with the same request return the first task.
    `version` is the composition's version that the caller has seen (If-Match); None changes any.
    `client` is who asks, for tasks and events. Before the claims are committed every change raises `errors.Refused`,
    UnknownName, Contradiction, Unreachable or pool.NoOffer, and nothing was changed.
    """

    def __init__(
        self, store: Store, driver: Driver, clock: Callable[[], float] = time.time,
        pause: Callable[[int], None] = _pause,
    ) -> None:  # fmt: skip
        """`clock` gives s since 1970; `pause` waits before the n-th retry of a driver's call."""
        self._store, self._driver, self._clock, self._pause = store, driver, clock, pause
        self._placer, self._fabric, self._mirror = Placer(driver), FabricReader(driver, pause), PoolMirror()
        self._runner = StepRunner(driver, pause, self._mirror.place)
        self._present: frozenset[str] = frozenset()
        self._tasks, self._events = TaskBoard(), EventBoard()
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="director")

    def start(self) -> ReconcileReport:
        """Read the fabric, take the store for this director, and finish or undo what was open."""
        self._store.hold()
        rows = self._store.pool_rows()
        self._mirror.load(rows)
        self._events.last = rows.version
        adopted = self._discover(adopt=not rows.blocks)
        return replace(self._resume(), adopted=adopted)

    def close(self) -> None:
        """Wait for running steps, and give the store back."""
        self._workers.shutdown(wait=True)
        self._store.release_hold()

    def view(self) -> PoolView:
        """The pool as of the last commit, from memory."""
        return self._mirror.view()

    def offers(self, request: CompositionRequest, most: int = 5) -> tuple[Offer, ...]:
        """Placements for a request with predicted rates, best first; NoOffer if none meets it."""
        return self._placer.offers(self.view().pool, request, most)

    def preview(
        self, server: str, blocks: Sequence[str], requirements: Sequence[PathRequirement] = (),
        extends: str | None = None,
    ) -> Offer:  # fmt: skip
        """What a placement (with `extends`, added to a composition) would give, and what others would lose."""
        return self._placer.preview(self.view().pool, server, blocks, requirements, extends)

    def compose(
        self, request: CompositionRequest, *, key: str = "", version: int | None = None, client: str = "",
        wait: bool = True,
    ) -> Task:  # fmt: skip
        """Give a server the best offer, or exactly the blocks named; with `extends`, add them to that composition.

        With requirements, NoOffer if the predicted rates are lower. `version` is that of the composition it extends.
        """
        order = self._order(client, key, version, "compose", request)

        def begin(placement: BlockPlacement) -> Task:
            return self._operate(lambda change: claims.begin_addition(change, order, placement), wait)

        return self._once(order, lambda: self._placed(request, begin), lambda name: self._reached(name, wait))

    def attach(
        self, composition: str, block: str, *, key: str = "", version: int | None = None, client: str = "",
        wait: bool = True,
    ) -> Task:  # fmt: skip
        """Add a block to a composition whose server runs."""
        request = CompositionRequest(blocks=(block,), extends=composition)
        return self.compose(request, key=key, version=version, client=client, wait=wait)

    def detach(
        self, composition: str, block: str, *, key: str = "", version: int | None = None, client: str = "",
        wait: bool = True,
    ) -> Task:  # fmt: skip
        """Take a block from a composition whose server runs; DeviceInUse, with its holders, while it is in use."""
        return self._remove(composition, block, self._order(client, key, version, "detach", composition, block), wait)

    def release(
        self, composition: str, *, key: str = "", version: int | None = None, client: str = "", wait: bool = True
    ) -> Task:
        """Take every block from a composition and end it; DeviceInUse while one is in use, and then all stay."""
        return self._remove(composition, None, self._order(client, key, version, "release", composition), wait)

    def reserve(self, request: CompositionRequest, seconds: float, *, key: str = "", client: str = "") -> Reservation:
        """Keep the server and blocks of the best offer, or exactly those named, for so many seconds."""
        if request.extends is not None:
            raise InputError("a reservation is for a new composition", hint="attach the blocks instead")
        if not 0 < seconds < float("inf"):
            raise InputError(f"a reservation cannot last {seconds:g} s", hint="choose more than 0 s")
        order = self._order(client, key, None, "reserve", request, seconds)

        def begin(placement: BlockPlacement) -> Reservation:
            return self._change(lambda change: claims.begin_reservation(change, order, placement, seconds))

        return self._once(order, lambda: self._placed(request, begin), self._store.reservation)

    def apply(self, reservation: str, *, name: str = "", key: str = "", client: str = "", wait: bool = True) -> Task:
        """Make a composition of a reservation; Expired if its time is over."""
        claims.check_name(name)
        order = self._order(client, key, None, "apply", reservation, name)

        def begin() -> Task:
            return self._operate(lambda change: claims.begin_application(change, order, reservation, name), wait)

        return self._once(order, begin, lambda task: self._reached(task, wait))

    def cancel(self, reservation: str) -> None:
        """End a reservation; its blocks are free for anybody."""

        def work(change: Change) -> None:
            row = change.reservation(reservation)
            if row.state is ReservationState.ACTIVE:
                change.end_reservation(row, ReservationState.CANCELLED)

        self._change(work)

    def expire(self, now: float | None = None) -> tuple[str, ...]:
        """End the reservations whose time was over at `now` (s since 1970, default the clock's), and return them.

        Every claim does this too, in its own transaction.
        """
        return tuple(self._change(lambda change: change.expire(), now))

    def repair(self, block: str) -> PoolView:
        """Observe a Failed or Unavailable block again: Unused or Composed if the fabric now says so, else as before."""
        self.view().pool.block(block)
        self._compare([block], repair=True)
        return self.view()

    def set_p2p(
        self, composition: str, allowed: bool, *, version: int | None = None
    ) -> PoolView:  # fmt: skip
        """Allow or forbid that the devices of a composition reach each other without the CPU."""
        before = self._change(lambda change: claims.change_p2p(change, composition, allowed, version))
        try:
            self._fabric.retried(lambda: self._driver.set_p2p(secrets.token_hex(8), before.server, allowed))
        except DriverError:
            self._change(lambda change: claims.change_p2p(change, composition, before.p2p, None))
            raise
        return self.view()

    def poll(self) -> int:
        """Take what the driver's fabric reported by itself into the pool and the outbox; the number of reports."""
        reports = list(self._driver.events())
        devices = {report.device for report in news(reports, self.view().pool.system)} & self.view().pool.blocks.keys()
        found = any(report.kind is FabricEventKind.DEVICE_FOUND for report in reports)
        if found or any(report.kind is FabricEventKind.DEVICE_LOST for report in reports):
            self._discover()
        if devices:
            self._compare(devices)
            self._read_links(devices)
        return len(reports)

    def reconcile(self) -> ReconcileReport:
        """Compare the pool with the fabric now: finish or undo what nobody is at work on, fail what contradicts."""
        self._discover()
        return self._resume()

    def task(self, name: str) -> Task:
        """The task of that name; UnknownName otherwise."""
        return self._tasks.current(self._store.task(name))

    def tasks(self) -> tuple[Task, ...]:
        """Every task that the store holds, oldest first."""
        return tuple(map(self._tasks.current, self._store.tasks()))

    def wait(self, task: str, timeout: float | None = None) -> Task:
        """The task once it has ended, or as it is after `timeout` seconds."""
        self._tasks.wait(task, timeout)
        return self.task(task)

    def events(self, after: int = 0, most: int = 1000) -> tuple[Event, ...]:
        """Events with an id above `after`, oldest first, from the outbox."""
        return self._store.events(after, most)

    def wait_events(self, after: int, timeout: float | None = None) -> tuple[Event, ...]:
        """The same, once there is one; empty after `timeout` seconds."""
        self._events.wait(after, timeout)
        return self._store.events(after)

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` with every event once committed, in order; returns what ends that.

        It must return at once (an asyncio service: `loop.call_soon_threadsafe`).
        """
        return self._events.listen(listener)

    def _order(self, client: str, key: str, version: int | None, action: str, *details: object) -> Order:
        return Order(secrets.token_hex(8), client, key, claims.fingerprint(action, *details), version)

    def _once(self, order: Order, begin: Callable[[], _Result], earlier: Callable[[str], _Result]) -> _Result:
        """What `begin` returns, or what the same request with its key led to before, or meanwhile in another thread."""
        repeated = self._repeated(order)
        if repeated is None:
            try:
                return begin()
            except LanewiseError:
                repeated = self._repeated(order)
                if repeated is None:
                    raise
        return earlier(repeated)

    def _repeated(self, order: Order) -> str | None:
        return self._store.repeated(order.client, order.key, order.fingerprint)

    def _reached(self, task: str, wait: bool) -> Task:
        return self.wait(task) if wait else self.task(task)

    def _placed(self, request: CompositionRequest, begin: Callable[[BlockPlacement], _Result]) -> _Result:
        """What `begin` returns for the placement of a request; for another one if a client was faster."""
        for _ in range(RACES):
            placement = self._placer.place(self._fresh(), request)
            try:
                return begin(placement)
            except BlockInUse:
                if request.blocks:
                    raise
        return begin(self._placer.place(self._fresh(), request))

    def _fresh(self) -> Pool:
        """The pool without reservations that have expired by now, which a claim would end."""
        now = self._clock()
        pool = self.view().pool
        if any(each.expires <= now for each in pool.reservations.values()):
            self.expire(now)
            pool = self.view().pool
        return pool

    def _remove(self, composition: str, block: str | None, order: Order, wait: bool) -> Task:
        def begin() -> Task:
            view = self.view()
            owner = view.pool.composition(composition)
            current = view.compositions[composition].version
            if order.version not in (None, current):
                raise StaleVersion(f"composition {composition}", order.version or 0, current)
            for name in owner.blocks if block is None else {block} & set(owner.blocks):
                self._fabric.check_idle(name, owner.server)
            return self._operate(lambda change: claims.begin_removal(change, order, composition, block), wait)

        return self._once(order, begin, lambda task: self._reached(task, wait))

    def _operate(self, begin: Callable[[Change], Begun], wait: bool) -> Task:
        """Commit the begin of an operation, then carry it out here or in a thread."""

        announced: list[Task] = []

        def announce(change: Change) -> Begun:
            begun = begin(change)
            if begun.task is not None:  # before it is committed, so that nobody takes it for one left over
                self._tasks.commit(begun.task)
                announced.append(begun.task)
            return begun

        try:
            begun = self._change(announce)
        except BaseException:
            for task in announced:
                self._tasks.drop(task.name)
            raise
        if begun.task is None or begun.intent is None:
            return self._reached(begun.repeated, wait)
        if wait:
            return self._carry_out(begun.task, begun.intent)
        self._workers.submit(self._carry_out, begun.task, begun.intent)
        return begun.task

    def _resume(self) -> ReconcileReport:
        """Finish or undo the operations that nobody is at work on, then compare every block with the fabric."""
        ended = []
        for intent in self._store.pool_rows().intents:
            if not self._tasks.runs(intent.task):
                task = self._store.task(intent.task)
                self._tasks.commit(task)
                ended.append(self._carry_out(task, intent))
        finished = tuple(task.name for task in ended if task.problem is None)
        undone = tuple(task.name for task in ended if task.problem is not None)
        failed = self._compare(self.view().pool.blocks)
        return ReconcileReport(finished, undone, failed, driver=self._driver.health())

    def _carry_out(self, task: Task, intent: IntentRow) -> Task:
        """The steps of an operation and the commit of its end state."""
        total = max(1, len(intent.steps))
        result = self._runner.run(intent.steps, lambda done: self._tasks.progress(task.name, 99 * done // total))
        if result.observed:
            for name, server in judge_free(result, self._observe()).items():
                self._mirror.place(name, server)
        bound = [name for name, state in result.states.items() if state is StepOutcome.BOUND]
        links = {name: note for name in bound if (note := self._fabric.link_note(name))}
        end = End(result, links)
        try:
            return self._ended(task, intent, end)
        finally:
            self._tasks.drop(task.name)

    def _ended(self, task: Task, intent: IntentRow, end: End) -> Task:
        """Commit the end of an operation; a database that is away for a moment is waited for."""
        for attempt in range(1, ATTEMPTS):
            try:
                return self._change(lambda change: claims.finish(change, task, intent, end))
            except StoreError:
                self._pause(attempt)
        return self._change(lambda change: claims.finish(change, task, intent, end))

    def _read_links(self, devices: Iterable[str]) -> None:
        """Read the links of devices that are composed, and report those that trained down, or do so no more."""
        composed = [name for name in devices if self.view().blocks[name].block.state is BlockState.COMPOSED]
        notes = {name: self._fabric.link_note(name) for name in composed}
        self._change(lambda change: claims.note_links(change, notes))

    def _change(self, work: Callable[[Change], _Result], now: float | None = None) -> _Result:
        try:
            return self._store.change(self._clock() if now is None else now, work, self._committed)
        except StoreError:  # whether it was committed may not be known: what is there counts
            with contextlib.suppress(StoreError):
                self._mirror.load(self._store.pool_rows())
            raise

    def _committed(self, change: Change) -> None:
        """Show what was committed to readers, waiters and listeners; called in the order of commits."""
        self._mirror.apply(change.written, change.version)
        for row in change.written:
            if isinstance(row, Task):
                self._tasks.commit(row)
        self._events.publish([row for row in change.written if isinstance(row, Event)])

    def _compare(self, names: Iterable[str], repair: bool = False) -> tuple[str, ...]:
        """Observe the fabric and write what contradicts the store about these blocks; those that are Failed by it."""
        view = self.view()
        observation = self._observe()
        versions = {name: record.version for name, record in view.blocks.items()}
        place_all(self._mirror, observation, view)
        return tuple(self._change(lambda change: compare(change, names, observation, versions, repair)))

    def _observe(self) -> FabricObservation:
        return observe(self._driver, self.view().pool, self._present, ATTEMPTS, self._pause)

    def _discover(self, adopt: bool = False) -> tuple[str, ...]:
        """Read the fabric and add the blocks that are new to the pool; the compositions adopted with them."""
        pool = pool_of(self._fabric.retried(self._driver.discover))
        self._present = frozenset(pool.system.devices)
        for server in pool.servers:
            reached_from(pool.system, server)  # so that the first claim for a server takes no longer than others
        self._mirror.discovered(pool.system, pool.servers)
        rows = self._store.pool_rows().blocks
        return tuple(self._change(lambda change: register(change, pool, rows, adopt)))
