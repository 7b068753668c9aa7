"""A switch with several uplinks: which one a device takes, alone, in partitions, and with ACS."""

import pytest
from topology.system_facts import facts

from lanewise.routes.find import route
from lanewise.routes.matrix import class_matrix
from lanewise.topology.model import System
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system

ONE_CHIP = """
lanewise: 1
system: one-chip
devices:
  "cpu[0-1]": {cpu: turin}
  sw0: {switch: pex89144}
  "gpu[0-3]": {gpu: null}
links:
  - {from: cpu0, to: cpu1, socket: auto}
  - {from: [cpu0, cpu0], to: sw0, pcie: gen5 x16}
  - {from: sw0, to: "gpu[0-3]", pcie: gen5 x16}
"""
TWO_SOCKETS = ONE_CHIP.replace("[cpu0, cpu0]", '"cpu[0-1]"')
PARTITIONS = ONE_CHIP.replace("pex89144", 'pex89144, partitions: [[cpu0, "gpu[0-1]"], [cpu0, "gpu[2-3]"]]')


def system_of(text: str) -> System:
    """The system, which reads back as itself."""
    system = read_system(text, "s.yaml")
    assert facts(read_system(write_system(system), "w.yaml")) == facts(system)
    return system


def root_ports(system: System) -> list[str]:
    """CPU and root port that each GPU's uplink ends at."""
    hops = [route(system, f"gpu{n}", "host0").hops[-1] for n in range(4)]
    return [f"{hop.end}:{hop.link.port}" for hop in hops]


@pytest.mark.parametrize(
    ("text", "ports", "numa"),
    [
        (ONE_CHIP, ["cpu0:rp0", "cpu0:rp0", "cpu0:rp1", "cpu0:rp1"], [0, 0, 0, 0]),
        (PARTITIONS, ["cpu0:rp0", "cpu0:rp0", "cpu0:rp1", "cpu0:rp1"], [0, 0, 0, 0]),
        (TWO_SOCKETS, ["cpu0:rp0", "cpu0:rp0", "cpu1:rp0", "cpu1:rp0"], [0, 0, 1, 1]),
        (TWO_SOCKETS.replace("gpu: null", "gpu: null, numa: 1"), ["cpu1:rp0"] * 4, [1, 1, 1, 1]),
        (TWO_SOCKETS + "domains: {d0: {root: cpu0, devices: 'gpu[0-3]'}}\n", ["cpu0:rp0"] * 4, [0, 0, 0, 0]),
    ],
)
def test_devices_divide_the_uplinks_or_take_that_of_their_node_or_partition(text, ports, numa) -> None:
    system = system_of(text)
    assert root_ports(system) == ports
    assert [system.numa_node(f"gpu{n}") for n in range(4)] == numa


def test_devices_of_each_kind_divide_the_uplinks() -> None:
    cards = '"nic[0-1]": {nic: null}\n  "gpu[0-3]"'
    system = system_of(
        ONE_CHIP.replace('"gpu[0-3]":', cards + ":", 1).replace('to: "gpu[0-3]"', 'to: ["gpu[0-3]", "nic[0-1]"]')
    )
    assert root_ports(system) == ["cpu0:rp0", "cpu0:rp0", "cpu0:rp1", "cpu0:rp1"]
    assert [route(system, f"nic{n}", "host0").hops[-1].link.port for n in range(2)] == ["rp0", "rp1"]


def test_peers_of_one_chip_turn_in_it_and_those_of_two_partitions_at_the_root_ports() -> None:
    assert route(system_of(ONE_CHIP), "gpu0", "gpu2").show() == "gpu0 - sw0 - gpu2"
    apart = system_of(PARTITIONS)
    assert class_matrix(apart).cells[0] == ("X", "PIX", "NODE", "NODE")
    assert [hop.link.port for hop in route(apart, "gpu0", "gpu2").hops[1:3]] == ["rp0", "rp1"]


def test_acs_sends_peers_up_their_own_uplinks() -> None:
    redirected = system_of(TWO_SOCKETS + "policies: {acs_redirect: sw0, peers: system}\n")
    assert route(redirected, "gpu0", "gpu1").show() == "gpu0 - sw0 - cpu0 - sw0 - gpu1"
    assert route(redirected, "gpu1", "gpu2").show() == "gpu1 - sw0 - cpu0 - cpu1 - sw0 - gpu2"


def test_memory_of_the_far_socket_is_reached_over_the_own_uplink() -> None:
    assert route(system_of(TWO_SOCKETS), "host0:1", "gpu0").show() == "cpu1 - cpu0 - sw0 - gpu0"


def test_sockets_that_nothing_joins_are_named_where_acs_sends_peers_there() -> None:
    text = TWO_SOCKETS.replace("  - {from: cpu0, to: cpu1, socket: auto}\n", "") + "policies: {acs_redirect: true}\n"
    notes = class_matrix(system_of(text)).notes
    assert "gpu0 - gpu2 is shown as PIX, but no route joins them: no inter-socket link joins cpu0 and cpu1" in notes
