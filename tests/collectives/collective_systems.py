"""Machines for tests of collectives."""

from __future__ import annotations

from lanewise.catalog import builtin
from lanewise.catalog.reading import read_parts
from lanewise.topology.model import System
from lanewise.topology.read import read_system


def gpu_node(part: str, links: int = 18, gpus: int = 8) -> System:
    """GPUs below switches of their own, joined by an NVSwitch."""
    return read_system(
        f"""
lanewise: 1
system: one-node
devices:
  "cpu[0-1]": {{cpu: null}}
  "gpu[0-{gpus - 1}]": {{gpu: {part}}}
  nvs: {{nvswitch: null}}
links:
  - {{from: cpu0, to: cpu1, socket: "?"}}
  - {{from: "cpu[0-1]", to: "gpu[0-{gpus - 1}]", pairs: true, pcie: gen4 x16}}
  - {{from: "gpu[0-{gpus - 1}]", to: nvs, nvlink: {links}}}
""",
        "one-node.yaml",
    )


def two_nodes(cards: int, card: str, nodes: int = 2) -> System:
    """Nodes of eight H100 with that many cards each, every card below the switch of a GPU."""
    last = nodes - 1
    cpus = "\n".join(f'  "n{node}cpu[0-1]": {{cpu: null, host: n{node}}}' for node in range(nodes))
    return read_system(
        f"""
lanewise: 1
system: several-nodes
hosts: ["n[0-{last}]"]
devices:
{cpus}
  "n[0-{last}]sw[0-7]": {{switch: null}}
  "n[0-{last}]gpu[0-7]": {{gpu: h100-sxm}}
  "n[0-{last}]nvs": {{nvswitch: null}}
  "n[0-{last}]nic[0-{cards - 1}]": {{nic: {card}}}
  net: {{netswitch: null}}
links:
  - {{from: "n[0-{last}]cpu0", to: "n[0-{last}]cpu1", pairs: true, socket: "?"}}
  - {{from: "n[0-{last}]cpu[0-1]", to: "n[0-{last}]sw[0-7]", pairs: true, pcie: gen5 x16}}
  - {{from: "n[0-{last}]sw[0-7]", to: "n[0-{last}]gpu[0-7]", pairs: true, pcie: gen5 x16}}
  - {{from: "n[0-{last}]sw[0-{cards - 1}]", to: "n[0-{last}]nic[0-{cards - 1}]", pairs: true, pcie: gen5 x16}}
  - {{from: "n[0-{last}]nvs", to: "n[0-{last}]gpu[0-7]", pairs: true, nvlink: 18}}
  - {{from: "n[0-{last}]nic[0-{cards - 1}]", to: net, network: auto}}
""",
        "several-nodes.yaml",
    )


def pcie_box(cpu: str = "rome", gpus: int = 4, part: str = "rtx-4090-p2p") -> System:
    """GPUs on root ports of one socket."""
    return read_system(
        f"""
lanewise: 1
system: pcie-box
devices:
  cpu0: {{cpu: {cpu}}}
  "gpu[0-{gpus - 1}]": {{gpu: {part}}}
links:
  - {{from: cpu0, to: "gpu[0-{gpus - 1}]", pcie: gen4 x16}}
""",
        "pcie-box.yaml",
    )


def accelerators() -> System:
    """Eight accelerators whose own Ethernet ports join all with all."""
    parts = read_parts(
        """
parts:
  - {part: port, kind: nvlink, title: 200 GbE port, from: [{source: data sheet, figures: {nvlink.link_rate: 25 GB/s}}]}
  - part: gaudi
    kind: gpu
    title: Intel Gaudi 3
    from: [{source: data sheet, figures: {pcie.gen: 5, pcie.lanes: 16, nvlink.part: port, nvlink.links: 21}}]
""",
        "gaudi.yaml",
    )
    return read_system(
        """
lanewise: 1
system: mesh-of-ports
devices: {cpu0: {cpu: null}, "gpu[0-7]": {gpu: gaudi}}
links: [{from: cpu0, to: "gpu[0-7]", pcie: gen5 x16}, {mesh: "gpu[0-7]", nvlink: auto}]
""",
        "mesh-of-ports.yaml", {}, builtin().with_part(parts.get("port")).with_part(parts.get("gaudi")),
    )  # fmt: skip
