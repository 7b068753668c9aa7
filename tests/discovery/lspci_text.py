"""Trees of PCI functions, and the text that `lspci -vvv` prints of them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

_SPEEDS = {1: "2.5", 2: "5", 3: "8", 4: "16", 5: "32"}
_TYPES = {"root": "Root Port (Slot+)", "up": "Upstream Port", "down": "Downstream Port (Slot-)", "": "Endpoint"}
_CODES = {"": 0, "root": 4, "up": 5, "down": 6}
GPU = ("3D controller [0302]", "NVIDIA Corporation AD102GL [L40S] [10de:26b9]", 0x0302)
NIC = ("Infiniband controller [0207]", "Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]", 0x0207)
SSD = ("Non-Volatile memory controller [0108]", "Samsung Electronics Co Ltd Device a826 [144d:a826]", 0x0108)
PORT = ("PCI bridge [0604]", "Intel Corporation Device 352a [8086:352a]", 0x0604)
SWITCH = ("PCI bridge [0604]", "Broadcom / LSI PEX890xx PCIe Gen 5 Switch [1000:c030]", 0x0604)
HOST = ("Host bridge [0600]", "Intel Corporation Device 09a2 [8086:09a2]", 0x0600)


@dataclass(frozen=True)
class LspciFunction:
    """One function: its address, what it is, and for a bridge the buses below."""

    address: str
    what: tuple[str, str, int]
    kind: str = ""
    buses: tuple[int, int] | None = None
    gen: int = 5
    lanes: int = 16
    numa: int | None = 0
    lines: tuple[str, ...] = ()

    def text(self, root: bool = True, domains: bool = True) -> str:
        """The lines of `lspci -nnvvv`, run as root or not."""
        address = self.address if domains else self.address.removeprefix("0000:")
        lines = [f"{address} {self.what[0]}: {self.what[1]} (rev 04)"]
        lines += ["\tControl: I/O+ Mem+ BusMaster+"]
        lines += [f"\tNUMA node: {self.numa}"] if self.numa is not None else []
        if self.buses:
            low, high = self.buses
            bus = self.address[-7:-5]
            lines += [f"\tBus: primary={bus}, secondary={low:02x}, subordinate={high:02x}, sec-latency=0"]
        if self.what[2] == 0x0600:
            return "\n".join([*lines, ""])
        if root:
            speed = f"Speed {_SPEEDS[self.gen]}GT/s, Width x{self.lanes}"
            lines += [f"\tCapabilities: [40] Express (v2) {_TYPES[self.kind]}, MSI 00"]
            lines += [f"\t\tLnkCap:\tPort #0, {speed}, ASPM not supported", f"\t\tLnkSta:\t{speed}", *self.lines]
        else:
            lines += ["\tCapabilities: <access denied>"]
        return "\n".join([*lines, ""])

    def bytes_text(self) -> str:
        """The lines of `lspci -nxxx`: ids and configuration space."""
        vendor, device = (int(word, 16) for word in self.what[1].rpartition("[")[2].rstrip("]").split(":"))
        data = bytearray(256)
        struct.pack_into("<HH", data, 0, vendor, device)
        struct.pack_into("<H", data, 0x0A, self.what[2])
        data[0x06] = 0x10
        data[0x34] = 0x40
        if self.buses:
            data[0x0E] = 1
            data[0x18:0x1B] = bytes([int(self.address[-7:-5], 16), *self.buses])
        speed = self.gen | self.lanes << 4
        struct.pack_into("<BBHIHHIHH", data, 0x40, 0x10, 0, 2 | _CODES[self.kind] << 4, 2, 0x2930, 0, speed, 0, speed)
        rows = [f"{at:02x}: {data[at : at + 16].hex(' ')}" for at in range(0, 256, 16)]
        return "\n".join([f"{self.address} {self.what[2]:04x}: {vendor:04x}:{device:04x} (rev 04)", *rows, ""])


def lspci(functions: Iterable[LspciFunction], root: bool = True, domains: bool = True) -> str:
    """What `lspci -nnvvv` prints of these functions, in the order of their addresses."""
    return "\n".join(f.text(root, domains) for f in sorted(functions, key=lambda f: f.address))


@dataclass
class Branch:
    """What hangs below a port: an endpoint, or a switch with branches below its own ports."""

    what: tuple[str, str, int]
    gen: int = 5
    lanes: int = 16
    below: list[Branch] = field(default_factory=list)


@dataclass
class LspciTree:
    """Host bridges by domain and bus, each with the branches below its root ports, numbered as Linux does."""

    functions: list[LspciFunction] = field(default_factory=list)
    # Each device: its address, the switch or host bridge above, the root port (empty below a switch), speed.
    placed: dict[str, tuple[str, str, int, int]] = field(default_factory=dict)

    def add_root(self, domain: int, bus: int, numa: int, branches: Iterable[Branch]) -> int:
        """Add a host bridge; the first bus behind it that is free."""
        here = f"{domain:04x}:{bus:02x}"
        self.functions.append(LspciFunction(f"{here}:00.0", HOST, numa=numa))
        free = bus + 1
        for number, branch in enumerate(branches, 1):
            free = self._port(f"{here}:{number:02x}.0", PORT, "root", here, branch, free, numa)
        return free

    def _port(
        self, address: str, what: tuple[str, str, int], kind: str, above: str, branch: Branch, free: int, numa: int
    ) -> int:
        bus, at = free, f"{address[:4]}:{free:02x}:00.0"
        lanes = branch.lanes
        self.placed[at] = (above, address if kind == "root" else "", branch.gen, lanes)
        end = bus
        if branch.below:
            end = bus + 1
            for number, leaf in enumerate(branch.below):
                inner = f"{address[:4]}:{bus + 1:02x}:{number:02x}.0"
                end = self._port(inner, SWITCH, "down", at, leaf, end + 1, numa) - 1
            self.functions.append(LspciFunction(at, SWITCH, "up", (bus + 1, end), branch.gen, lanes, numa))
        else:
            self.functions.append(LspciFunction(at, branch.what, "", None, branch.gen, lanes, numa))
        self.functions.append(LspciFunction(address, what, kind, (bus, end), 5, 16, numa))
        return end + 1

    def without(self, *addresses: str) -> Iterator[LspciFunction]:
        """The functions but those."""
        return (f for f in self.functions if f.address not in addresses)

    def changed(self, address: str, **changes: object) -> list[LspciFunction]:
        """The functions, one of them changed."""
        return [replace(f, **changes) if f.address == address else f for f in self.functions]  # type: ignore[arg-type]


def pair_below_a_switch() -> LspciTree:
    """A switch with two GPUs and a network card on socket 0, a GPU and a drive on socket 1."""
    tree = LspciTree()
    tree.add_root(0, 0x15, 0, [Branch(SWITCH, below=[Branch(GPU, gen=4), Branch(GPU, gen=4), Branch(NIC)])])
    tree.add_root(0, 0x97, 1, [Branch(GPU, gen=4), Branch(SSD, gen=4, lanes=4)])
    return tree
