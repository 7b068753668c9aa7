"""Chassis (servers and boxes) with their PCIe devices, functions, drives and network adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lanewise.director.redfish import uris
from lanewise.director.redfish.inventory import Inventory
from lanewise.director.redfish.resource import Call, Json, ResourceType
from lanewise.director.redfish.resources.common import collection, named, status
from lanewise.director.redfish.resources.devices import (
    device_status,
    drive_uri,
    number,
    part_title,
    pcie_interface,
)
from lanewise.director.redfish.uris import MANAGER, ROOT, link, links, not_there
from lanewise.topology.model import Device, Kind

_CHASSIS = f"{ROOT}/Chassis/{{chassis}}"
_CLASSES = {
    Kind.GPU: "DisplayController",
    Kind.NIC: "NetworkController",
    Kind.SSD: "MassStorageController",
    Kind.RAID: "MassStorageController",
}
_FOLDERS = {"PCIeDevices": tuple(_CLASSES), "Drives": (Kind.SSD,), "NetworkAdapters": (Kind.NIC,)}


def _inside(call: Call, folder: str) -> list[Device]:
    devices: list[Device] = named(call, call.inventory.in_chassis, "chassis")
    return [device for device in devices if device.kind in _FOLDERS[folder]]


def _members(folder: str) -> Callable[[Call], Iterable[str]]:
    return lambda call: [
        f"{uris.chassis(call.names['chassis'])}/{folder}/{device.name}" for device in _inside(call, folder)
    ]


def _device(call: Call, folder: str) -> Device:
    name = call.names["device"]
    device = call.inventory.system.devices.get(name)
    right = device is not None and call.inventory.chassis_of.get(name) == call.names["chassis"]
    if device is None or not right or device.kind not in _FOLDERS[folder]:
        raise not_there(call.path)
    return device


def _chassis(call: Call) -> Json:
    inventory, name = call.inventory, call.names["chassis"]
    inside: list[Device] = named(call, inventory.in_chassis, "chassis")
    base = uris.chassis(name)
    server = name in inventory.own
    systems = [uris.system(name)] if server else []
    composition = inventory.composition_of_server.get(name)
    if composition is not None and composition.name != name:
        systems.append(uris.system(composition.name))
    drives = [f"{base}/Drives/{one.name}" for one in inside if one.kind is Kind.SSD]
    body: Json = {
        "Id": name,
        "Name": f"Server {name}" if server else f"Box of switch {name}",
        "ChassisType": "RackMount" if server else "Expansion",
        "Model": None if server else part_title(inventory, inventory.boxes[name]),
        "PowerState": "On",
        "Status": status(),
        "PCIeDevices": link(f"{base}/PCIeDevices"),
        "Drives": link(f"{base}/Drives"),
        "NetworkAdapters": link(f"{base}/NetworkAdapters"),
        "Links": {
            "ComputerSystems": links(systems),
            "ManagedBy": [link(MANAGER)],
            "Drives": links(drives),
            "ResourceBlocks": links([uris.block(one.name) for one in inside if one.name in inventory.pool.blocks]),
            "Switches": links([] if server else [uris.switch(name)]),
        },
    }
    if server:
        body["Links"]["ResourceBlocks"].append(link(uris.block(name)))
    return body


def _pcie_device(call: Call) -> Json:
    inventory, device = call.inventory, _device(call, "PCIeDevices")
    base = f"{uris.chassis(call.names['chassis'])}/PCIeDevices/{device.name}"
    above = inventory.upstream.get(device.name)
    body: Json = {
        "Id": device.name,
        "Name": f"{device.kind.upper()} {device.name}",
        "Model": part_title(inventory, device),
        "DeviceType": "SingleFunction",
        "Status": device_status(inventory, device.name),
        "PCIeInterface": pcie_interface(inventory, device.name),
        "PCIeFunctions": link(f"{base}/PCIeFunctions"),
        "Links": {"Chassis": [link(uris.chassis(call.names["chassis"]))]},
    }
    if above is not None:
        body["Slot"] = {
            **({"Lanes": above.lanes} if above.lanes else {}),
            **({"PCIeType": f"Gen{above.gen}"} if above.gen else {}),
            "HotPluggable": device.name in inventory.pool.blocks,
        }
        if above.a in inventory.switches:
            body["Links"]["Switch"] = link(uris.switch(above.a))
            label = inventory.port_of_link[(above.a, id(above))]
            body["Links"]["ConnectedPCIePorts"] = [link(uris.port(above.a, label))]
    if device.kind is Kind.GPU:
        body["Links"]["Processors"] = links(_processors(inventory, device))
    return body


def _processors(inventory: Inventory, device: Device) -> list[str]:
    """Where a GPU stands as a processor: below its block, or below its server if it is built in."""
    if device.name in inventory.pool.blocks:
        return [f"{uris.block(device.name)}/Processors/{device.name}"]
    return [f"{uris.system(device.host)}/Processors/{device.name}"] if device.host in inventory.own else []


def _function(call: Call) -> Json:
    device = _device(call, "PCIeDevices")
    if call.names["function"] != "0":
        raise not_there(call.path)
    body: Json = {
        "Id": "0",
        "Name": f"Function 0 of {device.name}",
        "FunctionId": 0,
        "FunctionType": "Physical",
        "DeviceClass": _CLASSES[device.kind],
        "Status": device_status(call.inventory, device.name),
        "Links": {"PCIeDevice": link(call.path.rpartition("/PCIeFunctions/")[0])},
    }
    uri = drive_uri(call.inventory, device.name) if device.kind is Kind.SSD else None
    if uri:
        body["Links"]["Drives"] = [link(uri)]
    return body


def _functions(call: Call) -> list[str]:
    device = _device(call, "PCIeDevices")
    return [f"{uris.chassis(call.names['chassis'])}/PCIeDevices/{device.name}/PCIeFunctions/0"]


def _drive(call: Call) -> Json:
    inventory, device = call.inventory, _device(call, "Drives")
    base = uris.chassis(call.names["chassis"])
    capacity = number(inventory, device.name, "ssd.capacity")
    return {
        "Id": device.name,
        "Name": f"Drive {device.name}",
        "Model": part_title(inventory, device),
        "MediaType": "SSD",
        "Protocol": "NVMe",
        **({"CapacityBytes": int(capacity)} if capacity else {}),
        "Status": device_status(inventory, device.name),
        "Links": {
            "Chassis": link(base),
            "PCIeFunctions": [link(f"{base}/PCIeDevices/{device.name}/PCIeFunctions/0")],
            "Endpoints": links([uris.endpoint(device.name)] if device.name in inventory.pool.blocks else []),
        },
    }


def _adapter(call: Call) -> Json:
    device = _device(call, "NetworkAdapters")
    return {
        "Id": device.name,
        "Name": f"Network card {device.name}",
        "Model": part_title(call.inventory, device),
        "Status": device_status(call.inventory, device.name),
        "Controllers": [
            {
                "PCIeInterface": pcie_interface(call.inventory, device.name),
                "Links": {"PCIeDevices": [link(f"{uris.chassis(call.names['chassis'])}/PCIeDevices/{device.name}")]},
            }
        ],
    }


TYPES = (
    collection(
        f"{ROOT}/Chassis",
        "ChassisCollection",
        "Servers and boxes",
        lambda call: [uris.chassis(name) for name in call.inventory.in_chassis],
    ),
    ResourceType(_CHASSIS, "Chassis.v1_28_0", _chassis),
    collection(f"{_CHASSIS}/PCIeDevices", "PCIeDeviceCollection", "PCIe devices", _members("PCIeDevices")),
    ResourceType(f"{_CHASSIS}/PCIeDevices/{{device}}", "PCIeDevice.v1_21_0", _pcie_device),
    collection(
        f"{_CHASSIS}/PCIeDevices/{{device}}/PCIeFunctions", "PCIeFunctionCollection", "PCIe functions", _functions
    ),
    ResourceType(f"{_CHASSIS}/PCIeDevices/{{device}}/PCIeFunctions/{{function}}", "PCIeFunction.v1_7_0", _function),
    collection(f"{_CHASSIS}/Drives", "DriveCollection", "Drives", _members("Drives")),
    ResourceType(f"{_CHASSIS}/Drives/{{device}}", "Drive.v1_22_0", _drive),
    collection(f"{_CHASSIS}/NetworkAdapters", "NetworkAdapterCollection", "Network cards", _members("NetworkAdapters")),
    ResourceType(f"{_CHASSIS}/NetworkAdapters/{{device}}", "NetworkAdapter.v1_14_0", _adapter),
)
