"""What is allowed: where peer traffic turns (domains, ACS, IOMMU), and which pairs may be peers."""

from __future__ import annotations

import math
from itertools import pairwise

from lanewise.routes.classify import bridges
from lanewise.routes.model import Hop
from lanewise.routes.paths import PCIE_AND_FABRIC, Hops, cpu_above, cpus_passed, memoized, over_roots, shortest
from lanewise.topology.model import Kind, LinkKind, System

DEFAULT_SCOPE = "root-complex"
_WITHIN = {"root-complex": "one host bridge", "socket": "one socket"}
NO_ACCESS = "the driver offers no peer access"
ASSUMED_SCOPE = f"peer scope {DEFAULT_SCOPE}, as none is known; policies: {{peers: system}} states another"


def staging_socket(system: System, a: str, b: str) -> str | None:
    """The socket in whose memory copies between two GPUs are staged where xGMI joins the sockets, if none is stated.

    The driver takes its buffers where the program runs, which is the first socket on both hosts that tell (a100-a147,
    a100-distserve). None for other hosts, whose links between sockets hide it, and for sockets of several NUMA nodes.
    """
    host = system.device(a).host
    if {system.device(a).kind, system.device(b).kind} != {Kind.GPU} or host is None or host in system.policies.staging:
        return None
    cpus = system.of_kind(Kind.CPU, host=host)
    parts = [system.part(cpu) for cpu in cpus]
    on_xgmi = all(part is not None and part.figure("intersocket.kind").value == "xgmi" for part in parts)
    whole = all(len(system.numa_nodes(cpu)) < 2 for cpu in cpus)
    first = min(cpus, key=lambda cpu: system.numa_nodes(cpu) or (math.inf,), default=None)
    return first if len(cpus) > 1 and on_xgmi and whole else None


def peer_scope(system: System, cpu: str) -> str:
    """How far a CPU forwards traffic between GPUs: none, root-complex, socket or system."""
    return known_scope(system, cpu) or DEFAULT_SCOPE


def known_scope(system: System, cpu: str) -> str | None:
    """How far the description or the part says that a CPU forwards, None where neither does."""
    part = system.part(cpu)
    figure = part.figure("peer.scope").value if part else None
    return system.policies.peer_scope.get(cpu) or (figure if isinstance(figure, str) else None)


@memoized
def domain_key(system: System, name: str) -> tuple[str, str]:
    """What two devices share if they are in one virtual domain: its name, or the host where none is stated.

    A device that no domain names belongs to the only domain at its own root, if there is just one.
    """
    stated = system.domain_of(name)
    if stated is None and system.domains:
        at_root = [domain for domain in system.domains if domain.root == cpu_above(system, name)]
        stated = at_root[0] if len(at_root) == 1 else None
    return ("domain", stated.name) if stated else ("host", system.device(name).host or "")


@memoized
def peer_hops(system: System, a: str, b: str) -> tuple[Hops, str]:
    """The links that traffic between two devices of one host crosses, and why if they are not the shortest path.

    Unreachable as `hops_to_cpu` and `sockets`.
    """
    direct = shortest(system, a, b, PCIE_AND_FABRIC)
    if direct is None:
        return over_roots(system, a, b), ""
    turn = why_not_below_root(system, a, b, direct)
    return (over_roots(system, a, b), turn) if turn else (direct, "")


def why_not_below_root(system: System, a: str, b: str, hops: Hops) -> str:
    """What keeps traffic from `a` to `b` off a path through switches alone; empty if nothing does."""
    if domain_key(system, a) != domain_key(system, b) and not system.policies.cross_domain_p2p:
        return (
            f"cross-domain P2P is off, so {domain_key(system, a)[1]} and {domain_key(system, b)[1]}"
            " meet only above their root ports"
        )
    # Traffic that came up a tree turns: down again, or aside into the fabric.
    turns = [into.end for into, out in pairwise(hops) if _climbs(into) and not _climbs(out)]
    if turns and system.policies.iommu == "translate":
        return f"the IOMMU translates peer traffic, so {turns[0]} sends it up to the root port and back"
    for name in turns:
        if name in system.policies.acs_redirect:
            return f"ACS at {name} sends peer traffic up to the root port and back"
    return ""


def _climbs(hop: Hop) -> bool:
    return hop.link.kind is LinkKind.PCIE and not hop.down


def refusal(system: System, a: str, b: str, hops: Hops) -> str:
    """Why `a` may not reach `b` directly over this path; empty if it may.

    The peer scope of a CPU governs GPUs that reach each other's memory. Drives and network cards that reach a
    GPU's memory are stopped by the scope `none` alone.
    """
    kinds = {system.device(a).kind, system.device(b).kind}
    if not kinds & {Kind.GPU, Kind.RAID}:
        return f"neither {a} nor {b} has memory that the other can reach"
    cpus = cpus_passed(system, hops)
    scopes = {cpu: peer_scope(system, cpu) for cpu in cpus}
    for cpu, word in scopes.items():
        if word == "none":
            return f"{cpu} forwards no peer traffic (peer scope none)"
    if kinds != {Kind.GPU}:
        return ""
    for name in (a, b):
        part = system.part(name)
        if part is not None and part.text("peer.access") == "no":
            return f"{NO_ACCESS} on a {part.title} ({name})"
    for cpu, word in scopes.items():
        source = f"peer scope {word}" if known_scope(system, cpu) else ASSUMED_SCOPE
        if len(cpus) > 1 and word != "system":
            return (
                f"{a} and {b} hang from {cpus[0]} and {cpus[-1]}, "
                f"and {cpu} forwards between peers of {_WITHIN[word]} only ({source})"
            )
        used = bridges(system, hops)
        if len(set(used)) > 1 and word == "root-complex":
            return (
                f"{a} and {b} hang from host bridges {used[0]} and {used[-1]} of {cpu}, "
                f"which forwards between peers of one host bridge only ({source})"
            )
    return ""
