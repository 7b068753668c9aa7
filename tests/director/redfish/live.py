"""A service that listens at a loopback port, in a thread of this process."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from director.directors import Running
from director.redfish.services import PASSWORD, SESSIONS, Client, serving

from lanewise.director.redfish.connections import ServiceLoop
from lanewise.director.redfish.server import http_server
from lanewise.director.redfish.settings import ServiceSettings

PATIENCE = 60.0  # s, only to fail a test that hangs


class LiveService:
    """Requests over a socket."""

    def __init__(self, port: int, client: Client, server: uvicorn.Server) -> None:
        self.port, self.client, self.server = port, client, server
        answer = self.request("POST", SESSIONS, {"UserName": "admin", "Password": PASSWORD}, token="")
        self.token = str(answer[2]["x-auth-token"])

    def connect(self) -> socket.socket:
        """A plain connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def request(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Status, JSON body and headers of one request."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        sent = {"X-Auth-Token": self.token if token is None else token, **headers}
        text = None if body is None else json.dumps(body)
        link.request(method, path, text, {name: value for name, value in sent.items() if value})
        reply = link.getresponse()
        content = reply.read()
        link.close()
        found = {name.lower(): value for name, value in reply.getheaders()}
        return reply.status, json.loads(content) if content else {}, found

    @contextmanager
    def stream(self, path: str = "/redfish/v1/EventService/SSE", **headers: str) -> Iterator[Iterator[str]]:
        """The lines of an event stream."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        link.request("GET", path, headers={"X-Auth-Token": self.token, **headers})
        reply = link.getresponse()
        assert reply.status == 200
        assert str(reply.getheader("content-type")).startswith("text/event-stream")
        try:
            yield (line.decode().rstrip("\n") for line in reply)
        finally:
            link.close()


def documents(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The events of a stream, each with its id."""
    number = 0
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            number = int(value)
        elif name == "data":
            yield number, json.loads(value)


@contextmanager
def listening(running: Running, folder: Path, **settings: Any) -> Iterator[LiveService]:
    """A service of a running director at a port of its own, without TLS."""
    bound = socket.socket(proto=socket.IPPROTO_TCP)
    with serving(running, folder, tls=False, **settings) as client, bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)  # the kernel's part of an unread answer
        bound.bind(("127.0.0.1", 0))
        server = http_server(client.app, ServiceSettings(folder, tls=False, **settings), None)
        ready = threading.Event()

        async def serve() -> None:
            task = asyncio.get_running_loop().create_task(server.serve(sockets=[bound]))
            while not server.started:
                await asyncio.sleep(0.005)
            ready.set()
            await task

        def run() -> None:
            with asyncio.Runner(loop_factory=ServiceLoop) as runner:
                runner.run(serve())

        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert ready.wait(PATIENCE)
            yield LiveService(bound.getsockname()[1], client, server)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
