"""`lspci -vvv` without -t: the tree from the buses of the bridges, whole, cut off, as numbers, as bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from discovery.lspci_text import (
    GPU,
    NIC,
    PORT,
    SSD,
    SWITCH,
    Branch,
    LspciFunction,
    LspciTree,
    lspci,
    pair_below_a_switch,
)
from hypothesis import assume, given
from hypothesis import strategies as st

from lanewise.catalog import builtin
from lanewise.discovery.build import Discovery
from lanewise.discovery.build import discover as build
from lanewise.discovery.dumps import read_dump
from lanewise.routes.classify import topo_class
from lanewise.topology.model import Kind

leaves = st.builds(Branch, st.sampled_from([GPU, NIC, SSD]), st.integers(1, 5), st.sampled_from([4, 8, 16]))
branches = st.recursive(
    leaves,
    lambda below: st.builds(Branch, st.just(SWITCH), st.integers(3, 5), below=st.lists(below, min_size=1, max_size=3)),
    max_leaves=6,
)


def read(*texts: str) -> Discovery:
    return build([dump for n, text in enumerate(texts) for dump in read_dump(text.encode(), f"{n}.txt")], builtin())


def placed(found: Discovery) -> dict[str, tuple[str, str, int | None, int | None]]:
    """Each device's address, what it hangs at, the root port and the speed."""
    out = {}
    for link in found.system.links:
        if link.kind.value == "pcie":
            above = found.dump_names[link.a][0]
            domain = "" if link.bridge.count(":") else "0000:"
            port = link.port if link.port.count(":") == 2 or not link.port else f"0000:{link.port}"
            here = f"{domain}{link.bridge}" if above.startswith("node") else above
            out[found.dump_names[link.b][0]] = (here, port, link.gen, link.lanes)
    return out


@st.composite
def trees(draw: st.DrawFn) -> LspciTree:
    tree = LspciTree()
    for domain in range(draw(st.integers(1, 2))):
        free = 0
        for numa in range(draw(st.integers(1, 2))):
            below = draw(st.lists(branches, min_size=1, max_size=3))
            free = tree.add_root(domain, free + draw(st.integers(0, 3)), numa, below)
    return tree


def as_bytes(tree: LspciTree) -> str:
    return "\n".join(f.bytes_text() for f in tree.functions)


FORMS = {
    "as root": lambda tree: lspci(tree.functions),
    "as a user": lambda tree: lspci(tree.functions, root=False),
    "as bytes": as_bytes,
}


def lanes_by_node(tree: LspciTree) -> Counter[int]:
    """PCIe lanes at root ports of each NUMA node."""
    nodes = {function.address: function.numa or 0 for function in tree.functions}
    return sum((Counter({nodes[at]: lanes or 0}) for at, (_, port, _, lanes) in tree.placed.items() if port), Counter())


@given(trees(), st.sampled_from([*FORMS]))
def test_the_tree_is_that_of_the_bridges(tree, form):
    at_one_cpu = sum if form == "as bytes" else max  # bytes say no NUMA node
    assume(at_one_cpu(lanes_by_node(tree).values()) <= 80)  # of a CPU with more the narrow links may be a chipset's
    found = placed(read(FORMS[form](tree)))
    known = 2 if form == "as a user" else 4  # the capabilities with the speeds are closed to a user
    assert {at: place[:known] for at, place in found.items()} == {at: p[:known] for at, p in tree.placed.items()}


def test_without_root_it_says_what_is_missing():
    found = read(lspci(pair_below_a_switch().functions, root=False))
    said = [text for text in found.system.assumptions if "were closed to lspci" in text]
    assert len(said) == 1
    assert said[0].endswith("run it with sudo")


def test_classes_numa_nodes_and_cpus_come_from_lspci_alone():
    found = read(lspci(pair_below_a_switch().functions, domains=False))
    assert found.contradictions == ()
    assert [topo_class(found.system, "gpu0", other) for other in ("gpu1", "nic0", "gpu2")] == ["PIX", "PIX", "SYS"]
    assert {found.system.device(cpu).part for cpu in ("cpu0", "cpu1")} == {"sapphire-rapids"}
    assert any("sapphire-rapids and emerald-rapids; lscpu tells which" in text for text in found.system.assumptions)


def test_text_quoted_in_a_mail_is_read():
    text = lspci(pair_below_a_switch().functions)
    assert placed(read("> " + text.replace("\n", "\n> "))) == placed(read(text))


@pytest.mark.parametrize("root", [True, False])
def test_ports_that_were_cut_off_become_a_switch_that_is_said_to_be_assumed(root):
    tree = pair_below_a_switch()
    found = read(lspci(tree.without("0000:16:00.0", *(f"0000:17:0{n}.0" for n in range(3))), root))
    assert topo_class(found.system, "gpu0", "gpu1") == "PIX"
    said = "ports between 0000:15:01.0 and what lies below it are not in the dumps; sw0, a switch, is assumed there"
    assert said in found.system.assumptions


def test_devices_alone_have_a_root_port_each_at_the_numa_node_they_state():
    tree = pair_below_a_switch()
    found = read(lspci(f for f in tree.functions if f.what is GPU))
    assert found.contradictions == ()
    assert topo_class(found.system, "gpu0", "gpu2") == "SYS"
    said = "what lies above 0000:18:00.0, 0000:19:00.0, 0000:98:00.0 is not in the dumps; a root port each is assumed"
    assert any(text.startswith(said) for text in found.system.assumptions)


def test_virtual_functions_are_no_cards():
    tree = pair_below_a_switch()
    lines = ("\t\tInitial VFs: 16, Total VFs: 16, Number of VFs: 9,", "\t\tVF offset: 2, stride: 1, Device ID: 101e")
    functions = tree.changed("0000:1a:00.0", lines=lines)
    virtual = [LspciFunction(f"0000:1a:0{n // 8}.{n % 8}", NIC) for n in range(2, 11)]
    assert placed(read(lspci([*functions, *virtual]))) == tree.placed
    # Where no capability says so, the name does, and two functions below one port are one card.
    named = (NIC[0], "Mellanox Technologies ConnectX Family mlx5Gen Virtual Function [15b3:101e]", NIC[2])
    virtual = [LspciFunction(f"0000:1a:0{n // 8}.{n % 8}", named) for n in range(2, 11)]
    assert placed(read(lspci([*tree.functions, *virtual], root=False))).keys() == tree.placed.keys()


def test_the_bridges_inside_an_amd_card_are_no_switch_and_do_not_hide_the_slot():
    tree = LspciTree()
    gpu = ("Display controller [0380]", "Advanced Micro Devices, Inc. [AMD/ATI] Navi 31 [Radeon] [1002:744c]", 0x0380)
    tree.add_root(0, 0x40, 0, [Branch(SWITCH, gen=3, lanes=8, below=[Branch(gpu, gen=4)])])
    inner = {
        "up": "Navi 10 XL Upstream Port of PCI Express Switch [1002:1478]",
        "down": "Navi 10 XL Downstream Port of PCI Express Switch [1002:1479]",
    }
    what = {kind: (PORT[0], f"Advanced Micro Devices, Inc. [AMD/ATI] {name}", PORT[2]) for kind, name in inner.items()}
    functions = [
        LspciFunction(f.address, what[f.kind], f.kind, f.buses, f.gen, f.lanes) if f.kind in what else f
        for f in tree.functions
    ]
    found = read(lspci(functions))
    assert placed(found) == {"0000:43:00.0": ("0000:40", "0000:40:01.0", 3, 8)}


def test_drives_below_vmd_are_drives_of_its_numa_node():
    tree = LspciTree()
    tree.add_root(0, 0x59, 1, [Branch(GPU)])
    hidden = LspciTree()
    hidden.add_root(0x10000, 0x80, 0, [Branch(SSD, gen=4, lanes=4), Branch(SSD, gen=4, lanes=4)])
    name = "Intel Corporation Volume Management Device NVMe RAID Controller [8086:28c0]"
    vmd = LspciFunction("0000:59:00.5", ("RAID bus controller [0104]", name, 0x0104), numa=1)
    drives = [LspciFunction(f.address, f.what, f.kind, f.buses, f.gen, f.lanes, None) for f in hidden.functions]
    found = read(lspci([*tree.functions, vmd, *drives]))
    assert {n: d.numa for n, d in found.system.devices.items() if d.kind != "cpu"} == {"gpu0": 1, "ssd0": 1, "ssd1": 1}
    alone = read(lspci([*tree.functions, vmd]))
    assert [*alone.system.devices] == ["cpu0", "gpu0"]
    assert any("drives behind Intel VMD (0000:59:00.5) are hidden" in text for text in alone.system.assumptions)


def test_names_that_lspci_did_not_know_give_their_ids():
    found = read("19:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n\tNUMA node: 0\n")
    assert found.system.device("gpu0").part == "h100-sxm"


def test_numa_nodes_of_one_socket_are_one_cpu_and_devices_keep_their_node():
    tree = LspciTree()
    tree.add_root(0, 0x00, 0, [Branch(GPU, gen=4)])
    tree.add_root(0, 0x40, 1, [Branch(GPU, gen=4)])
    fabric = (
        "Host bridge [0600]",
        "Advanced Micro Devices, Inc. [AMD] Milan Data Fabric; Function 0 [1022:1650]",
        0x0600,
    )
    functions = [*tree.functions, LspciFunction("0000:00:18.0", fabric)]
    found = read(lspci(f if f.what is not PORT else replace(f, what=SWITCH) for f in functions))
    cpu = found.system.device("cpu0")
    assert (found.system.of_kind(cpu.kind), cpu.part, cpu.numa_nodes) == (["cpu0"], "milan", 2)
    assert [found.system.device(gpu).numa for gpu in ("gpu0", "gpu1")] == [0, 1]
    assert topo_class(found.system, "gpu0", "gpu1") == "SYS"


SERIAL = "\t\tCapabilities: [100 v1] Device Serial Number {}-71-ce-36-18"


@pytest.mark.parametrize(
    ("serials", "switches"),
    [
        (("00-80-5e-0e", "00-80-5e-0e"), 1),
        (("00-80-5e-0e", "00-80-5e-aa"), 2),
    ],
)
def test_two_uplinks_with_one_serial_number_are_partitions_of_one_chip(serials, switches):
    tree = LspciTree()
    tree.add_root(0, 0x15, 0, [Branch(SWITCH, below=[Branch(GPU, gen=4), Branch(NIC)])])
    tree.add_root(0, 0x37, 0, [Branch(SWITCH, below=[Branch(GPU, gen=4)])])
    heads = dict(zip([f.address for f in tree.functions if f.kind == "up"], serials, strict=True))
    functions = [
        replace(f, lines=(SERIAL.format(heads[f.address]),)) if f.address in heads else f for f in tree.functions
    ]
    found = read(lspci(functions))
    assert len(found.system.of_kind(Kind.SWITCH)) == switches
    assert [topo_class(found.system, "gpu0", other) for other in ("nic0", "gpu1")] == ["PIX", "NODE"]
    uplinks = [(link.a, link.port) for link in found.system.links if link.b.startswith("sw")]
    assert uplinks == [("cpu0", "15:01.0"), ("cpu0", "37:01.0")]
    assert any("one chip with several uplinks" in text for text in found.system.assumptions) == (switches == 1)
    assert "71-ce-36" not in found.text()


def test_all_chips_of_plx_state_one_serial_number_and_are_several():
    tree = LspciTree()
    for bus in (0x15, 0x37):
        tree.add_root(0, bus, 0, [Branch(SWITCH, below=[Branch(GPU, gen=4)])])
    lines = ("\t\tCapabilities: [100 v1] Device Serial Number ca-87-00-10-b5-df-0e-00",)
    found = read(lspci(replace(f, lines=lines) if f.kind == "up" else f for f in tree.functions))
    assert len(found.system.of_kind(Kind.SWITCH)) == 2


def test_a_thunderbolt_tunnel_has_no_known_speed():
    tree = LspciTree()
    tree.add_root(0, 0x00, 0, [Branch(SWITCH, gen=1, lanes=4, below=[Branch(GPU, gen=3, lanes=4)])])
    bridge = (PORT[0], "Intel Corporation JHL7540 Thunderbolt 3 Bridge [Titan Ridge 4C 2018] [8086:15ea]", PORT[2])
    found = read(lspci(replace(f, what=bridge) if f.what is SWITCH else f for f in tree.functions))
    assert placed(found) == {
        "0000:01:00.0": ("0000:00", "0000:00:01.0", None, None),
        "0000:03:00.0": ("0000:01:00.0", "", 3, 4),
    }
    tunnel = next(text for text in found.system.assumptions if "sw0 is a Thunderbolt or USB4 tunnel" in text)
    assert "gen3 x4, max_payload: 128 B" in tunnel  # what to write in place of the unknown


def test_the_root_port_that_a_hypervisor_makes_up_does_not_say_what_the_link_can():
    tree = LspciTree()
    tree.add_root(0, 0x00, 0, [Branch(GPU, gen=4)])
    port = (PORT[0], "Red Hat, Inc. QEMU PCIe Root port [1b36:000c]", PORT[2])
    made_up = [replace(f, what=port, gen=1, lanes=32) if f.kind == "root" else f for f in tree.functions]
    found = read(lspci(made_up))
    assert placed(found) == {"0000:01:00.0": ("0000:00", "0000:00:01.0", 4, 16)}
    assert found.faults == ()
    assert not any("ran at" in text for text in found.system.assumptions)


def test_iommu_groups_say_that_the_iommu_is_on():
    tree = pair_below_a_switch()
    found = read(lspci(tree.functions).replace("\tNUMA node: 0\n", "\tNUMA node: 0\n\tIOMMU group: 7\n"))
    assert found.system.policies.iommu is None
    assert any("the IOMMU is on; whether it translates is not known" in text for text in found.system.assumptions)
