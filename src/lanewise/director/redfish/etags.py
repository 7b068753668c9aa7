"""ETags: a hash of what a resource says, and the preconditions that name one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from lanewise.director.redfish.messages import refusal

_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class Representation:
    """A resource as it is sent: its object (shared; never change it), JSON text and ETag."""

    data: dict[str, Any]
    text: bytes
    etag: str


def json_text(data: Any) -> bytes:
    """The JSON text of a value, compact, in UTF-8."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def represent(data: dict[str, Any], *, volatile: frozenset[str] = frozenset()) -> Representation:
    """The resource with its @odata.etag, a hash of everything but the `volatile` properties."""
    steady = {name: value for name, value in data.items() if name not in volatile} if volatile else data
    etag = f'"{blake2b(json_text(steady), digest_size=12).hexdigest()}"'
    full = {**data, "@odata.etag": etag}
    return Representation(full, json_text(full), etag)


def etag_of(text: bytes) -> str:
    """The ETag of a text that is no whole resource."""
    return f'"{blake2b(text, digest_size=12).hexdigest()}"'


def matches(header: str, etag: str) -> bool:
    """Whether a list of entity tags, or '*', names this one (weakly compared)."""
    if len(header) > _LONGEST:
        raise refusal(400, "Base.HeaderInvalid", "If-Match")
    wanted = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    return "*" in wanted or etag.removeprefix("W/") in wanted
