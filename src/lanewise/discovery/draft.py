"""What will be a system: devices, links and NVLinks, still without a catalogue's checks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from lanewise.errors import InputError
from lanewise.topology.model import Kind
from lanewise.topology.ranges import fold

# Devices of one machine, switches and CPUs included.
MAX_DEVICES = 2048


@dataclass(slots=True)
class DraftDevice:
    """One device; `addresses` are its PCI functions, `node` its NUMA node, of a CPU the first of `numa_nodes`.

    `os_names` are its names in the operating system. Below a CPU of one node a device has no `node` of its own.
    """

    name: str
    kind: Kind
    part: str | None = None
    node: int | None = None
    addresses: tuple[str, ...] = ()
    label: str = ""
    numa_nodes: int = 1
    os_names: tuple[str, ...] = ()


@dataclass(slots=True)
class DraftLink:
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
class SystemDraft:
    """Devices by name, links, NVLinks by pair of devices, those to CPUs (`c2c`) apart, and assumptions (`notes`).

    `names` has the device of each name in the dumps (addresses, `GPU0`). `remarks` are sentences about single devices,
    with {} for the name, `faults` those about what is broken. `ports` has the device of each root and switch port by
    address; `root_nodes` the NUMA node of the root above a function, if the dump states it apart from the function's.
    `uplinks` has the neighbours of each uplink of a switch, by the uplink's address; two or more are its partitions.
    """

    devices: dict[str, DraftDevice] = field(default_factory=dict)
    links: list[DraftLink] = field(default_factory=list)
    nvlinks: dict[tuple[str, str], int] = field(default_factory=dict)
    c2c: dict[tuple[str, str], int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    ports: dict[str, str] = field(default_factory=dict)
    root_nodes: dict[str, int] = field(default_factory=dict)
    uplinks: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    redirects: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)
    _numbered: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)

    def add(self, kind: Kind, word: str, part: str | None = None, node: int | None = None) -> DraftDevice:
        """A further device, named by its kind and numbered."""
        if len(self.devices) >= MAX_DEVICES:
            hint = "name the dumps of one machine"
            raise InputError(f"the dumps show more than {MAX_DEVICES:,} devices of a machine", hint=hint)
        device = DraftDevice(f"{word}{self._numbered[word]}", kind, part, node)
        self._numbered[device.name.rstrip("0123456789")] += 1
        self.devices[device.name] = device
        return device

    def note(self, text: str) -> None:
        """Add what is assumed."""
        self.notes.append(text)

    def contradict(self, text: str) -> None:
        """Add what does not fit together."""
        self.contradictions.append(text)

    def remark_texts(self) -> list[str]:
        """The remarks, one for all devices that it holds for."""
        return _texts(self.remarks)

    def fault_texts(self) -> list[str]:
        """The faults, one for all devices that have it."""
        return _texts(self.faults)

    def of_kind(self, *kinds: Kind) -> list[DraftDevice]:
        """The devices of those kinds, in order."""
        return [node for node in self.devices.values() if node.kind in kinds]


def _texts(remarks: Sequence[tuple[str, str]]) -> list[str]:
    names: dict[str, list[str]] = defaultdict(list)
    for text, name in remarks:
        names[text].append(name)
    return [text.format(", ".join(fold(several))) for text, several in names.items()]
