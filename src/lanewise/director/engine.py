"""The director: offers, compositions and reservations, over a store that decides claims and a driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from lanewise.director.drivers.base import Driver
from lanewise.director.records import Event, PoolView, ReconcileReport, Task
from lanewise.director.store.database import Store
from lanewise.pool.model import CompositionRequest, Offer, PathRequirement, Reservation


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

    def __init__(self, store: Store, driver: Driver, clock: Callable[[], float] = time.time) -> None:
        self._store, self._driver, self._clock = store, driver, clock

    def start(self) -> ReconcileReport:
        """Read the fabric, take the store for this director, and finish or undo what was open."""
        raise NotImplementedError

    def close(self) -> None:
        """Wait for running steps, and give the store back."""
        raise NotImplementedError

    def view(self) -> PoolView:
        """The pool as of the last commit, from memory."""
        raise NotImplementedError

    def offers(self, request: CompositionRequest, most: int = 5) -> tuple[Offer, ...]:
        """Placements for a request with predicted rates, best first; NoOffer if none meets it."""
        raise NotImplementedError

    def preview(self, server: str, blocks: Sequence[str], requirements: Sequence[PathRequirement] = ()) -> Offer:
        """What a placement would give and what others would lose; nothing is claimed."""
        raise NotImplementedError

    def compose(
        self,
        request: CompositionRequest,
        *,
        key: str = "",
        version: int | None = None,
        client: str = "",
        wait: bool = True,
    ) -> Task:
        """Give a server the best offer, or exactly the blocks named; with `extends`, add them to that composition.

        With requirements, NoOffer if the predicted rates are lower. `version` is that of the composition it extends.
        """
        raise NotImplementedError

    def attach(
        self,
        composition: str,
        block: str,
        *,
        key: str = "",
        version: int | None = None,
        client: str = "",
        wait: bool = True,
    ) -> Task:
        """Add a block to a composition whose server runs."""
        raise NotImplementedError

    def detach(
        self,
        composition: str,
        block: str,
        *,
        key: str = "",
        version: int | None = None,
        client: str = "",
        wait: bool = True,
    ) -> Task:
        """Take a block from a composition whose server runs; DeviceInUse, with its holders, while it is in use."""
        raise NotImplementedError

    def release(
        self, composition: str, *, key: str = "", version: int | None = None, client: str = "", wait: bool = True
    ) -> Task:
        """Take every block from a composition and end it; DeviceInUse while one is in use, and then all stay."""
        raise NotImplementedError

    def reserve(self, request: CompositionRequest, seconds: float, *, key: str = "", client: str = "") -> Reservation:
        """Keep the server and blocks of the best offer, or exactly those named, for so many seconds."""
        raise NotImplementedError

    def apply(self, reservation: str, *, name: str = "", key: str = "", client: str = "", wait: bool = True) -> Task:
        """Make a composition of a reservation; Expired if its time is over."""
        raise NotImplementedError

    def cancel(self, reservation: str) -> None:
        """End a reservation; its blocks are free for anybody."""
        raise NotImplementedError

    def expire(self, now: float | None = None) -> tuple[str, ...]:
        """End the reservations whose time was over at `now` (s since 1970, default the clock's), and return them.

        Every claim does this too, in its own transaction.
        """
        raise NotImplementedError

    def repair(self, block: str) -> PoolView:
        """Observe a Failed or Unavailable block again: Unused or Composed if the fabric now says so, else as before."""
        raise NotImplementedError

    def set_p2p(self, composition: str, allowed: bool, *, version: int | None = None, client: str = "") -> PoolView:
        """Allow or forbid that the devices of a composition reach each other without the CPU."""
        raise NotImplementedError

    def poll(self) -> int:
        """Take what the driver's fabric reported by itself into the pool and the outbox; the number of reports."""
        raise NotImplementedError

    def reconcile(self) -> ReconcileReport:
        """Compare the pool with the fabric now; what contradicts becomes Failed and is never handed out."""
        raise NotImplementedError

    def task(self, name: str) -> Task:
        """The task of that name; UnknownName otherwise."""
        raise NotImplementedError

    def tasks(self) -> tuple[Task, ...]:
        """Every task that the store holds, oldest first."""
        raise NotImplementedError

    def wait(self, task: str, timeout: float | None = None) -> Task:
        """The task once it has ended, or as it is after `timeout` seconds."""
        raise NotImplementedError

    def events(self, after: int = 0, most: int = 1000) -> tuple[Event, ...]:
        """Events with an id above `after`, oldest first, from the outbox."""
        raise NotImplementedError

    def wait_events(self, after: int, timeout: float | None = None) -> tuple[Event, ...]:
        """The same, once there is one; empty after `timeout` seconds."""
        raise NotImplementedError

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` with every event once committed, in order; returns what ends that.

        It must return at once (an asyncio service: `loop.call_soon_threadsafe`).
        """
        raise NotImplementedError
