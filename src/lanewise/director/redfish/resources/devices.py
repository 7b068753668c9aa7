"""Properties of devices that several resources show: health, part names, PCIe interfaces, processors."""

from __future__ import annotations

from lanewise.director.records import Health
from lanewise.director.redfish import uris
from lanewise.director.redfish.inventory import Inventory
from lanewise.director.redfish.resource import Json
from lanewise.director.redfish.resources.common import status
from lanewise.director.redfish.uris import link, links
from lanewise.errors import LanewiseError
from lanewise.pool.model import BlockState, CompositionState
from lanewise.topology.model import Device, Kind, Link

NOTE_TYPE = "#LanewiseOem.v1_0_0.Note"
_GT = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}  # GT/s of one lane
_BLOCK_STATES = {
    BlockState.UNUSED: "StandbyOffline",
    BlockState.COMPOSING: "Starting",
    BlockState.COMPOSED: "Enabled",
    BlockState.FAILED: "Disabled",
    BlockState.UNAVAILABLE: "Absent",
}
SYSTEM_STATES = {
    CompositionState.COMPOSING: "Starting",
    CompositionState.COMPOSED: "Enabled",
    CompositionState.CHANGING: "Updating",
    CompositionState.RELEASING: "Updating",
    CompositionState.FAILED: "Disabled",
}


def number(inventory: Inventory, name: str, key: str) -> float | None:
    """A figure of a device's part, None if unknown or if its kind has no such figure."""
    try:
        return inventory.system.number(name, key)
    except LanewiseError:
        return None


def part_title(inventory: Inventory, device: Device) -> str | None:
    """The title of a device's part."""
    part = inventory.system.part(device.name)
    return part.title if part else None


def device_status(inventory: Inventory, name: str) -> Json:
    """The status of a device: that of its block, if it is one."""
    record = inventory.view.blocks.get(name)
    block = inventory.pool.blocks.get(name)
    health = record.health if record else Health.OK
    if block is None:
        return status(health)
    if block.state in (BlockState.FAILED, BlockState.UNAVAILABLE):
        health = Health.CRITICAL
    return status(health, _BLOCK_STATES[block.state])


def lane_gbps(one: Link) -> float | None:
    """The raw speed of a link in Gb/s, None if unknown."""
    if one.rate is not None:
        return round(one.rate * 8 / 1e9, 3)
    if one.gen in _GT and one.lanes:
        return _GT[one.gen] * one.lanes
    return None


def pcie_interface(inventory: Inventory, name: str) -> Json:
    """The trained PCIe link of a device and the most that its part can train."""
    one = inventory.upstream.get(name)
    gen, lanes = number(inventory, name, "pcie.gen"), number(inventory, name, "pcie.lanes")
    interface: Json = {}
    if gen is not None:
        interface["MaxPCIeType"] = f"Gen{int(gen)}"
    if lanes is not None:
        interface["MaxLanes"] = int(lanes)
    if one is not None and one.gen:
        interface["PCIeType"] = f"Gen{one.gen}"
    if one is not None and one.lanes:
        interface["LanesInUse"] = one.lanes
    return interface


def processor(inventory: Inventory, device: Device, folder: str) -> Json:
    """A CPU or GPU below a system or a resource block."""
    body: Json = {
        "Id": device.name,
        "Name": f"{device.kind.upper()} {device.name}",
        "ProcessorType": "GPU" if device.kind is Kind.GPU else "CPU",
        "Model": part_title(inventory, device),
        "Status": device_status(inventory, device.name),
    }
    cores = number(inventory, device.name, "cpu.cores") if device.kind is Kind.CPU else None
    if cores is not None:
        body["TotalCores"] = int(cores)
    chassis = inventory.chassis_of.get(device.name)
    if device.kind is Kind.GPU and chassis is not None:
        body["SystemInterface"] = {"InterfaceType": "PCIe", "PCIe": pcie_interface(inventory, device.name)}
        body["Links"] = {
            "Chassis": link(uris.chassis(chassis)),
            "PCIeDevice": link(f"{uris.chassis(chassis)}/PCIeDevices/{device.name}"),
            "Endpoints": links([uris.endpoint(device.name)] if device.name in inventory.pool.blocks else []),
        }
    elif device.host in inventory.own:
        body["Links"] = {"Chassis": link(uris.chassis(str(device.host)))}
    return body


def network_interface(inventory: Inventory, device: Device, folder: str) -> Json:
    """A network card as a system or a block shows it."""
    chassis = inventory.chassis_of.get(device.name)
    adapter = f"{uris.chassis(str(chassis))}/NetworkAdapters/{device.name}"
    return {
        "Id": device.name,
        "Name": f"Network card {device.name}",
        "Status": device_status(inventory, device.name),
        **({"Links": {"NetworkAdapter": link(adapter)}} if chassis else {}),
    }


def drive_uri(inventory: Inventory, name: str) -> str | None:
    """The address of a drive, None if it is in no chassis."""
    chassis = inventory.chassis_of.get(name)
    return f"{uris.chassis(chassis)}/Drives/{name}" if chassis else None
