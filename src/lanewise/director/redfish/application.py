"""The ASGI application: Redfish below /redfish, the web page at /."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from lanewise.director.engine import Director
from lanewise.director.redfish.dispatcher import Dispatcher
from lanewise.director.redfish.routes import route_table
from lanewise.director.redfish.service import Draw, RedfishService
from lanewise.director.redfish.settings import ServiceSettings
from lanewise.director.store.database import Store

_POLICY = (
    "default-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'self'"
)
_HOUSEKEEPING_SECONDS = 20.0
_FORGETTING_SECONDS = 3600.0
_log = logging.getLogger("lanewise.director")


def create_app(
    director: Director,
    store: Store,
    settings: ServiceSettings,
    clock: Callable[[], float] = time.time,
    draw: Draw | None = None,
) -> ASGIApp:
    """The service of a director that has been started; its lifespan begins and ends event deliveries.

    `draw` makes the drawings of the web page. The service behind it is at `app.state.service`.
    """
    service = RedfishService(director, store, settings, clock, draw)
    dispatcher = Dispatcher(service, route_table())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.events.start()
        keepers = [asyncio.get_running_loop().create_task(work(service)) for work in (_keep_house, _poll, _forget)]
        try:
            yield
        finally:
            for keeper in keepers:
                keeper.cancel()
            await service.events.close()
            await to_thread.run_sync(service.login.note_use)

    page = settings.static
    root: Any = (
        Mount("/", _Page(StaticFiles(directory=page, html=True)))
        if page is not None
        else Route("/", lambda _: PlainTextResponse("A Lanewise director: its Redfish service is at /redfish/v1/\n"))
    )
    app = Starlette(lifespan=lifespan, routes=[root])
    app.state.service = service
    return _Entrance(app, dispatcher)


class _Entrance:
    """Sends what is below /redfish to the dispatcher, everything else to the page."""

    def __init__(self, page: Starlette, dispatcher: Dispatcher) -> None:
        self._page, self._dispatcher = page, dispatcher
        self.state = page.state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/redfish"):
            await self._dispatcher(scope, receive, send)
        else:
            await self._page(scope, receive, send)


class _Page:
    """The static files with headers that keep foreign pages and scripts out."""

    def __init__(self, files: StaticFiles) -> None:
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                extra = [
                    (b"content-security-policy", _POLICY.encode()),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                    (b"cache-control", b"no-cache"),
                ]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        await self._files(scope, receive, guarded)


async def _keep_house(service: RedfishService) -> None:
    """Note when sessions were used, end those that are too old, and reservations whose time is over."""
    works = (service.login.note_use, partial(getattr, service.login, "sessions"), service.director.expire)
    while True:
        await asyncio.sleep(_HOUSEKEEPING_SECONDS)
        for work in works:
            await _carry_out(work)


async def _poll(service: RedfishService) -> None:
    """Take what the fabric reports by itself into the pool: devices that come, go or train down."""
    while True:
        await asyncio.sleep(service.settings.poll_seconds)
        await _carry_out(service.director.poll)


async def _forget(service: RedfishService) -> None:
    """Remove what ended long ago, or the database would grow without end."""
    while True:
        await _carry_out(service.forget)
        await asyncio.sleep(_FORGETTING_SECONDS)


async def _carry_out(work: Callable[[], object]) -> None:
    """Do it in a thread; what fails is in the log, and is tried again next time."""
    try:
        await to_thread.run_sync(work)
    except Exception as error:
        _log.warning("%s failed: %s", getattr(work, "__name__", "housekeeping"), error)
