"""The PCIe fabric: switches, ports, endpoints, zones (one a server), endpoint groups and connections."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import Field

from lanewise.director.redfish import uris
from lanewise.director.redfish.composition_forms import ReferenceForm
from lanewise.director.redfish.json_body import RequestForm
from lanewise.director.redfish.messages import refusal
from lanewise.director.redfish.resource import Call, Json, Reply, ResourceType, WriteMethod
from lanewise.director.redfish.resources.common import check_tag, collection, idempotency_key, named, status
from lanewise.director.redfish.resources.devices import device_status, drive_uri, lane_gbps, number, part_title
from lanewise.director.redfish.resources.tasks import task_reply
from lanewise.director.redfish.uris import FABRIC, MANAGER, ROOT, link, links, not_there
from lanewise.pool.model import CompositionRequest
from lanewise.topology.model import Kind, LinkKind
from lanewise.topology.model import Link as TopologyLink

_ENTITIES = {Kind.GPU: "Processor", Kind.NIC: "NetworkController", Kind.SSD: "Drive", Kind.RAID: "StorageInitiator"}
_P2P = "CrossDomainPeers"
_ZONE_ACTIONS = ("AddEndpoint", "RemoveEndpoint")


class EndpointForm(RequestForm):
    """Zone.AddEndpoint and RemoveEndpoint."""

    Endpoint: ReferenceForm
    EndpointETag: Annotated[str, Field(max_length=200)] | None = None
    ZoneETag: Annotated[str, Field(max_length=200)] | None = None


def _fabric(call: Call) -> Json:
    return {
        "Id": "PCIe",
        "Name": f"PCIe fabric of {call.inventory.system.name}",
        "FabricType": "PCIe",
        "MaxZones": max(1, len(call.inventory.servers)),
        "Status": status(),
        "Switches": link(f"{FABRIC}/Switches"),
        "Endpoints": link(f"{FABRIC}/Endpoints"),
        "Zones": link(f"{FABRIC}/Zones"),
        "EndpointGroups": link(f"{FABRIC}/EndpointGroups"),
        "Connections": link(f"{FABRIC}/Connections"),
        "Links": {"ManagedBy": [link(MANAGER)]},
    }


def _switch(call: Call) -> Json:
    device = named(call, call.inventory.switches, "switch")
    inventory = call.inventory
    ends = [one.far_end(device.name) for one in inventory.ports[device.name].values()]
    lanes = number(inventory, device.name, "switch.lanes")
    box = device.name if device.name in inventory.boxes else device.host
    return {
        "Id": device.name,
        "Name": f"Switch {device.name}",
        "SwitchType": "PCIe",
        "SupportedProtocols": ["PCIe"],
        "Model": part_title(inventory, device),
        **({"TotalSwitchWidth": int(lanes)} if lanes else {}),
        "IsManaged": True,
        "PowerState": "On",
        "Status": status(),
        "Ports": link(f"{uris.switch(device.name)}/Ports"),
        "Links": {
            **({"Chassis": link(uris.chassis(str(box)))} if box in inventory.in_chassis else {}),
            "Endpoints": links([uris.endpoint(end) for end in ends if end in inventory.pool.blocks]),
            "ManagedBy": [link(MANAGER)],
        },
    }


def _port(call: Call) -> Json:
    inventory, switch = call.inventory, call.names["switch"]
    ports: dict[str, TopologyLink] = named(call, inventory.ports, "switch")
    one: TopologyLink = named(call, ports, "port")
    far, label = one.far_end(switch), call.names["port"]
    device = inventory.system.devices[far]
    connected: Json = {}
    if device.kind is Kind.SWITCH:
        other = inventory.port_of_link.get((far, id(one)))
        connected["ConnectedSwitches"] = [link(uris.switch(far))]
        connected["ConnectedSwitchPorts"] = links([uris.port(far, other)] if other else [])
        kind = "InterswitchPort"
    else:
        kind = "DownstreamPort" if one.a == switch else "UpstreamPort"
    server = next((name for name, entry in inventory.entries.items() if entry == f"{switch}/{label}"), None)
    ends = [far] if far in inventory.pool.blocks else [server] if server else []
    if one.kind is LinkKind.FABRIC and server:
        kind = "UpstreamPort"
    speed = lane_gbps(one)
    return {
        "Id": label,
        "Name": f"Port to {far}",
        "PortId": label,
        "PortProtocol": "PCIe",
        "PortType": kind,
        **({"CurrentSpeedGbps": speed, "MaxSpeedGbps": speed} if speed else {}),
        **({"Width": one.lanes, "ActiveWidth": one.lanes} if one.lanes else {}),
        "InterfaceEnabled": True,
        "LinkState": "Enabled",
        "LinkStatus": "LinkUp",
        "Status": status(),
        "Links": {"AssociatedEndpoints": links([uris.endpoint(end) for end in ends]), **connected},
    }


def _ports(call: Call) -> list[str]:
    ports: dict[str, TopologyLink] = named(call, call.inventory.ports, "switch")
    return [uris.port(call.names["switch"], label) for label in ports]


def _endpoint(call: Call) -> Json:
    inventory, name = call.inventory, call.names["endpoint"]
    if name in inventory.own:
        entry = inventory.entries.get(name, "").split("/")
        return {
            "Id": name,
            "Name": f"Host port of {name}",
            "EndpointProtocol": "PCIe",
            "ConnectedEntities": [
                {"EntityType": "RootComplex", "EntityRole": "Initiator", "EntityLink": link(uris.system(name))}
            ],
            "Status": status(),
            "Links": {
                "ConnectedPorts": links([uris.port(*entry)] if len(entry) == 2 else []),
                "Zones": [link(f"{FABRIC}/Zones/{name}")],
            },
        }
    if name not in inventory.pool.blocks or name not in inventory.system.devices:
        raise not_there(call.path)
    device = inventory.system.devices[name]
    above = inventory.upstream.get(name)
    ports = []
    if above is not None and above.a in inventory.switches:
        ports = [uris.port(above.a, inventory.port_of_link[(above.a, id(above))])]
    return {
        "Id": name,
        "Name": f"{device.kind.upper()} {name}",
        "EndpointProtocol": "PCIe",
        "ConnectedEntities": [
            {"EntityType": _ENTITIES[device.kind], "EntityRole": "Target", "EntityLink": link(_entity(call, name))}
        ],
        "Status": device_status(inventory, name),
        "Links": {
            "ConnectedPorts": links(ports),
            "Zones": links([f"{FABRIC}/Zones/{device.host}"] if device.host in inventory.own else []),
        },
    }


def _entity(call: Call, name: str) -> str:
    inventory = call.inventory
    kind = inventory.system.devices[name].kind
    chassis = uris.chassis(inventory.chassis_of[name])
    if kind is Kind.GPU:
        return f"{uris.block(name)}/Processors/{name}"
    if kind is Kind.SSD:
        return str(drive_uri(inventory, name))
    return f"{chassis}/NetworkAdapters/{name}" if kind is Kind.NIC else f"{chassis}/PCIeDevices/{name}"


def _zone(call: Call) -> Json:
    server = call.names["zone"]
    if server not in call.inventory.own:
        raise not_there(call.path)
    ends = [server, *call.inventory.attached.get(server, [])]
    base = f"{FABRIC}/Zones/{server}"
    return {
        "Id": server,
        "Name": f"Virtual PCIe domain of {server}",
        "ZoneType": "ZoneOfEndpoints",
        "ExternalAccessibility": "ZoneOnly",
        "Status": status(),
        "Links": {
            "Endpoints": links([uris.endpoint(end) for end in ends]),
            "InvolvedSwitches": links([uris.switch(name) for name in call.inventory.boxes]),
        },
        "Actions": {f"#Zone.{action}": {"target": f"{base}/Actions/Zone.{action}"} for action in _ZONE_ACTIONS},
    }


def _change_zone(call: Call, action: str) -> Reply:
    """Give a device to a zone's server, or take it back: a composition of that server changes, or begins, or ends."""
    body: EndpointForm = call.body
    server = call.names["zone"]
    if server not in call.inventory.own:
        raise not_there(call.path)
    name = uris.name_below(body.Endpoint.uri, f"{FABRIC}/Endpoints", "Endpoint")
    if name not in call.inventory.pool.blocks:
        raise refusal(400, "Base.ActionParameterValueError", "Endpoint", f"Zone.{action}", prop="Endpoint")
    check_tag(call, body.ZoneETag, ZONE, f"{FABRIC}/Zones/{server}", {"zone": server})
    check_tag(call, body.EndpointETag, ENDPOINT, uris.endpoint(name), {"endpoint": name})
    owner = call.inventory.composition_of_server.get(server)
    arguments: dict[str, Any] = {"key": idempotency_key(call), "client": call.user.account, "wait": False}
    if owner is not None and (body.ZoneETag is not None or body.EndpointETag is not None):
        arguments["version"] = call.view.compositions[owner.name].version
    director = call.service.director
    if action == "AddEndpoint":
        if owner is None:
            request = CompositionRequest(blocks=(name,), server=server, name=f"zone-{server}")
            task = director.compose(request, **arguments)
        else:
            task = director.attach(owner.name, name, **arguments)
    elif owner is None or name not in owner.blocks:
        raise refusal(409, "Base.ActionParameterValueError", "Endpoint", f"Zone.{action}", prop="Endpoint")
    elif owner.name == f"zone-{server}" and owner.blocks == (name,):
        task = director.release(owner.name, **arguments)
    else:
        task = director.detach(owner.name, name, **arguments)
    return task_reply(call, task, lambda: Reply(204))


def _group(call: Call) -> Json:
    server = call.names["group"]
    if server not in call.inventory.own:
        raise not_there(call.path)
    ends = [server, *call.inventory.attached.get(server, [])]
    between = [f"{FABRIC}/Connections/{_P2P}"] if _peers(call) else []
    return {
        "Id": server,
        "Name": f"Endpoints of {server}",
        "GroupType": "Initiator",
        "Links": {"Endpoints": links([uris.endpoint(end) for end in ends]), "Connections": links(between)},
    }


def _peers(call: Call) -> bool:
    return call.inventory.system.policies.cross_domain_p2p


def _connection(call: Call) -> Json:
    if call.names["connection"] != _P2P or not _peers(call):
        raise not_there(call.path)
    groups = links([f"{FABRIC}/EndpointGroups/{server}" for server in call.inventory.servers])
    return {
        "Id": _P2P,
        "Name": "Peers of different virtual PCIe domains may reach each other in the fabric",
        "Status": status(),
        "Links": {"InitiatorEndpointGroups": groups, "TargetEndpointGroups": groups},
    }


_F = f"{ROOT}/Fabrics/PCIe"
ENDPOINT = ResourceType(f"{_F}/Endpoints/{{endpoint}}", "Endpoint.v1_8_2", _endpoint)
ZONE = ResourceType(f"{_F}/Zones/{{zone}}", "Zone.v1_6_3", _zone)
TYPES = (
    collection(f"{ROOT}/Fabrics", "FabricCollection", "Fabrics", lambda call: [FABRIC]),
    ResourceType(_F, "Fabric.v1_4_0", _fabric),
    collection(
        f"{_F}/Switches",
        "SwitchCollection",
        "Switches",
        lambda call: [uris.switch(name) for name in call.inventory.switches],
    ),
    ResourceType(f"{_F}/Switches/{{switch}}", "Switch.v1_11_0", _switch),
    collection(f"{_F}/Switches/{{switch}}/Ports", "PortCollection", "Ports", _ports),
    ResourceType(f"{_F}/Switches/{{switch}}/Ports/{{port}}", "Port.v1_18_0", _port),
    collection(
        f"{_F}/Endpoints",
        "EndpointCollection",
        "Endpoints",
        lambda call: [uris.endpoint(name) for name in (*call.inventory.servers, *call.inventory.pool.blocks)],
    ),
    ENDPOINT,
    collection(
        f"{_F}/Zones",
        "ZoneCollection",
        "Virtual PCIe domains",
        lambda call: [f"{FABRIC}/Zones/{server}" for server in call.inventory.servers],
    ),
    ZONE,
    *(
        ResourceType(
            f"{_F}/Zones/{{zone}}/Actions/Zone.{action}",
            writes={
                "POST": WriteMethod(
                    partial(_change_zone, action=action), EndpointForm, action=f"Zone.{action}", alone=False
                )
            },
        )
        for action in _ZONE_ACTIONS
    ),
    collection(
        f"{_F}/EndpointGroups",
        "EndpointGroupCollection",
        "Endpoints by server",
        lambda call: [f"{FABRIC}/EndpointGroups/{server}" for server in call.inventory.servers],
    ),
    ResourceType(f"{_F}/EndpointGroups/{{group}}", "EndpointGroup.v1_3_4", _group),
    collection(
        f"{_F}/Connections",
        "ConnectionCollection",
        "Connections",
        lambda call: [f"{FABRIC}/Connections/{_P2P}"] if _peers(call) else [],
    ),
    ResourceType(f"{_F}/Connections/{{connection}}", "Connection.v1_4_0", _connection),
)
