"""Real machines: every dump gives a system that reads back, and classes are those of the dump's own matrix."""

from __future__ import annotations

from collections import Counter

import pytest

from lanewise.routes.classify import topo_class
from lanewise.topology.read import read_system

PUGET = "stelline-puget-threadripper-pro-wrx90."
TREE, DETAILS, TOPO = f"{PUGET}lspci-tv.txt", f"{PUGET}lspci-vvv-devices.txt", f"{PUGET}nvidia-smi-topo-m.txt"
H200 = "h200-pair-vm.nvidia-smi-topo-m.txt"
KINDS = {
    "40intel64-2g2n4c+pcilocality.tar.bz2": {"cpu": 4, "nic": 3, "raid": 1},
    "96em64t-4n4d3ca2co-pci.xml": {"cpu": 4, "nic": 4},
    "aws-g5.48xl-topo.xml": {"cpu": 2, "gpu": 9},
    "aws-p4d-24xl-topo.xml": {"cpu": 2, "switch": 4, "gpu": 8, "nic": 4, "nvswitch": 1},
    "azure-ncv4-topo.xml": {"cpu": 4, "gpu": 4},
    "azure-ndv4-topo.xml": {"cpu": 4, "switch": 4, "gpu": 8, "nic": 8},
    H200: {"cpu": 1, "gpu": 2},
    "linux-32em64t-2n8c+dax+nvme+mic+dimms.xml": {"cpu": 2, "nic": 2, "ssd": 1},
    "linux-40intel64-2g2n4c+pcilocality.xml": {"cpu": 4, "nic": 3, "raid": 1},
    "nvidiagpunumanodes.tar.bz2": {"cpu": 2, "gpu": 6},
    "power8gpudistances.xml": {"cpu": 2, "gpu": 4},
    TREE: {"cpu": 1, "switch": 4, "gpu": 2, "nic": 2, "raid": 1, "ssd": 9},
    DETAILS: {"cpu": 1, "gpu": 2, "nic": 1, "raid": 1},
    TOPO: {"cpu": 1, "switch": 1, "gpu": 2, "nic": 2},
}


@pytest.mark.parametrize("name", KINDS)
def test_a_dump_gives_a_system_that_reads_back(real, name):
    found = real(name)
    assert Counter(str(d.kind) for d in found.system.devices.values()) == KINDS[name]
    again = read_system(found.text(), "machine.yaml")
    assert again.devices.keys() == found.system.devices.keys()
    assert [(k.a, k.b, k.gen, k.lanes, k.bridge) for k in again.links] == [
        (k.a, k.b, k.gen, k.lanes, k.bridge) for k in found.system.links
    ]
    assert again.assumptions == found.system.assumptions


def test_the_trees_of_the_workstation_give_the_classes_of_its_matrix(real):
    found = real(TREE, DETAILS, TOPO)
    system = found.system
    assert found.contradictions == ()
    gpus, card = ("gpu0", "gpu1"), next(n for n, words in found.dump_names.items() if "NIC0" in words)
    assert topo_class(system, *gpus) == "PHB"
    assert {topo_class(system, gpu, card) for gpu in gpus} == {"NODE"}
    assert system.device("gpu0").part == "rtx-6000-ada"
    assert system.device(card).part == "connectx-7-ndr"
    gpu = system.links_at("gpu0")[0]
    assert (gpu.gen, gpu.lanes, gpu.port, gpu.bridge, gpu.max_payload) == (4, 16, "c0:01.1", "c0", 256)
    assert topo_class(system, "ssd0", "ssd3") == "PIX"
    assert topo_class(system, "ssd0", "ssd4") == "PXB"
    assert any("gpu[0-1] ran at Gen1 x16" in text for text in system.assumptions)


@pytest.mark.parametrize("name", [TOPO, H200])
def test_a_matrix_alone_gives_a_system_with_its_classes(real, name):
    assert real(name).contradictions == ()


def test_the_pair_of_the_virtual_machine_is_joined_by_18_nvlinks(real):
    assert topo_class(real(H200).system, "gpu0", "gpu1") == "NV18"


def test_nvlinks_from_bandwidths_join_gpus_and_cpus(real):
    system = real("power8gpudistances.xml").system
    counts = {link.name: link.count for link in system.links if link.kind.value == "nvlink"}
    assert len(counts) == 6
    assert set(counts.values()) == {2}
    assert system.device("gpu0").part == "p100-sxm2"


def test_a_machine_without_pci_devices_is_its_cpu_and_says_so(real):
    found = real("linux-nvidia-dgx-gb10.xml")
    assert [*found.system.devices] == ["cpu0"]
    assert "no GPU, network card or drive on PCI is in the dumps" in found.system.assumptions


def test_nvlinks_that_a_topology_file_leaves_out_are_taken_from_the_part_or_said_to_be_unknown(real):
    known, unknown = real("aws-p4d-24xl-topo.xml"), real("azure-ndv4-topo.xml")
    assert topo_class(known.system, "gpu0", "gpu7") == "NV12"
    assert any(text.startswith("NVLinks are taken from the part") for text in known.system.assumptions)
    assert any(text.startswith("what gpu[0-7] are is not in the dumps") for text in unknown.system.assumptions)
    assert {d.part for d in unknown.system.devices.values() if d.kind == "cpu"} == {"rome"}


def test_a_contradiction_of_two_real_dumps_is_named(real):
    found = real("40intel64-2g2n4c+pcilocality.tar.bz2", "linux-40intel64-2g2n4c+pcilocality.xml")
    assert len(found.contradictions) == 1
    assert "0000:43:00.0 numa" in found.contradictions[0]


def test_no_serial_number_uuid_or_mac_enters_the_description(real):
    for name in KINDS:
        text = real(name).text()
        for secret in ("GPU-77bf6b9a", "0322716104625", "14090C05022B", "84:8f:69", "dev-canyon", "sonata"):
            assert secret not in text
