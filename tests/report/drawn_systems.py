"""Systems that are hard to draw: deep, wide, meshed, and with links of two kinds between the same devices."""

from __future__ import annotations

from itertools import combinations, pairwise

from lanewise.catalog import Catalog
from lanewise.topology.model import Device, Kind, Link, LinkKind, System, Volume


def system(name: str, devices: list[Device], links: list[Link], **more: object) -> System:
    return System(name, {d.name: d for d in devices}, tuple(links), Catalog(), **more)  # type: ignore[arg-type]


def pcie(a: str, b: str, gen: int = 4, lanes: int = 16) -> Link:
    return Link(a, b, LinkKind.PCIE, gen=gen, lanes=lanes)


def chain() -> System:
    """One GPU behind four switches."""
    names = ["cpu0", "sw0", "sw1", "sw2", "sw3", "gpu0"]
    kinds = [Kind.CPU, *[Kind.SWITCH] * 4, Kind.GPU]
    devices = [Device(n, k, host="h", part="some long part name 96 GB") for n, k in zip(names, kinds, strict=True)]
    return system("chain", devices, [pcie(a, b, 5) for a, b in pairwise(names)])


def server(gpus: int, switches: int = 4) -> System:
    """GPUs behind switches on two sockets, with a network card at each socket."""
    devices = [Device(f"cpu{i}", Kind.CPU, host="h", numa=i) for i in range(2)]
    links = [Link("cpu0", "cpu1", LinkKind.SOCKET, count=3)]
    for s in range(switches):
        devices.append(Device(f"sw{s}", Kind.SWITCH, host="h"))
        links.append(pcie(f"cpu{s * 2 // switches}", f"sw{s}"))
    for i in range(gpus):
        devices.append(Device(f"gpu{i}", Kind.GPU, host="h", part="L40S"))
        links.append(pcie(f"sw{i * switches // gpus}", f"gpu{i}"))
    for i in range(2):
        devices.append(Device(f"mlx5_{i}", Kind.NIC, host="h"))
        links.append(pcie(f"cpu{i}", f"mlx5_{i}"))
    return system(f"server-{gpus}", devices, links)


def dgx() -> System:
    """Eight GPUs, eight network cards, and six NVSwitches that join all GPUs."""
    base = server(8)
    devices = [d for d in base.devices.values() if d.kind is not Kind.NIC]
    links = [link for link in base.links if not link.b.startswith("mlx")]
    for i in range(8):
        devices.append(Device(f"mlx5_{i}", Kind.NIC, host="h"))
        links.append(pcie(f"sw{i // 2}", f"mlx5_{i}"))
    for s in range(6):
        devices.append(Device(f"nvswitch{s}", Kind.NVSWITCH, host="h"))
        links += [Link(f"gpu{i}", f"nvswitch{s}", LinkKind.NVLINK, count=2) for i in range(8)]
    return system("dgx", devices, links)


def rails() -> System:
    """Two hosts, each rail with its own leaf switch, and a spine above the leaves."""
    devices, links = [Device("spine", Kind.NETSWITCH)], []
    for h in ("a", "b"):
        devices.append(Device(f"{h}cpu", Kind.CPU, host=h))
        for i in range(3):
            devices.append(Device(f"{h}nic{i}", Kind.NIC, host=h))
            links += [
                pcie(f"{h}cpu", f"{h}nic{i}"),
                Link(f"{h}nic{i}", f"leaf{i}", LinkKind.NETWORK, rate=5e10),
            ]
    for i in range(3):
        devices.append(Device(f"leaf{i}", Kind.NETSWITCH))
        links.append(Link(f"leaf{i}", "spine", LinkKind.NETWORK, rate=5e10, count=4))
    return system("rails", devices, links)


def mesh() -> System:
    """Four sockets all joined, and GPUs bridged directly: links that need tracks of their own."""
    devices = [Device(f"cpu{i}", Kind.CPU, host="h", numa=i) for i in range(4)]
    devices += [Device(f"gpu{i}", Kind.GPU, host="h") for i in range(4)]
    links = [pcie(f"cpu{i}", f"gpu{i}") for i in range(4)]
    links += [Link(f"cpu{i}", f"cpu{j}", LinkKind.SOCKET) for i, j in combinations(range(4), 2)]
    links += [Link(f"gpu{i}", f"gpu{j}", LinkKind.NVLINK, count=2) for i, j in combinations(range(4), 2)]
    return system("mesh", devices, links)


def bonded() -> System:
    """GPUs joined to their CPU by PCIe and by NVLinks as well."""
    devices = [Device(f"cpu{i}", Kind.CPU, host="h", numa=i) for i in range(2)]
    devices += [Device(f"gpu{i}", Kind.GPU, host="h", part="P100") for i in range(4)]
    links = [Link("cpu0", "cpu1", LinkKind.SOCKET)]
    for i in range(4):
        links += [pcie(f"cpu{i // 2}", f"gpu{i}", 3), Link(f"cpu{i // 2}", f"gpu{i}", LinkKind.NVLINK, count=2)]
    links += [Link("gpu0", "gpu1", LinkKind.NVLINK, count=2), Link("gpu2", "gpu3", LinkKind.NVLINK, count=2)]
    return system("bonded", devices, links)


def storage() -> System:
    """Nine drives and a controller behind one of two fabric switches, with two volumes."""
    devices = [Device(f"cpu{i}", Kind.CPU, host="h", numa=i) for i in range(2)]
    devices += [Device(f"pax{i}", Kind.SWITCH) for i in range(2)]
    devices += [Device(f"gpu{i}", Kind.GPU, host="h") for i in range(2)]
    devices += [
        Device("roc0", Kind.RAID, host="h"),
        *(Device(f"ssd{i}", Kind.SSD, host="h") for i in range(9)),
    ]
    links = [Link("cpu0", "cpu1", LinkKind.SOCKET, count=2), pcie("cpu0", "pax0"), pcie("cpu1", "pax1")]
    links += [Link("pax0", "pax1", LinkKind.FABRIC, gen=4, lanes=16), pcie("pax1", "roc0")]
    links += [pcie("pax0", f"gpu{i}") for i in range(2)] + [pcie("pax1", f"ssd{i}", 3, 4) for i in range(9)]
    drives = [tuple(f"ssd{i}" for i in numbers) for numbers in ((0, 2, 4, 6), (1, 3, 5, 7))]
    volumes = {f"vol{i}": Volume(f"vol{i}", 0, names) for i, names in enumerate(drives)}
    return system("storage", devices, links, volumes=volumes)
