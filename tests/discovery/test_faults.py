"""What is loud: devices off the bus, narrow links, contradictions counted by kind, lanes that a CPU cannot have."""

from __future__ import annotations

from discovery.lspci_text import GPU, NIC, SSD, Branch, LspciTree, lspci, pair_below_a_switch

from lanewise.catalog import builtin
from lanewise.discovery.build import Discovery
from lanewise.discovery.build import discover as build
from lanewise.discovery.config import clean_config, decode
from lanewise.discovery.dumps import read_dump


def read(*texts: str) -> Discovery:
    return build([dump for n, text in enumerate(texts) for dump in read_dump(text.encode(), f"{n}.txt")], builtin())


def test_a_gpu_that_reads_all_ones_is_a_fault_and_stays_in_the_tree():
    tree = pair_below_a_switch()
    text = lspci(tree.without("0000:19:00.0"))
    text += "\n0000:19:00.0 3D controller [0302]: NVIDIA Corporation AD102GL [L40S] [10de:26b9] (rev ff) (prog-if ff)\n"
    found = read(f"{text}\t!!! Unknown header type 7f\n\tKernel driver in use: nvidia\n")
    assert found.faults == ("gpu1 does not answer on PCI (all ones): it fell off the bus, or its power is off",)
    assert [(state.device, state.address) for state in found.conditions.off_bus] == [("gpu1", "0000:19:00.0")]
    assert [link.a for link in found.system.links if link.b == "gpu1"] == ["sw0"]


def test_a_gpu_off_the_bus_can_no_more_than_its_part_and_keeps_it():
    tree = LspciTree()
    tree.add_root(0, 0x15, 0, [Branch(GPU, gen=5)])
    gone = "\t!!! Unknown header type 7f\n"
    head = "0000:16:00.0 3D controller [0302]: NVIDIA Corporation AD102GL [L40S] [10de:26b9] (rev ff) (prog-if ff)\n"
    found = read(lspci(tree.without("0000:16:00.0")) + "\n" + head + gone)
    assert found.system.device("gpu0").part == "l40s"
    assert [(link.gen, link.lanes) for link in found.system.links if link.b == "gpu0"] == [(4, 16)]
    assert found.contradictions == ()


def test_all_ones_stay_all_ones_in_a_capture():
    ones = b"\xff" * 4096
    assert decode(clean_config(ones)) == decode(ones) == {"off_bus": True}


def test_a_width_of_63_is_a_device_off_the_bus():
    tree = pair_below_a_switch()
    text = lspci(tree.functions).replace("LnkSta:\tSpeed 16GT/s, Width x16", "LnkSta:\tSpeed unknown, Width x63", 1)
    assert [state.device for state in read(text).conditions.off_bus] == ["gpu0"]


def test_a_link_with_fewer_lanes_is_a_fault_and_a_slow_one_an_idle_link():
    tree = pair_below_a_switch()
    text = lspci(tree.functions).replace("LnkSta:\tSpeed 16GT/s, Width x16", "LnkSta:\tSpeed 16GT/s, Width x8", 1)
    text = text.replace("LnkSta:\tSpeed 16GT/s, Width x4", "LnkSta:\tSpeed 2.5GT/s, Width x4")
    found = read(text)
    assert found.faults == ("the link to gpu0 ran at Gen4 x8 when the dump was made, at most Gen4 x16",)
    assert any("ssd0 ran at Gen1 x4" in each and "idle" in each for each in found.system.assumptions)


def test_contradictions_of_one_kind_are_one_line_with_their_number():
    tree = LspciTree()
    tree.add_root(0, 0x15, 0, [Branch(GPU, gen=4, lanes=8) for _ in range(8)])
    names = "".join(f"\tGPU{n}" for n in range(8))
    rows = [f"GPU{n}" + "".join("\tX" if n == m else "\tPIX" for m in range(8)) for n in range(8)]
    found = read(lspci(tree.functions), "\n".join([f"{names}\tCPU Affinity", *rows]))
    assert found.contradictions == ("28 of one kind, first: GPU0 to GPU1: 1.txt:2 matrix says PIX, the tree gives PHB",)


def test_lanes_of_a_chipset_do_not_take_the_part_of_the_cpu_away():
    tree = LspciTree()
    gpus = [Branch(GPU, gen=4) for _ in range(5)]
    tree.add_root(0, 0x15, 0, [*gpus, Branch(NIC, gen=2, lanes=1), Branch(SSD, gen=4, lanes=4)])
    found = read(lspci(tree.functions))
    assert found.system.device("cpu0").part == "sapphire-rapids"
    assert {link.b: link.lanes for link in found.system.links}["nic0"] is None
    said = "cpu0 shows 85 PCIe lanes, sapphire-rapids has 80: the links to nic0, ssd0 may be a chipset's"
    assert f"{said}, their widths are left open" in found.system.assumptions
    # More than a chipset could have: another CPU then.
    tree.add_root(1, 0x15, 0, [Branch(GPU) for _ in range(5)])
    assert read(lspci(tree.functions)).system.device("cpu0").part is None


def test_what_one_dump_says_twice_of_one_function_is_one_line():
    nic = "<object type='PCIDev' pci_busid='0000:04:00.0' pci_type='0200 [15b3:1013] [0000:0000] 00 00'/>"
    other = nic.replace("0200", "0107").replace("1013", "1014")
    found = read(f"<topology version='2.0'><object type='Machine' nodeset='0x1'>{nic}{other}</object></topology>")
    said = "0000:04:00.0 class, device: 0.txt says two things of it; the first is taken"
    assert found.contradictions == (said,)


def test_fewer_lanes_than_one_end_has_are_the_links_and_no_fault():
    tree = pair_below_a_switch()
    gpu = next(f for f in tree.functions if f.address == "0000:98:00.0")
    found = read(gpu.text().replace("LnkSta:\tSpeed 16GT/s, Width x16", "LnkSta:\tSpeed 16GT/s, Width x8"))
    assert found.faults == ()
    assert [(link.gen, link.lanes) for link in found.system.links] == [(4, 8)]
    said = "the link to gpu0 ran at Gen4 x8 when the dump was made, at most Gen4 x16; the other end is not in the dumps"
    assert said in found.system.assumptions
