"""The class of a path in the terms of nvidia-smi and NCCL: the widest thing that it crosses."""

from __future__ import annotations

from lanewise.routes.model import Route, Via, reversed_hops
from lanewise.routes.paths import NVLINKS, Hops, cpu_above, cpus_passed, hops_to_cpu, reach, shortest, sockets
from lanewise.topology.model import Kind, LinkKind, System

LOCAL, PIX, PXB, PHB, NODE, SYS, NET = "LOC", "PIX", "PXB", "PHB", "NODE", "SYS", "NET"
NEAR_TO_FAR = (PIX, PXB, PHB, NODE, SYS)  # as nvidia-smi topo -m prints them; the first two stay below a root port
MEANING = {
    LOCAL: "the same device or memory",
    "NV#": "# bonded NVLinks",
    PIX: "at most one PCIe switch",
    PXB: "several PCIe switches, no host bridge",
    PHB: "one PCIe host bridge",
    NODE: "two host bridges of one NUMA node",
    SYS: "the link between two NUMA nodes",
    NET: "the network",
}
_NEAREST_FIRST = (LOCAL, "NV", PIX, PXB, PHB, NODE, SYS, NET)


def rank(cls: str) -> int:
    """The rank of a class from near (LOC) to far (NET)."""
    return _NEAREST_FIRST.index("NV" if cls.startswith("NV") else cls)


def class_of(system: System, hops: Hops) -> str:
    """The class of contiguous `hops`: LOC, NV# (NV? where nobody counted them), PIX, PXB, PHB, NODE, SYS or NET."""
    kinds = {hop.link.kind for hop in hops}
    if not hops:
        return LOCAL
    if LinkKind.NETWORK in kinds:
        return NET
    if kinds == {LinkKind.NVLINK} and not cpus_passed(system, hops):
        if not all(hop.link.count_known for hop in hops):
            return "NV?"
        over_gpus = any(system.device(hop.end).kind is Kind.GPU for hop in hops[:-1])
        return f"NV{min(h.link.count for h in hops) if over_gpus else bonds(system, hops[0].start, hops[-1].end)}"
    names = [hops[0].start, *(hop.end for hop in hops)]
    cpus = {name for name in names if system.device(name).kind is Kind.CPU}
    if not cpus:
        return PIX if len(hops) <= 2 else PXB
    if len(cpus) > 1:
        sockets = {system.numa_nodes(cpu) for cpu in cpus}
        return NODE if len(sockets) == 1 and () not in sockets else SYS
    one_bridge = len(set(bridges(system, hops))) <= 1
    if len(system.numa_nodes(*cpus)) > 1:
        near = {system.numa_node(end) for end in (names[0], names[-1]) if end not in cpus}
        if len(near) > 1 or (None in near and not one_bridge):
            return SYS
    return PHB if one_bridge else NODE


def bridges(system: System, hops: Hops) -> tuple[str, ...]:
    """The host bridges by which a path enters and leaves CPUs, in order."""
    names = []
    for hop in hops:
        if hop.link.kind is not LinkKind.SOCKET:
            end = hop.start if hop.down else hop.end
            if system.device(end).kind is Kind.CPU:
                names.append(hop.link.bridge)
    return tuple(names)


def bonds(system: System, a: str, b: str) -> int:
    """How many NVLinks join two GPUs, directly or through NVSwitches: the fewer of what the ends have."""
    return min(_bonds_of(system, a, b), _bonds_of(system, b, a))


def _bonds_of(system: System, gpu: str, peer: str) -> int:
    links = [link for link in system.links_at(gpu) if link.kind is LinkKind.NVLINK]
    straight = [link for link in links if link.far_end(gpu) == peer]
    return sum(link.count for link in straight or links if straight or _leads(system, link.far_end(gpu), peer))


def _leads(system: System, middle: str, end: str) -> bool:
    return system.device(middle).kind is Kind.NVSWITCH and end in reach(system, middle, NVLINKS)


def topo_class(system: System, a: str, b: str) -> str:
    """The class by where two devices of one host sit below their root ports, as nvidia-smi prints it.

    It ignores ACS, the IOMMU and fabric links outside the trees; Unreachable as `hops_to_cpu`.
    """
    if a == b:
        return LOCAL
    nvlink = shortest(system, a, b, NVLINKS)
    if nvlink is not None:
        return class_of(system, nvlink)
    return class_of(system, tree_hops(system, a, b))


def tree_hops(system: System, a: str, b: str) -> Hops:
    """The hops from `a` up to where it meets the tree of `b`, and down; Unreachable as `over_roots`."""
    up, down = hops_to_cpu(system, a), hops_to_cpu(system, b)
    path_a, path_b = [hop.end for hop in up], [hop.end for hop in down]
    if b in path_a:
        return up[: path_a.index(b) + 1]
    if a in path_b:
        return reversed_hops(down[: path_b.index(a) + 1])
    for index, name in enumerate(path_a):
        device = system.device(name)
        if device.kind is Kind.SWITCH and name in path_b:
            position = path_b.index(name)
            if device.joins(up[index].start, down[position].start):
                return (*up[: index + 1], *reversed_hops(down[: position + 1]))
    return (*up, *sockets(system, cpu_above(system, a), cpu_above(system, b)), *reversed_hops(down))


def path_kind(system: System, route: Route) -> str:
    """The `path` of a row, what kind of path a route is: host to device, peer PIX, peer staged, storage, network."""
    kinds = (system.device(route.src).kind, system.device(route.dst).kind)
    if route.via is Via.NETWORK:
        return "network"
    if kinds[0] in (Kind.SSD, Kind.RAID) or kinds[1] in (Kind.SSD, Kind.RAID):
        return "storage"
    if kinds == (Kind.CPU, Kind.GPU):
        return "host to device"
    if kinds == (Kind.GPU, Kind.CPU):
        return "device to host"
    return "peer, staged" if route.via is Via.STAGED else f"peer {route.cls}"
