"""Every class, and the matrices of the published machines written out as nvidia-smi topo -m prints them."""

import pytest
from routes.class_matrices import cell, show
from routes.route_systems import build

from lanewise.api.loading import load_system
from lanewise.errors import UnknownName
from lanewise.routes.endpoints import memory_node
from lanewise.routes.find import route
from lanewise.routes.matrix import class_matrix
from lanewise.topology.read import read_system

TYPICAL = """
      gpu0  gpu1  gpu2  gpu3  gpu4  gpu5  gpu6  gpu7  ib0  CPU   NUMA
gpu0  X     PIX   PHB   PHB   SYS   SYS   SYS   SYS   PHB  cpu0  0
gpu1  PIX   X     PHB   PHB   SYS   SYS   SYS   SYS   PHB  cpu0  0
gpu2  PHB   PHB   X     PIX   SYS   SYS   SYS   SYS   PHB  cpu0  0
gpu3  PHB   PHB   PIX   X     SYS   SYS   SYS   SYS   PHB  cpu0  0
gpu4  SYS   SYS   SYS   SYS   X     PIX   PHB   PHB   SYS  cpu1  1
gpu5  SYS   SYS   SYS   SYS   PIX   X     PHB   PHB   SYS  cpu1  1
gpu6  SYS   SYS   SYS   SYS   PHB   PHB   X     PIX   SYS  cpu1  1
gpu7  SYS   SYS   SYS   SYS   PHB   PHB   PIX   X     SYS  cpu1  1
ib0   PHB   PHB   PHB   PHB   SYS   SYS   SYS   SYS   X    cpu0  0
"""
TWO_CARDS = """
      gpu0  gpu1  gpu2  gpu3  gpu4  gpu5  gpu6  gpu7  ib0  ib1  CPU   NUMA
gpu0  X     PIX   PIX   PIX   SYS   SYS   SYS   SYS   PHB  SYS  cpu0  0
gpu1  PIX   X     PIX   PIX   SYS   SYS   SYS   SYS   PHB  SYS  cpu0  0
gpu2  PIX   PIX   X     PIX   SYS   SYS   SYS   SYS   PHB  SYS  cpu0  0
gpu3  PIX   PIX   PIX   X     SYS   SYS   SYS   SYS   PHB  SYS  cpu0  0
gpu4  SYS   SYS   SYS   SYS   X     PIX   PIX   PIX   SYS  PHB  cpu1  1
gpu5  SYS   SYS   SYS   SYS   PIX   X     PIX   PIX   SYS  PHB  cpu1  1
gpu6  SYS   SYS   SYS   SYS   PIX   PIX   X     PIX   SYS  PHB  cpu1  1
gpu7  SYS   SYS   SYS   SYS   PIX   PIX   PIX   X     SYS  PHB  cpu1  1
ib0   PHB   PHB   PHB   PHB   SYS   SYS   SYS   SYS   X    SYS  cpu0  0
ib1   SYS   SYS   SYS   SYS   PHB   PHB   PHB   PHB   SYS  X    cpu1  1
"""
ONE_ROOT_COMPLEX = """
      gpu0  gpu1  gpu2  gpu3  gpu4  gpu5  gpu6  gpu7  ib0  CPU   NUMA
gpu0  X     PIX   PIX   PIX   PHB   PHB   PHB   PHB   SYS  cpu0  0
gpu1  PIX   X     PIX   PIX   PHB   PHB   PHB   PHB   SYS  cpu0  0
gpu2  PIX   PIX   X     PIX   PHB   PHB   PHB   PHB   SYS  cpu0  0
gpu3  PIX   PIX   PIX   X     PHB   PHB   PHB   PHB   SYS  cpu0  0
gpu4  PHB   PHB   PHB   PHB   X     PIX   PIX   PIX   SYS  cpu0  0
gpu5  PHB   PHB   PHB   PHB   PIX   X     PIX   PIX   SYS  cpu0  0
gpu6  PHB   PHB   PHB   PHB   PIX   PIX   X     PIX   SYS  cpu0  0
gpu7  PHB   PHB   PHB   PHB   PIX   PIX   PIX   X     SYS  cpu0  0
ib0   SYS   SYS   SYS   SYS   SYS   SYS   SYS   SYS   X    cpu1  1
"""
ONE_CPU = """
      gpu0  gpu1  gpu2  gpu3  gpu4  gpu5  gpu6  gpu7  ib0  CPU   NUMA
gpu0  X     PIX   PIX   PIX   PHB   PHB   PHB   PHB   PHB  cpu0  0
gpu1  PIX   X     PIX   PIX   PHB   PHB   PHB   PHB   PHB  cpu0  0
gpu2  PIX   PIX   X     PIX   PHB   PHB   PHB   PHB   PHB  cpu0  0
gpu3  PIX   PIX   PIX   X     PHB   PHB   PHB   PHB   PHB  cpu0  0
gpu4  PHB   PHB   PHB   PHB   X     PIX   PIX   PIX   PHB  cpu0  0
gpu5  PHB   PHB   PHB   PHB   PIX   X     PIX   PIX   PHB  cpu0  0
gpu6  PHB   PHB   PHB   PHB   PIX   PIX   X     PIX   PHB  cpu0  0
gpu7  PHB   PHB   PHB   PHB   PIX   PIX   PIX   X     PHB  cpu0  0
ib0   PHB   PHB   PHB   PHB   PHB   PHB   PHB   PHB   X    cpu0  0
"""
CHASSIS = """
      gpu0  gpu1  gpu2  gpu3  CPU   NUMA
gpu0  X     PIX   PIX   PIX   cpu0  0
gpu1  PIX   X     PIX   PIX   cpu0  0
gpu2  PIX   PIX   X     PIX   cpu0  0
gpu3  PIX   PIX   PIX   X     cpu0  0
"""
PUGET = """
      gpu0  gpu1  nic0  CPU   NUMA
gpu0  X     PHB   NODE  cpu0  0
gpu1  PHB   X     NODE  cpu0  0
nic0  NODE  NODE  X     cpu0  0
"""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cirrascale-typical", TYPICAL),
        ("cirrascale-2cpu-2ib", TWO_CARDS),
        ("cirrascale-1rc", ONE_ROOT_COMPLEX),
        ("cirrascale-1cpu", ONE_CPU),
        ("falcon-4010-xeon", CHASSIS),
        ("falcon-4010-epyc", CHASSIS),
        ("puget-wrx90", PUGET),
    ],
)
def test_published_machines_show_these_classes(name, shown):
    assert show(class_matrix(load_system(name))) == shown.strip("\n")


def test_a_fabric_is_shown_as_the_two_sockets_see_it_and_noted_where_data_takes_it():
    names = ["gpu0", "gpu1", "roc0", "ssd1"]
    off = class_matrix(load_system("pax-storage-fabric", {"cross_domain": 0}), names)
    on = class_matrix(load_system("pax-storage-fabric", {"cross_domain": 1}), names)
    assert off.cells == on.cells
    assert off.cells == (
        ("X", "PIX", "SYS", "SYS"),
        ("PIX", "X", "SYS", "SYS"),
        ("SYS", "SYS", "X", "PIX"),
        ("SYS", "SYS", "PIX", "X"),
    )
    assert off.notes == ()
    assert "gpu0 - ssd1 is shown as SYS, but its data goes gpu0 - pax0 - pax1 - ssd1 (PXB)" in on.notes


def test_acs_is_hidden_in_the_matrix_and_told_in_a_note():
    matrix = class_matrix(build("cpu0 -- sw0 -- gpu0, sw0 -- gpu1", acs_redirect=frozenset({"sw0"})))
    assert cell(matrix, "gpu0", "gpu1") == "PIX"
    assert matrix.notes == (
        "gpu0 - gpu1 is shown as PIX, but its data goes gpu0 - sw0 - cpu0 - sw0 - gpu1 (PHB): "
        "ACS at sw0 sends peer traffic up to the root port and back",
    )


def test_all_gpus_of_an_nvswitch_machine_are_joined_by_all_its_links():
    matrix = class_matrix(load_system("dgx-a100"))
    gpus = [f"gpu{i}" for i in range(8)]
    assert {cell(matrix, a, b) for a in gpus for b in gpus if a != b} == {"NV12"}
    assert [cell(matrix, "gpu0", f"nic{i}") for i in range(8)] == ["PIX"] * 2 + ["NODE"] * 2 + ["SYS"] * 4


@pytest.mark.parametrize(
    ("text", "cls"),
    [
        ("cpu0 -- sw0 -- gpu0, sw0 -- gpu1", "PIX"),
        ("cpu0 -- sw0 -- sw1 -- gpu0, sw0 -- gpu1", "PXB"),
        ("cpu0 -- sw0 -- sw1 -- gpu0, sw0 -- sw2 -- gpu1", "PXB"),
        ("cpu0 -- gpu0, cpu0 -- gpu1", "PHB"),
        ("cpu0 == cpu1, cpu0 -- gpu0, cpu1 -- gpu1", "SYS"),
        ("cpu0 -- gpu0 ##x4 gpu1, cpu0 -- gpu1", "NV4"),
        ("cpu0 -- gpu0 ##x2 gpu1, gpu0 ##x2 gpu1, cpu0 -- gpu1", "NV4"),
        ("cpu0 -- gpu0 ##x18 nvs0 ##x18 gpu1, cpu0 -- gpu1", "NV18"),
        ("cpu0 -- gpu0, cpu0 -- gpu1, gpu0 ##x2 nvs0 ##x2 gpu1, gpu0 ##x2 nvs1 ##x2 gpu1", "NV4"),
        ("cpu0 -- gpu0, cpu0 -- gpu1, gpu0 ##x6 nvs0 ##x4 gpu1", "NV4"),
    ],
)
def test_the_class_is_that_of_the_widest_thing_crossed(text, cls):
    assert route(build(text), "gpu0", "gpu1").cls == cls


def test_two_host_bridges_of_one_socket_are_node():
    system = build("cpu0 -- gpu0, cpu0 -- gpu1, cpu0 -- sw0 -- gpu2, sw0 -- gpu3", per_port=True)
    assert class_matrix(system).cells[0] == ("X", "NODE", "NODE", "NODE")
    assert route(system, "gpu2", "gpu3").cls == "PIX"


def test_memory_is_phb_from_its_own_socket_and_sys_from_the_other():
    system = build("cpu0 == cpu1, cpu0 -- gpu0")
    assert route(system, "cpu0", "gpu0").cls == "PHB"
    assert route(system, "gpu0", "cpu1").cls == "SYS"
    assert route(system, "cpu0", "cpu0").cls == "LOC"
    assert route(system, "gpu0", "gpu0").cls == "LOC"


def test_the_matrix_of_an_unbound_device_has_no_classes():
    matrix = class_matrix(build("cpu0 -- sw0 -- gpu0, sw0 -- gpu1", unbound=["gpu1"]))
    assert matrix.cells == (("X", "-"), ("-", "X"))
    assert matrix.sockets == ("cpu0", None)
    assert matrix.numa == (0, None)


def test_an_unknown_name_in_the_matrix():
    with pytest.raises(UnknownName, match="gpu9"):
        class_matrix(build("cpu0 -- gpu0"), ["gpu9"])


def test_numa_nodes_of_one_socket_are_sys_to_each_other():
    text = """
lanewise: 1
system: nps
devices:
  "cpu[0-1]": {cpu: rome, numa_nodes: 2}
  "gpu[0-2]": {gpu: null, numa: 1}
  gpu3: {gpu: null, numa: 0}
  gpu4: {gpu: null}
links:
  - {from: cpu0, to: cpu1, socket: auto}
  - {from: cpu0, to: "gpu[0-4]", pcie: gen4 x16}
"""
    system = read_system(text, "nps.yaml")
    matrix = class_matrix(system)
    assert matrix.cells[0] == ("X", "NODE", "NODE", "SYS", "SYS")
    assert matrix.numa == (1, 1, 1, 0, None)
    memories = [("host0", None), ("host0:0", 0), ("host0:2", 2)]
    assert [(memory, route(system, memory, "gpu0").memory_node) for memory, _ in memories] == memories
    assert route(system, "host0:2", "gpu0").src == "cpu1"
    assert memory_node(system, "cpu0", "gpu0") == 1
    assert memory_node(system, "cpu0", "gpu0", stated=0) == 0
    assert memory_node(system, "cpu0", "gpu4") is None
