"""Serving: uvicorn over the application, TLS by default, loopback unless the settings say otherwise."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from lanewise.director.engine import Director
from lanewise.director.redfish.application import create_app
from lanewise.director.redfish.connections import ServiceLoop, bounded_protocol
from lanewise.director.redfish.service import Draw
from lanewise.director.redfish.settings import ServiceSettings
from lanewise.director.redfish.tls import certificate_files, fingerprint, tls_context
from lanewise.director.store.database import Store
from lanewise.errors import InputError

_BACKLOG = 256
_GRACE_SECONDS = 5
_SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, slots=True)
class ListeningService:
    """Where a service listens: its address, certificate (None without TLS) and the first password, if just made."""

    url: str
    certificate: Path | None
    fingerprint: str
    password: str | None


def serve(
    director: Director,
    store: Store,
    settings: ServiceSettings,
    ready: Callable[[ListeningService], None] | None = None,
    draw: Draw | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called once the service listens, `draw` makes the page's drawings.

    InputError if the address cannot be used, or if it is no loopback address and TLS is off.
    """
    listening = _listen(settings)
    certificate, context = None, None
    if settings.tls:
        certificate, key = certificate_files(settings)
        context = tls_context(certificate, key)
    app = create_app(director, store, settings, draw=draw)
    password = app.state.service.login.first_password()  # type: ignore[attr-defined]
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    url = f"{'https' if settings.tls else 'http'}://{shown}:{port}"
    server = http_server(app, settings, context)

    # Reads are answered between two steps of a prediction in another thread, which would hold them up for 5 ms else.
    sys.setswitchinterval(_SWITCH_SECONDS)

    async def run() -> None:
        started = asyncio.get_running_loop().create_task(server.serve(sockets=[listening]))
        while not server.started and not started.done():
            await asyncio.sleep(0.01)
        if ready is not None and not started.done():
            mark = fingerprint(certificate) if certificate else ""
            ready(ListeningService(url, certificate, mark, password))
        await started

    with asyncio.Runner(loop_factory=ServiceLoop) as runner, listening:
        runner.run(run())


class DirectorServer(uvicorn.Server):
    """uvicorn's server; event streams end before it waits for its connections to end."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams and deliveries, then as usual."""
        await self.config.app.state.service.events.close()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def http_server(app: object, settings: ServiceSettings, context: ssl.SSLContext | None) -> uvicorn.Server:
    """The HTTP server of an application with the settings' limits; TLS with a context."""
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=bounded_protocol(settings.most_connections, settings.request_seconds, settings.read_seconds),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        h11_max_incomplete_event_size=settings.most_header,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=_BACKLOG,
    )
    config.load()
    if context is not None:
        config.ssl = context
    return DirectorServer(config)


def _listen(settings: ServiceSettings) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise InputError(f"cannot listen at {settings.host}: {error.strerror}") from None
    if not settings.tls and not ipaddress.ip_address(address[0]).is_loopback:
        hint = "leave TLS on, or listen at 127.0.0.1"
        raise InputError(f"without TLS only loopback addresses are served, not {settings.host}", hint=hint)
    # asyncio turns Nagle's algorithm off only where the protocol is named: each answer would take 40 ms else.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        cause = f"cannot listen at {settings.host}:{settings.port}: {error.strerror}"
        raise InputError(cause, hint="choose another port, or 0 for a free one") from None
    return listening
