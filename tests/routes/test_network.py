"""Routes over network cards: which cards, spread over rails, GPUDirect or bounced, and what is unreachable."""

import pytest
from routes.route_systems import build, way

from lanewise.api.loading import load_system
from lanewise.errors import InputError, UnknownName, Unreachable
from lanewise.routes.endpoints import endpoint
from lanewise.routes.find import route, routes
from lanewise.routes.model import Via

HOSTS = {"cpu0": "a", "gpu0": "a", "nic0": "a", "ssd0": "a", "cpu1": "b", "gpu1": "b", "nic1": "b"}
TWO_HOSTS = "cpu0 -- sw0 -- gpu0, sw0 -- nic0 .. net0, sw0 -- ssd0, cpu1 -- sw1 -- gpu1, sw1 -- nic1 .. net0"


def two_hosts(**policies):
    return build(TWO_HOSTS, hosts=HOSTS, **policies)


def test_gpus_of_two_hosts_meet_over_their_cards():
    found = route(two_hosts(), "gpu0", "gpu1")
    assert way(found) == "gpu0 - sw0 - nic0 - net0 - nic1 - sw1 - gpu1"
    assert (found.via, found.cls, found.stages) == (Via.NETWORK, "NET", ())


def test_memory_of_a_host_reaches_a_gpu_of_another():
    assert way(route(two_hosts(), "a", "gpu1")) == "cpu0 - sw0 - nic0 - net0 - nic1 - sw1 - gpu1"
    assert way(route(two_hosts(), "gpu1", "a")) == "gpu1 - sw1 - nic1 - net0 - nic0 - sw0 - cpu0"
    assert way(route(two_hosts(), "a", "b")) == "cpu0 - sw0 - nic0 - net0 - nic1 - sw1 - cpu1"


def test_without_gpudirect_both_ends_bounce_through_host_memory():
    found = route(two_hosts(), "gpu0", "gpu1", p2p=False)
    assert (found.via, found.cls) == (Via.STAGED, "NET")
    assert [way(stage) for stage in found.stages] == [
        "gpu0 - sw0 - cpu0",
        "cpu0 - sw0 - nic0 - net0 - nic1 - sw1 - cpu1",
        "cpu1 - sw1 - gpu1",
    ]


def test_only_the_end_that_a_card_may_not_reach_bounces():
    drive = route(two_hosts(), "ssd0", "gpu1")
    assert [way(stage) for stage in drive.stages] == [
        "ssd0 - sw0 - cpu0",
        "cpu0 - sw0 - nic0 - net0 - nic1 - sw1 - gpu1",
    ]
    assert "ssd0" in drive.note


def test_all_routes_between_hosts_show_gpudirect_and_bounced():
    assert [each.via for each in routes(two_hosts(), "gpu0", "gpu1")] == [Via.NETWORK, Via.STAGED]


def test_a_card_itself_may_be_an_end():
    assert way(route(two_hosts(), "nic0", "gpu1")) == "nic0 - net0 - nic1 - sw1 - gpu1"
    assert way(route(two_hosts(), "nic0", "nic1")) == "nic0 - net0 - nic1"


def test_sockets_of_one_host_may_also_meet_over_the_network():
    found = routes(load_system("cirrascale-2cpu-2ib"), "gpu0", "gpu4")
    assert found[0].via is Via.STAGED
    over_ib = next(each for each in found if each.via is Via.NETWORK)
    assert way(over_ib) == "gpu0 - riser0 - cpu0 - ib0 - ibswitch - ib1 - cpu1 - riser1 - gpu4"
    assert over_ib.allowed


@pytest.mark.parametrize("cards", [1, 2, 4, 8])
def test_every_card_of_a_dgx_serves_as_many_gpus(cards):
    system = load_system("dgx-a100-network", {"nics": cards})
    used = [route(system, "frontend", f"gpu{i}").nodes for i in range(8)]
    pairs = [tuple(node for node in nodes if "nic" in node) for nodes in used]
    assert {f"f{near}" for _, near in pairs} == {far for far, _ in pairs}
    assert sorted(pairs.count(pair) for pair in set(pairs)) == [8 // cards] * cards
    assert all(f"f{near}" == far for far, near in pairs)


def test_memory_is_taken_where_the_card_of_the_rail_is():
    system = load_system("dgx-a100-network")
    assert endpoint(system, "frontend", "gpu0") == "fcpu0"
    assert endpoint(system, "frontend", "gpu7") == "fcpu1"


def test_cards_on_separate_rails_are_paired_by_the_rail():
    hosts = {"cpu0": "a", "gpu0": "a", "nic0": "a", "nic1": "a"}
    hosts |= {"cpu1": "b", "gpu1": "b", "nic2": "b", "nic3": "b"}
    system = build(
        "cpu0 -- sw0 -- gpu0, sw0 -- nic0 .. net0, sw0 -- nic1 .. net1,"
        "cpu1 -- sw1 -- gpu1, cpu1 -- nic2 .. net0, sw1 -- nic3 .. net1",
        hosts=hosts,
    )
    assert way(route(system, "gpu0", "gpu1")) == "gpu0 - sw0 - nic1 - net1 - nic3 - sw1 - gpu1"


def test_a_card_does_not_forward_from_one_network_to_the_other():
    system = build("cpu0 -- nic0 .. net0 .. nic1 .. net1 .. nic2, cpu1 -- nic2",
                   hosts={"cpu0": "a", "nic0": "a", "cpu1": "b", "nic2": "b"}, unbound=["nic1"])  # fmt: skip
    with pytest.raises(Unreachable):
        route(system, "nic0", "nic2")


def test_hosts_without_a_network_are_unreachable_with_a_hint():
    hosts = {"cpu0": "a", "gpu0": "a", "cpu1": "b", "gpu1": "b"}
    apart = build("cpu0 -- gpu0, cpu1 -- gpu1", hosts=hosts)
    with pytest.raises(Unreachable) as caught:
        route(apart, "gpu0", "gpu1")
    assert caught.value.show() == (
        "error: gpu0 is on a and gpu1 on b, and no network joins the two hosts\n"
        "hint:  join a network card of each host with network: links, or bind both to one host"
    )
    joined = build("cpu0 ~~ sw0 -- gpu0, cpu1 ~~ sw0 -- gpu1", hosts=hosts)
    with pytest.raises(Unreachable, match="the PCIe fabric between them keeps hosts apart"):
        route(joined, "gpu0", "gpu1")


def test_an_unbound_device_must_be_attached_first():
    system = build("cpu0 -- sw0 -- gpu0, sw0 -- gpu1", unbound=["gpu1"])
    for ends in (("host0", "gpu1"), ("gpu1", "gpu0"), ("gpu0", "gpu1")):
        with pytest.raises(Unreachable, match="gpu1 is bound to no host") as caught:
            route(system, *ends)
        assert "attach it" in caught.value.hint


def test_what_is_missing_is_named():
    with pytest.raises(Unreachable, match="no inter-socket link joins cpu0 and cpu1"):
        route(build("cpu0 -- gpu0, cpu1 -- gpu1"), "gpu0", "gpu1")
    with pytest.raises(Unreachable, match="no PCIe link leads from gpu1 up to cpu0"):
        route(build("cpu0 -- gpu0, sw0 -- gpu1"), "gpu0", "gpu1")


def test_nothing_starts_or_ends_at_a_switch():
    with pytest.raises(InputError, match="no data starts or ends at sw0"):
        route(build("cpu0 -- sw0 -- gpu0"), "sw0", "gpu0")


@pytest.mark.parametrize(
    ("text", "peer", "name"),
    [
        ("gpu0", "", "gpu0"),
        ("cpu1", "gpu0", "cpu1"),
        ("host0", "gpu0", "cpu0"),
        ("host0", "gpu1", "cpu1"),
        ("host", "gpu1", "cpu1"),
        ("host0", "", "cpu0"),
        ("host0:1", "gpu0", "cpu1"),
        ("host:0", "gpu1", "cpu0"),
        ("host0", "host0:1", "cpu0"),
    ],
)
def test_names_of_ends(text, peer, name):
    system = build("cpu0 == cpu1, cpu0 -- sw0 -- gpu0, cpu1 -- gpu1")
    assert endpoint(system, text, peer) == name


def test_host_is_the_other_end_s_host():
    assert endpoint(two_hosts(), "host", "gpu1") == "cpu1"
    with pytest.raises(UnknownName):
        endpoint(two_hosts(), "host")


@pytest.mark.parametrize(("text", "hint"), [("gpu", "gpu0"), ("host0:7", "host0:0"), ("hots0", "host0")])
def test_unknown_ends_offer_the_nearest_names(text, hint):
    with pytest.raises(UnknownName) as caught:
        endpoint(build("cpu0 -- gpu0"), text)
    assert hint in caught.value.hint


def test_a_host_by_a_name_that_it_does_not_have_is_answered_with_the_hosts():
    with pytest.raises(UnknownName, match=r"unknown host of .* 'host0'") as caught:
        endpoint(two_hosts(), "host0", "gpu1")
    assert caught.value.hint == "known: a, b"
