"""The driver `redfish`: a chassis behind a Redfish service, whose zones say which server has which devices.

A device is given by the zone's action AddEndpoint where it has one, else by a PATCH of the zone's endpoints.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from lanewise.director.client.errors import RefusedByService, ServiceUnreachable
from lanewise.director.client.session import RedfishClient, RedfishResource
from lanewise.director.drivers.base import (
    Busy,
    DeviceHolder,
    DriverError,
    DriverHealth,
    FabricEvent,
    FabricEventKind,
    Gone,
    HolderKind,
    HotplugRoom,
    LinkStatus,
    Retryable,
    Unknown,
)
from lanewise.director.drivers.redfish_fabric import describe, members_of, port_speed, read_fabric
from lanewise.errors import unknown_name
from lanewise.topology.model import System

TESTED_ON = "another Lanewise director and a stand-in for a chassis whose zones are patched; no hardware"
_TRIES = 5  # of one change, while somebody else changes the same zone
_IN_USE, _STALE, _TOO_MANY, _SERVICE_BUSY = 409, 412, 429, 503


class RedfishDriver:
    """One fabric of a Redfish service; its zones are read anew for every answer."""

    def __init__(self, client: RedfishClient, fabric: str = "", system: System | None = None) -> None:
        """Read the fabric's switches, ports and endpoints; `system` describes it instead, with the endpoints' names.

        DriverError if the service has no such fabric.
        """
        self._client = client
        with _translated():
            self._fabric = read_fabric(client, fabric)
            self._system = system if system is not None else describe(client, self._fabric)
        self._known = self._members()
        self._events: list[FabricEvent] = []
        self._lock = threading.Lock()

    def discover(self) -> System:
        """The fabric, with each device bound to the server whose zone holds it."""
        servers = {device: server for server, members in self._members().items() for device in members}
        devices = dict(self._system.devices)
        for name in self._fabric.devices:
            if name in devices:
                devices[name] = replace(devices[name], host=servers.get(name))
        return replace(self._system, devices=devices)

    def observe(self, server: str) -> frozenset[str]:
        """The devices in the server's zone."""
        return members_of(self._zone(server), self._fabric.devices)

    def bind(self, operation: str, server: str, device: str) -> None:
        """Add a device to the server's zone; Busy if another zone has it."""
        endpoint = self._endpoint(device)
        owner = next((name for name, members in self._members().items() if device in members), None)
        if owner not in (None, server):
            raise Busy(f"{device} is attached to {owner}", hint=f"detach it from {owner} first")
        self._change(server, "AddEndpoint", endpoint, lambda ends: [*ends, endpoint.uri], True)
        self._note(FabricEventKind.ATTACHED, device, server)

    def unbind(self, operation: str, server: str, device: str) -> None:
        """Take a device out of the server's zone; Busy if the chassis says that it is in use."""
        endpoint = self._endpoint(device)
        self._change(
            server, "RemoveEndpoint", endpoint, lambda ends: [one for one in ends if one != endpoint.uri], False
        )
        self._note(FabricEventKind.DETACHED, device, server)

    def set_p2p(self, operation: str, server: str, allowed: bool) -> None:
        """Refuse to allow it: a zone has no such property; DriverError then."""
        self._zone(server)
        if allowed:
            raise DriverError("peer-to-peer of a chassis cannot be set over Redfish zones", hint="leave it off")

    def link(self, device: str) -> LinkStatus | None:
        """The link of the switch port that the device is in, as the service says."""
        rows = self._endpoint(device).body.get("Links", {}).get("ConnectedPorts", [])
        places = [row["@odata.id"] for row in rows if row.get("@odata.id") in self._fabric.ports]
        if not places:
            return None
        with _translated():
            body = self._client.get(places[0]).body
        gen, lanes = port_speed(body)
        return LinkStatus(gen, lanes, *port_speed(body, most=True)) if lanes else None

    def holders(self, device: str) -> tuple[DeviceHolder, ...]:
        """Nothing: a chassis does not see what runs on its servers."""
        self._endpoint(device)
        return ()

    def room(self, server: str) -> HotplugRoom:
        """Unknown: a chassis does not see its servers' bus numbers."""
        self._zone(server)
        return HotplugRoom()

    def health(self) -> DriverHealth:
        """Whether the service answers."""
        try:
            self._client.get(self._fabric.uri)
        except (RefusedByService, ServiceUnreachable) as error:
            return DriverHealth(False, str(error), TESTED_ON)
        return DriverHealth(True, "", TESTED_ON)

    def events(self) -> Iterator[FabricEvent]:
        """What this driver changed, and what others changed in the zones, since the last call."""
        now = self._members()
        with self._lock:
            for server, members in now.items():
                for device in sorted(members - self._known.get(server, frozenset())):
                    self._events.append(FabricEvent(FabricEventKind.ATTACHED, device, server, "by somebody else"))
                for device in sorted(self._known.get(server, frozenset()) - members):
                    self._events.append(FabricEvent(FabricEventKind.DETACHED, device, server, "by somebody else"))
            self._known = now
            events, self._events = self._events, []
        yield from events

    def _change(
        self,
        server: str,
        action: str,
        endpoint: RedfishResource,
        changed: Callable[[list[str]], list[str]],
        present: bool,
    ) -> None:
        """Change a zone until the device is there, or is not; again where somebody else was faster."""
        for _ in range(_TRIES):
            zone = self._zone(server)
            if (endpoint.name in members_of(zone, self._fabric.devices)) == present:
                return
            try:
                with _translated(f"{endpoint.name} on {server}"):
                    self._send(zone, action, endpoint, changed)
            except _Overtaken:
                continue
        zone = self._zone(server)
        if (endpoint.name in members_of(zone, self._fabric.devices)) != present:
            raise Retryable(f"the zone of {server} changed {_TRIES} times meanwhile, or its service did not do it")

    def _send(
        self, zone: RedfishResource, action: str, endpoint: RedfishResource, changed: Callable[[list[str]], list[str]]
    ) -> None:
        if f"#Zone.{action}" in zone.body.get("Actions", {}):
            body = {"Endpoint": {"@odata.id": endpoint.uri}} | ({"ZoneETag": zone.etag} if zone.etag else {})
            self._client.act(zone, f"Zone.{action}", body)
            return
        ends = [str(row.get("@odata.id")) for row in zone.body.get("Links", {}).get("Endpoints", [])]
        rows = [{"@odata.id": uri} for uri in changed(ends)]
        self._client.patch(zone.uri, {"Links": {"Endpoints": rows}}, zone.etag)

    def _members(self) -> dict[str, frozenset[str]]:
        """The devices of every server's zone."""
        members = {}
        for zone in self._zones():
            for server in members_of(zone, self._fabric.servers):
                members[server] = members_of(zone, self._fabric.devices)
        return members

    def _zones(self) -> list[RedfishResource]:
        with _translated():
            return self._client.members(self._fabric.zones)

    def _zone(self, server: str) -> RedfishResource:
        """The zone of a server as it is now, with its ETag."""
        if server not in self._fabric.servers:
            raise unknown_name("server of the chassis", server, self._fabric.servers)
        for zone in self._zones():
            if server in members_of(zone, self._fabric.servers):
                with _translated():
                    return self._client.get(zone.uri)
        raise Gone(f"{server} is in no zone of the chassis", hint="create one that holds the server's endpoint")

    def _endpoint(self, device: str) -> RedfishResource:
        if device not in self._fabric.devices:
            raise unknown_name("device of the chassis", device, self._fabric.devices)
        return self._fabric.devices[device]

    def _note(self, kind: FabricEventKind, device: str, server: str) -> None:
        with self._lock:
            before = self._known.get(server, frozenset())
            attached = kind is FabricEventKind.ATTACHED
            self._known[server] = before | {device} if attached else before - {device}
            self._events.append(FabricEvent(kind, device, server))


class _Overtaken(Exception):
    """Somebody else changed the zone first."""


@contextmanager
def _translated(change: str = "") -> Iterator[None]:
    """Errors of the client as those of a driver; `change` names what is changed, '' while only something is read."""
    try:
        yield
    except ServiceUnreachable as error:
        if change and error.sent:
            raise Unknown(str(error), hint="the director observes the zone before it goes on") from None
        raise Retryable(str(error), hint=error.hint) from None
    except RefusedByService as error:
        if error.status == _STALE:
            raise _Overtaken from None
        if error.status == _IN_USE and "Task" in error.details:
            raise Retryable(f"{change}: {error.cause}", hint=error.hint) from None  # an operation that has not ended
        if error.status == _IN_USE:
            holders = error.details.get("Holders")
            users = (DeviceHolder(HolderKind.PROCESS, str(holders)),) if holders else ()
            raise Busy(f"{change}: {error.cause}", users, hint=error.hint) from None
        if error.status in (_TOO_MANY, _SERVICE_BUSY):
            raise Retryable(error.cause, hint=error.hint) from None
        if error.status in (404, 410):
            raise Gone(error.cause, hint=error.hint) from None
        raise DriverError(error.cause, hint=error.hint) from None
