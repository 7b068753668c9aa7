"""What may be other than described, as a change of the system or of its flows: the model predicts with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lanewise.catalog import Figure, Part
from lanewise.perf.flow import Flow
from lanewise.topology.model import Kind, Link, LinkKind, System


@dataclass(frozen=True, slots=True)
class ModelChange:
    """How the system, or each flow on it, would be, and what would run `concurrently`; `key` tells changes apart."""

    key: tuple[str, ...]
    change_system: Callable[[System], System] = lambda system: system
    change_flow: Callable[[System, Flow], Flow] = lambda system, flow: flow
    concurrently: tuple[Flow, ...] = ()


def link_above(system: System, device: str) -> Link | None:
    """The PCIe link by which a device hangs below a switch or CPU, None if the system has none such."""
    links = [link for link in system.links if link.b == device and link.kind is LinkKind.PCIE]
    return links[0] if len(links) == 1 else None


def link_speed(device: str, gen: int | None, lanes: int | None) -> ModelChange:
    """The link above a device at that generation and width; None leaves what is described."""
    figures = {name: value for name, value in (("gen", gen), ("lanes", lanes)) if value}
    return _link(("link", device, str(gen), str(lanes)), device, figures)


def max_payload(device: str, size: int) -> ModelChange:
    """The link above a device with another max payload (B)."""
    return _link(("payload", device, str(size)), device, {"max_payload": float(size)})


def _link(key: tuple[str, ...], device: str, figures: dict[str, Any]) -> ModelChange:
    def change(system: System) -> System:
        old = link_above(system, device)
        return replace(system, links=tuple(replace(x, **figures) if x is old else x for x in system.links))

    return ModelChange(key, change_system=change)


def port_rate(part: Part, rate: float) -> ModelChange:
    """Network cards of that part with their ports at `rate` (B/s)."""

    def change(system: System) -> System:
        figure = Figure(rate, "B/s", "a lower rate of the port")
        cards = {name for name in system.of_kind(Kind.NIC) if system.part(name) == part}
        links = tuple(
            replace(link, rate=min(rate, link.rate or rate))
            if link.kind is LinkKind.NETWORK and cards & {link.a, link.b} else link for link in system.links
        )  # fmt: skip
        catalog = system.catalog.with_part(part.with_figure("net.rate", figure))
        return replace(system, catalog=catalog, links=links)

    return ModelChange(("port", part.name, str(rate)), change_system=change)


def memory_rate(part: Part, rate: float) -> ModelChange:
    """CPUs of that part with memory of `rate` (B/s)."""
    figure = Figure(rate, "B/s", "fewer channels, or a lower clock")

    def change(system: System) -> System:
        return replace(system, catalog=system.catalog.with_part(part.with_figure("memory.rate", figure)))

    return ModelChange(("memory rate", part.name, str(rate)), change_system=change)


def fewer_nvlinks(device: str, down: int | None = None) -> ModelChange:
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

    return ModelChange(("nvlink", device, str(down)), change_system=change)


def nvlinks_down(link: Link, down: int) -> ModelChange:
    """That many of the NVLinks that `link` stands for down."""

    def change(system: System) -> System:
        links = (replace(x, count=x.count - down) if x == link and down < x.count else x for x in system.links)
        return replace(system, links=tuple(x for x in links if x != link or down < link.count))

    return ModelChange(("nvlinks", link.a, link.b, str(down)), change_system=change)


def acs_redirection(names: frozenset[str]) -> ModelChange:
    """ACS on at these switches; at all of them where the system knows none of the names."""

    def change(system: System) -> System:
        switches = names & set(system.devices) or frozenset(system.of_kind(Kind.SWITCH))
        both = replace(system.policies, acs_redirect=system.policies.acs_redirect | switches)
        return replace(system, policies=both)

    return ModelChange(("acs", *sorted(names)), change_system=change)


def iommu_translation() -> ModelChange:
    """The IOMMU translating, so that no switch forwards between peers."""
    return ModelChange(("iommu",), change_system=lambda system: system.with_iommu("translate"))


def no_peer_access(pairs: frozenset[frozenset[str]] | None = None) -> ModelChange:
    """These pairs (all, where None) exchange data through host memory."""

    def change(system: System, flow: Flow) -> Flow:
        return replace(flow, p2p=False) if pairs is None or frozenset((flow.src, flow.dst)) in pairs else flow

    return ModelChange(("peers", *sorted("-".join(sorted(pair)) for pair in pairs or ())), change_flow=change)


def host_memory_on(node: int, device: str | None = None) -> ModelChange:
    """Host buffers on NUMA node `node`: of flows with that device, or of all."""

    def change(system: System, flow: Flow) -> Flow:
        if device is not None and device not in (flow.src, flow.dst):
            return flow
        hosts = [end.partition(":")[0] for end in (flow.src, flow.dst)]
        src, dst = (
            f"{host}:{node}" if host in system.hosts else end
            for host, end in zip(hosts, (flow.src, flow.dst), strict=True)
        )
        return replace(flow, src=src, dst=dst)

    return ModelChange(("memory", str(node), device or ""), change_flow=change)


def other_copies(flow: Flow, count: int) -> ModelChange:
    """That many other programs that copy over the way of `flow` all the time."""
    return ModelChange(("concurrently", flow.name, str(count)), concurrently=(flow,) * count)
