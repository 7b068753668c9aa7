"""A Redfish client whose service is in this process."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from director.redfish.services import PASSWORD, Client

from lanewise.director.client.session import RedfishClient, ServiceAddress


class InProcessTransport(httpx.BaseTransport):
    """Carries the requests of a client that waits to an ASGI application."""

    def __init__(self, app: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._app, self._loop = app, loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The application's answer."""
        return self._loop.run_until_complete(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        sent = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        reply = await httpx.ASGITransport(self._app, client=("192.0.2.8", 5)).handle_async_request(sent)
        return httpx.Response(reply.status_code, headers=reply.headers, content=await reply.aread())


def redfish_client(client: Client, user: str = "operator") -> RedfishClient:
    """A client of the service, logged in."""
    transport = InProcessTransport(client.app, client.loop)
    return RedfishClient(ServiceAddress("http://director", user, PASSWORD), transport=transport)
