"""Every ready system reads at every parameter value, fits the schema, and is what its source says."""

from __future__ import annotations

from itertools import product

import pytest
from jsonschema import Draft202012Validator
from topology.system_facts import facts

from lanewise import package_data
from lanewise.api.loading import load_system, ready_systems
from lanewise.errors import UnknownName
from lanewise.topology.form import json_schema
from lanewise.topology.model import Kind, System
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system
from lanewise.yaml_loader import load

MISSION = {
    "tx2550-m7-l40s",
    "tx2550-m7-h100-nvl",
    "composable-server-gen4",
    "composable-server-gen5",
    "composable-server-two-hosts",
    "cirrascale-typical",
    "cirrascale-2cpu-2ib",
    "cirrascale-1rc",
    "cirrascale-1cpu",
    "falcon-4010-xeon",
    "falcon-4010-epyc",
    "dgx-a100",
    "dgx-a100-network",
    "dgx-h100",
    "dgx-h200",
    "dgx-b200",
    "pax-storage-fabric",
    "rack-16gpu",
    "h200-pair",
    "puget-wrx90",
}


def variants(name: str) -> list[System]:
    """A ready system at each value of each parameter, and at all combinations of their least, default and largest."""
    values = {p.name: p.values or range(p.minimum, p.maximum + 1) for p in load_system(name).parameters.values()}
    defaults = {p.name: p.default for p in load_system(name).parameters.values()}
    few = [sorted({found[0], defaults[parameter], found[-1]}) for parameter, found in values.items()]
    chosen = {tuple({**defaults, parameter: value}.values()) for parameter, found in values.items() for value in found}
    return [load_system(name, dict(zip(values, one, strict=True))) for one in sorted(chosen.union(product(*few)))]


def test_all_systems_of_the_mission_are_there() -> None:
    assert set(ready_systems()) >= MISSION


def test_a_system_that_is_not_there_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        package_data.text("systems", "dgx-a10", "ready system")
    assert caught.value.hint.startswith("did you mean dgx-a100")


@pytest.mark.parametrize("name", ready_systems())
def test_it_bears_the_name_of_its_file_and_says_where_it_is_from(name: str) -> None:
    system = load_system(name)
    assert (system.name, bool(system.title), bool(system.source)) == (name, True, True)
    assert system.assumptions


@pytest.mark.parametrize("name", ready_systems())
def test_it_reads_at_all_parameter_values_and_writes_what_it_read(name: str) -> None:
    for system in variants(name):
        assert facts(read_system(write_system(system), "again.yaml")) == facts(system)
        assert all(device.host for device in system.devices.values() if device.kind is Kind.CPU)


@pytest.mark.parametrize("name", ready_systems())
def test_it_and_its_rewriting_fit_the_schema(name: str) -> None:
    validator = Draft202012Validator(json_schema())
    for text in (package_data.text("systems", name, "ready system")[0], write_system(load_system(name))):
        validator.validate(load(text, "x").data)


def test_gpus_of_the_no_switch_box_are_spread_over_both_sockets() -> None:
    for gpus in range(1, 9):
        system = load_system("tx2550-m7-h100-nvl", {"gpus": gpus})
        below = [link.a for link in system.links if link.b.startswith("gpu")]
        assert (below.count("cpu0"), below.count("cpu1")) == ((gpus + 1) // 2, gpus // 2)
        assert all(link.gen == 5 for link in system.links if link.b.startswith("gpu"))


def test_an_l40s_trains_to_gen4_in_a_gen5_slot() -> None:
    assert {link.gen for link in load_system("tx2550-m7-l40s").links if link.gen} == {4}


@pytest.mark.parametrize("path", [1, 2, 3, 4])
def test_the_path_of_the_composable_server_has_that_many_fabric_switches(path: int) -> None:
    system = load_system("composable-server-gen4", {"path": path, "gpus": 8})
    hops = [device for device in system.devices.values() if device.part == "cdi-gen4-fabric-switch"]
    assert len(hops) == path
    assert {link.a for link in system.links if link.b.startswith("gpu")} == {f"hop{path}"}
    assert all((link.gen, link.lanes) == (4, 16) for link in system.links if link.gen)


def test_the_gen3_host_slows_only_its_own_link_of_the_chassis() -> None:
    gens = {name: [link.gen for link in load_system(name).links if link.gen] for name in ready_systems()}
    assert gens["falcon-4010-xeon"] == [3, 4, 4, 4, 4, 4]
    assert gens["falcon-4010-epyc"] == [4, 4, 4, 4, 4, 4]


def test_the_dgx_has_two_gpus_and_two_cards_at_each_switch() -> None:
    system = load_system("dgx-a100")
    for switch in ("sw0", "sw1", "sw2", "sw3"):
        kinds = sorted(system.device(link.b).kind for link in system.links_at(switch) if link.a == switch)
        assert kinds == ["gpu", "gpu", "nic", "nic"]
    assert {link.count for link in system.links_at("nvs")} == {12}


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-h200", "dgx-b200"])
def test_each_gpu_of_a_later_dgx_has_a_card_at_its_own_switch(name: str) -> None:
    system = load_system(name)
    for i in range(8):
        below = {link.b for link in system.links_at(f"sw{i}") if link.a == f"sw{i}"}
        assert below == {f"gpu{i}", f"nic{i}"}
        assert system.domain_of(f"gpu{i}") == system.domain_of(f"nic{i}")
    assert {link.count for link in system.links_at("nvs")} == {18}


def test_the_frontend_and_the_accelerator_meet_only_at_the_network_switch() -> None:
    for nics in range(1, 9):
        system = load_system("dgx-a100-network", {"nics": nics})
        assert len(system.of_kind(Kind.NIC, host="frontend")) == nics
        assert len(system.of_kind(Kind.NIC, host="accelerator")) == nics
        assert len(system.of_kind(Kind.GPU, host="accelerator")) == 8
        assert len(system.links_at("ibswitch")) == 2 * nics


def test_cross_domain_peers_are_a_parameter_of_the_storage_fabric() -> None:
    for setting in (0, 1):
        system = load_system("pax-storage-fabric", {"cross_domain": setting})
        assert system.policies.cross_domain_p2p is bool(setting)
    assert [len(volume.drives) for volume in system.volumes.values()] == [4, 4]
    first = system.domain_of("gpu0")
    second = system.domain_of("ssd0")
    assert first is not None
    assert second is not None
    assert (first.root, second.root) == ("cpu0", "cpu1")
    assert (system.device("gpu0").numa, system.device("ssd0").numa) == (0, 1)


def test_the_workstation_has_its_gpus_on_two_root_ports_of_one_bridge() -> None:
    links = [link for link in load_system("puget-wrx90").links if link.b.startswith("gpu")]
    assert [(link.port, link.bridge) for link in links] == [("rp0", "c0"), ("rp1", "c0")]


@pytest.mark.parametrize(
    "text",
    [
        "lanewise: 1\nsystem: x",
        "lanewise: 2\nsystem: x\ndevices: {}",
        "lanewise: 1\nsystem: x\ndevices: {gpu0: {gpu: l40s, cpu: null}}",
        "lanewise: 1\nsystem: x\ndevices: {gpu0: {}}",
        "lanewise: 1\nsystem: x\ndevices: {}\nlinks: [{from: a, pcie: auto}]",
        "lanewise: 1\nsystem: x\ndevices: {}\nlinks: [{from: a, to: b}]",
        "lanewise: 1\nsystem: x\ndevices: {}\nlinks: [{from: a, to: b, pcie: auto, colour: red}]",
        "lanewise: 1\nsystem: x\ndevices: {}\nvolumes: {v: {raid: 6, drives: a}}",
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(text: str) -> None:
    assert not Draft202012Validator(json_schema()).is_valid(load(text, "x").data)


def test_the_schema_is_a_schema_and_explains_itself() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["links"]["description"]
