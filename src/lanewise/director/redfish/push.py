"""Events pushed to subscribers: each from the last one it got, with retries."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import httpx
from anyio import to_thread

from lanewise.director.records import Event
from lanewise.director.redfish.event_records import EventSelection, event_document, event_records
from lanewise.director.redfish.messages import RedfishError
from lanewise.director.redfish.push_targets import parse_target, resolve
from lanewise.director.redfish.settings import ServiceSettings
from lanewise.director.store.database import Store
from lanewise.director.store.subscriptions import SubscriptionRecord

_BATCH = 100
_SEND_SECONDS = 10.0
_log = logging.getLogger("lanewise.director")


@cache
def _tls_context(verify: bool) -> ssl.SSLContext:
    """Made once: reading the certificates of all authorities takes a third of a second."""
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def post(record: SubscriptionRecord, document: dict[str, Any], networks: Sequence[str]) -> bool:
    """Send one document to a subscriber; whether it was taken. Follows no redirect and reads no answer."""
    settings = record.settings
    try:
        target = parse_target(record.destination)
        address = await to_thread.run_sync(resolve, target, networks)
        host = f"[{address}]" if ":" in address else address
        url = f"{target.scheme}://{host}:{target.port}{target.path}"
        own = ":" in target.host
        headers = {name: value for one in settings.get("HttpHeaders") or () for name, value in one.items()}
        headers["Host"] = f"{f'[{target.host}]' if own else target.host}:{target.port}"
        client = httpx.AsyncClient(
            verify=_tls_context(bool(settings.get("VerifyCertificate", True))), timeout=_SEND_SECONDS, trust_env=False
        )
        async with (
            asyncio.timeout(_SEND_SECONDS),
            client,
            client.stream(
                "POST", url, json=document, headers=headers, extensions={"sni_hostname": target.host}
            ) as reply,
        ):
            return reply.is_success
    except (httpx.HTTPError, RedfishError, OSError, TimeoutError, ValueError) as error:
        _log.info("event not delivered to subscription %s: %s", record.name, error)
        return False


class PushDelivery:
    """Delivers events to one subscriber, in order; `pending` gives the events after an id."""

    def __init__(
        self,
        record: SubscriptionRecord,
        store: Store,
        pending: Callable[[int, int], tuple[Event, ...]],
        settings: ServiceSettings,
        ended: Callable[[str], None],
    ) -> None:
        self.record, self._store, self._pending, self._ended = record, store, pending, ended
        self._settings = settings
        self.wake = asyncio.Event()
        self.suspended = False
        self.failures = record.failures
        self._position = record.delivered
        self._selection = EventSelection.of_settings(record.settings)

    async def run(self) -> None:
        """Deliver until cancelled, or until the subscription ends for failing."""
        self.wake.set()
        while True:
            await self.wake.wait()
            self.wake.clear()
            while not self.suspended and (events := await to_thread.run_sync(self._pending, self._position, _BATCH)):
                for event in events:
                    if not await self._deliver(event):
                        break
                    self._position = event.id
                await to_thread.run_sync(self._store.delivered, self.record.name, self._position, self.failures)

    async def _deliver(self, event: Event) -> bool:
        records = [one for one in event_records(event) if self._selection.wants(one)]
        if not records:
            return True
        settings = self.record.settings
        document = event_document(str(event.id), records, str(settings.get("Context") or ""))
        if await post(self.record, document, self._settings.push_networks):
            self.failures = 0
            return True
        self.failures += 1
        policy = settings.get("DeliveryRetryPolicy", "RetryForever")
        spent = self.failures > self._settings.push_attempts
        if spent and policy == "TerminateAfterRetries":
            self._ended(self.record.name)
            self.suspended = True
        elif spent and policy == "SuspendRetries":
            self.suspended = True
        else:
            await asyncio.sleep(self._settings.push_retry_seconds)
        return False
