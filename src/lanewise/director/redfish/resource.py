"""Resource types: an address pattern, a schema, who may read it, and what each other method does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from lanewise.director.redfish.json_body import RequestForm
from lanewise.director.redfish.messages import refusal
from lanewise.director.redfish.roles import Principal, Privilege

if TYPE_CHECKING:
    from lanewise.director.records import PoolView
    from lanewise.director.redfish.inventory import Inventory
    from lanewise.director.redfish.service import RedfishService

Json = dict[str, Any]
Names = Mapping[str, str]
_SEGMENT = re.compile(r"[A-Za-z0-9$._~:@+-]{1,200}")
_LONGEST_PATH = 2000


@dataclass(frozen=True, slots=True)
class Call:
    """One request: who sends it, to what, with which body and headers (names in lower case).

    `view` is the pool as of its arrival, which everything it reads comes from.
    """

    service: RedfishService
    view: PoolView
    names: Names
    path: str
    method: str
    headers: Mapping[str, str]
    principal: Principal | None
    client: str = ""
    body: Any = None

    @property
    def inventory(self) -> Inventory:
        """The pool's index."""
        return self.service.inventory(self.view)

    @property
    def user(self) -> Principal:
        """Who sends it; the dispatcher lets nobody else through where a privilege is needed."""
        assert self.principal is not None
        return self.principal


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: HTTP status, JSON body (None: none), headers."""

    status: int = 200
    body: Json | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextDocument:
    """An answer to GET that is no resource: its text and media type, HTTP status and headers."""

    text: bytes
    media: str = "application/json;charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteMethod:
    """What POST, PATCH or DELETE does: the form of its body (None: no body is read), who may, and the function.

    `action` is the action's name for messages; nobody needs the privilege where the resource is the caller's `own`.
    `alone`: no two of these run at once, so that If-Match holds; changes of the pool compare versions instead.
    """

    run: Callable[[Call], Reply]
    form: type[RequestForm] | None = None
    privilege: Privilege | None = Privilege.COMPONENTS
    action: str = ""
    own: Callable[[Call], bool] | None = None
    alone: bool = True


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One pattern of addresses, such as /redfish/v1/Systems/{system}, and what its methods do.

    `schema` is the type with its version ('ComputerSystem.v1_27_0'), '' for documents that are no resources and for
    actions. `read` makes the properties besides @odata.id, @odata.type and ETag; `document` a text that
    is no resource; a `stream` is that of the events. `privilege` None: anyone may read. `live` resources change
    without the pool (tasks) and are never kept in memory; `slow` ones predict, and are read in a thread.
    `volatile` properties, such as a clock, do not count for the ETag.
    """

    path: str
    schema: str = ""
    read: Callable[[Call], Json] | None = None
    document: Callable[[Call], TextDocument] | None = None
    stream: bool = False
    privilege: Privilege | None = Privilege.LOGIN
    writes: Mapping[str, WriteMethod] = field(default_factory=dict)
    live: bool = False
    slow: bool = False
    volatile: frozenset[str] = frozenset()
    own: Callable[[Call], bool] | None = None

    @property
    def odata_type(self) -> str:
        """The value of @odata.type."""
        return f"#{self.schema}.{self.schema.partition('.')[0]}"

    @property
    def collection(self) -> bool:
        """Whether it is a collection, which takes $filter, $top, $skip and only."""
        return self.schema.endswith("Collection")

    @property
    def allowed(self) -> tuple[str, ...]:
        """The methods for the Allow header."""
        readable = self.read or self.document or self.stream
        return (("GET", "HEAD") if readable else ()) + tuple(self.writes)


class RouteTable:
    """Finds the resource type of an address; every segment is fixed or one name."""

    def __init__(self, types: tuple[ResourceType, ...]) -> None:
        self.types = types
        self._root: dict[str, Any] = {}
        for kind in types:
            node = self._root
            for segment in kind.path.strip("/").split("/"):
                node = node.setdefault("{}" if segment.startswith("{") else segment, {})
            if "" in node:
                raise ValueError(f"two resource types have the address {kind.path}")
            node[""] = (kind, tuple(s[1:-1] for s in kind.path.strip("/").split("/") if s.startswith("{")))

    def find(self, segments: tuple[str, ...]) -> tuple[ResourceType, dict[str, str]] | None:
        """The resource type of a path and the names in it, None if there is none."""
        node, names = self._root, []
        for segment in segments:
            below = node.get(segment) if segment else None
            if below is None:
                below = node.get("{}")
                names.append(segment)
            if below is None:
                return None
            node = below
        entry = node.get("")
        return (entry[0], dict(zip(entry[1], names, strict=True))) if entry else None


def path_segments(raw: bytes) -> tuple[str, ...]:
    """The segments of a raw request path, each decoded once; RedfishError unless all are plain names.

    One slash at the end is ignored. No dots that climb, no encoded slash, nothing empty.
    """
    if len(raw) > _LONGEST_PATH:
        raise refusal(414, "Base.InvalidURI", "the path")
    parts = raw.removeprefix(b"/").removesuffix(b"/").split(b"/")
    segments = []
    for part in parts:
        segment = unquote_to_bytes(part).decode("latin-1")
        if not _SEGMENT.fullmatch(segment) or segment in (".", ".."):
            raise refusal(404, "Base.ResourceMissingAtURI", "that path")
        segments.append(segment)
    return tuple(segments)
