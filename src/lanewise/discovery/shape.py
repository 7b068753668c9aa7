"""What will be a system: devices, links and NVLinks, still without a catalogue's checks."""

from __future__ import annotations

from dataclasses import dataclass, field

from lanewise.topology.model import Kind
from lanewise.topology.ranges import fold


@dataclass(slots=True)
class Node:
    """One device; `addresses` are its PCI functions, `node` (CPUs only) its NUMA node."""

    name: str
    kind: Kind
    part: str | None = None
    node: int | None = None
    addresses: tuple[str, ...] = ()
    label: str = ""


@dataclass(slots=True)
class Edge:
    """One PCIe link, `a` above; None is unknown. `upper` and `lower` are the PCI addresses of its two ends."""

    a: str
    b: str
    gen: int | None = None
    lanes: int | None = None
    port: str = ""
    bridge: str = ""
    payload: int | None = None
    upper: str = ""
    lower: str = ""


@dataclass(slots=True)
class Shape:
    """Devices by name, links, NVLinks by pair, names of other tongues (addresses, `GPU0`), what is assumed.

    `remarks` are sentences on single devices, where {} stands for the name; `against` are contradictions. `ports` are
    the root and switch ports on the way to devices, by address, with the device each belongs to; `root_nodes` the NUMA
    node of the root above a function, where the dump states it apart from the function's own.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    bonds: dict[tuple[str, str], int] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    ports: dict[str, str] = field(default_factory=dict)
    root_nodes: dict[str, int] = field(default_factory=dict)
    redirects: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    against: list[str] = field(default_factory=list)

    def add(self, kind: Kind, word: str, part: str | None = None, node: int | None = None) -> Node:
        """A further device, named by its kind and numbered."""
        number = sum(1 for name in self.nodes if name.rstrip("0123456789") == word)
        made = Node(f"{word}{number}", kind, part, node)
        self.nodes[made.name] = made
        return made

    def remarked(self) -> list[str]:
        """The remarks, one for all devices that it holds for."""
        texts = dict.fromkeys(text for text, _ in self.remarks)
        return [text.format(", ".join(fold([n for t, n in self.remarks if t == text]))) for text in texts]

    def of_kind(self, *kinds: Kind) -> list[Node]:
        """The devices of those kinds, in order."""
        return [node for node in self.nodes.values() if node.kind in kinds]
