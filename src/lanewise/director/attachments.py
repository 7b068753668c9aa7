"""A system with its devices where the fabric says they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lanewise.errors import LanewiseError
from lanewise.topology.compose import attach, detach
from lanewise.topology.model import Device, System


def placed(system: System, device: str, server: str | None) -> System:
    """The system with a device bound as the fabric says, also where the description knows no path for it."""
    if device not in system.devices or system.devices[device].host == server:
        return system
    if system.devices[device].host is not None:
        system = detach(system, device)
    if server is None:
        return system
    try:
        return attach(system, device, server)
    except LanewiseError:
        bound = replace(system.devices[device], host=server)
        return replace(system, devices={**system.devices, device: bound})


def with_missing(system: System, before: System, blocks: Iterable[Device]) -> System:
    """The system with the devices of blocks that left the fabric, free, and cabled as they were if that is known."""
    missing = {device.name: device for device in blocks if device.name not in system.devices}
    if not missing:
        return system
    devices: Mapping[str, Device] = {**system.devices, **missing}
    lost = [link for link in before.links if {link.a, link.b} & missing.keys()]
    kept = tuple(link for link in lost if link.a in devices and link.b in devices)
    return replace(system, devices=devices, links=(*system.links, *kept))
