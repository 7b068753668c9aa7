"""Addresses of resources."""

from __future__ import annotations

from lanewise.director.redfish.messages import RedfishError, refusal
from lanewise.errors import printable, shorten

ROOT = "/redfish/v1"
FABRIC = f"{ROOT}/Fabrics/PCIe"
COMPOSITION = f"{ROOT}/CompositionService"
BLOCKS = f"{COMPOSITION}/ResourceBlocks"
ZONES = f"{COMPOSITION}/ResourceZones"
RESERVATIONS = f"{COMPOSITION}/CompositionReservations"
TELEMETRY = f"{ROOT}/TelemetryService"
MANAGER = f"{ROOT}/Managers/Director"
OEM = f"{ROOT}/Oem/Lanewise"

Link = dict[str, str]


def link(uri: str) -> Link:
    """A reference to a resource."""
    return {"@odata.id": uri}


def links(uris: list[str]) -> list[Link]:
    """References to resources."""
    return [{"@odata.id": uri} for uri in uris]


def system(name: str) -> str:
    """A server, or a composed system."""
    return f"{ROOT}/Systems/{name}"


def chassis(name: str) -> str:
    """A server's own chassis, or a box."""
    return f"{ROOT}/Chassis/{name}"


def block(name: str) -> str:
    """A resource block."""
    return f"{BLOCKS}/{name}"


def endpoint(name: str) -> str:
    """A fabric endpoint: a device, or a server's host port."""
    return f"{FABRIC}/Endpoints/{name}"


def switch(name: str) -> str:
    """A switch of the fabric."""
    return f"{FABRIC}/Switches/{name}"


def port(switch_name: str, name: str) -> str:
    """A port of a switch."""
    return f"{FABRIC}/Switches/{switch_name}/Ports/{name}"


def task(name: str) -> str:
    """A task."""
    return f"{ROOT}/TaskService/Tasks/{name}"


def name_below(uri: object, folder: str, prop: str) -> str:
    """The last segment of an address right below `folder`; RedfishError 400 for another address."""
    text = str(uri).rstrip("/")
    name = text.removeprefix(f"{folder}/")
    if not isinstance(uri, str) or name == text or "/" in name or len(name) > 200:
        raise refusal(400, "Base.PropertyValueFormatError", shorten(printable(str(uri))), prop, prop=prop)
    return name


def not_there(path: str) -> RedfishError:
    """The answer for an address whose pattern exists but whose resource does not."""
    return refusal(404, "Base.ResourceMissingAtURI", path)
