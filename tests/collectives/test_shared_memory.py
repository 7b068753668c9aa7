"""Rings through shared memory: page walks of an IOMMU, buffers of the other socket, transports that may run."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest
from collectives.collective_systems import gpu_node, pcie_box
from hypothesis import given
from hypothesis import strategies as st

from lanewise.collectives.curve import predict_collective
from lanewise.collectives.fabric import RingRate
from lanewise.collectives.learned import classes_of, learned
from lanewise.collectives.model import Collective, CollectiveCurve, CollectivePoint, CollectiveSettings
from lanewise.collectives.sends import both_limit
from lanewise.collectives.translation import PAGE
from lanewise.report.text.collective import render_collective
from lanewise.topology.model import System
from lanewise.topology.read import read_system

MiB, GiB = 2.0**20, 2.0**30
OLD = CollectiveSettings(version="2.20.5", p2p=False)  # /dev/shm
NEW = CollectiveSettings(version="2.27.7", p2p=False)  # perhaps cuMem allocations


def translating(system: System) -> System:
    """The same with an IOMMU that translates."""
    return system.with_iommu("translate")


@given(
    st.sampled_from(["milan", "null", "sapphire-rapids"]), st.sampled_from([OLD, NEW]), st.booleans(),
    st.floats(64 * MiB, 8 * GiB),
)  # fmt: skip
def test_an_iommu_that_is_not_stated_keeps_the_rate_and_widens_the_interval(
    cpu: str, settings: CollectiveSettings, one_socket: bool, size: float
) -> None:
    silent = pcie_box(cpu) if one_socket else two_sockets(cpu)
    ranks = [name for name in silent.devices if name.startswith("gpu")]
    off, wide, slow = (
        predict_collective(system, Collective.ALL_REDUCE, ranks, [size], settings).points[0]
        for system in (silent.with_iommu("off"), silent, translating(silent))
    )
    assert wide.bus_bandwidth == off.bus_bandwidth
    assert wide.high == off.high
    if cpu == "sapphire-rapids":  # of Intel's CPUs nobody measured the walks of a ring
        assert wide.low == off.low
    else:
        assert wide.low < min(off.low, slow.bus_bandwidth)


def two_sockets(
    cpu: str = "genoa", gpu: str = "rtx-4090", lanes: str = "gen4 x16", gpus: int = 2, socket: str = '"?"'
) -> System:
    """So many GPUs at root ports of each of two sockets."""
    return read_system(
        f"""
lanewise: 1
system: two-sockets
devices: {{"cpu[0-1]": {{cpu: {cpu}}}, "gpu[0-{2 * gpus - 1}]": {{gpu: {gpu}}}}}
links:
  - {{from: cpu0, to: cpu1, socket: {socket}}}
  - {{from: cpu0, to: "gpu[0-{gpus - 1}]", pcie: {lanes}}}
  - {{from: cpu1, to: "gpu[{gpus}-{2 * gpus - 1}]", pcie: {lanes}}}
""",
        "two-sockets.yaml",
    )


def pairs(gpu: str) -> System:
    """Two pairs of GPUs, each below a switch."""
    return read_system(
        f"""
lanewise: 1
system: pairs
devices: {{cpu0: {{cpu: turin}}, "sw[0-1]": {{switch: null}}, "gpu[0-3]": {{gpu: {gpu}}}}}
links:
  - {{from: cpu0, to: "sw[0-1]", pcie: gen4 x16}}
  - {{from: "sw[0-1]", to: "gpu[0-3]", pairs: true, pcie: gen4 x16}}
policies: {{peers: system}}
""",
        "pairs.yaml",
    )


def point(
    system: System, ranks: str, settings: CollectiveSettings = OLD, collective: Collective = Collective.ALL_REDUCE
) -> CollectivePoint:
    """1 GiB."""
    return curve(system, ranks, settings, collective).points[0]


def curve(
    system: System, ranks: str, settings: CollectiveSettings = OLD, collective: Collective = Collective.ALL_REDUCE
) -> CollectiveCurve:
    """A curve of 1 GiB."""
    return predict_collective(system, collective, ranks, [GiB], settings)


def rate(system: System, ranks: str, collective: Collective = Collective.ALL_REDUCE) -> float:
    """GB/s of long messages."""
    return curve(system, ranks, OLD, collective).peaks[0].bus_bandwidth / 1e9


def test_page_walks_take_as_long_at_any_width_and_for_any_number_of_gpus() -> None:
    # RTX 4090 at two EPYC 7543: 4.4 of a pair with one at x8, 4.5 of one at x16, 4.45 and 4.65 of four; three with
    # EPYC 7302 or 7402 get 3.3 to 4.0.
    wide, narrow = translating(two_sockets()), translating(two_sockets(lanes="gen4 x8"))
    four = translating(pcie_box(part="rtx-4090"))
    assert rate(wide, "gpu[0-1]") == pytest.approx(3.7, rel=0.01)
    assert rate(narrow, "gpu[0-1]") == rate(wide, "gpu[0-1]") == pytest.approx(rate(four, "gpu[0-3]"))
    assert point(wide, "gpu[0-1]").limit.startswith("address translation at root port")


def test_a_port_that_carries_one_way_walks_half_the_pages() -> None:
    box = translating(pcie_box(part="rtx-4090"))
    ring = rate(box, "gpu[0-1]")
    assert rate(box, "gpu[0-1]", Collective.BROADCAST) == pytest.approx(2 * ring)
    # Of three sends and three receives each is a third of what a ring sends and receives.
    assert rate(box, "gpu[0-3]", Collective.ALL_TO_ALL) == pytest.approx(ring)


def test_pages_of_the_other_socket_take_longer() -> None:
    # The same machines: 0.7 and 0.8 GB/s of pairs over both sockets of one, 1.2 to 1.6 of the others; all eight alike.
    machine = translating(two_sockets())
    assert rate(machine, "gpu[0,2]") == pytest.approx(1.42, rel=0.01)
    assert rate(machine, "gpu[0-3]") == pytest.approx(rate(machine, "gpu[0,2]"))


def test_a_link_slower_than_its_walks_limits_as_before() -> None:
    slow = two_sockets(lanes="gen3 x2")
    assert rate(translating(slow), "gpu[0-1]") == rate(slow, "gpu[0-1]")


def test_pages_of_unknown_size_give_a_range() -> None:
    free = two_sockets()
    plain, old = point(free, "gpu[0-1]", NEW), point(translating(free), "gpu[0-1]", OLD)
    new = point(translating(free), "gpu[0-1]", NEW)
    assert (new.bus_bandwidth, new.high) == (plain.bus_bandwidth, plain.high)
    assert new.low == pytest.approx(old.low, rel=0.02)
    assert old.high < plain.bus_bandwidth


def test_nobody_measured_the_walks_of_other_vendors() -> None:
    free = two_sockets("sapphire-rapids")
    plain, unknown = point(free, "gpu[0-1]"), point(translating(free), "gpu[0-1]")
    assert unknown.bus_bandwidth == plain.bus_bandwidth
    assert unknown.low == pytest.approx(0.25 * plain.bus_bandwidth, rel=0.01)


def test_of_cpus_that_nobody_names_the_walks_are_those_that_were_measured() -> None:
    # Eight A40 at two unnamed sockets get 1.3 GB/s at 25 to 622 MiB.
    unnamed = two_sockets("null", lanes="gen4 x16")
    walked = point(translating(unnamed), "gpu[0-3]")
    assert walked.bus_bandwidth == pytest.approx(point(translating(two_sockets()), "gpu[0-3]").bus_bandwidth, rel=0.05)
    assert walked.low < 1.3e9 < walked.high
    assert point(unnamed, "gpu[0-3]").bus_bandwidth > 5 * walked.bus_bandwidth


def test_a_machine_is_not_predicted_from_its_own_walks() -> None:
    measured = classes_of("translated_page")["amd"]
    for name in measured:
        others = statistics.median(time for machine, time in measured.items() if machine != name)
        without = curve(translating(two_sockets()), "gpu[0-1]", replace(OLD, without=frozenset({name}))).peaks[0]
        assert without.bus_bandwidth == pytest.approx(PAGE / (2 * others * 1e-6))
        assert name not in without.rests_on
    none = curve(translating(two_sockets()), "gpu[0-1]", replace(OLD, without=frozenset(measured))).peaks[0]
    assert none.bus_bandwidth == pytest.approx(PAGE / (2 * 0.33e-6))
    assert "SIGCOMM 2018" in none.rests_on


def test_peers_need_no_pages_of_the_host() -> None:
    box, on = pcie_box(), replace(OLD, p2p=True)
    free, walked = point(box, "gpu[0-3]", on), point(translating(box), "gpu[0-3]", on)
    assert (walked.bus_bandwidth, walked.low) == (free.bus_bandwidth, free.low)


def test_writes_to_the_other_socket_get_less_of_their_link() -> None:
    # RTX 4090 at EPYC Genoa, 16.0 of 18.2 GB/s; A10, 12.8 of 15.2; eight of four at Xeon 4416+, 14.2 of 16.8.
    machine = two_sockets()
    assert rate(machine, "gpu[0,2]") / rate(machine, "gpu[0,1]") == pytest.approx(0.85, abs=0.02)
    assert rate(machine, "gpu[0-3]") == pytest.approx(rate(machine, "gpu[0,2]"))


def test_links_between_sockets_keep_what_peers_reach_of_them() -> None:
    # What ports lose that carry both directions of shared memory, links between sockets do not: of eight GPUs in
    # all_to_all sixteen flows cross each way, a seventh of what a rank sends each.
    share = learned("peer_share", ["sm80"]).value
    for links in (1, 2):
        system = two_sockets("ice-lake-sp", lanes="gen4 x16", gpus=4, socket=str(links))
        upi = links * 9.3  # GB/s, the figure of Ice Lake
        assert rate(system, "gpu[0-7]", Collective.ALL_TO_ALL) == pytest.approx(share * upi * 7 / 16, rel=0.01)
        assert point(system, "gpu[0-7]", collective=Collective.ALL_TO_ALL).limit.startswith("link cpu")


def test_few_loads_in_flight_cost_rings_whose_ports_carry_one_way() -> None:
    # Of each pair one GPU writes shared memory and the other reads it: pairs of RTX PRO 6000 get half of their links.
    default = replace(OLD, p2p=None)
    few, many = (point(pairs(gpu), "gpu[0-3]", default) for gpu in ("rtx-pro-6000-blackwell-server", "l40s"))
    assert all(each.limit.endswith("(through shared memory)") for each in (few, many))
    assert few.bus_bandwidth < 0.75 * many.bus_bandwidth


def test_unnamed_gpus_may_have_no_peer_access() -> None:
    box = pcie_box(part="null", gpus=2)
    peers, memory = point(box, "gpu[0-1]", replace(OLD, p2p=None)), point(box, "gpu[0-1]")
    assert peers.low <= memory.low < memory.bus_bandwidth < peers.bus_bandwidth


def test_a_curve_names_the_transports_and_what_tells_them_apart() -> None:
    found = curve(pcie_box(), "gpu[0-3]", replace(NEW, p2p=None))
    peers, memory, walked = found.transports
    assert [peers.transport, memory.transport] == ["P2P", "SHM"]
    assert peers.bus_bandwidth > memory.bus_bandwidth > walked.bus_bandwidth
    assert memory.bus_bandwidth == found.peaks[0].bus_bandwidth
    text = render_collective(found)
    assert "nvidia-smi topo -p2p r" in text
    assert "'via P2P' or 'via SHM'" in text
    assert not curve(gpu_node("h100-sxm"), "gpu[0-7]", replace(NEW, p2p=None)).transports


def hopper(p2p: bool, operation: Collective = Collective.ALL_REDUCE) -> CollectivePoint:
    """1 GiB of two H200 of one socket."""
    system = read_system(
        """
lanewise: 1
system: pair
devices: {cpu0: {cpu: emerald-rapids}, "gpu[0-1]": {gpu: h200-sxm}, nvs: {nvswitch: null}}
links: [{from: cpu0, to: "gpu[0-1]", pcie: gen5 x16}, {from: "gpu[0-1]", to: nvs, nvlink: 18}]
""",
        "pair.yaml",
    )
    return predict_collective(system, operation, "gpu[0-1]", [GiB], CollectiveSettings(p2p=p2p)).points[0]


def test_kernels_of_hopper_that_read_and_write_host_memory_slow_each_other_down():
    both, one = hopper(p2p=False), hopper(p2p=False, operation=Collective.BROADCAST)
    # A broadcast between two writes from one GPU and reads by the other: 50 GB/s of an H200, a ring 24 to 29.
    assert one.bus_bandwidth > 1.7 * both.bus_bandwidth
    assert 24e9 < both.bus_bandwidth < 29e9
    assert any("hopper: median of" in text for text in both.rests_on)


def test_gathers_through_shared_memory_reach_less_than_sums_between_two_ranks():
    gathered, summed = (hopper(False, each) for each in (Collective.ALL_GATHER, Collective.ALL_REDUCE))
    assert gathered.bus_bandwidth == pytest.approx(
        learned("shared_memory_gather", ["two ranks"]).value * summed.bus_bandwidth, rel=0.02
    )


def four_hopper(cpu: str = "emerald-rapids") -> System:
    """Four H200 at one socket."""
    return read_system(
        f"""
lanewise: 1
system: four
devices: {{cpu0: {{cpu: {cpu}}}, "gpu[0-3]": {{gpu: h200-sxm}}, nvs: {{nvswitch: null}}}}
links: [{{from: cpu0, to: "gpu[0-3]", pcie: gen5 x16}}, {{from: "gpu[0-3]", to: nvs, nvlink: 18}}]
""",
        "four.yaml",
    )


@pytest.mark.parametrize(
    ("size", "operation", "measured"),
    [
        # Four H200, a held-out machine; four H100 taught what devices fill of the cache. 32 MiB use all buffers.
        (32, "all_reduce", 24.4), (256, "all_reduce", 24.1), (1024, "all_reduce", 23.7),
        (64, "all_gather", 23.6), (1024, "all_gather", 23.8),
    ],
)  # fmt: skip
def test_rings_whose_buffers_exceed_the_cache_wait_for_memory(size: int, operation: str, measured: float):
    settings = CollectiveSettings(version="2.28.9", p2p=False)
    point = predict_collective(four_hopper(), Collective(operation), "gpu[0-3]", [size * MiB], settings).points[0]
    assert point.bus_bandwidth / 1e9 == pytest.approx(measured, rel=0.05)
    assert point.limit.startswith("memory of cpu0")
    assert any("that devices fill" in text for text in point.rests_on)


def test_short_messages_use_few_buffers_and_two_ranks_half_as_many_as_four():
    def limit(system: System, ranks: str, size: float, operation: Collective = Collective.ALL_REDUCE) -> str:
        settings = CollectiveSettings(version="2.28.9", p2p=False)
        return predict_collective(system, operation, ranks, [size], settings).points[0].limit

    assert limit(four_hopper(), "gpu[0-3]", 16 * MiB).startswith("link")
    assert limit(four_hopper(), "gpu[0-1]", GiB).startswith("link")
    assert "memory" not in limit(four_hopper(), "gpu[0-3]", GiB, Collective.SENDRECV)
    assert limit(four_hopper("sapphire-rapids"), "gpu[0-3]", GiB).startswith("link")  # nobody measured its cache


def test_less_of_a_larger_cache_is_read_from_memory():
    fast, slow = RingRate(40.0, 50.0, 60.0, "cache"), RingRate(10.0, 20.0, 30.0, "memory")
    rates = [fast.where_a_share_is(slow, share / 10).rate for share in range(11)]
    assert rates == sorted(rates, reverse=True)
    assert (rates[0], rates[10]) == (pytest.approx(50.0), pytest.approx(20.0))
    assert rates[5] == pytest.approx(2 / (1 / 50 + 1 / 20))


def test_sends_through_shared_memory_run_on_two_channels():
    settings = CollectiveSettings(version="2.28.9", p2p=False)

    def point(operation: Collective, system: System | None = None) -> CollectivePoint:
        return predict_collective(system or four_hopper(), operation, "gpu[0-1]", [GiB], settings).points[0]

    sent, summed = point(Collective.SENDRECV), point(Collective.ALL_REDUCE)
    assert (sent.channels, summed.channels) == (2, 4)
    assert sent.limit == "2 channels of NCCL's sends"
    # Three pairs of H200: 23.5 to 23.9 where rings reach 27 to 27.9.
    assert sent.bus_bandwidth == pytest.approx(23.7e9, rel=0.03)
    other = [point(each, pcie_box(gpus=2)) for each in (Collective.SENDRECV, Collective.ALL_REDUCE)]
    assert other[0].bus_bandwidth == pytest.approx(other[1].bus_bandwidth, rel=0.01)  # nobody measured its channels


@given(st.floats(1, 1000), st.floats(1, 1000))
def test_channels_and_links_carry_less_than_either(channels: float, links: float):
    both = both_limit(channels, links)
    assert 0.87 * min(channels, links) < both < min(channels, links) * (1 + 1e-9)
    assert both == pytest.approx(both_limit(links, channels))
