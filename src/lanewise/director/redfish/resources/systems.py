"""Systems: the servers, and the systems composed of a server and the blocks given to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from lanewise.director.records import Health
from lanewise.director.redfish import uris
from lanewise.director.redfish.composition_forms import BlockForm, NewSystemForm, composition_request
from lanewise.director.redfish.messages import refusal
from lanewise.director.redfish.offers import requirement_json
from lanewise.director.redfish.resource import Call, Json, Reply, ResourceType, WriteMethod
from lanewise.director.redfish.resources.blocks import BLOCK
from lanewise.director.redfish.resources.common import check_tag, collection, idempotency_key, status
from lanewise.director.redfish.resources.devices import (
    NOTE_TYPE,
    SYSTEM_STATES,
    drive_uri,
    network_interface,
    part_title,
    processor,
)
from lanewise.director.redfish.resources.tasks import task_reply
from lanewise.director.redfish.uris import MANAGER, ROOT, link, links, not_there
from lanewise.errors import printable, shorten
from lanewise.topology.model import Device, Kind

_SYSTEM = f"{ROOT}/Systems/{{system}}"
_KINDS = {"Processors": (Kind.CPU, Kind.GPU), "NetworkInterfaces": (Kind.NIC,), "Drives": (Kind.SSD,)}
_ACTIONS = ("AddResourceBlock", "RemoveResourceBlock")
_MAKERS = {"Processors": processor, "NetworkInterfaces": network_interface}


def _exists(call: Call) -> str:
    name = call.names["system"]
    if name not in call.inventory.own and name not in call.inventory.composed:
        raise not_there(call.path)
    return name


def _devices(call: Call, folder: str) -> list[Device]:
    return [one for one in call.inventory.devices_of(_exists(call)) if one.kind in _KINDS[folder]]


def _members(folder: str) -> Callable[[Call], Iterable[str]]:
    return lambda call: [f"{uris.system(_exists(call))}/{folder}/{one.name}" for one in _devices(call, folder)]


def _part_of(folder: str) -> Callable[[Call], Json]:
    def read(call: Call) -> Json:
        device = next((one for one in _devices(call, folder) if one.name == call.names["device"]), None)
        if device is None:
            raise not_there(call.path)
        return _MAKERS[folder](call.inventory, device, uris.system(call.names["system"]))

    return read


def _system(call: Call) -> Json:
    if call.names["system"] == "Capabilities":
        return _capabilities()
    name = _exists(call)
    inventory = call.inventory
    composed = name not in inventory.own
    server = inventory.composed[name].server if composed else name
    base = uris.system(name)
    devices = inventory.devices_of(name)
    cpus = [one for one in devices if one.kind is Kind.CPU]
    body: Json = {
        "Id": name,
        "Name": name,
        "SystemType": "Composed" if composed else "Physical",
        "PowerState": "On",
        "Status": status(),
        "ProcessorSummary": {
            "Count": len(cpus),
            "Model": part_title(inventory, cpus[0]) if cpus else None,
        },
        "Processors": link(f"{base}/Processors"),
        "Storage": link(f"{base}/Storage"),
        "NetworkInterfaces": link(f"{base}/NetworkInterfaces"),
        "PCIeDevices": links(_pcie_devices(call, devices)),
        "Links": {
            "Chassis": [link(uris.chassis(server))],
            "ManagedBy": [link(MANAGER)],
            "ResourceBlocks": [link(uris.block(server))],
            "Endpoints": [link(uris.endpoint(server))],
        },
    }
    return _composed(call, body, name) if composed else body


def _pcie_devices(call: Call, devices: Iterable[Device]) -> list[str]:
    chassis_of = call.inventory.chassis_of
    places = [(chassis_of[one.name], one.name) for one in devices if one.name in chassis_of]
    return [f"{uris.chassis(chassis)}/PCIeDevices/{name}" for chassis, name in places]


def _composed(call: Call, body: Json, name: str) -> Json:
    composition = call.inventory.composed[name]
    record = call.view.compositions.get(name)
    health = record.health if record else Health.OK
    base = uris.system(name)
    body["Status"] = status(health, SYSTEM_STATES[composition.state])
    body["Composition"] = {"UseCases": ["ExpandableSystem"]}
    body["Links"]["ResourceBlocks"] += links([uris.block(one) for one in composition.blocks])
    body["Links"]["SupplyingComputerSystems"] = [link(uris.system(composition.server))]
    body["Actions"] = {
        f"#ComputerSystem.{action}": {"target": f"{base}/Actions/ComputerSystem.{action}"} for action in _ACTIONS
    }
    body["Oem"] = {
        "Lanewise": {
            "@odata.type": NOTE_TYPE,
            "Server": composition.server,
            "State": str(composition.state),
            "Notes": list(record.notes) if record else [],
            "PeerToPeer": record.p2p if record else False,
            "Paths": [requirement_json(need) for need in composition.requirements],
        }
    }
    return body


def _capabilities() -> Json:
    return {
        "Id": "Capabilities",
        "Name": "What a new system may ask for",
        "Name@Redfish.OptionalOnCreate": True,
        "Name@Redfish.SetOnlyOnCreate": True,
        "Description@Redfish.OptionalOnCreate": True,
        "Links@Redfish.RequiredOnCreate": True,
        "Links": {
            "ResourceBlocks@Redfish.RequiredOnCreate": True,
            "ResourceBlocks@Redfish.UpdatableAfterCreate": True,
        },
    }


def _storage(call: Call) -> Json:
    if call.names["storage"] != "NVMe":
        raise not_there(call.path)
    places = [drive_uri(call.inventory, one.name) for one in _devices(call, "Drives")]
    return {
        "Id": "NVMe",
        "Name": f"Drives of {call.names['system']}",
        "Status": status(),
        "Drives": links([place for place in places if place]),
        "Drives@odata.count": sum(place is not None for place in places),
    }


def _collection_extra(call: Call) -> Json:
    cases = ("ComputerSystemComposition", "ComputerSystemConstrainedComposition")
    return {
        "@Redfish.CollectionCapabilities": {
            "@odata.type": "#CollectionCapabilities.v1_4_0.CollectionCapabilities",
            "Capabilities": [
                {
                    "CapabilitiesObject": link(f"{ROOT}/Systems/Capabilities"),
                    "UseCase": case,
                    "Links": {"TargetCollection": link(f"{ROOT}/Systems")},
                }
                for case in cases
            ],
        }
    }


# --- changes ---


def composed_reply(call: Call, name: str, code: int) -> Reply:
    """The composed system as it is now."""
    service = call.service
    uri = uris.system(name)
    representation = service.represent(SYSTEM, replace(call, view=service.view, path=uri, names={"system": name}))
    headers = {"ETag": representation.etag, **({"Location": uri} if code == 201 else {})}
    return Reply(code, representation.data, headers)


def _compose(call: Call) -> Reply:
    body: NewSystemForm = call.body
    request = composition_request(body, call.inventory)
    if request.name in call.inventory.composed and not idempotency_key(call):
        raise refusal(409, "Base.ResourceAlreadyExists", "ComputerSystem", "Name", request.name)
    director = call.service.director
    task = director.compose(request, key=idempotency_key(call), client=call.user.account, wait=False)
    return task_reply(call, task, lambda: composed_reply(call, task.composition, 201))


def _version(call: Call, name: str) -> int | None:
    """The version that If-Match, compared before, stands for; None where the client does not care."""
    record = call.view.compositions.get(name)
    return record.version if record and "if-match" in call.headers else None


def _delete(call: Call) -> Reply:
    name = _exists(call)
    if name in call.inventory.own:
        error = refusal(405, "Base.ResourceCannotBeDeleted", text="A server itself cannot be deleted.")
        error.headers["Allow"] = "GET, HEAD"
        raise error
    task = call.service.director.release(name, version=_version(call, name), client=call.user.account, wait=False)
    return task_reply(call, task, lambda: Reply(204))


def _change_block(call: Call, action: str) -> Reply:
    body: BlockForm = call.body
    name = _exists(call)
    if name in call.inventory.own:
        raise refusal(400, "Base.ActionNotSupported", f"ComputerSystem.{action}")
    block = uris.name_below(body.ResourceBlock.uri, uris.BLOCKS, "ResourceBlock")
    if block not in call.inventory.pool.blocks:
        raise refusal(400, "Composition.ResourceBlockNotFound", shorten(printable(block)), prop="ResourceBlock")
    check_tag(call, body.ComputerSystemETag, SYSTEM, uris.system(name), {"system": name})
    check_tag(call, body.ResourceBlockETag, BLOCK, uris.block(block), {"block": block})
    record = call.view.compositions.get(name)
    tagged = body.ComputerSystemETag is not None or body.ResourceBlockETag is not None
    version = record.version if record and tagged else None
    arguments: dict[str, Any] = {"key": idempotency_key(call), "version": version, "client": call.user.account}
    director = call.service.director
    change = director.attach if action == "AddResourceBlock" else director.detach
    task = change(name, block, **arguments, wait=False)
    return task_reply(call, task, lambda: Reply(204))


SYSTEM = ResourceType(
    _SYSTEM,
    "ComputerSystem.v1_27_0",
    _system,
    writes={"DELETE": WriteMethod(_delete, alone=False)},
)
TYPES = (
    collection(
        f"{ROOT}/Systems",
        "ComputerSystemCollection",
        "Servers and composed systems",
        lambda call: [uris.system(name) for name in (*call.inventory.own, *call.inventory.composed)],
        extra=_collection_extra,
        writes={"POST": WriteMethod(_compose, NewSystemForm, alone=False)},
    ),
    SYSTEM,
    *(
        ResourceType(
            f"{_SYSTEM}/Actions/ComputerSystem.{action}",
            writes={
                "POST": WriteMethod(
                    partial(_change_block, action=action),
                    BlockForm,
                    action=f"ComputerSystem.{action}",
                    alone=False,
                )
            },
        )
        for action in _ACTIONS
    ),
    collection(f"{_SYSTEM}/Processors", "ProcessorCollection", "Processors", _members("Processors")),
    ResourceType(f"{_SYSTEM}/Processors/{{device}}", "Processor.v1_22_0", _part_of("Processors")),
    collection(
        f"{_SYSTEM}/NetworkInterfaces", "NetworkInterfaceCollection", "Network cards", _members("NetworkInterfaces")
    ),
    ResourceType(f"{_SYSTEM}/NetworkInterfaces/{{device}}", "NetworkInterface.v1_2_3", _part_of("NetworkInterfaces")),
    collection(
        f"{_SYSTEM}/Storage",
        "StorageCollection",
        "Storage",
        lambda call: [f"{uris.system(_exists(call))}/Storage/NVMe"],
    ),
    ResourceType(f"{_SYSTEM}/Storage/{{storage}}", "Storage.v1_21_0", _storage),
)
