"""Attach and detach: what changes, what never does, and what is refused."""
# ruff: noqa: E501 - what users see stands here as they see it

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from topology.made_systems import SYSTEMS, made
from topology.system_facts import facts

from lanewise.api.loading import load_system
from lanewise.errors import LanewiseError
from lanewise.routes.paths import NVLINKS, PCIE_AND_FABRIC, TREE, hops_to_cpu, reach
from lanewise.topology.compose import attach, detach
from lanewise.topology.model import Kind, System
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system

TWO = load_system("composable-server-two-hosts")


def refused(action: Callable[[], System]) -> str:
    """What a user sees when an action is refused."""
    with pytest.raises(LanewiseError) as caught:
        action()
    return caught.value.show()


def test_a_free_gpu_goes_to_either_host() -> None:
    for host, numa in (("host0", 0), ("host1", 0)):
        gpu = attach(TWO, "gpu7", host).device("gpu7")
        assert (gpu.host, gpu.numa) == (host, numa)


def test_a_gpu_moves_from_one_host_to_the_other() -> None:
    moved = attach(detach(TWO, "gpu0"), "gpu0", "host1")
    assert moved.of_kind(Kind.GPU, host="host1") == ["gpu0"]
    assert moved.of_kind(Kind.GPU, host="host0") == ["gpu1", "gpu2", "gpu3"]


def test_a_device_joins_the_nearest_domain_of_the_host_and_leaves_it_again() -> None:
    fabric = load_system("pax-storage-fabric")
    free = detach(fabric, "gpu1")
    assert free.domain_of("gpu1") is None
    domain = attach(free, "gpu1", "host0").domain_of("gpu1")
    assert domain is not None
    assert domain.name == "d0"


def test_a_cable_moves_below_another_switch_and_trains_again() -> None:
    chassis = detach(load_system("falcon-4010-xeon"), "gpu3")
    moved = attach(chassis, "gpu3", "host0", at="cpu1")
    link = next(link for link in moved.links if link.b == "gpu3")
    assert (link.a, link.gen, link.lanes, link.port) == ("cpu1", 3, 16, "rp0")
    assert moved.device("gpu3").numa == 1
    assert len(moved.links) == len(chassis.links)


def test_the_system_that_is_given_stays_as_it_was() -> None:
    before = facts(TWO)
    attach(TWO, "gpu7", "host1", at="fabric")
    detach(TWO, "gpu0")
    assert facts(TWO) == before


def test_what_was_composed_can_be_written_and_read() -> None:
    composed = detach(attach(TWO, "gpu7", "host1", at="fabric"), "gpu0")
    assert facts(read_system(write_system(composed), "w.yaml")) == facts(composed)


def test_a_gpu_that_is_bound_already() -> None:
    assert refused(lambda: attach(TWO, "gpu0", "host0")) == snapshot("""\
error: composable-server-two-hosts.yaml:17: 'gpu0' is already bound to host0
hint:  nothing is left to do for that host\
""")


def test_a_gpu_that_another_host_holds() -> None:
    assert refused(lambda: attach(TWO, "gpu0", "host1")) == snapshot("""\
error: composable-server-two-hosts.yaml:17: 'gpu0' is still bound to host0
hint:  detach 'gpu0' first\
""")


def test_a_gpu_that_is_free_already() -> None:
    assert refused(lambda: detach(TWO, "gpu7")) == snapshot("""\
error: composable-server-two-hosts.yaml:18: 'gpu7' is bound to no host
hint:  attach it to one of host0, host1\
""")


def test_an_unknown_device() -> None:
    assert refused(lambda: attach(TWO, "gpu77", "host1")) == snapshot("""\
error: unknown device of composable-server-two-hosts 'gpu77'
hint:  did you mean gpu7 or gpu6 or gpu5?\
""")


def test_an_unknown_host() -> None:
    assert refused(lambda: attach(TWO, "gpu7", "host2")) == snapshot("""\
error: unknown host of composable-server-two-hosts 'host2'
hint:  did you mean host1 or host0?\
""")


def test_a_cpu_is_not_attached() -> None:
    assert refused(lambda: detach(TWO, "a_cpu0")) == snapshot("""\
error: composable-server-two-hosts.yaml:12: 'a_cpu0' is a cpu and cannot be detached
hint:  name a GPU, a network card, a drive or a controller\
""")


def test_a_place_that_does_not_exist() -> None:
    assert refused(lambda: attach(TWO, "gpu7", "host1", at="fabrik")) == snapshot("""\
error: unknown device of composable-server-two-hosts 'fabrik'
hint:  did you mean fabric?\
""")


def test_a_place_where_nothing_can_be_cabled() -> None:
    assert refused(lambda: attach(TWO, "gpu7", "host1", at="gpu0")) == snapshot("""\
error: composable-server-two-hosts.yaml:17: 'gpu0' is a gpu; nothing can be cabled below it
hint:  name a CPU or a switch; switches: a_hba, b_hba, fabric\
""")


def test_a_place_the_host_does_not_reach() -> None:
    assert refused(lambda: attach(TWO, "gpu7", "host1", at="a_cpu0")) == snapshot("""\
error: composable-server-two-hosts.yaml:18: no PCIe or fabric path leads from host1 to 'gpu7': the cpu a_cpu0 is in the way (b_cpu0 - b_hba - fabric - a_hba - a_cpu0 - gpu7)
hint:  move its cable too, with --at fabric\
""")


def test_a_place_without_lanes_left() -> None:
    server = detach(load_system("cirrascale-typical"), "gpu7")
    assert refused(lambda: attach(server, "gpu7", "host0", at="sw0")) == snapshot("""\
error: cirrascale-typical.yaml:18: 'sw0' (pex8747) has 48 PCIe lanes; its links need 64
hint:  use fewer or narrower links at 'sw0'\
""")


NETWORK = """
lanewise: 1
system: nodes
hosts: [a, b, c]
devices:
  cpu0: {cpu: null, host: a}
  cpu1: {cpu: null, host: b}
  sw0: {switch: null, partitions: [[cpu0, gpu0], [gpu1, gpu2]]}
  "gpu[0-2]": {gpu: null, host: null}
  "nic[0-1]": {nic: null}
  "ssd[0-1]": {ssd: null, host: null}
  sw1: {switch: null}
links:
  - {from: cpu0, to: sw0, pcie: gen4 x16}
  - {from: sw0, to: "gpu[0-2]", pcie: gen4 x16}
  - {from: cpu0, to: nic0, pcie: gen4 x16}
  - {from: cpu1, to: nic1, pcie: gen4 x16}
  - {from: nic0, to: nic1, network: hdr}
  - {from: sw1, to: "ssd[0-1]", pcie: gen4 x4}
"""


def test_a_network_in_the_way() -> None:
    nodes = read_system(NETWORK, "nodes.yaml")
    assert refused(lambda: attach(nodes, "gpu0", "b")) == snapshot("""\
error: nodes.yaml:9: no PCIe or fabric path leads from b to 'gpu0': the nic nic1 is in the way (cpu1 - nic1 - nic0 - cpu0 - sw0 - gpu0)
hint:  move its cable too, with --at cpu1\
""")


def test_a_partition_in_the_way() -> None:
    nodes = read_system(NETWORK, "nodes.yaml")
    assert refused(lambda: attach(nodes, "gpu1", "a")) == snapshot("""\
error: nodes.yaml:9: no PCIe or fabric path leads from a to 'gpu1': a partition of sw0 is in the way (cpu0 - sw0 - gpu1)
hint:  move its cable too, with --at cpu0\
""")


def test_no_cable_at_all() -> None:
    nodes = read_system(NETWORK, "nodes.yaml")
    assert refused(lambda: attach(nodes, "ssd0", "a")) == snapshot("""\
error: nodes.yaml:11: no cable joins 'ssd0' and a
hint:  move its cable too, with --at cpu0\
""")


def test_a_host_without_a_cpu() -> None:
    nodes = read_system(NETWORK, "nodes.yaml")
    assert refused(lambda: attach(nodes, "ssd0", "c")) == snapshot("""\
error: nodes.yaml:11: c has no CPU, so it cannot reach 'ssd0'
hint:  add a CPU to c\
""")


def test_a_partitioned_switch_takes_no_new_cable() -> None:
    nodes = read_system(NETWORK, "nodes.yaml")
    assert refused(lambda: attach(nodes, "ssd0", "a", at="sw0")) == snapshot("""\
error: nodes.yaml:8: 'sw0' is partitioned, and a cable does not say which partition 'ssd0' joins
hint:  change its partitions in the description\
""")


def test_a_host_without_a_domain_among_domains() -> None:
    text = write_system(TWO) + "domains: {d0: {root: a_cpu0, devices: 'gpu[0-3]'}}\n"
    system = read_system(text, "d.yaml")
    assert refused(lambda: attach(system, "gpu7", "host1")) == snapshot("""\
error: d.yaml:30: host1 has no domain that could hold 'gpu7', and composable-server-two-hosts states its domains
hint:  add one to the description: host1: {root: b_cpu0, devices: []}\
""")


@st.composite
def moves(draw: st.DrawFn) -> tuple[System, str, str, str | None]:
    """A system, a free device of it, a host, and perhaps a place to cable it to."""
    system = draw(SYSTEMS)
    free = [d.name for d in system.devices.values() if d.host is None and d.kind is Kind.GPU]
    assume(free)
    places = system.of_kind(Kind.SWITCH, Kind.CPU)
    at = draw(st.none() | st.sampled_from(places))
    return system, draw(st.sampled_from(free)), draw(st.sampled_from(system.hosts)), at


@given(moves())
def test_attaching_touches_one_device_and_conserves_all(move: tuple[System, str, str, str | None]) -> None:
    system, device, host, at = move
    before = facts(system)
    try:
        after = attach(system, device, host, at)
    except LanewiseError:
        assert facts(system) == before
        return
    assert facts(system) == before
    assert list(after.devices) == list(system.devices)
    assert len(after.links) == len(system.links)
    others = [name for name in system.devices if name != device]
    assert [after.devices[name] for name in others] == [system.devices[name] for name in others]
    unmoved = [link for link in system.links if device not in (link.a, link.b)]
    assert [link for link in after.links if device not in (link.a, link.b)] == unmoved
    assert after.device(device).host == host


@given(moves())
def test_detaching_what_was_attached_restores_the_system(move: tuple[System, str, str, str | None]) -> None:
    system, device, host, _ = move
    try:
        after = attach(system, device, host)
    except LanewiseError:
        return
    assert facts(detach(after, device)) == facts(system)


def test_systems_made_at_random_have_what_the_properties_need() -> None:
    assert made(hosts=2, switches=3, seed=1).hosts == ("h0", "h1")


def test_binding_keeps_what_the_cabling_gives_and_moving_a_cable_does_not() -> None:
    system = load_system("composable-server-two-hosts", {"gpus": 2, "bound": 0})
    bound = attach(system, "gpu0", "host1")
    assert bound.cabling_key is system.cabling_key
    assert detach(bound, "gpu0").cabling_key is system.cabling_key
    assert attach(system, "gpu0", "host1", at="b_hba").cabling_key is not system.cabling_key
    assert bound.route_cache_key is not system.route_cache_key


@pytest.mark.parametrize("name", ["composable-server-path4-two-hosts", "rack-16gpu", "pax-storage-fabric"])
def test_the_path_up_from_a_switch_serves_all_its_devices(name: str) -> None:
    system = load_system(name)
    for device in system.devices.values():
        if device.host is None or device.kind is Kind.CPU:
            continue
        reached = [reach(system, device.name, kinds) for kinds in (NVLINKS, TREE, PCIE_AND_FABRIC)]
        domain = system.domain_of(device.name)
        roots = [domain.root] if domain else system.of_kind(Kind.CPU, host=device.host)
        first = next(hops for table in reached for end, hops in table.items() if end in roots)
        assert hops_to_cpu(system, device.name) == first


def test_the_composition_of_the_study_is_what_detach_and_attach_make_of_it() -> None:
    def path4(**settings: int) -> System:
        return load_system("composable-server-path4-two-hosts", settings)

    assert attach(path4(bound=3), "gpu3", "host0").devices["gpu3"].host == path4().devices["gpu3"].host
    moved = attach(detach(path4(), "gpu3"), "gpu3", "host1")
    described = path4(bound=3, second=1)
    assert {n: (d.host, d.numa) for n, d in moved.devices.items()} == {
        n: (d.host, d.numa) for n, d in described.devices.items()
    }
