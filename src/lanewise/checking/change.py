"""What may be other than described, as a change of the system or of its flows: the model predicts with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lanewise.perf.flow import Flow
from lanewise.topology.model import Kind, Link, LinkKind, System


def _same_system(system: System) -> System:
    return system


def _same_flow(system: System, flow: Flow) -> Flow:
    return flow


@dataclass(frozen=True, slots=True)
class Change:
    """How the system, or each flow on it, would be; `key` tells changes apart."""

    key: tuple[str, ...]
    system: Callable[[System], System] = _same_system
    flow: Callable[[System, Flow], Flow] = _same_flow


def link_above(system: System, device: str) -> Link | None:
    """The PCIe link by which a device hangs below a switch or CPU, None if the system has none such."""
    links = [link for link in system.links if link.b == device and link.kind is LinkKind.PCIE]
    return links[0] if len(links) == 1 else None


def narrower(device: str, gen: int | None, lanes: int | None) -> Change:
    """The link above a device at that generation and width; None leaves what is described."""

    def change(system: System) -> System:
        old = link_above(system, device)
        if old is None:
            return system
        new = replace(old, gen=gen or old.gen, lanes=lanes or old.lanes)
        return replace(system, links=tuple(new if link is old else link for link in system.links))

    return Change(("link", device, str(gen), str(lanes)), system=change)


def payload(device: str, size: int) -> Change:
    """The link above a device with another max payload (B)."""

    def change(system: System) -> System:
        old = link_above(system, device)
        if old is None:
            return system
        new = replace(old, max_payload=float(size))
        return replace(system, links=tuple(new if link is old else link for link in system.links))

    return Change(("payload", device, str(size)), system=change)


def fewer_nvlinks(device: str, down: int | None = None) -> Change:
    """A GPU with that many of its NVLinks down; all, where None."""

    def change(system: System) -> System:
        remaining, links = down, []
        for link in system.links:
            if link.kind is LinkKind.NVLINK and device in (link.a, link.b):
                lost = link.count if remaining is None else min(remaining, link.count)
                remaining = None if remaining is None else remaining - lost
                links += [replace(link, count=link.count - lost)] if lost < link.count else []
            else:
                links.append(link)
        return replace(system, links=tuple(links))

    return Change(("nvlink", device, str(down)), system=change)


def redirected(names: frozenset[str]) -> Change:
    """ACS on at these switches; at all of them where the system knows none of the names."""

    def change(system: System) -> System:
        switches = names & set(system.devices) or frozenset(system.of_kind(Kind.SWITCH))
        both = replace(system.policies, acs_redirect=system.policies.acs_redirect | switches)
        return replace(system, policies=both)

    return Change(("acs", *sorted(names)), system=change)


def translated() -> Change:
    """The IOMMU translating, so that no switch forwards between peers."""
    return Change(
        ("iommu",), system=lambda system: replace(system, policies=replace(system.policies, iommu="translate"))
    )


def no_peers(pairs: frozenset[frozenset[str]] | None = None) -> Change:
    """These pairs (all, where None) exchange data through host memory."""

    def change(system: System, flow: Flow) -> Flow:
        return replace(flow, p2p=False) if pairs is None or frozenset((flow.src, flow.dst)) in pairs else flow

    return Change(("peers", *sorted("-".join(sorted(pair)) for pair in pairs or ())), flow=change)


def far_memory(node: int, device: str | None = None) -> Change:
    """Host buffers on NUMA node `node`: of flows with that device, or of all."""

    def change(system: System, flow: Flow) -> Flow:
        if device is not None and device not in (flow.src, flow.dst):
            return flow
        ends = [f"{end}:{node}" if end in system.hosts else end for end in (flow.src, flow.dst)]
        return replace(flow, src=ends[0], dst=ends[1])

    return Change(("memory", str(node), device or ""), flow=change)


def slower_links(system: System, device: str) -> Iterator[tuple[Change, int, int]]:
    """Every lower generation and smaller width that the link above a device could have trained at, nearest first."""
    link = link_above(system, device)
    if link is None or link.gen is None or link.lanes is None:
        return
    for gen in range(link.gen - 1, 0, -1):
        yield narrower(device, gen, link.lanes), gen, link.lanes
    for lanes in (8, 4, 2, 1):
        if lanes < link.lanes:
            yield narrower(device, link.gen, lanes), link.gen, lanes
