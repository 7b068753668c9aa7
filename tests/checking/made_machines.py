"""Made machines for checks: a /sys of two sockets with two GPUs on a switch each, with faults planted on request."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from in_display_units import observation

from lanewise.perf.flow import parse_flows
from lanewise.perf.predict import predict
from lanewise.results.observation import Observation, Source
from lanewise.topology.model import Kind, System

_SPEEDS = {1: "2.5 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe"}
_ROOT, _UP, _DOWN = 4, 5, 6
SOCKETS = ((0, "0000:00"), (1, "0000:80"))


@dataclass
class Plan:
    """What is planted: lanes and generation by GPU, NUMA node by GPU, sockets whose switch redirects, the IOMMU."""

    lanes: dict[str, int] = field(default_factory=dict)
    gens: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    acs: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()


def write_sys(top: Path, plan: Plan | None = None) -> Path:
    """A folder with a captured /sys: two GPUs below a switch at node 0, two at node 1, all Gen4 x16."""
    made, number = plan or Plan(), 0
    for node, root in SOCKETS:
        bus = int(root[5:], 16)
        acs = node in made.acs
        above = f"devices/pci{root}/{root}:01.0"
        _function(top, above, 0x060400, _ROOT, node)
        above += f"/0000:{bus + 1:02x}:00.0"
        _function(top, above, 0x060400, _UP, node)
        for slot in range(2):
            name, port = f"gpu{number}", f"{above}/0000:{bus + 2:02x}:{slot:02x}.0"
            _function(top, port, 0x060400, _DOWN, node, acs=acs)
            now = (made.gens.get(name, 4), made.lanes.get(name, 16))
            gpu = f"{port}/0000:{bus + 3 + slot:02x}:00.0"
            if name not in made.missing:
                _function(top, gpu, 0x030200, 0, made.nodes.get(name, node), now=now, ids=(0x10DE, 0x20F1))
            number += 1
        folder = top / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{64 * node}-{64 * node + 63}\n")
    group = top / "sys/kernel/iommu_groups/0"
    group.mkdir(parents=True)
    (group / "type").write_text("identity\n")
    (top / "proc").mkdir()
    (top / "proc/cpuinfo").write_text("model name\t: AMD EPYC 7742 64-Core Processor\n")
    return top


def _function(
    top: Path,
    home: str,
    code: int,
    port: int,
    node: int,
    acs: bool = False,
    now: tuple[int, int] = (4, 16),
    ids: tuple[int, int] = (0x1000, 0xC010),
) -> None:
    folder = top / "sys" / home
    folder.mkdir(parents=True)
    texts = {"class": f"0x{code:06x}", "vendor": f"0x{ids[0]:04x}", "device": f"0x{ids[1]:04x}", "numa_node": str(node)}
    texts |= {"max_link_speed": _SPEEDS[4], "max_link_width": "16"}
    texts |= {"current_link_speed": _SPEEDS[now[0]], "current_link_width": str(now[1])}
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n")
    if port:
        (folder / "config").write_bytes(_config(port, acs))
    link = top / "sys/bus/pci/devices" / folder.name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"../../../{home}")


def _config(port: int, acs: bool) -> bytes:
    """Configuration space of a Gen4 x16 port: the PCI Express capability at 0x40, ACS at 0x100."""
    data = bytearray(4096)
    data[0x06], data[0x34] = 0x10, 0x40
    speed = 4 | 16 << 4
    struct.pack_into("<BBHIHHIHH", data, 0x40, 0x10, 0, port << 4 | 2, 1, 1 << 5 | 2 << 12, 0, speed, 0, speed)
    struct.pack_into("<IHH", data, 0x100, 0x000D | 1 << 16, 0x1F, 0x1D if acs else 0)
    return bytes(data)


def rows(
    system: System, scenarios: Sequence[str], error: float = 0.01, p2p: bool = True, how: dict[str, str] | None = None
) -> list[Observation]:
    """What a tool would measure on that system: each scenario's flows as the model has them, a little beside."""
    found = []
    for number, text in enumerate(scenarios):
        flows = parse_flows(text, p2p)
        for flow, rate in zip(flows, predict(system, flows).rates, strict=True):
            value = rate.rate / 1e9 * (1 + error * (-1) ** number)
            words = {"flows": text, "engine": "copy engine", "p2p": "on" if p2p else "off", **(how or {})}
            found.append(
                observation(
                    text,
                    flow.name,
                    "goodput",
                    value,
                    "GB/s",
                    Source.MEASURED,
                    path=path_of(flow.src, flow.dst),
                    how=words,
                    samples=(value,) * 5,
                    low=value,
                    high=value,
                )
            )
    return found


def path_of(src: str, dst: str) -> str:
    """The kind of path as measured rows call it."""
    return "host to device" if src.startswith("host") else "device to host" if dst.startswith("host") else "peer"


HOST_COPIES = [f"host0->gpu{n}" for n in range(4)] + [f"gpu{n}->host0" for n in range(4)]
PEER_COPIES = [f"gpu{a}->gpu{b}" for a in range(4) for b in range(4) if a != b]
EVERY_COPY = [*HOST_COPIES, *PEER_COPIES]


def p2p_text(system: System, apart: frozenset[frozenset[str]] = frozenset()) -> str:
    """What p2pBandwidthLatencyTest would print on that system, where the pairs `apart` cannot be peers."""
    names = system.of_kind(Kind.GPU)
    count = len(names)
    lines = ["[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"]
    for a in range(count):
        for b in range(count):
            can = "CANNOT" if frozenset((names[a], names[b])) in apart else "CAN"
            lines += [f"Device={a} {can} Access Peer Device={b}"] if a != b else []
    for p2p, word in ((False, "Disabled"), (True, "Enabled (P2P Writes)")):
        word, _, writes = word.partition(" ")
        lines.append(f"Unidirectional P2P={word} Bandwidth {writes + ' ' if writes else ''}Matrix (GB/s)")
        lines.append("   D\\D " + " ".join(f"{n:6d}" for n in range(count)))
        for a in range(count):
            cells = [_cell(system, names[a], names[b], p2p and frozenset((names[a], names[b])) not in apart)
                     for b in range(count)]  # fmt: skip
            lines.append(f"{a:6d} " + " ".join(f"{cell:6.2f}" for cell in cells))
    return "\n".join(lines) + "\n"


def _cell(system: System, a: str, b: str, p2p: bool) -> float:
    if a == b:
        return 1290.0
    return predict(system, parse_flows(f"{a}->{b}", p2p)).rates[0].rate / 1e9
