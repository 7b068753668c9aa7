"""A Redfish service over a director of the small pool, called in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from director.directors import Clock, Running

from lanewise.director.redfish import passwords
from lanewise.director.redfish.application import create_app
from lanewise.director.redfish.passwords import PasswordVerifier
from lanewise.director.redfish.service import RedfishService
from lanewise.director.redfish.settings import ServiceSettings
from lanewise.director.store.accounts import AccountRecord

passwords.MEMORY = 8  # hashes are slow on purpose; tests are not about that
BLOCKS = "/redfish/v1/CompositionService/ResourceBlocks"
SYSTEMS = "/redfish/v1/Systems"
ACCOUNTS = "/redfish/v1/AccountService/Accounts"
SESSIONS = "/redfish/v1/SessionService/Sessions"
COMPOSE = "/redfish/v1/CompositionService/Actions/CompositionService.Compose"
PASSWORD = "Correct-horse-7"
USERS = {"admin": "Administrator", "operator": "Operator", "reader": "ReadOnly"}


@cache
def password_hash() -> str:
    """The hash of the password of all users, made once: hashes are slow on purpose."""
    return PasswordVerifier().hash(PASSWORD)


def link(*names: str) -> list[dict[str, str]]:
    """Links to blocks."""
    return [{"@odata.id": f"{BLOCKS}/{name}"} for name in names]


def system(name: str, *blocks: str, **more: Any) -> dict[str, Any]:
    """The body that composes a system of exactly these blocks."""
    return {"Name": name, "Links": {"ResourceBlocks": link(*blocks)}, **more}


@dataclass
class Answer:
    """Status, body and headers of an answer."""

    status: int
    body: dict[str, Any]
    headers: httpx.Headers

    @property
    def keys(self) -> list[str]:
        """The identifiers of its messages, without registry and version."""
        error = self.body.get("error", {})
        return [row["MessageId"].rpartition(".")[2] for row in error.get("@Message.ExtendedInfo", [])]


@dataclass
class Client:
    """Calls the application; `user` sends basic credentials, a token is sent if there is one."""

    app: Any
    service: RedfishService
    running: Running
    loop: asyncio.AbstractEventLoop
    tokens: dict[str, str] = field(default_factory=dict)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str | None = "admin",
        headers: dict[str, str] | None = None,
        content: bytes | None = None,
    ) -> Answer:
        """One request; `content` replaces the JSON body."""
        sent = {"x-auth-token": self._token(user)} if user else {}
        reply = self.loop.run_until_complete(self._send(method, path, body, content, {**sent, **(headers or {})}))
        is_json = reply.headers.get("content-type", "").startswith("application/json") and reply.content
        return Answer(reply.status_code, reply.json() if is_json else {}, reply.headers)

    def get(self, path: str, **more: Any) -> Answer:
        """GET."""
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        """POST."""
        return self.call("POST", path, body, **more)

    def _token(self, user: str) -> str:
        if user not in self.tokens:
            self.tokens[user] = self.service.login.open(user, PASSWORD, "test")[1]
        return self.tokens[user]

    async def _send(
        self, method: str, path: str, body: Any, content: bytes | None, headers: dict[str, str]
    ) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, client=("192.0.2.7", 5))
        async with httpx.AsyncClient(transport=transport, base_url="http://director") as client:
            if content is not None:
                return await client.request(method, path, content=content, headers=headers)
            return await client.request(method, path, json=body, headers=headers)


@contextmanager
def serving(running: Running, folder: Path, clock: Clock | None = None, **settings: Any) -> Iterator[Client]:
    """A client of a service over a running director, with one account of each role."""
    for name, role in USERS.items():
        running.store.put_account(AccountRecord(name, password_hash(), role), 0)
    app: Any = create_app(running.director, running.store, ServiceSettings(folder, **settings), clock or running.clock)
    with asyncio.Runner() as runner:
        yield Client(app, app.state.service, running, runner.get_loop())
