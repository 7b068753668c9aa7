"""Small systems for the routes tests, written in a line or two; parts are fakes that state a peer scope or nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from lanewise.catalog import Catalog
from lanewise.topology.model import Device, Domain, Kind, Link, LinkKind, Policies, System

KINDS = {
    "cpu": Kind.CPU, "gpu": Kind.GPU, "sw": Kind.SWITCH, "nvs": Kind.NVSWITCH, "nic": Kind.NIC, "ssd": Kind.SSD,
    "roc": Kind.RAID, "net": Kind.NETSWITCH,
}  # fmt: skip
MEDIA = {
    "--": LinkKind.PCIE, "~~": LinkKind.FABRIC, "==": LinkKind.SOCKET, "##": LinkKind.NVLINK, "..": LinkKind.NETWORK,
}  # fmt: skip


@dataclass(frozen=True)
class FakeFigure:
    value: object


@dataclass(frozen=True)
class FakePart:
    """A part of any kind that states a peer scope."""

    scope: str | None
    kind: str = "cpu"

    def figure(self, key):
        return FakeFigure(self.scope if key == "peer.scope" else None)

    def number(self, key):
        return None


class FakeCatalog:
    """Every name is a part whose peer scope is that name."""

    def get(self, name):
        return FakePart(name)


def build(text, *, hosts=None, unbound=(), domains=(), cpu_part=None, partitions=None, per_port=False, **policies):
    """A system from 'cpu0 -- sw0 -- gpu0, cpu0 == cpu1'; upstream ends stand left, `x12` after a medium bonds links.

    `hosts` maps names to hosts (default: all on host0); a CPU's number is its NUMA node; every link at a CPU has its
    own port, and a bridge of its own too if `per_port`.
    """
    links: list[Link] = []
    names = []
    for chain in text.replace("\n", ",").split(","):
        words = chain.split()
        for word in words[::2]:
            names += [word] if word not in names else []
        for a, medium, b in zip(words[::2], words[1::2], words[2::2], strict=False):
            links.append(_link(a, medium, b, len(links), per_port))
    devices = {name: _device(name, hosts or {}, unbound, cpu_part, partitions or {}) for name in names}
    return System(
        name="test", devices=devices, links=tuple(links), catalog=cast(Catalog, FakeCatalog()),
        hosts=tuple(dict.fromkeys((hosts or {}).values())) or ("host0",),
        domains=tuple(Domain(name, root, frozenset(members.split())) for name, root, members in domains),
        policies=Policies(**policies),
    )  # fmt: skip


def _link(a, medium, b, index, per_port):
    medium, _, count = medium.partition("x")
    kind = MEDIA[medium]
    at_cpu = kind is LinkKind.PCIE and a.startswith("cpu")
    port = f"rp{index}" if at_cpu else ""
    bridge = (port if per_port else "rc0") if at_cpu else ""
    return Link(a, b, kind, count=int(count or 1), port=port, bridge=bridge)


def _device(name, hosts, unbound, cpu_part, partitions):
    stem = re.match("[a-z]+", name)
    assert stem is not None
    kind, number = KINDS[stem[0]], re.search(r"\d+", name)
    shared = kind is Kind.NETSWITCH or (bool(hosts) and name not in hosts)
    return Device(
        name, kind,
        part=cpu_part if kind is Kind.CPU else None,
        host=None if shared or name in unbound else hosts.get(name, "host0"),
        numa=int(number[0]) if kind is Kind.CPU and number is not None else None,
        partitions=tuple(frozenset(group.split()) for group in partitions.get(name, ())),
    )  # fmt: skip


def way(found):
    """The devices of a route, in a form that reads well in a test."""
    return found.show()
