"""NCCL topology files: written of a described host, and read again."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

import lanewise
from lanewise.cli import verbs
from lanewise.collectives.topology_file import LinkRates, topology_file
from lanewise.errors import Contradiction, InputError, Unreachable
from lanewise.topology.model import System
from lanewise.topology.read import read_system

MACHINE = """
lanewise: 1
system: machine
devices:
  "cpu[0-1]": {cpu: sapphire-rapids}
  sw0: {switch: null}
  sw1: {switch: null}
  gpu0: {gpu: h100-sxm, os_names: ["00000000:18:00.0"]}
  gpu1: {gpu: h100-sxm, os_names: ["0000:9A:00.0"]}
  nic0: {nic: connectx-7-ndr, os_names: ["0000:19:00.0", mlx5_0, ibs1]}
  ssd0: {ssd: null}
  nvs: {nvswitch: null}
links:
  - {from: cpu0, to: cpu1, socket: auto}
  - {from: cpu0, to: sw0, pcie: gen5 x16}
  - {from: sw0, to: [gpu0, nic0], pcie: gen5 x16}
  - {from: cpu1, to: gpu1, pcie: gen5 x8}
  - {from: cpu1, to: sw1, pcie: gen4 x4}
  - {from: sw1, to: ssd0, pcie: gen4 x4}
  - {from: gpu0, to: nvs, nvlink: 17}
  - {from: gpu1, to: nvs, nvlink: 18}
"""


def system(text: str = MACHINE) -> System:
    return read_system(text, "machine.yaml")


def test_links_are_those_of_the_description() -> None:
    text = topology_file(system())
    root = fromstring(text)
    assert root.attrib == {"version": "1", "name": "machine"}
    assert [cpu.get("numaid") for cpu in root] == ["0", "1"]
    bridge, gpu1 = root[0][0], root[1][0]
    assert [child.get("busid") for child in bridge] == ["0000:18:00.0", "0000:19:00.0"]
    assert (gpu1.get("link_speed"), gpu1.get("link_width")) == ("32.0 GT/s PCIe", "8")  # the card could do 16
    assert [link.get("count") for link in root.iter("nvlink")] == ["17", "18"]
    assert [net.attrib for net in root.iter("net")] == [{"name": "mlx5_0", "speed": "400000"}]
    assert len(list(root.iter("pci"))) == 4  # no drive, and no switch that holds nothing else


def test_nccl_s_parser_takes_no_blank_before_the_end_of_an_element() -> None:
    assert " />" not in topology_file(system())


def test_what_is_written_is_read_as_the_same_machine(tmp_path: Path) -> None:
    path = tmp_path / "topology.xml"
    path.write_text(topology_file(system()))
    again = lanewise.discover([path]).system
    assert {(link.name, link.gen, link.lanes) for link in again.links if link.gen} == {
        ("cpu0--sw0", 5, 16), ("sw0--gpu0", 5, 16), ("sw0--nic0", 5, 16), ("cpu1--gpu1", 5, 8),
    }  # fmt: skip
    assert sorted(link.count for link in again.links if link.kind == "nvlink") == [17, 18]


def test_predicted_rates_lower_links_and_cards() -> None:
    slow = MACHINE
    for old, new in (
        ("gpu1: {gpu: h100-sxm", "gpu1: {gpu: gtx-1070"),
        ("gpu1, pcie: gen5 x8", "gpu1, pcie: gen3 x16"),
        ("  - {from: gpu1, to: nvs, nvlink: 18}\n", ""),
        ("nic0], pcie: gen5 x16", "nic0], pcie: gen4 x16"),
    ):
        assert old in slow
        slow = slow.replace(old, new)
    described, predicted = (fromstring(topology_file(system(slow), rates=rates)) for rates in LinkRates)
    speeds = [next(root.iter("net")).get("speed") for root in (described, predicted)]
    assert speeds[0] == "400000"
    assert 180_000 < int(speeds[1] or 0) < 250_000  # a Gen4 slot under a 400 Gb/s card
    widths = [int(root[1][0].get("link_width") or 0) for root in (described, predicted)]
    assert widths[0] == 16 >= widths[1] > 8


def test_a_switch_without_an_address_and_nvlinks_of_pairs() -> None:
    pair = MACHINE.replace("  - {from: gpu0, to: nvs, nvlink: 17}\n  - {from: gpu1, to: nvs, nvlink: 18}\n",
                           "  - {from: gpu0, to: gpu1, nvlink: 4}\n")  # fmt: skip
    root = fromstring(topology_file(system(pair)))
    assert root[0][0].get("busid") == "ffff:00:01.0"
    assert [link.attrib for link in root.iter("nvlink")] == [
        {"target": "0000:9a:00.0", "count": "4", "tclass": "0x030200"},
        {"target": "0000:18:00.0", "count": "4", "tclass": "0x030200"},
    ]


def test_what_cannot_be_written_is_said() -> None:
    with pytest.raises(Contradiction, match="the PCI address of gpu0 is not described"):
        topology_file(lanewise.load_system("h200-pair"))
    with pytest.raises(InputError, match="has 3 hosts, a topology file describes one"):
        topology_file(lanewise.load_system("composable-pool"))
    with pytest.raises(InputError, match="no host 'z'"):
        topology_file(lanewise.load_system("composable-pool"), "z")
    bare = "lanewise: 1\nsystem: bare\ndevices: {cpu0: {cpu: null}}\n"
    with pytest.raises(Unreachable, match="no GPU or network card"):
        topology_file(read_system(bare, "bare.yaml"))


def test_the_verb_writes_the_file(tmp_path: Path) -> None:
    path, out = tmp_path / "machine.yaml", tmp_path / "topology.xml"
    path.write_text(MACHINE)
    assert verbs.run(["system", "export", str(path), "--rates", "predicted", "-o", str(out)]) == 0
    assert out.read_text() == lanewise.nccl_topology(path, rates="predicted")
    assert verbs.run(["system", "export", str(path), "--rates", "none"]) == 2
