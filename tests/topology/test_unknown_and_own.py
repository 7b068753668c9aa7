"""Unknown socket links, NUMA nodes within a socket, parameters in policies, and a description's own parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lanewise
from lanewise.errors import InputError
from lanewise.topology.model import System
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system

Read = Callable[..., System]


def test_an_unknown_number_of_socket_links(read: Read) -> None:
    body = """
devices: {"cpu[0-1]": {cpu: null}}
links: [{from: cpu0, to: cpu1, socket: "?"}]
"""
    system = read(body)
    assert not system.links[0].count_known
    again = read_system(write_system(system), "w.yaml")
    assert not again.links[0].count_known
    assert "? links" in lanewise.draw(system)


@pytest.mark.parametrize(("acs", "switches"), [(0, set()), (1, {"sw0", "sw1"})])
def test_a_parameter_redirects_at_all_switches(read: Read, acs: int, switches: set[str]) -> None:
    body = """
parameters: {acs: {default: 0}}
devices: {cpu0: {cpu: null}, "sw[0-1]": {switch: null}}
links: [{from: cpu0, to: "sw[0-1]", pcie: auto}]
policies: {acs_redirect: "{acs}"}
"""
    assert read(body, acs=acs).policies.acs_redirect == switches


def test_a_description_names_its_own_part_files(tmp_path: Path) -> None:
    part = "parts: [{part: new, kind: gpu, figures: {pcie.gen: {value: 3, source: s}}}]"
    (tmp_path / "new.yaml").write_text(part)
    file = tmp_path / "s.yaml"
    file.write_text("lanewise: 1\nsystem: s\nparts: [new.yaml]\ndevices: {cpu0: {cpu: null}, gpu0: {gpu: new}}\n"
                    "links: [{from: cpu0, to: gpu0, pcie: auto}]\n")  # fmt: skip
    system = lanewise.load_system(file)
    assert (system.links[0].gen, system.part_files) == (3, ("new.yaml",))
    assert "parts:\n- new.yaml\n" in write_system(system)
    file.write_text(file.read_text().replace("[new.yaml]", "new.yaml"))
    assert lanewise.load_system(file).part_files == ("new.yaml",)
    (tmp_path / "mine.yaml").write_text(part.replace("value: 3", "value: 4"))
    assert lanewise.load_system(file, catalog=lanewise.load_catalog([tmp_path / "mine.yaml"])).links[0].gen == 4
    file.write_text(file.read_text().replace("new.yaml", "missing.yaml"))
    with pytest.raises(InputError, match="cannot be read") as caught:
        lanewise.load_system(file)
    assert "starts at the folder of that file" in caught.value.hint


DIVIDED = """
devices:
  "cpu[0-1]": {cpu: null, numa_nodes: 4}
  "gpu[0-7]": {gpu: null, numa: "+0"}
  nic0: {nic: null}
links:
  - {from: cpu0, to: ["gpu[0-3]", nic0], pcie: auto}
  - {from: cpu1, to: "gpu[4-7]", pcie: auto}
"""


def test_a_socket_of_several_numa_nodes_numbers_them_on(read: Read) -> None:
    system = read(DIVIDED)
    assert system.numa_nodes("cpu1") == (4, 5, 6, 7)
    assert [system.numa_node(name) for name in ("gpu6", "nic0", "cpu0")] == [6, None, None]
    counted = read(DIVIDED.replace("numa_nodes: 4", 'numa_nodes: 4, numa: "+0"'))
    assert counted.numa_nodes("cpu1") == (4, 5, 6, 7)


def test_pairs_give_every_end_above_an_equal_run_of_those_below(read: Read) -> None:
    body = """
devices: {cpu0: {cpu: null}, "sw[0-1]": {switch: null}, "gpu[0-3]": {gpu: null}}
links:
  - {from: cpu0, to: "sw[0-1]", pcie: auto}
  - {from: "sw[0-1]", to: "gpu[0-3]", pcie: auto, pairs: true}
"""
    assert [link.name for link in read(body).links[2:]] == ["sw0--gpu0", "sw0--gpu1", "sw1--gpu2", "sw1--gpu3"]


def test_what_auto_makes_of_an_unknown_drive_and_of_a_mesh(read: Read) -> None:
    body = """
devices: {cpu0: {cpu: Genoa}, "ssd[0-1]": {ssd: null}, "gpu[0-3]": {gpu: A100 SXM 80GB}}
links:
  - {from: cpu0, to: ssd0, pcie: auto}
  - {from: cpu0, to: ssd1, pcie: gen4 x8}
  - {from: cpu0, to: "gpu[0-3]", pcie: auto}
  - {mesh: "gpu[0-3]", nvlink: auto}
"""
    links = read(body).links
    assert [(link.gen, link.lanes) for link in links[:2]] == [(5, 4), (4, 8)]
    assert {link.count for link in links[6:]} == {12 // 3}


def test_policies_as_kernels_and_people_call_them(read: Read) -> None:
    body = "devices: {{cpu0: {{cpu: null}}, sw0: {{switch: null}}}}\npolicies: {{{}}}\n"
    for policy, redirecting in (("yes", {"sw0"}), ("on", {"sw0"}), ("off", set()), ("disabled", set())):
        assert read(body.format(f"acs_redirect: {policy}")).policies.acs_redirect == redirecting
    for policy, mode in (("pt", "passthrough"), ("OFF", "off"), ("strict", "translate"), ('"?"', None)):
        assert read(body.format(f"iommu: {policy}")).policies.iommu == mode
    for policy in ("false", "off", "none"):
        assert read(body.format(f"peers: {policy}")).policies.peer_scope == {"cpu0": "none"}


@pytest.mark.parametrize("count", ['"?"', '"x?"', "unknown", "null", "UPI", "Infinity Fabric"])
def test_a_number_of_socket_links_that_nobody_knows_is_not_none(read: Read, count: str) -> None:
    body = 'devices: {{"cpu[0-1]": {{cpu: genoa}}}}\nlinks: [{{from: cpu0, to: cpu1, socket: {}}}]\n'
    (link,) = read(body.format(count)).links
    assert not link.count_known
    with pytest.raises(InputError, match="a link of 0"):
        read(body.format("0"))
