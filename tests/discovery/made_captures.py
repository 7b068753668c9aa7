"""A small server made up as a /sys: two sockets, a switch, two GPUs, a card and two drives at each; healthy or faulty.

For any test that needs a machine's capture: `write_capture(path, "slow")` writes what `lanewise discover --capture`
would have written there (names: FAULTS), `write_folder(folder)` the /sys itself, with secrets planted that must not
leave it (SECRETS), and `dumps(folder)` the texts that commands would print. Copies ran while it was captured.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lanewise.api.collecting import collect
from lanewise.discovery.capture import write_tar

# What is wrong with each, in the words of whoever looks for it.
FAULTS = {
    "healthy": "nothing",
    "narrow": "the link to gpu1 has 8 lanes, both its ends have 16",
    "slow": "the link to gpu2 runs at 2.5 GT/s under load",
    "acs": "the ports of switch sw0 redirect peer requests upstream",
    "numa": "gpu3 states NUMA node 0, its root port is at node 1",
    "no-peer": "gpu0 and gpu1, below one switch, are no peers",
}
SECRETS = ("S3CR3T", "0a:1b:2c:3d:4e:5f", "0a1b2c3d4e5f", "a088:c203:0012:3456", "GPU-deadbeef")
_TYPES = {"end": 0, "root": 4, "up": 5, "down": 6}
_BRIDGE, _GPU, _NIC, _DRIVE = 0x060400, 0x030200, 0x020700, 0x010802


@dataclass(frozen=True)
class Function:
    """One PCI function: where it hangs, what it is, and its link at most and now."""

    address: str
    above: str
    code: int
    ids: tuple[int, int]
    kind: str
    numa: int
    gen: int = 4
    lanes: int = 16
    gen_now: int = 4
    lanes_now: int = 16
    acs: bool | None = None
    vfs_max: int = 0

    @property
    def home(self) -> str:
        """Its folder below /sys/devices."""
        parent = next((f for f in HEALTHY if f.address == self.above), None)
        return f"{parent.home if parent else self.above}/{self.address}"


def _socket(node: int, bus: int) -> Iterator[Function]:
    """The functions of one socket: a switch with two GPUs and a card, and two drives at root ports of their own."""
    root, port = f"pci0000:{bus:02x}", (0x8086, 0x352A)

    def at(number: int, device: int = 0) -> str:
        return f"0000:{bus + number:02x}:{device:02x}.0"

    yield Function(at(0, 1), root, _BRIDGE, port, "root", node, acs=False)
    yield Function(at(1), at(0, 1), _BRIDGE, (0x1000, 0xC010), "up", node)
    gpu, card = (_GPU, (0x10DE, 0x20B5)), (_NIC, (0x15B3, 0x101B))
    for device, (code, ids) in enumerate((gpu, gpu, card)):
        yield Function(at(2, device), at(1), _BRIDGE, (0x1000, 0xC010), "down", node, acs=False)
        yield Function(at(3 + device), at(2, device), code, ids, "end", node, vfs_max=16 if code == _NIC else 0)
    for device in (2, 3):
        yield Function(at(0, device), root, _BRIDGE, port, "root", node, lanes=4, lanes_now=4, acs=False)
        yield Function(at(4 + device), at(0, device), _DRIVE, (0x144D, 0xA824), "end", node, lanes=4, lanes_now=4)


HEALTHY = (*_socket(0, 0x00), *_socket(1, 0x80))
GPUS = tuple(f.address for f in HEALTHY if f.code == _GPU)
_CARDS = tuple(f.address for f in HEALTHY if f.code == _NIC)
_DRIVES = tuple(f.address for f in HEALTHY if f.code == _DRIVE)


def functions(fault: str = "healthy") -> tuple[Function, ...]:
    """The machine's functions, with that fault."""
    above = {f.address: f.above for f in HEALTHY}
    changes: dict[str, dict[str, object]] = {}
    if fault == "narrow":
        changes = {end: {"lanes_now": 8} for end in (GPUS[1], above[GPUS[1]])}
    elif fault == "slow":
        changes = {end: {"gen_now": 1} for end in (GPUS[2], above[GPUS[2]])}
    elif fault == "acs":
        changes = {above[GPUS[0]]: {"acs": True}, above[GPUS[1]]: {"acs": True}}
    elif fault == "numa":
        changes = {GPUS[3]: {"numa": 0}}
    return tuple(replace(f, **changes.get(f.address, {})) for f in HEALTHY)  # type: ignore[arg-type]


def config(function: Function) -> bytes:
    """Its configuration space: vital product data and a serial number among what matters."""
    data = bytearray(4096)
    data[0x06], data[0x34] = 0x10, 0x40
    data[0x40:0x42] = bytes([0x03, 0x60])  # vital product data
    data[0x42:0x4C] = b"\0\x80" + SECRETS[0].encode() + b"\0\0"
    express = 2 | _TYPES[function.kind] << 4
    struct.pack_into("<BBHIHHIHH", data, 0x60, 0x10, 0, express, 0x2, 0x2930, 0,
                     function.gen | function.lanes << 4, 0, function.gen_now | function.lanes_now << 4)  # fmt: skip
    following = 0x148 if function.acs is not None or function.vfs_max else 0
    struct.pack_into("<IQ", data, 0x100, 0x0003 | 1 << 16 | following << 20, 0xA088C20300123456)  # the serial number
    if function.acs is not None:
        struct.pack_into("<IHH", data, 0x148, 0x000D | 1 << 16, 0x1F, 0x1D if function.acs else 0)
    elif function.vfs_max:
        struct.pack_into("<I8xHHHH", data, 0x148, 0x0010 | 1 << 16, function.vfs_max, function.vfs_max, 0, 0)
    return bytes(data)


def _speed(gen: int) -> str:
    return f"{ {1: '2.5', 2: '5.0', 3: '8.0', 4: '16.0', 5: '32.0'}[gen] } GT/s PCIe"


def _files(fault: str) -> Iterator[tuple[str, bytes | str]]:
    """Path and text of every file (links are written apart)."""
    for f in functions(fault):
        home = f"sys/devices/{f.home}"
        yield f"{home}/class", f"0x{f.code:06x}"
        yield f"{home}/vendor", f"0x{f.ids[0]:04x}"
        yield f"{home}/device", f"0x{f.ids[1]:04x}"
        yield f"{home}/numa_node", str(f.numa)
        yield f"{home}/max_link_speed", _speed(f.gen)
        yield f"{home}/max_link_width", str(f.lanes)
        yield f"{home}/current_link_speed", _speed(f.gen_now)
        yield f"{home}/current_link_width", str(f.lanes_now)
        yield f"{home}/config", config(f)
        yield f"{home}/vpd", SECRETS[0]
        if f.vfs_max:
            yield f"{home}/sriov_totalvfs", str(f.vfs_max)
            yield f"{home}/sriov_numvfs", "0"
    for number, here in enumerate(_CARDS):
        card = f"sys/devices/{_home(here)}/infiniband/mlx5_{number}"
        yield f"{card}/node_guid", SECRETS[3]
        yield f"{card}/ports/1/link_layer", "InfiniBand"
        yield f"{card}/ports/1/rate", "200 Gb/sec (4X HDR)"
        yield f"{card}/ports/1/gids/0", SECRETS[3]
        yield f"sys/devices/{_home(here)}/net/ib{number}/address", SECRETS[1]
        yield f"sys/devices/{_home(here)}/net/ib{number}/speed", "200000"
    for number, here in enumerate(_DRIVES):
        drive = f"sys/devices/{_home(here)}/nvme/nvme{number}"
        yield f"{drive}/model", "SAMSUNG MZWLJ3T8HBLS-00007"
        yield f"{drive}/serial", SECRETS[0]
        yield f"{drive}/nvme{number}n1/size", "7501476528"
        yield f"{drive}/nvme{number}n1/wwid", SECRETS[0]
    yield "sys/devices/virtual/block/md0/md/level", "raid0"
    yield "sys/devices/virtual/block/md0/md/raid_disks", str(len(_DRIVES))
    yield "sys/devices/virtual/block/md0/md/chunk_size", "524288"
    yield "sys/devices/virtual/block/md0/md/uuid", SECRETS[0]
    for node in (0, 1):
        yield f"sys/devices/system/node/node{node}/cpulist", f"{node * 32}-{node * 32 + 31}"
        yield f"sys/devices/system/node/node{node}/meminfo", f"Node {node} MemTotal:       263000000 kB"
        yield f"sys/devices/system/cpu/cpu{node * 32}/topology/physical_package_id", str(node)
        yield f"sys/kernel/iommu_groups/{node}/type", "identity"
    yield "sys/class/dmi/id/product_serial", SECRETS[0]
    yield "proc/cpuinfo", f"processor\t: 0\nmodel name\t: INTEL(R) XEON(R) GOLD 6530\nserial\t: {SECRETS[0]}"
    yield "proc/sys/kernel/hostname", SECRETS[0]
    yield "capture.json", json.dumps({"made": "2026-11-22", "kernel": "6.8.0", "under_load": True})
    yield "nvml.json", json.dumps(nvml(fault))


def _home(here: str) -> str:
    return next(f.home for f in HEALTHY if f.address == here)


def _links() -> Iterator[tuple[str, str]]:
    for f in HEALTHY:
        yield f"sys/bus/pci/devices/{f.address}", f"../../../devices/{f.home}"
    for number, here in enumerate(_CARDS):
        yield f"sys/class/infiniband/mlx5_{number}", f"../../devices/{_home(here)}/infiniband/mlx5_{number}"
        yield f"sys/class/net/ib{number}", f"../../devices/{_home(here)}/net/ib{number}"
    yield f"sys/class/net/enx{SECRETS[2]}", f"../../devices/{_home(_CARDS[0])}/net/enx{SECRETS[2]}"
    yield f"sys/class/net/{SECRETS[0]}", f"../../devices/virtual/net/{SECRETS[0]}"
    yield "sys/block/md0", "../devices/virtual/block/md0"
    for number, here in enumerate(_DRIVES):
        drive = f"devices/{_home(here)}/nvme/nvme{number}"
        yield f"sys/class/nvme/nvme{number}", f"../../{drive}"
        yield f"sys/block/nvme{number}n1", f"../{drive}/nvme{number}n1"
        yield f"sys/devices/virtual/block/md0/slaves/nvme{number}n1", f"../../../../../{drive}/nvme{number}n1"


def nvml(fault: str = "healthy") -> dict[str, object]:
    """What NVML says there."""
    by_address = {f.address: f for f in functions(fault)}
    gpus = [
        {"address": here, "name": "NVIDIA A100 80GB PCIe", "gen": 4, "lanes": 16, "busy": 97, "throttle": [],
         "gen_now": by_address[here].gen_now, "lanes_now": by_address[here].lanes_now, "uuid": SECRETS[4]}
        for here in GPUS
    ]  # fmt: skip
    return {"driver": "570.86.15", "gpus": gpus, "p2p": list(_peers(fault))}


def _peers(fault: str) -> Iterator[dict[str, object]]:
    for a in GPUS:
        for b in GPUS:
            near = GPUS.index(a) // 2 == GPUS.index(b) // 2
            apart = fault == "no-peer" and {a, b} == {*GPUS[:2]}
            status = dict.fromkeys(("read", "write", "pci"), "NS" if apart else "OK" if near else "CNS")
            if a != b:
                yield {"a": a, "b": b, "status": {**status, "nvlink": "NS"}}


def write_folder(folder: Path, fault: str = "healthy") -> Path:
    """That machine's /sys in a folder, secrets and all."""
    for path, content in _files(fault):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())
    for path, target in _links():
        link = folder / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    return folder


def write_capture(path: Path, fault: str = "healthy") -> Path:
    """What `lanewise discover --capture PATH` would have written on it."""
    folder = write_folder(path.parent / f".{path.name}.sys", fault)
    suffix = next(each for each in (".tar.zst", ".tar.gz", ".tar") if path.name.endswith(each))
    path.write_bytes(write_tar(collect(folder, "this machine"), suffix))
    return path


def dumps(folder: Path, fault: str = "healthy") -> list[Path]:
    """The texts of `nvidia-smi topo -p2p r` and `ibstat` there."""
    names = [f"GPU{number}" for number in range(len(GPUS))]
    status = {(p["a"], p["b"]): p["status"]["read"] for p in _peers(fault)}  # type: ignore[index]
    rows = [
        "\t".join([name, *("X" if a == b else status[a, b] for b in GPUS)]) for name, a in zip(names, GPUS, strict=True)
    ]
    peers = folder / "topo-p2p-r.txt"
    peers.write_text("\n".join([" \t" + "\t".join(names), *rows, "", "Legend:", "  X    = Self"]) + "\n")
    cards = folder / "ibstat.txt"
    text = "CA 'mlx5_{}'\n\tNode GUID: 0x{}\n\tPort 1:\n\t\tState: Active\n\t\tRate: 200\n\t\tLink layer: InfiniBand\n"
    cards.write_text("".join(text.format(number, SECRETS[2]) for number in range(len(_CARDS))))
    return [peers, cards]
