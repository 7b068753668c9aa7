"""CPUs of dumps: model names of lscpu and /proc/cpuinfo, CPUID numbers, PCI functions, sockets and their NUMA nodes."""

from __future__ import annotations

import pytest
from discovery.lspci_text import GPU, Branch, LspciTree, lspci

from lanewise.catalog import builtin
from lanewise.discovery.build import Discovery
from lanewise.discovery.build import discover as build
from lanewise.discovery.dumps import read_dump
from lanewise.topology.model import Kind


def read(*texts: str) -> Discovery:
    return build([dump for n, text in enumerate(texts) for dump in read_dump(text.encode(), f"{n}.txt")], builtin())


def lscpu(model: str, sockets: int, nodes: int, family: int = 25, number: int = 17) -> str:
    lines = ["Architecture:  x86_64", "CPU(s):  8", "Vendor ID:  AuthenticAMD", f"  Model name:  {model}"]
    lines += [f"CPU family:  {family}", f"Model:  {number}", f"Socket(s):  {sockets}", f"NUMA node(s):  {nodes}"]
    return "\n".join([*lines, *(f"NUMA node{n} CPU(s):  {n}" for n in range(nodes)), ""])


def cpus(found: Discovery) -> list[tuple[str | None, int | None, int]]:
    return [(d.part, d.numa, d.numa_nodes) for d in found.system.devices.values() if d.kind is Kind.CPU]


def bare(functions: int = 1) -> str:
    """A GPU of which nothing but the title is known."""
    return "".join(f"{n:02x}:00.0 3D controller: NVIDIA Corporation Device 26b9\n" for n in range(1, functions + 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (lscpu("AMD EPYC 9554 64-Core Processor", 2, 2), [("genoa", 0, 1), ("genoa", 1, 1)]),
        (lscpu("AMD EPYC 9554 64-Core Processor", 2, 8), [("genoa", 0, 4), ("genoa", 4, 4)]),
        # A virtual machine that names no model.
        (lscpu("AMD EPYC", 1, 1, 26, 2), [("turin", 0, 1)]),
        (lscpu("QEMU Virtual CPU", 1, 1, 6, 6), [(None, 0, 1)]),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n", [(None, 0, 1)]),
        (
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
            "model name\t: Intel Xeon Processor\nphysical id\t: 0\n\nprocessor\t: 1\nphysical id\t: 0\n",
            [("sapphire-rapids", 0, 1)],
        ),
    ],
)
def test_lscpu_and_cpuinfo_name_the_cpus_of_other_dumps(text, expected):
    assert cpus(read(bare(), text)) == expected


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("Intel Corporation Sky Lake-E PCI Express Root Port A [8086:2030] (rev 04)", "skylake-sp"),
        ("Intel Corporation Sky Lake-E PCI Express Root Port A [8086:2030] (rev 07)", "cascade-lake-sp"),
        ("Intel Corporation Ice Lake PCI Express Root Port A [8086:347a]", "ice-lake-sp"),
        ("Intel Corporation Device 352a", "sapphire-rapids"),
        ("Intel Corporation Device 0db0", "granite-rapids"),
        ("Advanced Micro Devices, Inc. [AMD] Starship Device 24; Function 0", "rome"),
        ("Advanced Micro Devices, Inc. [AMD] Device 1650", "milan"),
        ("Advanced Micro Devices, Inc. [AMD] Device 14a4", "genoa"),
        ("Advanced Micro Devices, Inc. [AMD] Turin Root Complex", "turin"),
        ("NVIDIA Corporation Device 22b1", "grace or grace-480gb or grace-496gb"),
        ("Intel Corporation 440FX - 82441FX PMC [8086:1237]", None),
    ],
)
def test_what_only_one_generation_has_names_the_cpu(name, part):
    bridge = f"00:00.0 Host bridge: {name}\n" if "(rev" in name else f"00:00.0 Host bridge: {name} (rev 01)\n"
    assert cpus(read(bridge + bare())) == [(part, 0, 1)]


def test_numactl_and_a_single_v_of_lspci_name_the_numa_nodes():
    nodes = "available: 3 nodes (0-2)\nnode 0 cpus: 0 1\nnode 0 size: 1 MB\nnode 1 cpus: 2 3\nnode 2 cpus:\n"
    flags = "01:00.0 3D controller: NVIDIA Corporation Device 26b9\n\tFlags: bus master, NUMA node 1, IOMMU group 4\n"
    found = read(f"{flags}pcilib: a warning in between\n\tCapabilities: <access denied>\n", nodes)
    assert cpus(found) == [(None, 0, 1), (None, 1, 1)]
    assert found.system.device("gpu0").numa == 1
    assert {fact.key: fact.value for fact in found.facts["gpu0"]}["iommu_group"] == 4
    assert any("were closed to lspci" in text for text in found.system.assumptions)


def test_a_chipset_tells_a_threadripper_from_an_epyc():
    fabric = "00:18.0 Host bridge: Advanced Micro Devices, Inc. [AMD] Device 14ad\n"
    chipset = "02:00.0 PCI bridge: Advanced Micro Devices, Inc. [AMD] 600 Series Chipset PCIe Switch Upstream Port\n"
    assert [cpus(read(text + bare()))[0][0] for text in (fabric, fabric + chipset)] == [
        "genoa",
        "threadripper-pro-7000",
    ]


def test_functions_that_contradict_each_other_name_no_cpu():
    two = ("00:00.0 Host bridge: Intel Corporation Device 0db0", "00:18.0 Host bridge: NVIDIA Corporation Device 22b1")
    assert cpus(read("\n".join(two) + "\n" + bare())) == [(None, 0, 1)]


def test_the_number_of_links_between_sockets_is_the_parts_or_unknown():
    tree = LspciTree()
    for node, bus in enumerate((0x10, 0x40, 0x70)):
        tree.add_root(0, bus, node, [Branch(GPU, gen=4)])
    three = read(lspci(tree.functions))
    assert {link.count_known for link in three.system.links if link.kind == "socket"} == {False}
    two = read(lspci(f for f in tree.functions if f.numa != 2))
    assert [(link.count, link.count_known) for link in two.system.links if link.kind == "socket"] == [(4, True)]
