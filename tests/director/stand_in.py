"""A small Redfish service in memory, for tests of the client: no expand, tasks, ETags that change, events to replay."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import httpx

ROOT = "/redfish/v1"
BLOCKS = f"{ROOT}/CompositionService/ResourceBlocks"
Handler = Callable[[httpx.Request], httpx.Response | None]


class StandInService:
    """Resources by address; `requests` are those that came, `handle` may answer one before the service does."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.handle: Handler = lambda request: None
        self.versions = itertools.count(1)
        self.resources: dict[str, dict[str, Any]] = {}
        self.put(f"{ROOT}/", Name="Stand-in", CompositionService=link(f"{ROOT}/CompositionService"),
                 Systems=link(f"{ROOT}/Systems"), Links={"Sessions": link(f"{ROOT}/SessionService/Sessions")},
                 EventService=link(f"{ROOT}/EventService"))  # fmt: skip
        compose = {"#CompositionService.Compose": {"target": f"{ROOT}/Compose"}}
        self.put(f"{ROOT}/CompositionService", ResourceBlocks=link(BLOCKS), Actions=compose)
        self.put(f"{ROOT}/EventService", ServerSentEventUri=f"{ROOT}/SSE")
        for name in ("host0", "gpu0", "gpu1"):
            kind = "ComputerSystem" if name == "host0" else "Processor"
            self.put(f"{BLOCKS}/{name}", Id=name, ResourceBlockType=[kind],
                     CompositionStatus={"CompositionState": "Unused", "Reserved": False})  # fmt: skip

    def put(self, uri: str, **body: Any) -> None:
        """A resource, with another ETag than before."""
        self.resources[uri] = {**body, "@odata.id": uri, "@odata.etag": f'"{next(self.versions)}"'}

    def compose(self, name: str, blocks: list[str]) -> None:
        """A composed system."""
        uri = f"{ROOT}/Systems/{name}"
        actions = {
            f"#ComputerSystem.{verb}": {"target": f"{uri}/Actions/ComputerSystem.{verb}"}
            for verb in ("AddResourceBlock", "RemoveResourceBlock")
        }
        self.put(uri, Id=name, SystemType="Composed", Status={"State": "Enabled", "Health": "OK"}, Actions=actions,
                 Links={"ResourceBlocks": [link(f"{BLOCKS}/{block}") for block in blocks]})  # fmt: skip

    def transport(self) -> httpx.MockTransport:
        """What takes the place of the network."""
        return httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if (special := self.handle(request)) is not None:
            return special
        path = request.url.path
        if request.method == "POST" and path.endswith("/Sessions"):
            location = f"{path}/1"
            self.put(location)
            return httpx.Response(201, headers={"X-Auth-Token": "token", "Location": location}, json={})
        if request.method == "DELETE" and path in self.resources:
            del self.resources[path]
            return httpx.Response(204)
        if request.method == "GET" and path in (f"{ROOT}/Systems", BLOCKS):
            members = [link(uri) for uri in self.resources if uri.startswith(f"{path}/")]
            return httpx.Response(200, json={"Members": members})
        if request.method == "GET" and path in self.resources:
            body = self.resources[path]
            return httpx.Response(200, json=body, headers={"ETag": body["@odata.etag"]})
        return error(404, "Base.1.0.ResourceMissingAtURI", f"nothing at {path}")


class StandInChassis(StandInService):
    """Two servers and three devices on one switch; a zone of each server, whose endpoints are patched."""

    def __init__(self) -> None:
        super().__init__()
        self.fabric = f"{ROOT}/Fabrics/F"
        self.put(f"{ROOT}/", Name="Chassis", Fabrics=link(f"{ROOT}/Fabrics"))
        collections = {name: link(f"{self.fabric}/{name}") for name in ("Switches", "Endpoints", "Zones")}
        self.put(self.fabric, Id="F", FabricType="PCIe", **collections)
        self.put(f"{self.fabric}/Switches/sw0", Id="sw0", Ports=link(f"{self.fabric}/Switches/sw0/Ports"))
        for number, name in enumerate(("host0", "host1", "gpu0", "gpu1", "ssd0")):
            self._add_endpoint(number, name)
        for server in ("host0", "host1"):
            self.put_zone(server, server)
        self.handle = self._zones

    def _add_endpoint(self, number: int, name: str) -> None:
        port = f"{self.fabric}/Switches/sw0/Ports/{number}"
        gen1 = name == "ssd0"  # in a slot that could do more
        self.put(port, Id=str(number), Width=16, MaxSpeedGbps=256, ActiveWidth=4 if gen1 else 16,
                 CurrentSpeedGbps=10.0 if gen1 else 252.03)  # fmt: skip
        kind = {"h": "RootComplex", "g": "Processor", "s": "Drive"}[name[0]]
        entity: dict[str, Any] = {"EntityType": kind, "EntityRole": "Initiator" if kind == "RootComplex" else "Target"}
        if name == "gpu0":
            entity |= {"EntityLink": link(f"{ROOT}/gpu0")}
            self.put(f"{ROOT}/gpu0", Model="L40S")
        links = {"ConnectedPorts": [link(port)]}
        self.put(f"{self.fabric}/Endpoints/{name}", Id=name, ConnectedEntities=[entity], Links=links)

    def put_zone(self, server: str, *members: str) -> None:
        """A zone with these endpoints."""
        ends = [link(f"{self.fabric}/Endpoints/{name}") for name in members]
        self.put(f"{self.fabric}/Zones/{server}", Id=server, Links={"Endpoints": ends})

    def members(self, server: str) -> list[str]:
        """The endpoints of a zone."""
        rows = self.resources[f"{self.fabric}/Zones/{server}"]["Links"]["Endpoints"]
        return [row["@odata.id"].rpartition("/")[2] for row in rows]

    def _zones(self, request: httpx.Request) -> httpx.Response | None:
        path = request.url.path
        folders = (f"{ROOT}/Fabrics", *(f"{self.fabric}/{name}" for name in ("Switches", "Endpoints", "Zones")))
        if request.method == "GET" and path in (*folders, f"{self.fabric}/Switches/sw0/Ports"):
            inside = [uri for uri in self.resources if uri.rpartition("/")[0] == path]
            return httpx.Response(200, json={"Members": [link(uri) for uri in inside]})
        if request.method != "PATCH":
            return None
        if request.headers.get("If-Match") != self.resources[path]["@odata.etag"]:
            return error(412, "Base.1.0.PreconditionFailed", "The zone changed.")
        self.put_zone(
            path.rpartition("/")[2],
            *[row["@odata.id"].rpartition("/")[2] for row in sent(request)["Links"]["Endpoints"]],
        )
        return httpx.Response(204)


def link(uri: str) -> dict[str, str]:
    """A reference."""
    return {"@odata.id": uri}


def error(status: int, key: str, text: str, **more: Any) -> httpx.Response:
    """An answer with extended information."""
    message = {"MessageId": key, "Message": text, "MessageSeverity": "Critical", **more}
    return httpx.Response(status, json={"error": {"code": key, "message": text, "@Message.ExtendedInfo": [message]}})


def sent(request: httpx.Request) -> Any:
    """The body of a request."""
    return json.loads(request.content)
