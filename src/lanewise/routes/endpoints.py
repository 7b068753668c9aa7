"""The names that a route may start or end at: devices, and memory as `host0`, `host:1` or `cpu0`."""

from __future__ import annotations

from lanewise.errors import InputError, Unreachable, unknown_name
from lanewise.routes.network import nearest_memory
from lanewise.routes.paths import cpu_above
from lanewise.topology.model import Kind, System

ANY_HOST = "host"
_PASSED = {
    Kind.SWITCH: "a PCIe switch",
    Kind.NVSWITCH: "an NVSwitch",
    Kind.NETSWITCH: "a network switch",
}


def endpoint(system: System, text: str, other: str = "") -> str:
    """The device that `text` names as one end when the other end is `other`; UnknownName if there is none.

    A host means its memory at the NUMA node nearest to the other end, `host0:1` for that at its node 1,
    and `host` for the other end's host, or the only one. Names in the operating system name their device too.
    """
    if text in system.devices:
        return text
    if text in system.os_names:
        return system.os_names[text]
    word, colon, node = text.partition(":")
    host = _host(system, word, other)
    if host is None:
        if word.rstrip("0123456789") == ANY_HOST:
            raise unknown_name(f"host of {system.name}", text, system.hosts)
        names = [*system.devices, *system.hosts, *system.volumes]
        raise unknown_name(f"device of {system.name}", text, names)
    cpus = system.of_kind(Kind.CPU, host=host)
    if colon:
        return _at_node(system, text, host, node, cpus)
    if not cpus:
        hint = f"describe its sockets: cpu0: {{cpu: null, host: {host}}}"
        raise Unreachable(f"{host} has no CPU, so no memory", hint=hint)
    return _nearest(system, host, other) or cpus[0]


def ends(system: System, src: str, dst: str) -> tuple[str, str]:
    """The devices of two names; UnknownName, or InputError for one that only passes data on."""
    a, b = endpoint(system, src, dst), endpoint(system, dst, src)
    for name in (a, b):
        device = system.device(name)
        if device.kind in _PASSED:
            raise InputError(
                f"no data starts or ends at {name}, {_PASSED[device.kind]}", location=device.location,
                hint="name a GPU, drive, network card, CPU or host",
            )  # fmt: skip
    return a, b


def stated_node(system: System, *texts: str) -> int | None:
    """The NUMA node that one of these ends of a flow names, as host0:1 does; None if none of them names one."""
    named = (text.partition(":")[2] for text in texts if text not in {*system.devices, *system.os_names})
    return next((int(node) for node in named if node), None)


def memory_node(system: System, cpu: str, other: str, stated: int | None = None) -> int | None:
    """The NUMA node of `cpu` whose memory a flow to or from the device `other` uses, None if unknown.

    It is the `stated` one (Route.memory_node) if it is of this socket, else the device's, else the socket's only one.
    """
    nodes = system.numa_nodes(cpu)
    near = stated if stated in nodes else system.numa_node(other)
    if near in nodes:
        return near
    return nodes[0] if len(nodes) == 1 else None


def _host(system: System, word: str, other: str) -> str | None:
    if word in system.hosts:
        return word
    if word != ANY_HOST:
        return None
    if other in system.devices and system.device(other).host is not None:
        return system.device(other).host
    return system.hosts[0] if len(system.hosts) == 1 else None


def _at_node(system: System, text: str, host: str, node: str, cpus: list[str]) -> str:
    nodes = {str(number): cpu for cpu in reversed(cpus) for number in system.numa_nodes(cpu)}
    if node in nodes:
        return nodes[node]
    names = [f"{host}:{number}" for number in sorted(nodes, key=int)]
    raise unknown_name(f"NUMA node of {system.name}", text, names)


def _nearest(system: System, host: str, other: str) -> str | None:
    if other not in system.devices:
        return None
    bound = system.device(other).host
    try:
        if bound == host:
            return cpu_above(system, other)
        return nearest_memory(system, host, other) if bound is not None else None
    except Unreachable:
        return None  # the search for the route itself says what is missing
