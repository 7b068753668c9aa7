"""Systems of pools for benchmarks: a large one of 1,000 devices and 64 hosts, and small random ones."""

from __future__ import annotations

from lanewise.topology.model import System
from lanewise.topology.read import read_system

HOSTS, LEAVES, SPINES, BOXES = 64, 8, 2, 40
GPUS, DRIVES, CARDS = 16, 6, 3  # of a box


def large_pool() -> System:
    """64 hosts and 1,000 devices in 40 boxes, eight hosts and five boxes below each of eight leaf switches.

    Two spine switches join the leaves. Every second box holds H100 NVL, the others L40S; every fifth has half a cable.
    """
    fabric = "cdi-gen5-fabric-switch"
    lines = ["lanewise: 1", "system: large-pool", f"hosts: [{', '.join(f'host{n}' for n in range(HOSTS))}]", "devices:"]
    for host in range(HOSTS):
        lines.append(f"  cpu{host}: {{cpu: xeon-gold-6530, host: host{host}}}")
        lines.append(f"  hba{host}: {{adapter: cdi-gen5-host-adapter, host: host{host}}}")
    lines.append(f'  "spine[0-{SPINES - 1}]": {{switch: {fabric}}}')
    lines.append(f'  "leaf[0-{LEAVES - 1}]": {{switch: {fabric}}}')
    lines.append(f'  "box[0-{BOXES - 1}]": {{switch: {fabric}}}')
    for box in range(BOXES):
        for kind, count, part in _box(box):
            lines.append(f'  "{_range(kind, box, count)}": {{{kind}: {part}, host: null}}')
    lines.append("links:")
    for host in range(HOSTS):
        lines.append(f"  - {{from: cpu{host}, to: hba{host}, pcie: gen5 x16}}")
        lines.append(f"  - {{from: hba{host}, to: leaf{host * LEAVES // HOSTS}, fabric: gen5 x16}}")
    lines.append(f'  - {{from: "spine[0-{SPINES - 1}]", to: "leaf[0-{LEAVES - 1}]", fabric: gen5 x16}}')
    for box in range(BOXES):
        width = 8 if box % 5 == 4 else 16
        lines.append(f"  - {{from: leaf{box * LEAVES // BOXES}, to: box{box}, fabric: gen5 x{width}}}")
        lines += [
            f'  - {{from: box{box}, to: "{_range(kind, box, count)}", pcie: auto}}' for kind, count, _ in _box(box)
        ]
    return read_system("\n".join(lines) + "\n", "large-pool.yaml")


def _box(number: int) -> list[tuple[str, int, str]]:
    gpu = "h100-nvl" if number % 2 else "l40s"
    return [("gpu", GPUS, gpu), ("ssd", DRIVES, "kioxia-cm7"), ("nic", CARDS, "connectx-7-ndr")]


def _range(kind: str, box: int, count: int) -> str:
    return f"{kind}[{box * count}-{box * count + count - 1}]"
