"""Settings of a host that a description may state: the socket of staging buffers, the links between sockets."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.errors import InputError
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import flow_demand
from lanewise.results.outline import outline
from lanewise.routes.find import route
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system

MACHINE = """
lanewise: 1
system: staged
devices:
  "cpu[0-1]": {cpu: milan}
  "gpu[0-3]": {gpu: a100-sxm-80gb}
  "sw[0-1]": {switch: null}
links:
  - {from: cpu0, to: cpu1, socket: 3%s}
  - {from: "cpu[0-1]", to: "sw[0-1]", pairs: true, pcie: gen4 x16}
  - {from: "sw[0-1]", to: "gpu[0-3]", pairs: true, pcie: gen4 x16}
policies: {staging: %s}
"""


def test_copies_staged_in_the_memory_of_the_far_socket_share_what_its_root_port_gets_of_it() -> None:
    # 25 GB/s both ways together, so half of it for each stage, less the gap between chunks. Measured below one switch
    # of the second socket: 10.7 GB/s (a100-distserve), 17.1 on the first.
    rates = {}
    for cpu in ("cpu0", "cpu1"):
        system = read_system(MACHINE % ("", cpu), "s.yaml")
        assert [stage.dst for stage in route(system, "gpu2", "gpu3", p2p=False).stages] == [cpu, "gpu3"]
        rates[cpu] = [lanewise.predict(system, pair, p2p=False).total for pair in ("gpu0->gpu1", "gpu2->gpu3")]
        assert read_system(write_system(system), "s.yaml").policies.staging == {"host0": cpu}
    assert rates["cpu0"] == pytest.approx(rates["cpu1"][::-1])
    assert rates["cpu0"][1] == pytest.approx(1 / (2 / 25e9 + 8e-12), rel=0.01)
    assert rates["cpu0"][0] > 1.4 * rates["cpu0"][1]


def test_one_cpu_of_a_host_has_the_staging_buffers() -> None:
    with pytest.raises(InputError, match="'cpu0' and 'cpu1' of one host cannot both have the staging buffers"):
        read_system(MACHINE % ("", '"cpu[0-1]"'), "s.yaml")


def test_links_between_sockets_that_are_set_narrower_carry_less_with_a_narrower_range() -> None:
    # Three xGMI links: 3 x 16 lanes x 18 GT/s / 8 = 108 GB/s, 3 x 22.05 of it data; set to x8 half, of which 0.70.
    totals = []
    for rate in (", rate: 108 GB/s", ", rate: 54 GB/s", ""):
        system = read_system(MACHINE % (rate, "cpu0"), "s.yaml")
        (link,) = (each for each in flow_demand(system, Flow("cpu0", "gpu2")).per_byte if "xgmi x3" in each.name)
        totals.append((link.capacity, link.high - link.low))
    assert totals[0][0] == totals[2][0] == pytest.approx(3 * 22.05e9, rel=1e-3)
    assert totals[1][0] == pytest.approx(0.70 * 54e9)
    assert max(totals[0][1], totals[1][1]) < totals[2][1]


UNSTATED = MACHINE.replace("policies: {staging: %s}\n", "").replace("{cpu: milan}", "{cpu: %s}")
GAP = 8.8e-12  # s/B, the median of GPUs for servers


@pytest.mark.parametrize(("cpu", "memory"), [("rome-or-milan", "cpu0"), ("ice-lake-sp", "cpu1"), ("null", "cpu1")])
def test_the_buffers_of_two_epyc_are_taken_to_be_at_the_first_socket(cpu: str, memory: str) -> None:
    # Pairs of the second socket get half of what those of the first one do (a100-distserve, a100-a147). Where the
    # program runs is not known, so the interval of either reaches the other.
    system = read_system(UNSTATED % (cpu, ""), "s.yaml")
    assert route(system, "gpu2", "gpu3", p2p=False).stages[0].dst == memory
    near, far = (lanewise.predict(system, pair, p2p=False) for pair in ("gpu0->gpu1", "gpu2->gpu3"))
    assert (near.total > 1.4 * far.total) == (memory == "cpu0")
    assert near.total_low <= far.total
    assert far.total_high >= near.total
    assert ("policies: {staging: ...}" in near.rates[0].doubt) == (memory == "cpu0")


def test_gaps_of_copies_both_ways_leave_far_memory_idle() -> None:
    # 20.95 and 19.1 GB/s within the second socket, 21.8 and 20 between the two, 11.2 and 10.2 below one switch.
    text = MACHINE.replace("gpu[0-3]", "gpu[0-7]").replace("sw[0-1]", "sw[0-3]") % ("", "cpu0")
    system = read_system(text, "s.yaml")
    for flows, seconds in (  # the last one's port in turns is 2 % slower
        ("gpu4<->gpu6", 1 / 25.4e9 + GAP),
        ("gpu0<->gpu4", 1 / 25.4e9 + GAP / 2),
        ("gpu4<->gpu5", 2 / 25.4e9 + GAP),
    ):
        assert lanewise.predict(system, flows, p2p=False).total == pytest.approx(1 / seconds, rel=0.02)


@pytest.mark.parametrize(
    ("gpu", "cpu", "in_turns"),
    [
        ("a100-sxm-80gb", "rome-or-milan", True),
        ("a100-sxm-80gb", "ice-lake-sp", False),
        ("a100-sxm-80gb", "null", False),
        ("a100-pcie-80gb", "rome-or-milan", False),
    ],
)
def test_stages_of_an_a100_sxm_take_turns_below_a_port_of_an_epyc_both_ways(gpu: str, cpu: str, in_turns: bool) -> None:
    # 10.8 and 12.2 GB/s both ways, 17.1 and 17.0 one way; 20.1 and 18.1 on a host with the bus numbers of Ice Lake.
    system = read_system((UNSTATED % (cpu, "")).replace("a100-sxm-80gb", gpu), "s.yaml")
    one, both = (lanewise.predict(system, flows, p2p=False).total for flows in ("gpu0->gpu1", "gpu0<->gpu1"))
    assert one == pytest.approx(17.5e9, rel=0.02)
    assert both == pytest.approx(1 / (1 / 25.4e9 + 1 / 25.7e9 + GAP) if in_turns else 20.65e9, rel=0.02)


TENANT = """
lanewise: 1
system: tenant
devices:
  cpu0: {cpu: %s%s}
  "gpu[0-3]": {gpu: h200-sxm}
links:
  - {from: cpu0, to: "gpu[0-3]", pcie: gen5 x16}
"""


def test_a_socket_with_other_tenants_gives_what_such_machines_got() -> None:
    # Measured: 139 to 153 GB/s both ways of two H200 beside tenants, 182.6, 162.8 and 150.8 of four reading alone.
    whole, shared = (read_system(TENANT % ("emerald-rapids", word), "s.yaml") for word in ("", ", shared: true"))
    assert lanewise.predict(whole, "host0->gpu[0-3]").total == pytest.approx(160.6e9, rel=0.01)
    assert lanewise.predict(shared, "host0<->gpu[0-1]").total == pytest.approx(136e9, rel=0.02)
    both = [lanewise.predict(system, "host0<->gpu[0-1]").total for system in (whole, shared)]
    assert both[0] > 1.05 * both[1]
    assert read_system(write_system(shared), "s.yaml").device("cpu0").shared
    assert outline(shared).notes == ("other tenants use the socket too: cpu0",)
    assert outline(whole).notes == ()


def test_a_shared_socket_that_no_tenant_measured_has_a_wider_interval() -> None:
    whole, shared = (
        lanewise.predict(read_system(TENANT % ("sapphire-rapids", word), "s.yaml"), "gpu[0-3]->host0")
        for word in ("", ", shared: true")
    )
    assert (shared.total, shared.total_high) == (whole.total, whole.total_high)
    assert shared.total_low < 0.9 * whole.total_low


def test_where_nobody_measured_whom_a_full_memory_prefers_it_may_be_writes_as_much_as_anywhere() -> None:
    # Emerald Rapids writes up to 1.62 times as much as it reads, Grace as much; of Sapphire Rapids nobody knows.
    def ends(cpu: str) -> tuple[float, float]:
        rates = lanewise.predict(read_system(TENANT % (cpu, ""), "s.yaml"), "host0<->gpu[0-3]").rates
        by_name = {each.flow.name: each for each in rates}
        read, write = by_name["host0->gpu0"], by_name["gpu0->host0"]
        return read.low / read.rate, write.high / write.rate

    unknown, known = ends("sapphire-rapids"), ends("emerald-rapids")
    assert unknown[0] < 0.65 < known[0]
    assert unknown[1] > 1.45 > known[1]
    rates = lanewise.predict(read_system(TENANT % ("sapphire-rapids", ""), "s.yaml"), "host0->gpu[0-3]").rates
    assert rates[0].low / rates[0].rate > 0.7  # nothing is written


def test_a_full_memory_gives_copies_to_the_host_more_than_copies_from_it() -> None:
    # Measured of two GPUs both ways: 26.2 to 33.4 GB/s to each and 43.4 to 52.5 from each, all at 1.55 to 1.66.
    system = read_system(TENANT % ("emerald-rapids", ", shared: true"), "s.yaml")
    weight = system.number("cpu0", "memory.write_weight")
    assert weight is not None
    assert weight == pytest.approx(1.62)
    rates = {each.flow.name: each.rate for each in lanewise.predict(system, "host0<->gpu[0-1]").rates}
    assert rates["gpu0->host0"] == pytest.approx(weight * rates["host0->gpu0"])
    assert sum(rates.values()) == pytest.approx(358.4e9 * (system.number("cpu0", "memory.dma_both") or 0.0))
    # Where the memory has room the copy to the host has its engine's rate.
    apart = lanewise.predict(system, "host0->gpu0, gpu1->host0").rates
    assert apart[1].rate == pytest.approx(55.19e9)
    assert apart[0].rate > 0.9 * 55.495e9


def test_a_cpu_of_unknown_preference_shares_its_memory_evenly() -> None:
    system = read_system(TENANT % ("granite-rapids", ""), "s.yaml")
    ways = [lanewise.predict(system, flows).rates[0].rate for flows in ("gpu[0-3]->host0", "host0->gpu[0-3]")]
    both = lanewise.predict(system, "host0<->gpu[0-3]").rates
    assert max(rate.rate for rate in both) < 1.1 * min(rate.rate for rate in both) < max(ways)


def test_an_xgmi_link_whose_settings_nobody_states_may_be_as_slow_as_the_slowest_of_its_kind() -> None:
    # 58.3 of 64 GB/s in the median; 36.8 between the sockets of pro6000-pex890, where 37.9 was the least.
    text = MACHINE.replace("milan", "turin").replace("gen4", "gen5").replace("a100-sxm-80gb", "rtx-5090")
    lows = []
    for rate in ("", ", rate: 192 GB/s"):
        system = read_system(text % (rate, "cpu0"), "s.yaml")
        (link,) = (each for each in flow_demand(system, Flow("cpu0", "gpu2")).per_byte if "xgmi x3" in each.name)
        lows.append(link.low / 3)
    assert lows[0] == pytest.approx(0.57 * 64e9)
    assert lows[1] > 45e9
