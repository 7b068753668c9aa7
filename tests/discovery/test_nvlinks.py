"""NVLinks of dumps: NVSwitches of hwloc and lspci, links of the part where a dump cannot show any, and what is said."""

from __future__ import annotations

import pytest
from discovery.lspci_text import SSD, Branch, LspciFunction, LspciTree, lspci

from lanewise.catalog import builtin
from lanewise.discovery.build import Discovery
from lanewise.discovery.build import discover as build
from lanewise.discovery.dumps import read_dump
from lanewise.perf.flow import parse_flows
from lanewise.perf.predict import predict
from lanewise.routes.classify import topo_class
from lanewise.topology.model import LinkKind

H100 = ("3D controller [0302]", "NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330]", 0x0302)
V100 = ("3D controller [0302]", "NVIDIA Corporation GV100GL [Tesla V100 SXM2 16GB] [10de:1db1]", 0x0302)
PCIE = ("3D controller [0302]", "NVIDIA Corporation GH100 [H100 PCIe] [10de:2331]", 0x0302)
NVSWITCH = ("Bridge [0680]", "NVIDIA Corporation Device 22a3 [10de:22a3]", 0x0680)
TAKEN = "NVLinks are taken from the part: the dump cannot show them"


def read(text: str) -> Discovery:
    return build(read_dump(text.encode(), "dump.txt"), builtin())


def machine(*devices: tuple[str, str, int]) -> Discovery:
    tree = LspciTree()
    tree.add_root(0, 0x15, 0, [Branch(what) for what in devices])
    return read(lspci(tree.functions))


@pytest.mark.parametrize(
    ("devices", "nv", "said"),
    [
        ([H100] * 8, "NV18", f"{TAKEN}; 18 of each h100-sxm to NVSwitches"),
        ([H100] * 3 + [NVSWITCH] * 4, "NV18", f"{TAKEN}; 18 of each h100-sxm to NVSwitches"),
        ([H100] * 4, "NV6", f"{TAKEN}; 18 of each h100-sxm, 6 to each of the others"),
        ([V100] * 8, "PHB", "v100-sxm2 has 6 NVLinks; how they join gpu[0-7] is not in the dump"),
        ([PCIE] * 2, "PHB", "gpu[0-1] may have NVLink bridges, which the dump cannot show; none is assumed"),
        ([H100], "", ""),
    ],
)
def test_nvlinks_that_lspci_cannot_show_are_those_of_the_part(devices, nv, said):
    found = machine(*devices, SSD)
    assert not nv or topo_class(found.system, "gpu0", "gpu1") == nv
    assert sum(said in text for text in found.system.assumptions) == 1 or not said
    assert said or not any("NVLink" in text for text in found.system.assumptions)


def test_a_matrix_that_shows_none_is_believed_and_named():
    tree = LspciTree()
    tree.add_root(0, 0x15, 0, [Branch(H100), Branch(H100)])
    matrix = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0\nGPU1\tPHB\t X \t0\n"
    found = read(lspci(tree.functions) + "\n" + matrix)
    assert topo_class(found.system, "gpu0", "gpu1") == "PHB"
    assert "h100-sxm has 18 NVLinks, dump.txt shows none between gpu[0-1]: none is taken" in found.system.assumptions


def test_nvswitches_in_lspci_are_one_nvswitch_with_their_addresses():
    found = machine(*[H100] * 8, NVSWITCH, NVSWITCH)
    assert found.dump_names["nvsw0"] == ("0000:1e:00.0", "0000:1f:00.0")
    assert "nvsw0 stands for the 2 NVSwitches of the machine" in found.system.assumptions


def device(number: int, ids: str, more: str = "") -> str:
    return f"<object type='PCIDev' gp_index='{number}' pci_busid='0000:{number:02x}:00.0' pci_type='{ids}' {more}/>"


def test_nvswitches_in_hwloc_join_the_gpus_by_the_links_of_the_distances():
    """Two GPUs, two NVSwitches of which one was closed, and two links of 25 GB/s from each GPU to each."""
    gpus = [device(number, "0302 [10de:1db1] [0000:0000] a1 00") for number in (1, 2)]
    switches = [
        device(3, "0680 [10de:1ac2] [0000:0000] a1 00", "subtype='NVSwitch'"),
        device(4, "0000 [0000:0000] [0000:0000] 00 00", "subtype='NVSwitch'"),
    ]
    rates = "0 0 50000 50000 0 0 50000 50000 50000 50000 0 0 50000 50000 0 0"
    table = f"<indexes>PCIDev:1 PCIDev:2 PCIDev:3 PCIDev:4</indexes><u64values>{rates}</u64values>"
    found = read(
        f"<topology version='2.0'><object type='Machine' nodeset='0x1'>{''.join([*gpus, *switches])}</object>"
        f"<distances2hetero name='NVLinkBandwidth'>{table}</distances2hetero></topology>"
    )
    assert topo_class(found.system, "gpu0", "gpu1") == "NV4"
    assert "nvsw0 stands for the 2 NVSwitches of the machine" in found.system.assumptions
    assert not any("left out" in text for text in found.system.assumptions)


def test_bandwidths_to_what_no_dump_shows_are_one_line():
    gpus = [device(number, "0302 [10de:1db1] [0000:0000] a1 00") for number in (1, 2)]
    other = device(3, "0c03 [8086:0001] [0000:0000] a1 00")
    table = "<indexes>PCIDev:1 PCIDev:2 PCIDev:3</indexes><u64values>0 0 999 0 0 999 999 999 0</u64values>"
    found = read(
        f"<topology version='2.0'><object type='Machine' nodeset='0x1'>{''.join([*gpus, other])}</object>"
        f"<distances2hetero name='NVLinkBandwidth'>{table}</distances2hetero></topology>"
    )
    assert len([text for text in found.system.assumptions if "NVLinks of" in text]) <= 1


def test_a_function_is_no_nvswitch_by_its_vendor_alone():
    audio = LspciFunction("0000:16:00.1", ("Audio device [0403]", "NVIDIA Corporation Device 22a4 [10de:22a4]", 0x0403))
    tree = LspciTree()
    tree.add_root(0, 0x15, 0, [Branch(PCIE)])
    assert [*read(lspci([*tree.functions, audio])).system.devices] == ["cpu0", "gpu0"]


def test_a_superchip_is_joined_to_its_cpu_by_c2c_and_not_by_its_pcie_port():
    """Two GH200, as Linux numbers them: a PCI domain for each port of a Grace."""
    port = "PCI bridge [0604]: NVIDIA Corporation Device [10de:22b9]"
    gpu = "3D controller [0302]: NVIDIA Corporation GH100 [GH200 120GB / 480GB] [10de:2342] (rev a1)"
    text = "".join(
        f"00{n}8:00:00.0 {port}\n\tNUMA node: {n}\n\tBus: primary=00, secondary=01, subordinate=01, sec-latency=0\n"
        f"00{n}9:01:00.0 {gpu}\n\tNUMA node: {n}\n"
        for n in range(2)
    )
    found = read(text)
    links = {(link.a, link.b): link.count for link in found.system.links if link.kind is LinkKind.NVLINK}
    assert (links["cpu0", "gpu0"], links["cpu1", "gpu1"]) == (10, 10)
    assert not any(link.kind is LinkKind.PCIE for link in found.system.links)
    assert {found.system.device(cpu).part for cpu in ("cpu0", "cpu1")} == {"grace or grace-480gb"}
    (rate,) = predict(found.system, parse_flows("host0->gpu0")).rates
    assert rate.rate > 300e9


@pytest.mark.parametrize(
    ("devices", "told"), [([H100], True), ([H100] * 2, True), ([H100] * 4, False), ([PCIE] * 2, False), ([V100], False)]
)
def test_fewer_gpus_than_a_socket_of_their_board_has_may_leave_it_to_other_tenants(
    devices: list[tuple[str, str, int]], told: bool
) -> None:
    said = [text for text in machine(*devices).system.assumptions if "`shared: true` at the CPU" in text]
    assert len(said) == told
    assert all(text.startswith("nobody else uses the socket of gpu") for text in said)


def test_other_dumps_name_what_a_matrix_numbers():
    topo = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-63\t0\nGPU1\tNV4\t X \t0-63\t0\n"
    gpus = "".join(
        f"GPU {n}: NVIDIA RTX A6000 (UUID: GPU-{n})\n" + "".join(f"\t Link {k}: 14.062 GB/s\n" for k in range(4))
        for n in range(2)
    )
    cpu = "Architecture: x86_64\nCPU(s): 64\nSocket(s): 1\nNUMA node(s): 1\nVendor ID: AuthenticAMD\n"
    cpu += "Model name: AMD EPYC 7713 64-Core Processor\nNUMA node0 CPU(s): 0-63\n"
    dumps = [dump for text in (topo, gpus, cpu) for dump in read_dump(text.encode(), "f")]
    devices = build(dumps, builtin()).system.devices
    assert [devices[name].part for name in ("cpu0", "gpu0", "gpu1")] == ["milan", "rtx-a6000", "rtx-a6000"]
    alone = build(read_dump(topo.encode(), "f"), builtin()).system.devices
    assert [alone[name].part for name in ("cpu0", "gpu0")] == [None, None]
