"""What is allowed: peers through root complexes and sockets, ACS redirection, virtual domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.topology.model import Kind, LinkKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.routes.model import Hop
    from lanewise.topology.model import System

DEFAULT_SCOPE = "root-complex"


def scope(system: System, cpu: str) -> str:
    """How far this CPU forwards peer traffic: none, root-complex, socket or system (policy first, then the part)."""
    stated = system.policies.peer_scope.get(cpu)
    if stated is not None:
        return stated
    part = system.part(cpu)
    value = part.figure("peer.scope").value if part is not None else None
    return value if isinstance(value, str) else DEFAULT_SCOPE


def scopes(system: System) -> tuple[str, ...]:
    """The scope of every CPU in the order of the description."""
    return tuple(scope(system, cpu) for cpu in system.of_kind(Kind.CPU))


def why_not_peers(system: System, hops: Sequence[Hop]) -> str:
    """Why two GPUs may not write to each other over `hops`, empty if they may.

    CUDA offers peer access only as far as the CPU forwards peer writes; switches alone never stand in the way.
    """
    passed = [hop for hop in hops if system.device(hop.end).kind is Kind.CPU]
    if not passed:
        return ""
    cpu = passed[0].end
    reach = scope(system, cpu)
    crosses = any(hop.link.kind is LinkKind.SOCKET for hop in hops)
    bridges = {(end, hop.link.bridge) for hop in hops for end in (hop.start, hop.end)
               if system.device(end).kind is Kind.CPU and hop.link.kind is LinkKind.PCIE}  # fmt: skip
    if reach == "none":
        return f"{cpu} forwards no peer traffic"
    if crosses and reach != "system":
        return f"the GPUs are on different sockets and {cpu} forwards peer traffic within its {reach} only"
    if reach == "root-complex" and len(bridges) > 1:
        return f"the GPUs are on different root complexes and {cpu} forwards peer traffic within one only"
    return ""


def redirected(system: System, hops: Sequence[Hop]) -> str:
    """What sends peer traffic over these switches up to the root port, empty if nothing does."""
    if system.policies.iommu == "translate":
        return "the IOMMU translates, so peer traffic goes up to the root port"
    for hop in hops[:-1]:
        if hop.end in system.policies.acs_redirect:
            return f"ACS of {hop.end} redirects peer traffic up to the root port"
    return ""


def why_not_in_fabric(system: System, one: str, other: str) -> str:
    """Why two devices may not meet below the root ports, empty if they may."""
    first, second = system.domain_of(one), system.domain_of(other)
    if system.device(one).host != system.device(other).host:
        return f"{one} and {other} belong to different hosts"
    if first is second or system.policies.cross_domain_p2p:
        return ""
    names = [domain.name if domain else "no domain" for domain in (first, second)]
    return f"{one} is in {names[0]}, {other} in {names[1]}, and cross-domain P2P is off"
