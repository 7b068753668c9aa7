"""One Redfish service over HTTPS: resources with their ETags, actions, tasks until they end, and its event stream."""

from __future__ import annotations

import json
import secrets
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from lanewise.director.client.errors import RefusedByService, ServiceUnreachable, of_messages, refused
from lanewise.errors import InputError, import_extra

ROOT = "/redfish/v1/"
_ACCEPTED, _UNAUTHORIZED = 202, 401
_MOST_MEMBERS = 100_000
_MOST_PAUSE = 30.0  # s between two looks at a task, whatever the service says
_ENDED = {"Completed", "Exception", "Killed", "Cancelled"}
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a service is, and as whom it is used; without `user` nobody logs in.

    `certificate` is the file of the certificate to trust, the service's own or that of its authority; without one
    those of the system. `verify` off trusts any.
    """

    url: str
    user: str = ""
    password: str = ""
    certificate: Path | None = None
    verify: bool = True


@dataclass(frozen=True, slots=True)
class RedfishResource:
    """A resource as it was read: its address, content and ETag ('' if it has none)."""

    uri: str
    body: dict[str, Any]
    etag: str = ""

    @property
    def name(self) -> str:
        """Its Id, else the last part of its address."""
        return str(self.body.get("Id") or self.uri.rstrip("/").rpartition("/")[2])

    def link(self, *path: str) -> str | None:
        """The address that a property leads to: `link("Links", "Chassis")`; None if there is none."""
        value: Any = self.body
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        uri = value.get("@odata.id") if isinstance(value, dict) else None
        return uri if isinstance(uri, str) else None


class RedfishClient:
    """A session with one service; leave it as a context manager, which logs out."""

    def __init__(self, address: ServiceAddress, *, timeout: float = 60.0, transport: Any = None) -> None:
        """Log in; ServiceUnreachable if nothing answers, RefusedByService if the account is refused.

        `timeout` is in s of one answer; `transport` (httpx) takes the place of the network.
        """
        httpx = import_extra("httpx", "director", "a Redfish service is reached with httpx, which is not installed")
        self.address = address
        self._httpx = httpx
        if not address.url.startswith(("https://", "http://")):
            raise InputError(f"'{address.url}' is no address of a service", hint="write https://HOST:PORT")
        headers = {"OData-Version": "4.0", "Accept": "application/json"}
        context = _tls_context(address) if transport is None and address.url.startswith("https") else False
        self._http = httpx.Client(
            base_url=address.url, headers=headers, verify=context, timeout=timeout, transport=transport, trust_env=False
        )
        self._session = ""
        try:
            self.root = self.get(ROOT)
            if address.user:
                self._log_in(address)
        except BaseException:
            self._http.close()
            raise

    def __enter__(self) -> RedfishClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session:
            with suppress(RefusedByService, ServiceUnreachable):
                self.delete(self._session)
        self._http.close()

    def get(self, uri: str, **query: str) -> RedfishResource:
        """A resource; `query` such as expand=".", which becomes $expand."""
        parameters = {f"${name}": value for name, value in query.items()}
        reply = self._send("GET", uri, params=parameters or None)
        return RedfishResource(uri, self._body(reply), reply.headers.get("etag", ""))

    def members(self, uri: str) -> list[RedfishResource]:
        """The members of a collection: at once if the service expands collections, else one by one."""
        expand = self.root.body.get("ProtocolFeaturesSupported", {}).get("ExpandQuery", {})
        query = {"expand": "."} if expand.get("NoLinks") else {}
        members: list[RedfishResource] = []
        following: str | None = uri
        while following and len(members) < _MOST_MEMBERS:
            page = self.get(following, **(query if following == uri else {})).body
            for row in page.get("Members", []):
                place = str(row.get("@odata.id", ""))
                whole = len(row) > 1
                members.append(RedfishResource(place, row, row.get("@odata.etag", "")) if whole else self.get(place))
            following = page.get("Members@odata.nextLink")
        return members

    def post(self, uri: str, body: Body, etag: str = "", *, key: str = "") -> RedfishResource:
        """What a POST leads to, after its task if it has one: what it created (Location), else its answer.

        With `key`, any text, the service carries a request out once that comes twice, so it is repeated if the
        connection breaks.
        """
        headers = {"Idempotency-Key": key} if key else {}
        return self._change("POST", uri, body, etag, headers, repeat=bool(key))

    def patch(self, uri: str, body: Body, etag: str = "") -> RedfishResource:
        """The resource after a PATCH and its task."""
        return self._change("PATCH", uri, body, etag)

    def delete(self, uri: str, etag: str = "") -> RedfishResource:
        """The answer to a DELETE, after its task."""
        return self._change("DELETE", uri, None, etag)

    def act(self, resource: RedfishResource, action: str, body: Body, etag: str = "", key: str = "") -> RedfishResource:
        """The answer to an action such as 'ComputerSystem.AddResourceBlock', after its task.

        RefusedByService, 405, if the resource has no such action.
        """
        target = resource.body.get("Actions", {}).get(f"#{action}", {}).get("target")
        if not isinstance(target, str):
            raise RefusedByService(f"{resource.name} has no action {action}", 405)
        return self.post(target, body, etag, key=key)

    def events(self, last: str = "", ended: Callable[[], bool] = lambda: False) -> Iterator[tuple[str, dict[str, Any]]]:
        """The events of the stream with their ids, as they come; after `last`, if the service keeps events.

        Connects again when the stream breaks. `ended` is called whenever anything comes, be it a sign of life.
        """
        service = self.root.link("EventService")
        uri = self.get(service).body.get("ServerSentEventUri") if service else None
        if not isinstance(uri, str):
            raise RefusedByService("the service has no event stream", 404, hint="watch its tasks instead")
        while not ended():
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
            try:
                with self._http.stream("GET", uri, headers=headers) as reply:
                    if reply.status_code >= 400:
                        reply.read()
                        raise refused(reply.status_code, reply.reason_phrase, _json(reply.content))
                    for name, event in _parse_stream(reply.iter_lines(), ended):
                        last = name or last
                        yield last, event
            except self._httpx.TransportError as error:
                self._check_there(error)

    def _check_there(self, error: Exception) -> None:
        """Whether the service still answers; ServiceUnreachable if not."""
        try:
            self.get(ROOT)
        except ServiceUnreachable:
            raise ServiceUnreachable(f"the event stream ended: {_reason(error)}") from None

    def _log_in(self, address: ServiceAddress) -> None:
        uri = self.root.link("Links", "Sessions") or f"{ROOT}SessionService/Sessions"
        try:
            reply = self._send("POST", uri, json={"UserName": address.user, "Password": address.password})
        except RefusedByService as refusal:
            if refusal.status != _UNAUTHORIZED:
                raise
            cause = f"the service refuses the login as {address.user}: {refusal.cause}"
            hint = f"{refusal.hint}; each serve --demo makes a new password"
            raise RefusedByService(cause, _UNAUTHORIZED, refusal.keys, refusal.details, hint) from None
        self._http.headers["X-Auth-Token"] = reply.headers.get("x-auth-token", "")
        self._session = reply.headers.get("location", "")

    def _change(
        self, method: str, uri: str, body: Body | None, etag: str, headers: Body | None = None, repeat: bool = False
    ) -> RedfishResource:
        headers = {**(headers or {}), **({"If-Match": etag} if etag else {})}
        try:
            reply = self._send(method, uri, json=body, headers=headers)
        except ServiceUnreachable:
            if not repeat:
                raise
            reply = self._send(method, uri, json=body, headers=headers)
        created = reply.headers.get("location", "")
        if reply.status_code == _ACCEPTED:
            return self._await_task(uri, reply)
        return RedfishResource(created or uri, self._body(reply), reply.headers.get("etag", ""))

    def _await_task(self, uri: str, reply: Any) -> RedfishResource:
        """What a task created, else its last answer; RefusedByService with its messages if it failed."""
        monitor = reply.headers.get("location") or self._body(reply).get("@odata.id")
        while reply.status_code == _ACCEPTED or not _ended(self._body(reply)):
            time.sleep(_pause(reply))
            reply = self._send("GET", str(monitor))
        body = self._body(reply)
        if body.get("TaskState") in _ENDED - {"Completed"}:
            raise of_messages(500, body.get("Messages", []), f"the task ended as {body['TaskState']}")
        created = body.get("Links", {}).get("CreatedResources") if "TaskState" in body else None
        place = created[0]["@odata.id"] if created else reply.headers.get("location", "") or uri
        return RedfishResource(place, body, reply.headers.get("etag", ""))

    def _send(self, method: str, uri: str, **how: Any) -> Any:
        """The reply, which is no error."""
        try:
            reply = self._http.request(method, uri, **how)
        except self._httpx.TransportError as error:
            raise self._unreachable(error) from None
        except self._httpx.InvalidURL as error:
            raise InputError(f"'{self.address.url}' is no address of a service: {error}") from None
        if reply.status_code >= 300:
            raise refused(reply.status_code, f"{method} {uri}: {reply.reason_phrase}", _json(reply.content))
        return reply

    def _unreachable(self, error: Exception) -> ServiceUnreachable:
        reason = _reason(error)
        hint = "start one with lanewise director serve, or name another with --url"
        if "certificate" in reason.lower():
            hint = "name the certificate to trust with --certificate"
        sent = not isinstance(error, (self._httpx.ConnectError, self._httpx.ConnectTimeout))
        return ServiceUnreachable(f"no Redfish service at {self.address.url}: {reason}", sent=sent, hint=hint)

    def _body(self, reply: Any) -> dict[str, Any]:
        body = _json(reply.content)
        if reply.content and not isinstance(body, dict):
            raise ServiceUnreachable(f"{self.address.url} answers {reply.url.path} with no JSON object")
        return body if isinstance(body, dict) else {}


def new_key() -> str:
    """A key for a request that may be repeated."""
    return secrets.token_hex(16)


def _tls_context(address: ServiceAddress) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not address.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif address.certificate is not None:
        try:
            context.load_verify_locations(address.certificate)
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"{address.certificate} is no certificate: {_reason(error)}") from None
    return context


def _reason(error: Exception) -> str:
    text = str(error.__cause__ or error) or type(error).__name__
    return text.partition(" (_ssl.c")[0].removeprefix("[SSL: CERTIFICATE_VERIFY_FAILED] ")


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _ended(body: Mapping[str, Any]) -> bool:
    return "TaskState" not in body or body["TaskState"] in _ENDED


def _pause(reply: Any) -> float:
    text = reply.headers.get("retry-after", "")
    return min(float(text), _MOST_PAUSE) if text.isdigit() else 1.0


def _parse_stream(lines: Iterator[str], ended: Callable[[], bool]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events in the lines of a stream (WHATWG HTML, server-sent events), each with its id."""
    name, data = "", []
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "id":
            name = value
        elif field == "data":
            data.append(value)
        elif not line and data:
            body = _json("\n".join(data).encode())
            data = []
            if isinstance(body, dict):
                yield name, body
        if ended():
            return
