"""Small dumps of our own: every kind, merged, with what they hide and where they are wrong."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from lanewise.api import discover
from lanewise.checking.causes.machine import MachineState, machine_causes
from lanewise.cli import verbs
from lanewise.discovery.config import decode
from lanewise.errors import InputError
from lanewise.routes.classify import topo_class
from lanewise.topology.model import Kind

DATA = Path(__file__).parent / "data"


def links(found):
    return {link.name: (link.gen, link.lanes) for link in found.system.links if link.kind.value == "pcie"}


def test_a_matrix_with_nv_for_all_pairs_takes_an_nvswitch(own):
    found = own("topo-nvswitch.txt")
    assert found.contradictions == ()
    assert found.system.device("nvsw0").kind.value == "nvswitch"
    assert topo_class(found.system, "gpu0", "gpu3") == "NV18"
    assert topo_class(found.system, "gpu0", "nic0") == "PIX"


def test_a_matrix_with_old_names_and_no_numa_column_gives_switches(own):
    found = own("topo-switches.txt")
    assert found.contradictions == ()
    assert [topo_class(found.system, "gpu0", other) for other in ("gpu1", "gpu2", "nic0", "gpu3")] == [
        "PIX",
        "PXB",
        "PHB",
        "SYS",
    ]
    assert any("no uplinks that cards share" in text for text in found.system.assumptions)


@pytest.mark.parametrize(("gpus", "part"), [(1, "h100-sxm"), (2, "h200-sxm"), (4, "h200-sxm")])
def test_a_real_virtual_machine_with_gpus_replays_and_has_no_fault(own, gpus, part):
    found = own(f"{part[:4]}-{gpus}gpu{'s' if gpus > 1 else ''}.tar.zst")
    names = [f"gpu{i}" for i in range(gpus)]
    assert list(found.system.of_kind(Kind.GPU)) == names
    assert {found.system.device(name).part for name in names} == {part}
    assert all(links(found)[f"cpu0--{name}"] == (5, 16) for name in names)
    assert {topo_class(found.system, "gpu0", other) for other in names[1:]} <= {"NV18"}
    facts = {fact.key: fact.value for fact in found.facts["gpu0"]}
    assert (facts.get("nvlink_version"), facts["gen_now"], facts["lanes_now"]) == ("4.0" if gpus > 1 else None, 5, 16)
    # The driver has no PCI peers between GPUs with NVLink, and needs none.
    machine = MachineState(found.system, found.conditions)
    assert not [suspect for suspect in machine_causes(machine, None) if suspect.fault]


def test_lspci_gives_trees_the_slower_end_of_a_link_and_acs(own):
    found = own("tree.txt", "details.txt")
    assert links(found) == {
        "cpu0--gpu0": (4, 16),
        "cpu0--ssd0": (4, 4),
        "cpu1--sw0": (None, None),
        "sw0--gpu1": (4, 8),
        "sw0--nic0": (5, 16),
    }
    assert found.system.policies.acs_redirect == {"sw0"}
    assert found.dump_names["nic0"] == ("0000:84:00.0", "0000:84:00.1")
    assert found.system.links_between("sw0", "gpu1")[0].max_payload == 256
    source = next(fact.source for fact in found.facts["gpu1"] if fact.key == "gen")
    assert (source.file, source.what, source.line) == ("details.txt", "LnkCap", 18)


def test_a_host_bridge_that_tells_the_generation_gives_the_cpu_its_part(tmp_path):
    path = tmp_path / "tree.txt"
    bridge = "Intel Corporation Xeon E7 v4/Xeon E5 v4/Xeon E3 v4/Xeon D DMI2 [8086:6f00]"
    gpu = "NVIDIA Corporation GK210GL [Tesla K80] [10de:102d]"
    path.write_text(f"-+-[0000:00]-+-00.0  {bridge}\n |           \\-01.0-[01]----00.0  {gpu}\n")
    assert discover(path).system.device("cpu0").part == "broadwell-ep"


def test_two_kinds_of_functions_in_one_slot_both_get_a_link(tmp_path):
    card = tmp_path / "card.txt"
    card.write_text(
        "-[0000:00]-+-01.0-[01]--+-00.0  Mellanox Technologies MT42822 BlueField-2\n"
        "           |            \\-00.1  Mellanox Technologies NVMe SNAP Controller\n"
    )
    found = discover(card)
    assert [link.name for link in found.system.links] == ["cpu0--nic0", "cpu0--ssd0"]
    assert "ssd0 shares root port 00:01.0 with nic0; it is given one of its own" in found.system.assumptions


def test_dumps_that_describe_no_machine_are_named(tmp_path):
    path = tmp_path / "topo.txt"
    path.write_text("\tGPU0\tNIC0\nGPU0\t X \tNV4\nNIC0\tNV4\t X \n")
    with pytest.raises(InputError, match=r"topo\.txt: the dumps describe no machine that can be"):
        discover(path)


def test_hwloc_gives_parts_and_no_names_of_anybody(own):
    found = own("machine-hwloc.xml")
    assert found.system.device("cpu0").part == "epyc-7742"
    assert found.system.device("gpu0").part == "a100-pcie-40gb"
    assert links(found) == {"cpu0--gpu0": (4, 16)}
    assert "secret" not in found.text()
    assert "0322716104625" not in found.text()


def test_nccl_gives_switches_and_nvswitches(own):
    found = own("machine-nccl.xml")
    assert topo_class(found.system, "gpu0", "gpu1") == "NV18"
    assert topo_class(found.system, "gpu0", "nic0") == "PIX"
    assert {found.system.device(gpu).part for gpu in ("gpu0", "gpu1")} == {"h100-sxm"}
    assert "deadbeef" not in found.text()


def test_nccl_numbers_amd_families_in_its_own_way_and_states_the_rate_of_cards(tmp_path):
    # As six RTX 4090 were posted (NVIDIA/nccl issue 814): family 143 is 15 + 8 x 16, of an EPYC Rome; numaid -1.
    path = tmp_path / "topology.xml"
    path.write_text("""<system version="1">
  <cpu numaid="-1" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:01:00.0" class="0x030000" vendor="0x10de" device="0x2684"
      link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="89" rank="0" gdr="0"/>
    </pci>
    <pci busid="0000:02:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16">
      <nic><net name="mlx5_0" dev="0" speed="200000" port="1"/><net name="mlx5_1" dev="1" speed="-1"/></nic>
    </pci>
  </cpu>
</system>""")
    found = discover(path)
    assert (found.system.device("cpu0").part, found.system.device("gpu0").part) == ("rome", "rtx-4090")
    assert "rate 200 Gb/s (topology.xml net speed)" in found.text()


def test_a_folder_and_a_tar_of_sys_say_the_same(small_sys, tmp_path_factory):
    tar = tmp_path_factory.mktemp("tar") / "sys.tar.gz"
    with tarfile.open(tar, "w:gz") as archive:
        archive.add(small_sys, arcname="capture")
    folder, packed = discover(small_sys), discover(tar)
    assert links(folder) == links(packed) == {"cpu0--gpu0": (4, 8)}
    for found in (folder, packed):
        assert found.system.device("gpu0").part == "l40s"
        assert found.system.device("cpu0").part == "epyc-7742"
        assert found.system.policies.iommu == "translate"
        assert any("ran at Gen1 x16" in text for text in found.system.assumptions)
        assert "SECRET" not in found.text()


def test_a_matrix_that_the_tree_does_not_give_is_a_contradiction(own, tmp_path):
    wrong = tmp_path / "topo.txt"
    wrong.write_text("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0\nGPU1\tPIX\t X \t0\n")
    found = discover([DATA / "tree.txt", DATA / "details.txt", wrong])
    assert found.contradictions == ("GPU0 to GPU1: topo.txt:2 matrix says PIX, the tree gives SYS",)
    assert f"contradiction: {found.contradictions[0]}" in found.system.assumptions


def test_configuration_space_gives_link_payload_and_acs():
    data = bytearray(512)
    data[0x06], data[0x34] = 0x10, 0x40
    data[0x40:0x44] = bytes([0x10, 0, 0x62, 0])
    data[0x48:0x4A] = (0x2030).to_bytes(2, "little")
    data[0x4C:0x50] = (0x104).to_bytes(4, "little")
    data[0x52:0x54] = (0x81).to_bytes(2, "little")
    data[0x100:0x104] = (0x0001000D).to_bytes(4, "little")
    data[0x106] = 0x04
    found = decode(bytes(data))
    keys = ("port", "gen", "lanes", "gen_now", "lanes_now", "payload", "read_request", "acs")
    assert tuple(found[key] for key in keys) == ("down", 4, 16, 1, 8, 256, 512, True)
    assert decode(bytes(64)) == {}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("hello", "not a dump of a machine that Lanewise knows"),
        ('<!DOCTYPE t [<!ENTITY a "b">]><topology/>', "the XML defines entities"),
        ("<topology><object>", ":1: not well-formed XML"),
        ("<system>" + "<cpu>" * 300 + "</cpu>" * 300 + "</system>", "nested more than 200 deep"),
        ('<system><cpu numaid="0"><pci busid="x"/></cpu></system>', "'x' is no PCI address"),
        ('<topology><object type="Machine" nodeset="0xq"/></topology>', "a number in it is none"),
        ("\tGPU0\tGPU1\nGPU0\t X \tBAD\nGPU1\tPIX\t X \n", ":2: 'BAD' is no class"),
        ("\tGPU0\tGPU1\nGPU0\t X \tPIX\n", ":1: no row for GPU1"),
        ("-+-[0000:00]-+-00.0  Host\n       +-01.0  Intel\n", ":2: this branch of the tree starts nowhere"),
    ],
)
def test_what_cannot_be_read_is_refused_with_file_cause_and_hint(tmp_path, text, cause):
    path = tmp_path / "dump.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        discover(path)
    assert cause in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.hint


def test_a_broken_tar_and_a_missing_file_are_refused(tmp_path):
    broken = tmp_path / "sys.tar.gz"
    broken.write_bytes(b"\x1f\x8bxx")
    with pytest.raises(InputError, match="not a readable tar"):
        discover(broken)
    with pytest.raises(InputError, match="cannot be read"):
        discover(tmp_path / "nothing.xml")


def test_the_verb_writes_a_description_that_other_verbs_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert verbs.run(["discover", "--from", str(DATA / "tree.txt"), str(DATA / "details.txt"), "-o", "m.yaml"]) == 0
    assert "wrote m.yaml" in capsys.readouterr().err
    assert verbs.run(["route", "m.yaml", "gpu0", "gpu1"]) == 0
    assert verbs.run(["discover", "--from", str(DATA / "machine-nccl.xml"), "--table"]) == 0
    assert "h100-sxm" in capsys.readouterr().out
    assert verbs.run(["discover", "--from", str(DATA / "machine-nccl.xml"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["devices"][0]["kind"] == "cpu"
    assert verbs.run(["discover", "--from", "nothing"]) == 2
