"""What resource types have in common: collections, status, times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from lanewise.director.records import Health
from lanewise.director.redfish.etags import matches
from lanewise.director.redfish.messages import RedfishMessage, refusal
from lanewise.director.redfish.resource import Call, Json, Reply, ResourceType, WriteMethod
from lanewise.director.redfish.roles import Privilege
from lanewise.director.redfish.uris import links, not_there


def collection(
    path: str,
    schema: str,
    name: str,
    members: Callable[[Call], Iterable[str]],
    *,
    writes: Mapping[str, WriteMethod] | None = None,
    privilege: Privilege = Privilege.LOGIN,
    live: bool = False,
    extra: Callable[[Call], Json] | None = None,
) -> ResourceType:
    """A collection; `members` are addresses, as far as the caller's names exist."""

    def read(call: Call) -> Json:
        references = links(list(members(call)))
        return {
            "Name": name,
            "Members@odata.count": len(references),
            "Members": references,
            **(extra(call) if extra else {}),
        }

    return ResourceType(path, schema, read, privilege=privilege, writes=writes or {}, live=live)


def named(call: Call, table: Mapping[str, Any], key: str) -> Any:
    """The entry that the address names; RedfishError 404 if there is none."""
    try:
        return table[call.names[key]]
    except KeyError:
        raise not_there(call.path) from None


def status(health: Health = Health.OK, state: str = "Enabled") -> Json:
    """A Status object."""
    return {"State": state, "Health": str(health)}


def done(*keys: str) -> Reply:
    """200 with messages instead of a resource."""
    messages = [RedfishMessage(key).as_json() for key in keys or ("Base.Success",)]
    first = messages[0]
    return Reply(
        200, {"error": {"code": first["MessageId"], "message": first["Message"], "@Message.ExtendedInfo": messages}}
    )


def changed(call: Call, kind: ResourceType) -> Reply:
    """200 with the resource as it is now."""
    representation = call.service.represent(kind, call)
    return Reply(200, representation.data, {"ETag": representation.etag})


def idempotency_key(call: Call) -> str:
    """The client's key for a repeated request, '' without one; RedfishError 400 unless it is short and plain."""
    key = call.headers.get("idempotency-key", "")
    if len(key) > 128 or not key.isprintable():
        raise refusal(400, "Base.HeaderInvalid", "Idempotency-Key")
    return key and f"{call.user.account}:{key}"


def check_tag(call: Call, tag: str | None, kind: ResourceType, uri: str, names: dict[str, str]) -> None:
    """RedfishError 412 unless the resource still has this ETag."""
    if tag is not None and not matches(tag, call.service.represent(kind, replace(call, path=uri, names=names)).etag):
        raise refusal(412, "Base.PreconditionFailed")
