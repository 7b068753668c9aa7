"""Corners where a resource is easily charged twice, to the wrong flow, or in the wrong direction."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import Figure, builtin, read_parts
from lanewise.errors import InputError, UnknownName
from lanewise.perf.latency import latency
from lanewise.probes.model import _link_share
from lanewise.results.outline import outline
from lanewise.routes.model import LinkDirection
from lanewise.topology.model import LinkKind, System
from lanewise.topology.read import read_system

FABRIC = """
parts:
  - part: slow-fabric
    kind: switch
    title: a fabric whose host link carries 8 GB/s of reads
    from:
      - source: this test
        figures: {pcie.gen: 4, pcie.lanes: 96, switch.read_rate: 8 GB/s}
"""
TWO_FABRICS = """
lanewise: 1
system: two-fabrics
devices:
  "cpu[0-1]": {cpu: genoa, numa: +0}
  "sw[0-1]": {switch: slow-fabric}
  "gpu[0-3]": {gpu: t4}
links:
  - {from: cpu0, to: cpu1, socket: 3}
  - {from: "cpu[0-1]", to: "sw[0-1]", pairs: true, pcie: gen4 x16}
  - {from: sw0, to: "gpu[0-1]", pcie: gen3 x16}
  - {from: sw1, to: "gpu[2-3]", pcie: gen3 x16}
"""


def two_fabrics() -> System:
    return read_system(TWO_FABRICS, "two.yaml", {}, builtin().merge(read_parts(FABRIC, "slow.yaml")))


def rates(system: System | str, flows: str, p2p: bool = True, **settings: int) -> list[float]:
    found = lanewise.load_system(system, settings) if isinstance(system, str) else system
    return [flow.rate / 1e9 for flow in lanewise.predict(found, flows, p2p).rates]


def test_two_host_links_of_one_part_do_not_share_a_ceiling() -> None:
    assert rates(two_fabrics(), "cpu0->gpu0, cpu1->gpu2") == pytest.approx([8, 8])
    assert rates(two_fabrics(), "cpu0->gpu0, cpu0->gpu1") == pytest.approx([4, 4])


def test_peer_reads_within_a_switch_cross_no_host_link() -> None:
    assert rates(two_fabrics(), "gpu0->gpu1 read")[0] > 8
    assert rates(two_fabrics(), "cpu0->gpu0, gpu0->gpu1 read")[0] == pytest.approx(8)


def test_memory_of_the_far_socket_comes_in_full_completions() -> None:
    found = lanewise.predict(lanewise.load_system("falcon-4010-xeon"), "cpu1->gpu0")
    assert any(hop.link.kind is LinkKind.SOCKET for hop in found.rates[0].routes[0].hops)
    # 256-byte completions with 20 B around them: no 64-byte peer packets on memory traffic.
    assert found.rates[0].raw == pytest.approx(found.total * 276 / 256)


def test_host_copies_both_ways_share_what_was_measured_of_both() -> None:
    # Reads of an A100 starve behind its writes (20 of 25.7 beside 20.8 of 25 at EPYC); slow ones leave them more.
    into, out = 25.71, 25.0
    assert rates("dgx-a100", "host0->gpu0, gpu0->host0") == pytest.approx([20.045, 20.75], rel=1e-4)
    slow = rates("dgx-a100", "host0->gpu0, gpu0->host0 cap 5 GB/s")[0]
    assert slow == pytest.approx(into - (into - 20.045) / out * 5, abs=0.02)
    assert rates("dgx-a100", "host0->gpu0")[0] > 20
    # Writes of the other GPU below the same uplink cost reads too, those below another one nothing.
    assert rates("dgx-a100", "host0->gpu0, gpu1->host0")[0] < 22
    assert rates("dgx-a100", "host0->gpu0, gpu2->host0")[0] > 25


def test_a_volume_is_staged_by_all_its_drives_together() -> None:
    one, four = (rates("pax-storage-fabric", f"{s}->gpu0", p2p=False)[0] for s in ("ssd1", "vol0"))
    assert four > 2 * one
    assert four < 4 * one


def test_link_loads_of_a_mirrored_volume_count_both_copies() -> None:
    text = """
lanewise: 1
system: mirrored
devices:
  cpu0: {cpu: genoa}
  sw0: {switch: pex88096}
  "ssd[0-3]": {ssd: samsung-pm1733}
links:
  - {from: cpu0, to: sw0, pcie: gen4 x16}
  - {from: sw0, to: "ssd[0-3]", pcie: gen4 x4}
volumes: {v10: {raid: 10, drives: "ssd[0-3]"}}
"""
    found = lanewise.predict(read_system(text, "m.yaml"), "cpu0->v10")
    loads = {(link.start, link.end): load for link, load in found.loads.items()}
    assert loads["sw0", "ssd0"] == pytest.approx(found.total / 2)
    assert loads["cpu0", "sw0"] == pytest.approx(2 * found.total)


def test_a_volume_of_one_drive_is_written_as_its_drive_is() -> None:
    text = """
lanewise: 1
system: one-drive
devices:
  cpu0: {cpu: genoa}
  ssd0: {ssd: samsung-pm1733}
links:
  - {from: cpu0, to: ssd0, pcie: gen4 x4}
volumes: {v0: {raid: 0, drives: [ssd0]}}
"""
    system = read_system(text, "one.yaml")
    assert rates(system, "cpu0->v0") == rates(system, "cpu0->ssd0")


def test_the_same_staged_copy_twice_shares_the_engine_not_an_invented_queue() -> None:
    once, twice = (rates("falcon-4010-xeon", f, p2p=False) for f in ("gpu0->gpu1", "gpu0->gpu1, gpu0->gpu1"))
    assert sum(twice) >= once[0]
    assert twice[0] == pytest.approx(twice[1])


def test_an_api_latency_is_taken_whole_and_by_medium() -> None:
    whole = builtin().get("h200-sxm").number("latency.api_nvlink")
    assert latency(lanewise.load_system("h200-pair"), "gpu0", "gpu1").api == pytest.approx(whole)
    over_pcie = latency(lanewise.load_system("falcon-4010-epyc"), "gpu0", "gpu1")
    assert over_pcie.api == pytest.approx(1.99e-6, rel=0.02)


def test_a_missing_drive_rate_is_doubted_and_network_copies_are_not() -> None:
    fabric = lanewise.load_system("pax-storage-fabric")
    assert "drive" in lanewise.predict(fabric, "gpu0->ssd0").rates[0].doubt
    remote = lanewise.load_system("dgx-a100-network")
    assert lanewise.predict(remote, "fcpu0->gpu0").rates[0].doubt == ""


def test_a_missing_copy_engine_is_typical_of_its_generation_and_less_certain() -> None:
    bare = builtin().get("l40s")
    for key in ("engine.h2d.gen4", "engine.d2h.gen4", "engine.p2p_write.gen4"):
        bare = bare.with_figure(key, Figure(None, "B/s", "this test"))
    system = lanewise.load_system("composable-server-gen4", {"gpus": 1, "path": 1}, builtin().with_part(bare))
    rate, known = (lanewise.predict(each, "gpu0->host0").rates[0] for each in (system, "composable-server-gen4"))
    assert rate.basis == "typical"
    assert rate.rests_on[0].startswith("l40s engine.d2h.gen4 = 26.3 GB/s (median of ")
    assert rate.low < known.low < known.high < rate.high


def test_gpus_whose_driver_refuses_peers_are_staged() -> None:
    text = """
lanewise: 1
system: gamers
devices:
  cpu0: {cpu: genoa}
  "gpu[0-1]": {gpu: rtx-4090}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: gen4 x16}
"""
    found = lanewise.predict(read_system(text, "g.yaml"), "gpu0->gpu1").rates[0]
    assert found.routes[0].via.value == "staged"
    # Published for two RTX 4090 on such a host: 21.7 to 22.6 GB/s.
    assert found.rate / 1e9 == pytest.approx(22.2, rel=0.03)


def test_a_system_without_gpus_serves_nothing_and_says_so() -> None:
    text = """
lanewise: 1
system: bare
devices:
  "cpu[0-1]": {cpu: genoa, numa: +0}
links:
  - {from: cpu0, to: cpu1, socket: 1}
"""
    with pytest.raises(InputError, match="no host with a GPU"):
        lanewise.serve(read_system(text, "b.yaml"), "resnet50")
    with pytest.raises(UnknownName, match="division"):
        lanewise.serve(lanewise.load_system("dgx-a100"), "resnet50", division="zzz")


def test_a_payload_that_a_cpu_splits_is_what_the_rate_rests_on() -> None:
    flow = lanewise.predict("rack-16gpu", "gpu0->gpu4").rates[0]
    assert flow.limit.startswith("link ")
    assert flow.basis == "calibrated"
    assert flow.rate / 1e9 == pytest.approx(30.97 * 64 / 88, rel=1e-3)
    specification, payload = flow.rests_on
    assert specification == "PCIe base specification"
    assert payload.startswith("64 B packets from cpu0 on: ")
    assert "peer.payload = 64 B" in payload


def test_two_links_between_the_same_devices_have_loads_of_their_own() -> None:
    text = """
lanewise: 1
system: bonded
devices:
  cpu0: {cpu: genoa}
  gpu0: {gpu: a100-sxm-80gb}
links:
  - {from: cpu0, to: gpu0, pcie: gen4 x16}
  - {from: cpu0, to: gpu0, nvlink: 4}
"""
    system = read_system(text, "m.yaml")
    found = lanewise.predict(system, "cpu0->gpu0")
    nvlink = LinkDirection("cpu0", "gpu0", "", LinkKind.NVLINK)
    assert found.loads == found.raw == {nvlink: pytest.approx(found.total)}
    assert found.link_utilization == {nvlink: pytest.approx(1.0)}
    drawn = {line.kind: line.load_ab for line in outline(system, found.loads, found.link_utilization).lines}
    assert drawn == {"nvlink": pytest.approx(found.total), "pcie": None}
    assert _link_share(found) == 0.0  # of PCIe links, and none of them carries data


def test_gpus_of_two_numa_nodes_of_one_socket_copy_through_memory() -> None:
    text = """
lanewise: 1
system: two-dies
devices:
  cpu0: {cpu: threadripper-2000, numa_nodes: 2}
  gpu0: {gpu: rtx-2080-ti, numa: 0}
  gpu1: {gpu: rtx-2080-ti, numa: 1}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: gen3 x16}
policies: {peers: none}
"""
    found = lanewise.predict(read_system(text, "dies.yaml"), "gpu0->gpu1").rates[0]
    assert (found.routes[0].cls, found.routes[0].via.value) == ("SYS", "staged")
    assert found.rate > 0
