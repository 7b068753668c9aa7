"""What two systems are compared by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lanewise.topology.model import System


def facts(system: System) -> dict[str, Any]:
    """Everything a system states except the lines it was read from."""
    return {
        "name": system.name,
        "title": system.title,
        "source": system.source,
        "hosts": system.hosts,
        "devices": [replace(device, location=None) for device in system.devices.values()],
        "links": [replace(link, location=None) for link in system.links],
        "domains": [replace(domain, location=None) for domain in system.domains],
        "volumes": [replace(volume, location=None) for volume in system.volumes.values()],
        "policies": system.policies,
        "parameters": dict(system.parameters),
        "settings": dict(system.settings),
        "assumptions": system.assumptions,
    }
