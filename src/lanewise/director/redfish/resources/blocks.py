"""Resource blocks (devices that can be given, and the servers), their pools, and resource zones."""

from __future__ import annotations

from lanewise.director.records import Health
from lanewise.director.redfish import uris
from lanewise.director.redfish.inventory import Inventory
from lanewise.director.redfish.json_body import RequestForm
from lanewise.director.redfish.resource import Call, Json, Reply, ResourceType, WriteMethod
from lanewise.director.redfish.resources.common import collection, status
from lanewise.director.redfish.resources.devices import (
    NOTE_TYPE,
    device_status,
    drive_uri,
    network_interface,
    processor,
)
from lanewise.director.redfish.uris import BLOCKS, COMPOSITION, ZONES, link, links, not_there
from lanewise.pool.model import BlockState, CompositionState
from lanewise.topology.model import Device, Kind

_REPAIR = "LanewiseOem.RepairResourceBlock"
_TYPES = {Kind.GPU: "Processor", Kind.NIC: "Network", Kind.SSD: "Storage", Kind.RAID: "Storage"}
_SERVER_STATES = {
    CompositionState.COMPOSING: "Composing",
    CompositionState.COMPOSED: "Composed",
    CompositionState.CHANGING: "Composing",
    CompositionState.RELEASING: "Composing",
    CompositionState.FAILED: "Failed",
}


def _reserved_servers(inventory: Inventory) -> dict[str, str]:
    active = [one for one in inventory.pool.reservations.values() if one.state == "Active"]
    return {one.server: one.name for one in active}


def _block(call: Call) -> Json:
    inventory, name = call.inventory, call.names["block"]
    if name in inventory.own:
        return _server_block(inventory, name)
    block = inventory.pool.blocks.get(name)
    if block is None:
        raise not_there(call.path)
    record = call.view.blocks.get(name)
    base = uris.block(name)
    chassis = inventory.chassis_of.get(name)
    system = inventory.composed.get(block.holder or "")
    body: Json = {
        "Id": name,
        "Name": f"{block.kind.upper()} {name}",
        "ResourceBlockType": [_TYPES[block.kind]],
        "Pool": _pool(block.state, block.holder),
        "Status": device_status(inventory, name),
        "CompositionStatus": {
            "CompositionState": str(block.state),
            "Reserved": block.reservation is not None,
            "SharingCapable": False,
            "MaxCompositions": 1,
            "NumberOfCompositions": int(system is not None),
        },
        "Links": {
            "Chassis": links([uris.chassis(chassis)] if chassis else []),
            "ComputerSystems": links([uris.system(system.name)] if system else []),
            "Zones": [link(f"{ZONES}/PCIe")],
        },
        "Oem": {
            "Lanewise": {
                "@odata.type": NOTE_TYPE,
                "Server": inventory.system.devices[name].host if name in inventory.system.devices else None,
                "Part": block.part,
                "Composition": block.holder,
                "Reservation": block.reservation,
                "State": str(block.state),
                "Notes": [record.note] if record and record.note else [],
            }
        },
    }
    body["Actions"] = {"Oem": {f"#{_REPAIR}": {"target": f"{base}/Actions/Oem/{_REPAIR}"}}}
    if block.kind is Kind.GPU:
        body["Processors"] = [link(f"{base}/Processors/{name}")]
    elif block.kind is Kind.SSD:
        uri = drive_uri(inventory, name)
        body["Drives"] = links([uri] if uri else [])
    elif block.kind is Kind.NIC:
        body["NetworkInterfaces"] = [link(f"{base}/NetworkInterfaces/{name}")]
    return body


class RepairForm(RequestForm):
    """LanewiseOem.RepairResourceBlock."""


def _repair(call: Call) -> Reply:
    """Observe a block that failed or was away again: it is free, or composed, if the fabric now says so."""
    name = call.names["block"]
    if name not in call.inventory.pool.blocks:
        raise not_there(call.path)
    call.service.director.repair(name)
    return Reply(204)


def _pool(state: BlockState, holder: str | None) -> str:
    if state in (BlockState.FAILED, BlockState.UNAVAILABLE):
        return "Unassigned"
    return "Active" if holder is not None else "Free"


def _server_block(inventory: Inventory, name: str) -> Json:
    composition = inventory.composition_of_server.get(name)
    reservation = _reserved_servers(inventory).get(name)
    state = _SERVER_STATES[composition.state] if composition else "Unused"
    return {
        "Id": name,
        "Name": f"Server {name}",
        "ResourceBlockType": ["ComputerSystem"],
        "Pool": "Active" if composition else "Free",
        "Status": status(Health.OK),
        "CompositionStatus": {
            "CompositionState": state,
            "Reserved": reservation is not None,
            "SharingCapable": False,
            "MaxCompositions": 1,
            "NumberOfCompositions": int(composition is not None),
        },
        "ComputerSystems": [link(uris.system(name))],
        "Links": {
            "Chassis": [link(uris.chassis(name))],
            "ComputerSystems": links([uris.system(composition.name)] if composition else []),
            "Zones": [link(f"{ZONES}/PCIe")],
        },
        "Oem": {
            "Lanewise": {
                "@odata.type": NOTE_TYPE,
                "Server": name,
                "Composition": composition.name if composition else None,
                "Reservation": reservation,
                "State": state,
                "Notes": [],
            }
        },
    }


def _block_device(call: Call, kind: Kind) -> Device:
    name = call.names["block"]
    block = call.inventory.pool.blocks.get(name)
    if block is None or block.kind is not kind or call.names["device"] != name:
        raise not_there(call.path)
    return call.inventory.system.devices[name]


def _processor(call: Call) -> Json:
    return processor(call.inventory, _block_device(call, Kind.GPU), uris.block(call.names["block"]))


def _interface(call: Call) -> Json:
    return network_interface(call.inventory, _block_device(call, Kind.NIC), uris.block(call.names["block"]))


def _all(call: Call) -> list[str]:
    return [uris.block(name) for name in (*call.inventory.servers, *call.inventory.pool.blocks)]


def _in_pool(call: Call, pool: str) -> list[str]:
    inventory = call.inventory
    taken = inventory.composition_of_server
    servers = [name for name in inventory.servers if (name in taken) == (pool == "Active")]
    blocks = [one.name for one in inventory.pool.blocks.values() if _pool(one.state, one.holder) == pool]
    return [uris.block(name) for name in (*servers, *blocks)]


def _zone(call: Call) -> Json:
    if call.names["zone"] != "PCIe":
        raise not_there(call.path)
    return {
        "Id": "PCIe",
        "Name": "What the PCIe fabric reaches",
        "ZoneType": "ZoneOfResourceBlocks",
        "Status": status(),
        "Links": {"ResourceBlocks": links(_all(call))},
    }


BLOCK = ResourceType(f"{BLOCKS}/{{block}}", "ResourceBlock.v1_4_3", _block)
TYPES = (
    collection(BLOCKS, "ResourceBlockCollection", "Resource blocks", _all),
    BLOCK,
    ResourceType(
        f"{BLOCKS}/{{block}}/Actions/Oem/{_REPAIR}",
        writes={"POST": WriteMethod(_repair, RepairForm, action=_REPAIR, alone=False)},
    ),
    ResourceType(f"{BLOCKS}/{{block}}/Processors/{{device}}", "Processor.v1_22_0", _processor),
    ResourceType(f"{BLOCKS}/{{block}}/NetworkInterfaces/{{device}}", "NetworkInterface.v1_2_3", _interface),
    collection(
        f"{COMPOSITION}/ActivePool",
        "ResourceBlockCollection",
        "Resource blocks in use",
        lambda call: _in_pool(call, "Active"),
    ),
    collection(
        f"{COMPOSITION}/FreePool",
        "ResourceBlockCollection",
        "Free resource blocks",
        lambda call: _in_pool(call, "Free"),
    ),
    collection(ZONES, "ZoneCollection", "Resource zones", lambda call: [f"{ZONES}/PCIe"]),
    ResourceType(f"{ZONES}/{{zone}}", "Zone.v1_6_3", _zone),
)
