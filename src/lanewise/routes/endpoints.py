"""Ends of a flow: devices, sockets, and host memory by name (host0, host:1, cpu0)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.errors import Unreachable, unknown_name
from lanewise.routes.paths import root_of
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from lanewise.topology.model import System


def endpoint(system: System, text: str, peer: str = "") -> str:
    """The device that `text` names; host memory becomes its socket, the one nearest to `peer` if no node is given.

    UnknownName with the closest names if nothing bears that name.
    """
    if text in system.devices:
        return text
    host, _, node = text.partition(":")
    if host == "host" and host not in system.hosts and len(system.hosts) == 1:
        host = system.hosts[0]
    if host not in system.hosts:
        known = [*system.devices, *system.hosts, *system.volumes, *(["host"] if len(system.hosts) == 1 else [])]
        raise unknown_name(f"end in {system.name}", text, known)
    sockets = system.of_kind(Kind.CPU, host=host)
    if not sockets:
        raise Unreachable(f"{host} of {system.name} has no CPU, so no host memory", hint="describe its sockets as devices")
    return _of_node(system, sockets, text, node) if node else _nearest(system, sockets, host, peer)


def _of_node(system: System, sockets: list[str], text: str, node: str) -> str:
    by_node = {str(system.device(name).numa): name for name in sockets}
    if node not in by_node:
        raise unknown_name("NUMA node", text, [f"{text.partition(':')[0]}:{known}" for known in by_node])
    return by_node[node]


def _nearest(system: System, sockets: list[str], host: str, peer: str) -> str:
    """The socket whose root port the other end hangs from; the first one where that says nothing."""
    device = system.devices.get(peer)
    if device is not None and device.host == host and device.kind is not Kind.NETSWITCH:
        root = root_of(system, peer)
        if root in sockets:
            return root
    return sockets[0]
