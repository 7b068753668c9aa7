"""ACS, IOMMU, domains, partitions and peer scopes decide which way peer traffic goes, and whether it may."""

import pytest
from routes.class_matrices import cell
from routes.route_systems import build, way

from lanewise.api.loading import load_system
from lanewise.routes.find import route, routes
from lanewise.routes.matrix import Peers, class_matrix, peers
from lanewise.routes.model import Via
from lanewise.topology.model import Kind, System

SWITCH = "cpu0 -- sw0 -- gpu0, sw0 -- gpu1, sw0 -- ssd0, sw0 -- nic0"
DEEP = "cpu0 -- sw0 -- sw1 -- gpu0, sw1 -- gpu1, sw0 -- sw2 -- gpu2"
SOCKETS = "cpu0 == cpu1, cpu0 -- sw0 -- gpu0, cpu0 -- sw1 -- gpu1, cpu1 -- sw2 -- gpu2, cpu1 -- ssd0"
FABRIC = "cpu0 == cpu1, cpu0 -- sw0 -- gpu0, cpu1 -- sw1 -- ssd0, sw1 -- gpu1, sw0 ~~ sw1"
DOMAINS = [("d0", "cpu0", "gpu0"), ("d1", "cpu1", "ssd0 gpu1")]


def test_peers_meet_at_the_switch():
    assert way(route(build(SWITCH), "gpu0", "gpu1")) == "gpu0 - sw0 - gpu1"
    assert way(route(build(SWITCH), "ssd0", "gpu1")) == "ssd0 - sw0 - gpu1"


def test_acs_sends_peers_up_to_the_root_port_and_down_again():
    found = route(build(SWITCH, acs_redirect=frozenset({"sw0"})), "gpu0", "gpu1")
    assert way(found) == "gpu0 - sw0 - cpu0 - sw0 - gpu1"
    assert (found.via, found.cls) == (Via.PCIE, "PHB")
    assert found.note == "ACS at sw0 sends peer traffic up to the root port and back; nvidia-smi shows PIX"


def test_only_acs_where_the_two_would_turn_matters():
    system = build(DEEP, acs_redirect=frozenset({"sw0"}))
    assert way(route(system, "gpu0", "gpu1")) == "gpu0 - sw1 - gpu1"
    assert way(route(system, "gpu0", "gpu2")) == "gpu0 - sw1 - sw0 - cpu0 - sw0 - sw2 - gpu2"


def test_a_translating_iommu_is_acs_everywhere():
    found = route(build(DEEP, iommu="translate"), "gpu0", "gpu1")
    assert way(found) == "gpu0 - sw1 - sw0 - cpu0 - sw0 - sw1 - gpu1"
    assert "IOMMU" in found.note
    assert way(route(build(DEEP, iommu="passthrough"), "gpu0", "gpu1")) == "gpu0 - sw1 - gpu1"


def test_redirected_peers_need_a_cpu_that_forwards():
    system = build(SWITCH, acs_redirect=frozenset({"sw0"}), peer_scope={"cpu0": "none"})
    assert route(system, "gpu0", "gpu1").via is Via.STAGED
    assert route(system, "ssd0", "gpu1").via is Via.STAGED


def test_partitions_of_a_switch_are_switches_of_their_own():
    system = build(
        "cpu0 == cpu1, cpu0 -- sw0 -- gpu0, sw0 -- gpu1, cpu1 -- sw0 -- gpu2",
        partitions={"sw0": ["cpu0 gpu0 gpu1", "cpu1 gpu2"]}, cpu_part="system",
    )  # fmt: skip
    assert route(system, "gpu0", "gpu1").cls == "PIX"
    assert way(route(system, "gpu0", "gpu2")) == "gpu0 - sw0 - cpu0 - cpu1 - sw0 - gpu2"
    assert way(route(system, "host0", "gpu2")) == "cpu1 - sw0 - gpu2"


def test_a_packet_may_pass_one_chip_twice_in_two_partitions():
    system = build(
        "cpu0 -- sw0 -- sw1 -- gpu0, sw0 -- sw2 -- sw1 -- gpu1",
        partitions={"sw1": ["sw0 gpu0", "sw2 gpu1"]},
    )
    assert way(route(system, "gpu0", "gpu1")) == "gpu0 - sw1 - sw0 - sw2 - sw1 - gpu1"
    assert way(route(system, "gpu1", "gpu0")) == "gpu1 - sw1 - sw2 - sw0 - sw1 - gpu0"


@pytest.mark.parametrize("scope", ["none", "root-complex", "socket", "system"])
def test_no_scope_matters_below_a_switch(scope):
    assert route(build(SWITCH, peer_scope={"cpu0": scope}), "gpu0", "gpu1").via is Via.PCIE


@pytest.mark.parametrize(
    ("scope", "per_port", "same_socket", "other_socket"),
    [
        ("none", False, Via.STAGED, Via.STAGED),
        ("root-complex", False, Via.PCIE, Via.STAGED),
        ("root-complex", True, Via.STAGED, Via.STAGED),
        ("socket", True, Via.PCIE, Via.STAGED),
        ("system", True, Via.PCIE, Via.PCIE),
        (None, False, Via.PCIE, Via.STAGED),
    ],
)
def test_the_scope_says_how_far_gpus_are_peers(scope, per_port, same_socket, other_socket):
    system = build(SOCKETS, per_port=per_port, cpu_part=scope)
    assert route(system, "gpu0", "gpu1").via is same_socket
    assert route(system, "gpu0", "gpu2").via is other_socket


def test_a_policy_overrules_the_part():
    assert route(build(SOCKETS, cpu_part="system"), "gpu0", "gpu2").via is Via.PCIE
    system = build(SOCKETS, cpu_part="system", peer_scope={"cpu1": "socket"})
    assert route(system, "gpu0", "gpu2").via is Via.STAGED


def test_drives_reach_a_gpu_over_sockets_unless_no_peer_traffic_is_forwarded():
    assert way(route(build(SOCKETS), "ssd0", "gpu0")) == "ssd0 - cpu1 - cpu0 - sw0 - gpu0"
    refused = route(build(SOCKETS, peer_scope={"cpu0": "none"}), "ssd0", "gpu0")
    assert refused.via is Via.STAGED
    assert refused.note == "cpu0 forwards no peer traffic (peer scope none)"


def test_two_devices_without_memory_of_their_own_meet_in_host_memory():
    found = route(build(SWITCH), "ssd0", "nic0")
    assert way(found) == "ssd0 - sw0 - [cpu0] - sw0 - nic0"
    assert found.note == "neither ssd0 nor nic0 has memory that the other can reach"


def test_a_staged_route_is_two_copies_over_the_source_s_memory():
    found = route(build(SOCKETS), "gpu0", "gpu2")
    assert [way(stage) for stage in found.stages] == ["gpu0 - sw0 - cpu0", "cpu0 - cpu1 - sw2 - gpu2"]
    assert found.hops == (*found.stages[0].hops, *found.stages[1].hops)
    assert found.cls == "SYS"
    assert "peer scope root-complex" in found.note


def test_p2p_off_stages_what_could_go_straight_and_keeps_its_class():
    found = route(build(SWITCH), "gpu0", "gpu1", p2p=False)
    assert (found.via, found.cls, found.allowed) == (Via.STAGED, "PIX", True)
    assert way(found) == "gpu0 - sw0 - [cpu0] - sw0 - gpu1"
    assert route(build("cpu0 -- gpu0 ## gpu1, cpu0 -- gpu1"), "gpu0", "gpu1", p2p=False).via is Via.STAGED
    assert route(build(SWITCH), "cpu0", "gpu1", p2p=False).via is Via.PCIE


def test_domains_meet_above_their_roots_or_in_the_fabric():
    off = build(FABRIC, domains=DOMAINS)
    on = build(FABRIC, domains=DOMAINS, cross_domain_p2p=True)
    assert way(route(off, "ssd0", "gpu0")) == "ssd0 - sw1 - cpu1 - cpu0 - sw0 - gpu0"
    assert way(route(on, "ssd0", "gpu0")) == "ssd0 - sw1 - sw0 - gpu0"
    assert way(route(on, "ssd0", "gpu1")) == "ssd0 - sw1 - gpu1"
    assert route(off, "ssd0", "gpu0").note == "cross-domain P2P is off, so d1 and d0 meet only above their root ports"


def test_a_device_reaches_the_root_of_its_domain_over_the_fabric():
    system = build(FABRIC, domains=[("d0", "cpu0", "gpu0 gpu1"), ("d1", "cpu1", "ssd0")])
    assert way(route(system, "host0", "gpu1")) == "cpu0 - sw0 - sw1 - gpu1"
    assert way(route(system, "gpu0", "gpu1")) == "gpu0 - sw0 - sw1 - gpu1"
    assert way(route(system, "ssd0", "gpu1")) == "ssd0 - sw1 - cpu1 - cpu0 - sw0 - sw1 - gpu1"


def test_without_domains_a_host_is_one():
    assert way(route(build(FABRIC), "gpu0", "gpu1")) == "gpu0 - sw0 - sw1 - gpu1"


def test_memory_traffic_keeps_to_the_tree_where_there_is_one():
    system = build("cpu0 == cpu1, cpu0 -- sw0 -- sw1 -- gpu0, cpu1 -- sw2 -- gpu1, sw1 ~~ sw2")
    assert way(route(system, "gpu0", "host0")) == "gpu0 - sw1 - sw0 - cpu0"


def test_acs_and_translation_keep_peers_out_of_the_fabric():
    on = {"domains": DOMAINS, "cross_domain_p2p": True}
    for policies in ({"acs_redirect": frozenset({"sw1"})}, {"iommu": "translate"}):
        assert "cpu1 - cpu0" in way(route(build(FABRIC, **on, **policies), "ssd0", "gpu0"))


def test_the_published_fabric():
    off = route(load_system("pax-storage-fabric", {"cross_domain": 0}), "ssd1", "gpu0")
    on = route(load_system("pax-storage-fabric", {"cross_domain": 1}), "ssd1", "gpu0")
    assert (way(off), off.cls) == ("ssd1 - pax1 - cpu1 - cpu0 - pax0 - gpu0", "SYS")
    assert (way(on), on.cls) == ("ssd1 - pax1 - pax0 - gpu0", "PXB")


def test_every_pair_of_gpus_is_a_peer_or_says_why_not():
    system = build("cpu0 == cpu1, cpu0 -- gpu0, cpu0 -- gpu1, cpu1 -- gpu2", unbound=[])
    assert peers(system)[0] == Peers("gpu0", "gpu1", True)
    assert [(p.a, p.b, p.allowed) for p in peers(system)[1:]] == [
        ("gpu0", "gpu2", False),
        ("gpu1", "gpu2", False),
    ]
    assert peers(system)[1].reason == (
        "gpu0 and gpu2 hang from cpu0 and cpu1, and cpu0 forwards between peers of one host bridge only "
        "(peer scope root-complex, as none is known; policies: {peers: system} states another)"
    )
    stated = peers(build("cpu0 == cpu1, cpu0 -- gpu0, cpu1 -- gpu2", unbound=[], peer_scope={"cpu0": "root-complex"}))
    assert stated[0].reason.endswith("forwards between peers of one host bridge only (peer scope root-complex)")


def peer_groups(system: System) -> tuple[tuple[str, ...], ...]:
    """The GPUs in groups of which all members are peers of each other, in the order of the description."""
    apart = {(pair.a, pair.b) for pair in peers(system) if not pair.allowed}
    groups: list[list[str]] = []
    for gpu in system.of_kind(Kind.GPU):
        fitting = (group for group in groups if all((mate, gpu) not in apart for mate in group))
        home = next(fitting, None)
        if home is None:
            groups.append([gpu])
        else:
            home.append(gpu)
    return tuple(map(tuple, groups))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("cirrascale-typical", [4, 4]),
        ("cirrascale-2cpu-2ib", [4, 4]),
        ("cirrascale-1rc", [8]),
        ("cirrascale-1cpu", [8]),
        ("falcon-4010-xeon", [4]),
        ("dgx-a100", [8]),
        ("rack-16gpu", [16]),
    ],
)
def test_peer_groups_of_published_machines(name, sizes):
    assert [len(group) for group in peer_groups(load_system(name))] == sizes


def test_unbound_gpus_and_gpus_of_two_hosts_are_no_peers():
    hosts = {"cpu0": "a", "gpu0": "a", "cpu1": "b", "gpu1": "b"}
    system = build("cpu0 -- sw0 -- gpu0, cpu1 ~~ sw0 -- gpu1, sw0 -- gpu2", hosts=hosts)
    whys = {(p.a, p.b): p.reason for p in peers(system)}
    assert "gpu0 is on a and gpu1 on b" in whys["gpu0", "gpu1"]
    assert "gpu2 is bound to no host" in whys["gpu0", "gpu2"]


def test_refused_routes_are_listed_last_with_the_reason():
    found = routes(build(SOCKETS), "gpu0", "gpu2")
    assert [(each.via, each.allowed, len(each.stages)) for each in found] == [
        (Via.STAGED, True, 2),
        (Via.STAGED, True, 2),
        (Via.STAGED, True, 3),
        (Via.PCIE, False, 0),
    ]
    assert "peer scope root-complex" in found[-1].reason
    assert [way(stage) for stage in found[2].stages] == [
        "gpu0 - sw0 - cpu0",
        "cpu0 - cpu1",
        "cpu1 - sw2 - gpu2",
    ]


def test_all_ways_of_a_fabric_with_cross_domain_off_and_on():
    off, on = (build(FABRIC, domains=DOMAINS, cross_domain_p2p=value) for value in (False, True))
    shown = {way(each): (each.allowed, each.reason) for each in routes(off, "ssd0", "gpu0") if each.via is Via.PCIE}
    assert shown["ssd0 - sw1 - cpu1 - cpu0 - sw0 - gpu0"][0]
    assert not shown["ssd0 - sw1 - sw0 - gpu0"][0]
    assert "cross-domain P2P is off" in shown["ssd0 - sw1 - sw0 - gpu0"][1]
    shown = {way(each): (each.allowed, each.reason) for each in routes(on, "ssd0", "gpu0") if each.via is Via.PCIE}
    assert shown["ssd0 - sw1 - sw0 - gpu0"][0]
    assert shown["ssd0 - sw1 - cpu1 - cpu0 - sw0 - gpu0"][1] == (
        "cross-domain P2P is on, so peer traffic takes the fabric"
    )


def test_redundant_fabric_ways_are_all_listed_shortest_first():
    system = build("cpu0 -- sw0 -- gpu0, sw0 ~~ sw1 -- gpu1, sw0 ~~ sw2 ~~ sw1")
    found = [way(each) for each in routes(system, "gpu0", "gpu1") if each.via is Via.PCIE]
    assert found == ["gpu0 - sw0 - sw1 - gpu1", "gpu0 - sw0 - sw2 - sw1 - gpu1"]


def test_sockets_that_only_a_fabric_joins():
    system = build("cpu0 -- sw0 -- gpu0, cpu1 -- sw1 -- gpu1, sw0 ~~ sw1")
    assert [way(each) for each in routes(system, "gpu0", "gpu1")] == ["gpu0 - sw0 - sw1 - gpu1"]
    assert cell(class_matrix(system), "gpu0", "gpu1") == "PXB"


def test_nvlink_comes_before_pcie_and_staging():
    found = routes(build("cpu0 -- sw0 -- gpu0 ##x4 gpu1, sw0 -- gpu1"), "gpu0", "gpu1")
    assert [each.via for each in found] == [Via.NVLINK, Via.PCIE, Via.STAGED]
