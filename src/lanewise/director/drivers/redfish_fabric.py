"""A PCIe fabric behind a Redfish service as a System: switches, ports, endpoints; parts by the models it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lanewise.catalog import Catalog, builtin
from lanewise.catalog.keys import GENERATIONS
from lanewise.director.client.documents import names
from lanewise.director.client.errors import RefusedByService
from lanewise.director.client.session import RedfishClient, RedfishResource
from lanewise.director.drivers.base import DriverError
from lanewise.topology.model import Kind, System
from lanewise.topology.read import read_system

_SLACK = 0.05  # a speed may be given with or without line encoding: 3.94 Gb/s of 4 GT/s
_KINDS = {"Processor": Kind.GPU, "Drive": Kind.SSD, "NetworkController": Kind.NIC}
_INITIATORS = {"Initiator", "Both"}


@dataclass(slots=True)
class RedfishFabric:
    """What a service says of one fabric: its resources by name, endpoints of servers and of devices apart."""

    uri: str
    zones: str
    servers: dict[str, RedfishResource] = field(default_factory=dict)
    devices: dict[str, RedfishResource] = field(default_factory=dict)
    switches: dict[str, RedfishResource] = field(default_factory=dict)
    ports: dict[str, RedfishResource] = field(default_factory=dict)  # by address


def read_fabric(client: RedfishClient, name: str = "") -> RedfishFabric:
    """The fabric of that name, else the first one of PCIe; DriverError if there is none, or none with zones."""
    place = client.root.link("Fabrics")
    fabrics = client.members(place) if place else []
    fitting = [one for one in fabrics if (one.name == name if name else one.body.get("FabricType") == "PCIe")]
    zones = fitting[0].link("Zones") if fitting else None
    if zones is None:
        known = ", ".join(one.name for one in fabrics) or "none"
        cause = f"{client.address.url} has no {f'fabric {name}' if name else 'PCIe fabric'} with zones"
        raise DriverError(cause, hint=f"its fabrics: {known}")
    fabric = RedfishFabric(fitting[0].uri, zones)
    for endpoint in _members(client, fitting[0], "Endpoints"):
        roles = {str(entity.get("EntityRole")) for entity in _entities(endpoint)}
        (fabric.servers if roles & _INITIATORS else fabric.devices)[endpoint.name] = endpoint
    for switch in _members(client, fitting[0], "Switches"):
        fabric.switches[switch.name] = switch
        fabric.ports |= {port.uri: port for port in _members(client, switch, "Ports")}
    return fabric


def describe(client: RedfishClient, fabric: RedfishFabric) -> System:
    """The fabric with nothing attached; InputError for names or links that no description can hold."""
    import yaml

    catalog = builtin()
    devices: dict[str, dict[str, Any]] = {}
    for name, switch in fabric.switches.items():
        model = switch.body.get("Model")
        adapter = _part(model, catalog, "adapter")
        devices[name] = {"adapter": adapter} if adapter else {"switch": _part(model, catalog, "switch")}
    links = _switch_links(fabric)
    for name, endpoint in fabric.servers.items():
        cpu = f"{name}-cpu"
        devices[cpu] = {"cpu": _part(_cpu_model(client, endpoint), catalog, "cpu"), "host": name}
        links += _entry(fabric, name, cpu, devices)
    for name, endpoint in fabric.devices.items():
        kind, model = _kind_and_model(client, endpoint)
        if kind is not None:
            devices[name] = {str(kind): _part(model, catalog, str(kind)), "host": None}
            links += [
                {"from": switch, "to": name, "pcie": _speed(port)} for switch, port in _ports_of(fabric, endpoint)
            ]
    document = {
        "lanewise": 1, "system": fabric.uri.rstrip("/").rpartition("/")[2], "source": client.address.url,
        "hosts": list(fabric.servers), "devices": devices, "links": links,
    }  # fmt: skip
    return read_system(yaml.safe_dump(document, sort_keys=False), client.address.url, catalog=catalog)


def _members(client: RedfishClient, resource: RedfishResource, collection: str) -> list[RedfishResource]:
    place = resource.link(collection)
    return client.members(place) if place else []


def _entities(endpoint: RedfishResource) -> list[dict[str, Any]]:
    return [row for row in endpoint.body.get("ConnectedEntities", []) if isinstance(row, dict)]


def _ports_of(fabric: RedfishFabric, endpoint: RedfishResource) -> list[tuple[str, RedfishResource]]:
    """The switch ports that an endpoint is connected to, each with its switch."""
    rows = endpoint.body.get("Links", {}).get("ConnectedPorts", [])
    ports = [fabric.ports[row["@odata.id"]] for row in rows if row.get("@odata.id") in fabric.ports]
    return [(_switch_of(port), port) for port in ports]


def _switch_of(port: RedfishResource) -> str:
    return port.uri.rstrip("/").rpartition("/Ports/")[0].rpartition("/")[2]


def _switch_links(fabric: RedfishFabric) -> list[dict[str, Any]]:
    """Each link between two switches once."""
    found: dict[frozenset[str], dict[str, Any]] = {}
    for uri, port in fabric.ports.items():
        links = port.body.get("Links", {})
        others = [str(row.get("@odata.id")) for row in links.get("ConnectedSwitchPorts", [])]
        for other in others:
            if other in fabric.ports:
                ends = {"from": _switch_of(port), "to": _switch_of(fabric.ports[other]), "fabric": _speed(port)}
                found.setdefault(frozenset((uri, other)), ends)
        if not others:
            for switch in names(links.get("ConnectedSwitches", [])):
                ends = {"from": _switch_of(port), "to": switch, "fabric": _speed(port)}
                found.setdefault(frozenset((_switch_of(port), switch)), ends)
    return list(found.values())


def _entry(fabric: RedfishFabric, server: str, cpu: str, devices: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The links of a server to the fabric; through an adapter of its own where several servers enter one switch."""
    entries = {name: [at for at, _ in _ports_of(fabric, one)] for name, one in fabric.servers.items()}
    links = []
    for number, (switch, port) in enumerate(_ports_of(fabric, fabric.servers[server])):
        if sum(switch in at for at in entries.values()) == 1:
            devices[switch]["host"] = server
            links.append({"from": cpu, "to": switch, "pcie": _speed(port)})
            continue
        adapter = f"{server}-adapter{number or ''}"
        devices[adapter] = {"switch": None, "host": server}
        links.append({"from": cpu, "to": adapter, "pcie": _speed(port)})
        links.append({"from": adapter, "to": switch, "fabric": _speed(port)})
    return links


def _kind_and_model(client: RedfishClient, endpoint: RedfishResource) -> tuple[Kind | None, str | None]:
    for entity in _entities(endpoint):
        kind = _KINDS.get(str(entity.get("EntityType")))
        if kind is not None:
            return kind, _entity(client, entity).get("Model")
    return None, None


def _cpu_model(client: RedfishClient, endpoint: RedfishResource) -> str | None:
    for entity in _entities(endpoint):
        summary = _entity(client, entity).get("ProcessorSummary")
        if isinstance(summary, dict):
            return summary.get("Model")
    return None


def _entity(client: RedfishClient, entity: Mapping[str, Any]) -> dict[str, Any]:
    place = (entity.get("EntityLink") or {}).get("@odata.id")
    try:
        return client.get(place).body if place else {}
    except RefusedByService:
        return {}  # the model is unknown then


def _part(model: str | None, catalog: Catalog, kind: str) -> str | None:
    """The part of that kind that a model names, by name, alias or title; None if none is known."""
    if not model:
        return None
    if model in catalog:
        part = catalog.get(model)
        return part.name if part.kind == kind else None
    titled = [part.name for part in catalog.parts.values() if part.title == model and part.kind == kind]
    return titled[0] if len(titled) == 1 else None


def _speed(port: RedfishResource) -> str:
    gen, lanes = port_speed(port.body)
    return f"gen{gen or '?'} x{lanes or '?'}"


def port_speed(body: Mapping[str, Any], most: bool = False) -> tuple[int | None, int | None]:
    """The generation and lanes of a Port, those it runs with, or with `most` those it could; None: unknown."""
    speed = body.get("MaxSpeedGbps" if most else "CurrentSpeedGbps")
    lanes = body.get("Width") if most else body.get("ActiveWidth") or body.get("Width")
    if not isinstance(lanes, int) or lanes <= 0:
        return None, None
    return (_generation(speed / lanes) if isinstance(speed, (int, float)) else None), lanes


def _generation(lane: float) -> int | None:
    """The generation of a lane's speed in Gb/s, with or without line encoding (8b/10b in Gen1 and Gen2)."""
    for gen, rate in GENERATIONS.items():
        encoded = rate * (0.8 if gen < 3 else 128 / 130)
        if _near(lane, rate) or _near(lane, encoded):
            return gen
    return None


def _near(value: float, wanted: float) -> bool:
    return abs(value - wanted) <= _SLACK * wanted


def members_of(zone: RedfishResource, known: Iterable[str]) -> frozenset[str]:
    """The names among `known` of a zone's endpoints."""
    return frozenset(names(zone.body.get("Links", {}).get("Endpoints", []))) & frozenset(known)
