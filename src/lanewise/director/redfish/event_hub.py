"""Subscribers of events: streams (server-sent events) and push deliveries, all fed from the director's outbox."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from anyio import to_thread

from lanewise.director.records import Event
from lanewise.director.redfish.etags import json_text
from lanewise.director.redfish.event_records import EventSelection, event_document, event_records
from lanewise.director.redfish.filter import parse_filter
from lanewise.director.redfish.messages import refusal
from lanewise.director.redfish.push import PushDelivery
from lanewise.director.redfish.resource import Call
from lanewise.director.store.subscriptions import SubscriptionRecord
from lanewise.units import whole

if TYPE_CHECKING:
    from lanewise.director.redfish.service import RedfishService

Message = MutableMapping[str, Any]
_BATCH = 200
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"odata-version", b"4.0"),
    (b"x-content-type-options", b"nosniff"),
    (b"connection", b"close"),
]


@dataclass(frozen=True, slots=True)
class EventStream:
    """A client that reads events as they come."""

    name: str
    account: str
    address: str
    opened: float


class EventHub:
    """Streams and subscriptions; `generation` rises when one comes or goes."""

    def __init__(self, service: RedfishService) -> None:
        self._service = service
        self.generation = 0
        self.streams: dict[str, EventStream] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakes: set[asyncio.Event] = set()
        self._deliveries: dict[str, tuple[PushDelivery, asyncio.Task[None]]] = {}
        self._closing = False
        self._unlisten: Callable[[], None] | None = None

    # --- life ---

    def start(self) -> None:
        """Begin to deliver; call it in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._unlisten = self._service.director.listen(lambda event: self._soon(self._wake))
        for record in self._service.store.subscriptions():
            self._begin(record)

    async def close(self) -> None:
        """End all streams and deliveries; a second time it does nothing."""
        self._closing = True
        if self._unlisten:
            self._unlisten()
            self._unlisten = None
        self._wake()
        tasks = [task for _, task in self._deliveries.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _soon(self, what: Callable[..., None], *arguments: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *arguments)

    def _wake(self) -> None:
        for wake in self._wakes:
            wake.set()
        for delivery, _ in self._deliveries.values():
            delivery.wake.set()

    def _begin(self, record: SubscriptionRecord) -> None:
        self._stop(record.name)
        delivery = PushDelivery(
            record,
            self._service.store,
            self._service.director.events,
            self._service.settings,
            lambda name: self._soon(self._terminate, name),
        )
        self._deliveries[record.name] = (delivery, asyncio.get_running_loop().create_task(delivery.run()))

    def _stop(self, name: str) -> None:
        entry = self._deliveries.pop(name, None)
        if entry is not None:
            entry[1].cancel()

    def _terminate(self, name: str) -> None:
        self._stop(name)
        self._service.store.drop_subscription(name)
        self.generation += 1

    # --- subscriptions; from any thread ---

    def subscriptions(self) -> dict[str, SubscriptionRecord]:
        """Push subscriptions by name."""
        return {record.name: record for record in self._service.store.subscriptions()}

    def suspended(self, name: str) -> bool:
        """Whether delivery stopped after failures."""
        entry = self._deliveries.get(name)
        return entry is not None and entry[0].suspended

    def add(self, account: str, destination: str, settings: dict[str, Any]) -> SubscriptionRecord:
        """A new subscription, from the newest event on; RedfishError 503 if there are too many."""
        with self._lock:
            if len(self.subscriptions()) >= self._service.settings.most_subscriptions:
                raise refusal(503, "Base.EventSubscriptionLimitExceeded")
            newest = self._service.view.version
            record = SubscriptionRecord(secrets.token_hex(6), account, destination, settings, delivered=newest)
            record = self._service.store.put_subscription(record, 0)
            self.generation += 1
        self._soon(self._begin, record)
        return record

    def change(self, record: SubscriptionRecord, settings: dict[str, Any]) -> SubscriptionRecord:
        """The subscription with other settings, its deliveries begun anew."""
        with self._lock:
            kept = self._service.store.put_subscription(replace(record, settings=settings, failures=0), record.version)
            self.generation += 1
        self._soon(self._begin, kept)
        return kept

    def remove(self, name: str) -> None:
        """End a subscription, or a stream."""
        with self._lock:
            if self.streams.pop(name, None) is None:
                self._service.store.drop_subscription(name)
            self.generation += 1
        self._soon(self._stop, name)
        self._soon(self._wake)

    # --- streams ---

    async def stream(
        self,
        call: Call,
        query: str,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Send events as they come until the client, the session or the service ends; replays after Last-Event-ID."""
        selection, position = _selection(query), self._position(call)
        opened = EventStream(f"SSE-{secrets.token_hex(4)}", call.user.account, call.client, self._service.clock())
        with self._lock:
            if len(self.streams) >= self._service.settings.most_streams:
                raise refusal(503, "Base.EventSubscriptionLimitExceeded")
            self.streams[opened.name] = opened
            self.generation += 1
        wake = asyncio.Event()
        self._wakes.add(wake)
        gone = asyncio.get_running_loop().create_task(_disconnected(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if call.method == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            await self._follow(call, opened.name, selection, position, wake, gone, send)
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            self._wakes.discard(wake)
            with self._lock:
                self.streams.pop(opened.name, None)
                self.generation += 1

    async def _follow(
        self,
        call: Call,
        name: str,
        selection: EventSelection,
        position: int,
        wake: asyncio.Event,
        gone: asyncio.Task[None],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        heartbeat = self._service.settings.heartbeat_seconds
        wake.set()
        await send({"type": "http.response.body", "body": b": events of the director\n\n", "more_body": True})
        while not gone.done() and not self._closing and name in self.streams and self._service.login.valid(call.user):
            try:
                async with asyncio.timeout(heartbeat):
                    await wake.wait()
            except TimeoutError:
                await send({"type": "http.response.body", "body": b": still connected\n\n", "more_body": True})
                continue
            wake.clear()
            while events := await to_thread.run_sync(self._service.director.events, position, _BATCH):
                for event in events:
                    text = _event_text(event, selection)
                    if text:
                        await send({"type": "http.response.body", "body": text, "more_body": True})
                position = events[-1].id

    def _position(self, call: Call) -> int:
        last = call.headers.get("last-event-id")
        if last is None:
            return call.view.version
        value = whole(last.strip())
        if value is None:
            raise refusal(400, "Base.HeaderInvalid", "Last-Event-ID")
        return value


def _event_text(event: Event, selection: EventSelection) -> bytes:
    records = [one for one in event_records(event) if selection.wants(one)]
    if not records:
        return b""
    return b"id: %d\ndata: %s\n\n" % (event.id, json_text(event_document(str(event.id), records)))


def _selection(query: str) -> EventSelection:
    for name, value in parse_qsl(query, keep_blank_values=True, errors="replace"):
        if name == "$filter":
            return EventSelection(predicate=parse_filter(value))
        if name.startswith("$"):
            raise refusal(501, "Base.QueryNotSupported")
    return EventSelection()


async def _disconnected(receive: Callable[[], Awaitable[Message]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
