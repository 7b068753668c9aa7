"""What a description comes to: links, ports, bridges, hosts, NUMA nodes, speeds, parameters."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from lanewise.catalog import builtin
from lanewise.errors import LanewiseError, Location
from lanewise.topology.model import Kind, LinkKind, System
from lanewise.topology.read import read_system
from lanewise.topology.speeds import NETWORKS, is_ethernet, read_network, read_pcie
from lanewise.topology.write import write_system

Read = Callable[..., System]


def names(system: System) -> list[str]:
    return [link.name for link in system.links]


def test_a_chain_joins_neighbours_and_splices_ranges(read: Read) -> None:
    system = read(
        """
parameters:
  path: {default: 3}
devices:
  cpu0: {cpu: null}
  "hop[1-{path}]": {switch: null}
  gpu0: {gpu: null}
links:
  - {chain: [cpu0, "hop[1-{path}]", gpu0], pcie: gen4 x16}
"""
    )
    assert names(system) == ["cpu0--hop1", "hop1--hop2", "hop2--hop3", "hop3--gpu0"]


def test_a_star_joins_every_pair(read: Read) -> None:
    body = """
devices: {"n[0-1]": {nic: null}, "s[0-1]": {netswitch: null}}
links:
  - {from: "n[0-1]", to: [s0, s1], network: hdr}
"""
    assert names(read(body)) == ["n0--s0", "n0--s1", "n1--s0", "n1--s1"]


def test_pairs_join_first_to_first(read: Read) -> None:
    body = """
devices: {"cpu[0-1]": {cpu: null}, "gpu[0-1]": {gpu: null}}
links:
  - {from: "cpu[0-1]", to: "gpu[0-1]", pairs: true, pcie: auto}
"""
    assert names(read(body)) == ["cpu0--gpu0", "cpu1--gpu1"]


def test_a_mesh_joins_all_to_all(read: Read) -> None:
    body = """
devices: {"gpu[0-2]": {gpu: a100-sxm-80gb}}
links:
  - {mesh: "gpu[0-2]", nvlink: 4}
"""
    assert names(read(body)) == ["gpu0--gpu1", "gpu0--gpu2", "gpu1--gpu2"]


def test_an_empty_range_makes_nothing(read: Read) -> None:
    body = """
parameters:
  gpus: {default: 4}
devices: {cpu0: {cpu: null}, "gpu[0-{gpus-1}]": {gpu: null}}
links:
  - {from: cpu0, to: "gpu[0-{gpus-1}]", pcie: auto}
"""
    assert len(read(body).links) == 4
    none = read(body, gpus=0)
    assert (list(none.devices), none.links) == (["cpu0"], ())


def test_entries_under_a_condition_come_and_go(read: Read) -> None:
    body = """
parameters:
  path: {default: 1, values: [1, 2]}
devices:
  cpu0: {cpu: null}
  sw0: {switch: null, when: path >= 2}
  gpu0: {gpu: null}
links:
  - {from: cpu0, to: gpu0, pcie: auto, when: path == 1}
  - {chain: [cpu0, sw0, gpu0], pcie: auto, when: "path > 1 and not path > 2"}
"""
    assert names(read(body)) == ["cpu0--gpu0"]
    assert names(read(body, path=2)) == ["cpu0--sw0", "sw0--gpu0"]


def test_the_upstream_end_comes_first_however_it_is_written(read: Read) -> None:
    body = """
devices: {gpu0: {gpu: null}, "sw[0-1]": {switch: null}, cpu0: {cpu: null}}
links:
  - {from: gpu0, to: sw1, pcie: auto}
  - {from: sw1, to: sw0, pcie: auto}
  - {from: sw0, to: cpu0, pcie: auto}
"""
    assert names(read(body)) == ["sw1--gpu0", "sw0--sw1", "cpu0--sw0"]


def test_a_fabric_short_cut_never_turns_a_tree_around(read: Read) -> None:
    body = """
devices: {"cpu[0-1]": {cpu: null}, "sw[0-3]": {switch: null}}
links:
  - {chain: [cpu0, sw0, sw1, sw2], pcie: auto}
  - {from: cpu1, to: sw3, pcie: auto}
  - {from: sw2, to: sw3, fabric: auto}
"""
    assert names(read(body)) == ["cpu0--sw0", "sw0--sw1", "sw1--sw2", "cpu1--sw3", "sw2--sw3"]


def test_root_ports_are_numbered_for_each_cpu_around_those_named(read: Read) -> None:
    body = """
devices: {"cpu[0-1]": {cpu: null}, "gpu[0-4]": {gpu: null}}
links:
  - {from: cpu0, to: gpu0, pcie: auto}
  - {from: cpu1, to: gpu1, pcie: auto}
  - {from: cpu0, to: gpu2, pcie: auto, port: rp1}
  - {from: cpu0, to: [gpu3, gpu4], pcie: auto}
"""
    assert [link.port for link in read(body).links] == ["rp0", "rp0", "rp1", "rp2", "rp3"]


@pytest.mark.parametrize(
    ("part", "bridges"),
    [("ivy-bridge-ep", ["rc0", "rc0"]), ("skylake-sp", ["rp0", "rp1"]), ("null", ["rc0", "rc0"])],
)
def test_the_cpu_part_says_how_root_ports_share_a_bridge(read: Read, part: str, bridges: list[str]) -> None:
    body = f"""
devices: {{cpu0: {{cpu: {part}}}, "gpu[0-1]": {{gpu: null}}}}
links:
  - {{from: cpu0, to: "gpu[0-1]", pcie: gen3 x16}}
"""
    assert [link.bridge for link in read(body).links] == bridges


def test_a_stated_bridge_overrules_the_part(read: Read) -> None:
    body = """
devices: {cpu0: {cpu: skylake-sp}, "gpu[0-1]": {gpu: null}}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: auto, bridge: c0}
"""
    assert [link.bridge for link in read(body).links] == ["c0", "c0"]


@pytest.mark.parametrize(
    ("speed", "gen", "lanes"),
    [("auto", 4, 16), ("gen3", 3, 16), ("x8", 4, 8), ("gen? x?", None, None), ("x16 GEN4", 4, 16)],
)
def test_what_is_not_said_about_a_speed_follows_the_slower_part(
    read: Read, speed: str, gen: int | None, lanes: int | None
) -> None:
    body = f"""
devices: {{cpu0: {{cpu: sapphire-rapids}}, gpu0: {{gpu: l40s}}}}
links:
  - {{from: cpu0, to: gpu0, pcie: "{speed}"}}
"""
    link = read(body).links[0]
    assert (link.gen, link.lanes) == (gen, lanes)


def test_speeds_stay_unknown_where_no_part_says(read: Read) -> None:
    body = """
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, nic0: {nic: null}, s0: {netswitch: null}}
links:
  - {from: cpu0, to: [gpu0, nic0], pcie: auto}
  - {from: nic0, to: s0, network: auto}
"""
    assert [(link.gen, link.lanes, link.rate) for link in read(body).links] == [(None, None, None)] * 3


def test_counts_of_bonded_links_follow_the_parts(read: Read) -> None:
    body = """
devices: {"cpu[0-1]": {cpu: ivy-bridge-ep}, "gpu[0-1]": {gpu: h200-sxm}}
links:
  - {from: cpu0, to: cpu1, socket: auto}
  - {from: gpu0, to: gpu1, nvlink: auto}
"""
    assert [link.count for link in read(body).links] == [2, 18]


def test_networks_carry_their_data_rate(read: Read) -> None:
    body = """
devices: {"n[0-4]": {nic: connectx-7-ndr}, s0: {netswitch: null}}
links:
  - {from: n0, to: s0, network: auto}
  - {from: n1, to: s0, network: hdr}
  - {from: n2, to: s0, network: 100 Gb/s}
  - {from: n3, to: s0, network: auto, rate: 3 GB/s}
  - {from: n4, to: s0, network: "?"}
"""
    assert [link.rate for link in read(body).links] == [50e9, 25e9, 12.5e9, 3e9, None]


def test_fdr_and_qdr_lose_what_their_encoding_takes() -> None:
    assert read_network("fdr") == pytest.approx(54.545e9 / 8, rel=1e-4)
    assert read_network("qdr") == 4e9
    assert all(read_network(f"{rate}gbe") == rate * 1e9 / 8 for rate in (10, 25, 100, 400))
    assert NETWORKS["edr"] == NETWORKS["hdr100"] == 100


def test_devices_take_the_host_and_the_numa_node_their_cables_lead_to(read: Read) -> None:
    body = """
hosts: [a, b]
devices:
  "cpu[0-1]": {cpu: null, host: a}
  cpu2: {cpu: null, host: b}
  sw0: {switch: null}
  "gpu[0-2]": {gpu: null}
  "nic[0-1]": {nic: null}
  net: {netswitch: null}
links:
  - {from: cpu0, to: cpu1, socket: 2}
  - {chain: [cpu1, sw0, gpu0], pcie: auto}
  - {from: cpu0, to: [gpu1, nic0], pcie: auto}
  - {from: cpu2, to: [gpu2, nic1], pcie: auto}
  - {from: [nic0, nic1], to: net, network: hdr}
"""
    found = {d.name: (d.host, d.numa) for d in read(body).devices.values() if d.kind is not Kind.CPU}
    assert found == {
        "sw0": ("a", 1),
        "gpu0": ("a", 1),
        "gpu1": ("a", 0),
        "gpu2": ("b", 0),
        "nic0": ("a", 0),
        "nic1": ("b", 0),
        "net": (None, None),
    }


def test_a_device_that_two_hosts_reach_is_unbound_until_a_domain_binds_it(read: Read) -> None:
    body = """
hosts: [a, b]
devices:
  cpu0: {cpu: null, host: a, numa: 3}
  cpu1: {cpu: null, host: b}
  "sw[0-1]": {switch: null}
  "gpu[0-1]": {gpu: null}
links:
  - {from: cpu0, to: sw0, pcie: auto}
  - {from: cpu1, to: sw1, pcie: auto}
  - {from: sw0, to: sw1, fabric: auto}
  - {from: sw1, to: "gpu[0-1]", pcie: auto}
domains:
  d0: {root: cpu0, devices: gpu1}
"""
    system = read(body)
    assert [(system.device(name).host, system.device(name).numa) for name in ("gpu0", "gpu1")] == [
        (None, None),
        ("a", 3),
    ]


def test_nvswitches_take_the_host_of_their_gpus(read: Read) -> None:
    body = """
devices: {cpu0: {cpu: null}, "gpu[0-1]": {gpu: null}, nvs: {nvswitch: null}}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: auto}
  - {from: "gpu[0-1]", to: nvs, nvlink: 4}
"""
    assert read(body).device("nvs").host == "host0"


def test_numbers_count_up_over_a_range(read: Read) -> None:
    body = """
devices: {"cpu[0-3]": {cpu: null, numa: +1}, "sw[0-1]": {switch: null, numa: "2"}}
"""
    system = read(body)
    assert [device.numa for device in system.devices.values()] == [1, 2, 3, 4, 2, 2]


def test_a_partitioned_switch_may_stand_below_two_cpus(read: Read) -> None:
    body = """
devices:
  "cpu[0-1]": {cpu: null}
  sw0: {switch: null, partitions: [[cpu0, "gpu[0-1]"], [cpu1, gpu2]]}
  "gpu[0-2]": {gpu: null}
links:
  - {from: "cpu[0-1]", to: sw0, pcie: auto}
  - {from: sw0, to: "gpu[0-2]", pcie: auto}
"""
    system = read(body)
    assert system.device("sw0").joins("cpu0", "gpu1")
    assert not system.device("sw0").joins("gpu1", "gpu2")
    assert [system.device(f"gpu{n}").numa for n in range(3)] == [0, 0, 1]


def test_a_card_with_two_host_links_is_no_circle(read: Read) -> None:
    body = """
devices: {"cpu[0-1]": {cpu: null}, nic0: {nic: null}}
links:
  - {from: "cpu[0-1]", to: nic0, pcie: gen5 x8}
"""
    assert len(read(body).links) == 2


def test_words_of_yaml_stay_words(read: Read) -> None:
    body = """
devices: {cpu0: {cpu: null}}
policies: {iommu: off, acs_redirect: false, peers: none}
"""
    policies = read(body).policies
    assert (policies.iommu, policies.peer_scope) == ("off", {"cpu0": "none"})


@pytest.mark.parametrize(("word", "mode"), [("false", "off"), ("translate", "translate"), ("null", None)])
def test_an_iommu_that_nobody_knows_is_none_that_is_off(read: Read, word: str, mode: str | None) -> None:
    system = read(f"devices: {{cpu0: {{cpu: null}}}}\npolicies: {{iommu: {word}}}\n")
    assert system.policies.iommu == mode
    assert read_system(write_system(system), "w.yaml").policies.iommu == mode
    assert read("devices: {cpu0: {cpu: null}}\n").policies.iommu is None


def test_acs_true_means_every_switch(read: Read) -> None:
    body = """
devices: {cpu0: {cpu: null}, "sw[0-1]": {switch: null}}
policies: {acs_redirect: true}
"""
    assert read(body).policies.acs_redirect == {"sw0", "sw1"}


def test_settings_are_recorded_with_the_defaults(read: Read) -> None:
    body = """
parameters: {a: {default: 1}, b: {default: 2}}
devices: {cpu0: {cpu: null}}
"""
    assert dict(read(body, b=3).settings) == {"a": 1, "b": 3}


def test_devices_and_links_know_their_line(read: Read) -> None:
    system = read(
        "devices:\n  cpu0: {cpu: null}\n  gpu0: {gpu: null}\nlinks:\n  - {from: cpu0, to: gpu0, pcie: auto}\n"
    )
    assert system.device("gpu0").location == Location("s.yaml", 5, 3)
    assert system.links[0].location == Location("s.yaml", 7, 5)


def test_an_alias_of_a_part_stands_for_the_part(read: Read) -> None:
    body = "devices: {cpu0: {cpu: null}, gpu0: {gpu: Tesla-T4}}\nlinks: [{from: cpu0, to: gpu0, pcie: auto}]"
    assert read(body).device("gpu0").part == "t4"


def test_another_catalogue_may_be_given() -> None:
    text = "lanewise: 1\nsystem: x\ndevices: {cpu0: {cpu: skylake-sp}}"
    catalog = builtin()
    assert read_system(text, "x.yaml", catalog=catalog).catalog is catalog
    with pytest.raises(LanewiseError):
        read_system(text, "x.yaml", catalog=type(catalog)())


def test_quantities_come_as_si(read: Read) -> None:
    body = """
devices: {cpu0: {cpu: null}, "ssd[0-1]": {ssd: null}}
links:
  - {from: cpu0, to: "ssd[0-1]", pcie: auto, max_payload: 256 B, length: 2 m, rate: 4 GB/s}
volumes: {v: {raid: 0, drives: "ssd[0-1]", chunk: 64 KiB}}
"""
    system = read(body)
    link = system.links[0]
    assert (link.max_payload, link.length, link.rate) == (256.0, 2.0, 4e9)
    assert system.volumes["v"].chunk == 65536.0
    assert system.links[0].kind is LinkKind.PCIE


@pytest.mark.parametrize("depth", [100, 100_000])
def test_a_deeply_nested_text_is_refused(depth: int) -> None:
    with pytest.raises(LanewiseError):
        read_system("[" * depth, "x.yaml")


def test_a_text_of_aliases_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(LanewiseError, match="unfolds"):
        read_system("\n".join(lines), "x.yaml")


def test_the_model_is_importable_without_yaml_and_pydantic() -> None:
    code = "import lanewise.topology.read, sys; print({'yaml', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_generation_and_lanes_may_stand_in_one_word() -> None:
    assert read_pcie("Gen5x16") == read_pcie("gen5 x16")

@pytest.mark.parametrize(
    "printed",
    [
        "PCIe 5.0 x16", "5.0 x16", "PCIe5.0x16", "PCIe Gen5 x16", "PCI-E 5.0 x16", "PCI Express Gen 5.0 x16",
        "pcie5 x16", "PCIe 5 x16", "PCIe Gen 5 x16", "PCIe Gen5 (x16)", "x16 PCIe 5.0", "Gen-5, x16", "gen5-x16",
        "16 lanes of PCIe 5.0", "gen5 x 16", "PCIe 5.0 \u00d716", "Speed 32GT/s, Width x16", "32.0 GT/s PCIe x16",
    ],
)  # fmt: skip
def test_speeds_are_read_as_manuals_and_lspci_print_them(printed: str) -> None:
    assert read_pcie(printed) == read_pcie("gen5 x16")


@pytest.mark.parametrize("printed", ["PCIe 4.1 x16", "33 GT/s x16", "x16 (x8)", "gen4 gen5", "4 x4", "16"])
def test_what_may_mean_another_speed_is_refused(printed: str) -> None:
    with pytest.raises(LanewiseError):
        read_pcie(printed)


@pytest.mark.parametrize(
    ("printed", "rate", "ethernet"),
    [
        ("400 GbE", "400gbe", True), ("100G Ethernet", "100gbe", True), ("RoCE 100 Gb/s", "100gbe", True),
        ("25 GB/s Ethernet", "200gbe", True), ("InfiniBand HDR", "hdr", False), ("HDR200", "hdr", False),
        ("200G", "hdr", False), ("200 Gbps", "hdr", False), ("200 Gbit/s", "hdr", False), ("25 GB/s", "hdr", False),
    ],
)  # fmt: skip
def test_networks_are_read_as_people_write_them(printed: str, rate: str, ethernet: bool) -> None:
    assert read_network(printed) == read_network(rate)
    assert is_ethernet(printed) == ethernet


@pytest.mark.parametrize("printed", ["3 UPI", "3x UPI links", "x3", "3 links", "UPI x3"])
def test_numbers_of_links_are_read_as_manuals_print_them(printed: str) -> None:
    text = "lanewise: 1\nsystem: s\ndevices: {a: {cpu: null}, b: {cpu: null}}\n"
    (link,) = read_system(f"{text}links: [{{from: a, to: b, socket: {printed}}}]\n", "s.yaml").links
    assert (link.count, link.count_known) == (3, True)
