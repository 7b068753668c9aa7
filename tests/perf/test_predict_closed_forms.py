"""Predictions whose value can be worked out by hand, on the ready systems."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.errors import InputError
from lanewise.perf import packets
from lanewise.perf.concurrent_flows import LINK_SHARED
from lanewise.perf.flow import Flow
from lanewise.perf.latency import latency
from lanewise.topology.read import read_system

SWITCHES = """
lanewise: 1
system: two switches of two GPUs
devices:
  cpu0: {{cpu: skylake-sp}}
  "sw[0-1]": {{switch: pex8796}}
  "gpu[0-3]": {{gpu: v100-pcie}}
links:
  - {{from: cpu0, to: "sw[0-1]", pcie: gen{gen} x16}}
  - {{from: sw0, to: "gpu[0-1]", pcie: gen{gen} x16}}
  - {{from: sw1, to: "gpu[2-3]", pcie: gen{gen} x16}}
"""
GEN3_X16 = 15.754e9
SHARE = packets.PACKET_SHARE


def rate(name: str, flows: str, p2p: bool = True, **settings: int) -> float:
    return lanewise.predict(lanewise.load_system(name, settings), flows, p2p).total / 1e9


def test_writes_over_a_shared_uplink_cost_request_headers() -> None:
    # Two K40 write to host memory over one Gen3 x16 uplink in 256 B requests with 24 B around them.
    # sum = 0.97 * 15.754 * 0.983 * 256 / 280, as two engines of 10.29 ask for more than the uplink gives.
    expected = LINK_SHARED * GEN3_X16 * SHARE * 256 / 280 / 1e9
    assert rate("cirrascale-typical", "gpu0->host0, gpu1->host0") == pytest.approx(expected, rel=1e-3)


def test_a_root_port_lets_no_more_reads_through_than_the_best_copy_published() -> None:
    # Eight K40 behind four root ports; the maker's best Gen3 host-to-device copy is below the packets' rate.
    gpus = [part for part in builtin().parts.values() if part.kind == "gpu" and part.title.startswith("NVIDIA")]
    best = max(part.number("engine.h2d.gen3") or 0 for part in gpus)
    assert best < GEN3_X16 * SHARE * 256 / 276
    found = lanewise.predict(lanewise.load_system("cirrascale-typical"), "host0->gpu[0-7]")
    assert found.total == pytest.approx(4 * best)
    assert found.rates[0].rate == pytest.approx(found.rates[1].rate)
    assert "root port" in found.rates[0].limit
    assert found.rates[0].basis == "calibrated"


def test_a_weight_of_two_gets_twice_the_share() -> None:
    system = lanewise.load_system("composable-server-gen4", {"path": 1, "gpus": 2})
    found = lanewise.predict(system, "host0->gpu0 x2, host0->gpu1")
    assert found.rates[0].rate == pytest.approx(2 * found.rates[1].rate)


def test_a_cap_is_named_as_the_limit_and_its_rest_goes_to_others() -> None:
    system = lanewise.load_system("composable-server-gen4", {"path": 1, "gpus": 2})
    found = lanewise.predict(system, "host0->gpu0 cap 2 GB/s, host0->gpu1")
    assert found.rates[0].rate == pytest.approx(2e9)
    assert found.rates[0].limit == "its own cap"
    assert found.rates[1].rate > 20e9


def test_acs_redirection_halves_what_two_opposite_peers_get_and_shows_the_uplink() -> None:
    text = """
lanewise: 1
system: acs
devices:
  cpu0: {cpu: genoa}
  sw0: {switch: pex88096}
  "gpu[0-3]": {gpu: t4}
links:
  - {from: cpu0, to: sw0, pcie: gen3 x16}
  - {from: sw0, to: "gpu[0-3]", pcie: gen3 x16}
policies: {acs_redirect: ACS}
"""

    flows = "gpu0->gpu1, gpu2->gpu3"
    direct, redirected = (
        lanewise.predict(read_system(text.replace("ACS", on), "acs.yaml"), flows) for on in ("false", "true")
    )
    assert redirected.total <= 0.6 * direct.total
    assert any("cpu0" in (flow.limit + flow.routes[0].show()) for flow in redirected.rates)


def test_the_stages_of_a_staged_copy_overlap_and_two_opposite_ones_reach_more_than_one() -> None:
    # 1/x = max(1/B1, 1/B2) + 1/S (H200: B1 55.19, B2 55.495, S 125 GB/s); both ways 0.7 x each, 0.86 x issued in turns.
    one = 1 / (1 / 55.19 + 1 / 125)
    assert rate("h200-pair", "gpu0->gpu1", p2p=False) == pytest.approx(one, rel=1e-3)
    assert rate("h200-pair", "gpu0<->gpu1", p2p=False) == pytest.approx(1.4 * one, rel=1e-3)
    in_turns = lanewise.predict("h200-pair", "gpu0<->gpu1", False, "p2pBandwidthLatencyTest-cuda9")
    assert in_turns.total / 1e9 == pytest.approx(1.72 * one, rel=1e-3)


def test_the_larger_the_copies_the_less_opposite_staged_ones_run_together() -> None:
    # Each gets 1 / (2 - q (2 - 1/s)) of a lone copy, q = min(1, 546 MB / n). Two machines copied 5 x 4 GiB: 0.99, 1.00.
    one = rate("h200-pair", "gpu0->gpu1", p2p=False)
    for size, q in (("100 MB", 1.0), ("800 MB", 546 / 800), ("20 GiB", 546e6 / (20 * 2**30))):
        ends = lanewise.finish_times("h200-pair", f"gpu0<->gpu1 {size}", p2p=False)
        both = sum(end.flow.size or 0.0 for end in ends) / max(end.finish for end in ends) / 1e9
        assert both == pytest.approx(2 / (2 - q * (2 - 1 / 0.86)) * one, rel=0.01), size


def test_the_sample_is_known_better_than_copies_of_unknown_size() -> None:
    some, sample = (
        lanewise.predict("h200-pair", "gpu0<->gpu1", False, name) for name in ("together", "p2pBandwidthLatencyTest")
    )
    assert sample.total == pytest.approx(some.total, rel=1e-3)
    assert some.total_low < 0.95 * sample.total_low
    assert some.total_high > 1.05 * sample.total_high


def test_the_stages_of_copies_from_an_rtx_3090_take_turns() -> None:
    # Two RTX 4090 in two slots of a Threadripper PRO get 22 one way and 31 both ways, two RTX 3090 there 11 and 16.7.
    text = """
lanewise: 1
system: two
devices:
  cpu0: {cpu: threadripper-pro-5000}
  "gpu[0-1]": {gpu: rtx-3090}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: gen4 x16}
"""
    system = read_system(text, "two.yaml")
    out, back, one = (
        lanewise.predict(system, flow, p2p=False) for flow in ("gpu0->host0", "host0->gpu1", "gpu0->gpu1")
    )
    gap = 1 / 83e9  # staging.rate
    assert one.total == pytest.approx(1 / (1 / out.total + 1 / back.total + gap), rel=1e-3)
    both = lanewise.predict(system, "gpu0<->gpu1", False, "p2pBandwidthLatencyTest")
    assert both.total / one.total == pytest.approx(1.48, rel=0.01)
    # Below one switch copies both ways take turns as well: 6.1 GB/s of RTX 3090 at Gen3.
    switch = SWITCHES.format(gen=3).replace("v100-pcie", "rtx-3090")
    lone, below = (lanewise.predict(read_system(switch, "s.yaml"), f, p2p=False) for f in ("gpu0->gpu2", "gpu0<->gpu1"))
    assert below.total == pytest.approx(lone.total, rel=0.02)


def test_both_stages_of_a_copy_share_the_port_of_two_gpus_below_one_switch() -> None:
    # A port passes 0.75 of its rate one way of both stages together, alone or both ways: one way the gap between chunks
    # comes on top. DGX-2: 8.5 to 9.9 one way, 9.3 both ways (10.7 to 11.2 between switches).
    text = SWITCHES.format(gen=3)
    one, both, apart = (
        lanewise.predict(read_system(text, "two.yaml"), flows, p2p=False)
        for flows in ("gpu0->gpu1", "gpu0<->gpu1", "gpu0->gpu2")
    )
    up = GEN3_X16 * SHARE * 256 / 280 / 1e9  # packets of 256 B; down the best read of a Gen3 port
    port = 0.75 * 2 / (1 / 12.44 + 1 / up)
    assert both.total / 1e9 == pytest.approx(port, rel=1e-3)
    assert "both stages" in both.rates[0].limit
    gap = 1 / (apart.total / 1e9) - 1 / 12.44  # ns a byte, typical
    assert 0.005 < gap < 0.02
    assert one.total / 1e9 == pytest.approx(1 / (1 / port + gap), rel=0.005)


def test_hosts_differ_in_what_a_gen4_port_passes_both_ways() -> None:
    # 10.8, 20.1 and 25.6 GB/s in all of two A100 below one switch of three hosts.
    text = SWITCHES.format(gen=4).replace("v100-pcie", "a100-pcie-40gb").replace("skylake-sp", "milan")
    text = text.replace("pex8796", "null")
    both = lanewise.predict(read_system(text, "two.yaml"), "gpu0<->gpu1", p2p=False)
    assert 18 < both.total / 1e9 < 22
    assert both.total_low / 1e9 < 10.8
    assert both.total_high / 1e9 > 25.6


def test_a_gap_that_nobody_measured_is_typical_and_widens_the_interval() -> None:
    known = lanewise.predict("h200-pair", "gpu0->gpu1", p2p=False).rates[0]
    text = SWITCHES.format(gen=3)
    typical = lanewise.predict(read_system(text, "two.yaml"), "gpu0->gpu2", p2p=False).rates[0]
    assert (known.basis, typical.basis) == ("calibrated", "typical")
    assert typical.low < 0.88 * typical.rate < typical.rate < typical.high


@pytest.mark.parametrize(
    ("system", "flows", "p2p", "measured", "within"),
    [
        # Published runs of p2pBandwidthLatencyTest that no figure of the catalogue was taken from.
        ("h200-pair", "gpu0<->gpu1", True, 784, 0.02),
        ("h200-pair", "gpu0<->gpu1", False, 53, 0.06),
        ("puget-wrx90", "gpu0<->gpu1", True, 52.1, 0.02),
        ("puget-wrx90", "gpu0<->gpu1", False, 31.4, 0.02),
    ],
)
def test_both_ways_on_machines_that_were_not_used(
    system: str, flows: str, p2p: bool, measured: float, within: float
) -> None:
    assert rate(system, flows, p2p) == pytest.approx(measured, rel=within)


def test_a_raid_0_volume_reads_as_fast_as_its_drives_together_until_the_path_is_full() -> None:
    assert rate("pax-storage-fabric", "vol0->gpu0", cross_domain=1) == pytest.approx(14.0, rel=1e-6)
    assert rate("pax-storage-fabric", "vol0->gpu0", cross_domain=0) == pytest.approx(8.7, rel=1e-6)


def test_cross_domain_peers_take_the_fabric_link_only_if_allowed() -> None:
    on, off = (lanewise.load_system("pax-storage-fabric", {"cross_domain": x}) for x in (1, 0))
    assert lanewise.route(on, "ssd0", "gpu0").nodes == ("ssd0", "pax1", "pax0", "gpu0")
    assert lanewise.route(off, "ssd0", "gpu0").nodes == ("ssd0", "pax1", "cpu1", "cpu0", "pax0", "gpu0")


def test_finite_transfers_on_one_link_finish_as_worked_out_by_hand() -> None:
    # QPI of rate B under two reads from the far socket. A: 2 s' worth of bytes from t = 0. B: 1 s' worth from t = 1.
    # Until 1 s A runs alone (half done), then both get B/2: B and A both have 1 s' worth left and end at t = 3 s.
    system = lanewise.load_system("cirrascale-typical")
    link = lanewise.predict(system, "host:0->gpu4").total
    assert lanewise.predict(system, "host:0->gpu4, host:0->gpu5").total == pytest.approx(link, rel=1e-9)
    done = lanewise.finish_times(system, f"host:0->gpu4 {2 * link:.0f} B, host:0->gpu5 {link:.0f} B @1 s")
    assert [d.finish for d in done] == pytest.approx([3.0, 3.0], rel=1e-6)


def test_a_transfer_after_others_begins_when_the_last_of_them_ends() -> None:
    flows = "gpu0->gpu1 1 GiB as a, gpu2->gpu3 2 GiB as a, gpu1->gpu0 1 GiB after a @1 ms"
    first, second, last = lanewise.finish_times("rack-16gpu", flows)
    assert first.finish < second.finish
    assert last.start == second.finish + 1e-3
    assert last.finish - last.start == pytest.approx(first.finish, rel=1e-9)
    unknown = [Flow("gpu0", "gpu1", 1.0, after=("b",), label="b")]
    with pytest.raises(InputError, match="after 'b', and no other flow has that label"):
        lanewise.finish_times("rack-16gpu", unknown)
    with pytest.raises(InputError, match="has flows to wait for but no size"):
        lanewise.predict("rack-16gpu", "gpu0->gpu1 as a, gpu1->gpu0 after a")


def test_wire_latency_grows_by_two_cut_throughs_a_hop_and_api_time_is_kept_apart() -> None:
    short, long = (lanewise.load_system("composable-server-gen4", {"path": p, "gpus": 1}) for p in (1, 4))
    step = latency(long, "host0", "gpu0").wire - latency(short, "host0", "gpu0").wire
    assert step == pytest.approx(3 * 105e-9)


def test_routes_keep_their_order_of_speed() -> None:
    pix, phb, sys = (rate("cirrascale-typical", f) for f in ("gpu0->gpu1", "gpu0->gpu2", "gpu0->gpu4"))
    assert pix > phb > sys


def test_a_matrix_holds_each_pair_alone() -> None:
    system = lanewise.load_system("cirrascale-typical")
    made = lanewise.matrix(system)
    assert made.cells[0][0] is None
    assert made.cells[0][1] == pytest.approx(lanewise.predict(system, "gpu0->gpu1").total)
    both = lanewise.matrix(system, ["gpu0", "gpu1"], both_ways=True)
    assert both.cells[0][1] == pytest.approx(2 * (made.cells[0][1] or 0) * (1 - 8 / 280))  # Acks against the data


def test_a_card_s_port_is_full_duplex() -> None:
    # 200 Gb/s of payload each way: what a card sends takes nothing of what it brings in.
    system = lanewise.load_system("dgx-a100-network")
    alone = [lanewise.predict(system, flows).rates[0] for flows in ("gpu0->nic0", "nic0->gpu0")]
    together = lanewise.predict(system, "gpu0->nic0, nic0->gpu0").rates
    assert [flow.rate for flow in together] == pytest.approx([flow.rate for flow in alone])
    assert [flow.limit for flow in together] == ["network ports (out) of nic0", "network ports (in) of nic0"]
    assert rate("dgx-a100-network", "gpu0->nic0, gpu1->nic0") == pytest.approx(alone[0].rate / 1e9)
