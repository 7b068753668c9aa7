"""The one dispatcher: an ASGI application that answers every request below /redfish."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

from anyio import CapacityLimiter, to_thread

from lanewise.director.redfish.etags import etag_of, json_text, matches
from lanewise.director.redfish.json_body import checked, read_object
from lanewise.director.redfish.login import cookie_token, credentials, unauthorized
from lanewise.director.redfish.messages import RedfishError, RedfishMessage, refusal
from lanewise.director.redfish.query import apply_query, parse_query
from lanewise.director.redfish.resource import Call, Reply, ResourceType, RouteTable, WriteMethod, path_segments
from lanewise.director.redfish.roles import Principal
from lanewise.director.redfish.service import RedfishService
from lanewise.director.redfish.translation import translated

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"})
_JSON = "application/json;charset=utf-8"
_ALWAYS = [
    (b"odata-version", b"4.0"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
_log = logging.getLogger("lanewise.director")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, media type, body and headers as they are sent."""

    status: int
    body: bytes = b""
    media: str = _JSON
    headers: tuple[tuple[str, str], ...] = ()


class Dispatcher:
    """Finds the resource type of a request, checks who sends it and what, and runs its method."""

    def __init__(self, service: RedfishService, routes: RouteTable) -> None:
        self.service, self.routes = service, routes
        # Changes wait for the fabric; they must not hold up each other's reads.
        self._writers, self._readers = CapacityLimiter(24), CapacityLimiter(4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = _Request(scope, receive, self.service.settings.most_body, self.service.settings.request_seconds)
        try:
            answer = await self._answer(request, send)
        except RedfishError as error:
            answer = await self._refused(request, error)
        except Exception as error:
            refused = translated(error)
            if refused is None:
                _log.exception("%s %s failed", request.method, request.path)
                refused = refusal(500, "Base.InternalError")
            answer = await self._refused(request, refused)
        if answer is not None:
            await _send(answer, request, send)

    async def _refused(self, request: _Request, error: RedfishError) -> HttpAnswer:
        headers = dict(error.headers)
        if error.status == 401 and "x-requested-with" not in request.headers:
            headers["WWW-Authenticate"] = 'Basic realm="Lanewise director"'
        if not await request.drain():
            headers["Connection"] = "close"
        if request.method not in ("GET", "HEAD") and request.principal is not None:
            who = (request.principal, request.client, request.method, request.path, error.status, str(error))
            await to_thread.run_sync(self.service.audit, *who, limiter=self._writers)
        return HttpAnswer(error.status, json_text(error.as_json()), headers=tuple(headers.items()))

    async def _answer(self, request: _Request, send: Send) -> HttpAnswer | None:
        if request.method not in _METHODS:
            raise refusal(501, "Base.OperationNotAllowed", text="The service does not know this method.")
        if request.headers.get("odata-version", "4.0") != "4.0":
            raise refusal(412, "Base.HeaderInvalid", "OData-Version", hint="Send 4.0.")
        segments = path_segments(request.raw_path)
        route = self.routes.find(segments)
        public = route is not None and route[0].privilege is None and request.method in ("GET", "HEAD")
        # Anyone may read the service root, but what it links to shows only where the caller may read that too.
        request.principal = None if public and not request.query else await self._principal(request)
        if route is None:
            if request.principal is None:
                raise unauthorized()
            raise refusal(404, "Base.ResourceMissingAtURI", "/" + "/".join(segments))
        kind, names = route
        if request.method not in kind.allowed:
            self._check(kind.privilege, request.principal)
            error = refusal(405, "Base.OperationNotAllowed")
            error.headers["Allow"] = ", ".join(kind.allowed)
            raise error
        path = "/" + "/".join(segments)
        view = self.service.view
        call = Call(self.service, view, names, path, request.method, request.headers, request.principal, request.client)
        if request.method in ("GET", "HEAD"):
            if kind.stream:
                self._check(kind.privilege, request.principal)
                await self.service.events.stream(call, request.query, request.receive, send)
                return None
            return await self._read(kind, call, request.query)
        return await self._write(kind.writes[request.method], kind, call, request)

    # --- who ---

    async def _principal(self, request: _Request) -> Principal | None:
        login, headers = self.service.login, request.headers
        token = headers.get("x-auth-token")
        if token is not None:
            principal = login.of_token(token)
            if principal is None:
                raise RedfishError(401, RedfishMessage("Base.NoValidSession"))
            return principal
        pair = credentials(headers)
        if pair is not None:
            known = login.remembered(*pair)
            if known is not None:
                return known
            account = await to_thread.run_sync(login.authenticate, *pair, request.client, limiter=self._writers)
            return Principal(account.name, account.role)
        token = cookie_token(headers)
        principal = login.of_token(token, cookie=True) if token else None
        # A browser sends the cookie with a request that another page made; it does not send this header with it.
        if principal and request.method not in ("GET", "HEAD") and "x-requested-with" not in headers:
            raise refusal(403, "Base.HeaderMissing", "X-Requested-With")
        return principal

    def _check(self, privilege: Any, principal: Principal | None, own: bool = False) -> None:
        if privilege is None:
            return
        if principal is None:
            raise unauthorized()
        if not own and not principal.may(privilege):
            raise refusal(403, "Base.InsufficientPrivilege")

    # --- reading ---

    async def _read(self, kind: ResourceType, call: Call, query: str) -> HttpAnswer:
        self._check(kind.privilege, call.principal, kind.own is not None and kind.own(call))
        allow = ("Allow", ", ".join(kind.allowed))
        if kind.document is not None:
            make = kind.document
            document = await to_thread.run_sync(make, call, limiter=self._readers) if kind.slow else make(call)
            headers = (allow, ("ETag", etag_of(document.text)), *document.headers.items())
            return HttpAnswer(document.status, document.text, document.media, headers)
        options = parse_query(query, collection=kind.collection)
        # What is not in memory is read from the store, or predicted: in a thread, as others wait.
        slow = kind.slow or options.costly
        represent = self.service.represent
        if kind.slow or kind.live:
            resource = await to_thread.run_sync(represent, kind, call, limiter=self._readers)
        else:
            resource = represent(kind, call)
        text, etag = resource.text, resource.etag
        if options.any:

            def fetch(path: str) -> dict[str, Any] | None:
                return self.fetch(path, call)

            if slow:
                data = await to_thread.run_sync(apply_query, resource.data, options, fetch, limiter=self._readers)
                text = await to_thread.run_sync(json_text, data, limiter=self._readers)
            else:
                data = apply_query(resource.data, options, fetch)
                text = json_text(data)
            if not options.select or options.expand:
                etag = etag_of(text)
        name = kind.schema.partition(".")[0]
        schema = ("Link", f"<http://redfish.dmtf.org/schemas/v1/{name}.json>; rel=describedby")
        if "if-none-match" in call.headers and matches(call.headers["if-none-match"], etag):
            return HttpAnswer(304, headers=(allow, ("ETag", etag), schema))
        return HttpAnswer(200, text, headers=(allow, ("ETag", etag), schema))

    def fetch(self, path: str, call: Call) -> dict[str, Any] | None:
        """Another resource as the caller would read it; None if it is none, or the caller may not."""
        route = self.routes.find(tuple(path.partition("#")[0].strip("/").split("/")))
        if route is None or route[0].read is None or not route[0].schema or "#" in path:
            return None
        kind, names = route
        other = replace(call, names=names, path=path, method="GET")
        try:
            self._check(kind.privilege, call.principal, kind.own is not None and kind.own(other))
            return self.service.represent(kind, other).data
        except RedfishError:
            return None

    # --- writing ---

    async def _write(self, method: WriteMethod, kind: ResourceType, call: Call, request: _Request) -> HttpAnswer:
        self._check(method.privilege, call.principal, method.own is not None and method.own(call))
        if request.query:
            raise refusal(400, "Base.QueryNotSupportedOnOperation")
        text = await request.body()
        if method.form is not None:
            media = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
            if media != "application/json":
                raise refusal(415, "Base.HeaderInvalid", "Content-Type", hint="Send application/json.")

        def work() -> tuple[Reply, bytes]:
            patching = kind.read is not None and call.method == "PATCH"
            readable = frozenset(self.service.represent(kind, call).data) if patching else frozenset[str]()
            form = method.form
            filled = call
            if form is not None:
                body = checked(form, read_object(text), action=method.action, readable=readable)
                filled = replace(call, body=body)
            with self.service.precondition(kind, filled, method.alone):
                reply = method.run(filled)
            content = json_text(reply.body) if reply.body is not None else b""
            self.service.audit(call.principal, call.client, call.method, call.path, reply.status, "")
            return reply, content

        reply, content = await to_thread.run_sync(work, limiter=self._writers)
        return HttpAnswer(reply.status, content, headers=tuple(reply.headers.items()))


class _Request:
    """The request as the ASGI server gives it, its body read at most once and within limits."""

    def __init__(self, scope: Scope, receive: Receive, most: int, seconds: float) -> None:
        self.method: str = scope["method"]
        self.raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.path = self.raw_path[:200].decode("ascii", "replace")
        self.query = scope.get("query_string", b"").decode("ascii", "replace")
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope.get("client")
        self.client: str = client[0] if client else ""
        self.principal: Principal | None = None
        self.receive, self._most, self._seconds = receive, most, seconds
        self._read = False

    async def body(self) -> bytes:
        """The whole body; RedfishError 413 if it is too large, 408 if it comes too slowly."""
        self._read = True
        length = self.headers.get("content-length", "0")
        if not length.isdigit() or len(length) > 12:
            raise refusal(400, "Base.HeaderInvalid", "Content-Length")
        if int(length) > self._most:
            self._read = False
            raise refusal(413, "Base.PayloadTooLarge")
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await self.receive()
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > self._most:
                        self._read = False
                        raise refusal(413, "Base.PayloadTooLarge")
                    chunks.append(chunk)
                    if message["type"] == "http.disconnect" or not message.get("more_body"):
                        return b"".join(chunks)
        except TimeoutError:
            self._most = 0
            self._read = False
            raise refusal(408, "Base.OperationTimeout") from None

    async def drain(self) -> bool:
        """Read what is left of a small body and forget it; False if the connection must be closed instead."""
        if self._read or ("content-length" not in self.headers and "transfer-encoding" not in self.headers):
            return True
        length = self.headers.get("content-length", "")
        if not length.isdigit() or len(length) > 12 or int(length) > self._most:
            return False
        try:
            await self.body()
        except RedfishError:
            return False
        return True


async def _send(answer: HttpAnswer, request: _Request, send: Send) -> None:
    headers = list(_ALWAYS)
    headers += [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in answer.headers]
    if answer.body:
        headers.append((b"content-type", answer.media.encode()))
    if answer.status not in (204, 304):
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else answer.body})
