"""Time and bus bandwidth of collectives: laws of the fabric, and how a call is issued."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from collectives.collective_systems import gpu_node, pcie_box, two_nodes

from lanewise.api import load_system
from lanewise.catalog import builtin
from lanewise.collectives.curve import predict_collective
from lanewise.collectives.learned import classes_of, learned
from lanewise.collectives.model import (
    Algorithm,
    Collective,
    CollectivePoint,
    CollectiveSettings,
    Launch,
    collective_named,
)
from lanewise.errors import Contradiction, InputError, UnknownName, Unreachable
from lanewise.evidence.prediction import COLLECTIVE, predict_machine
from lanewise.evidence.reading import ready_machines
from lanewise.report.text.collective import render_collective
from lanewise.topology.model import System

KiB, MiB, GiB = 2.0**10, 2.0**20, 2.0**30
CURVE = [2.0**power for power in range(3, 34)]
PLAIN = CollectiveSettings(version="2.27.7")


def bus(system: System, ranks: str, size: float = 16 * GiB, collective: str = "all_reduce",
        settings: CollectiveSettings = PLAIN) -> float:  # fmt: skip
    """GB/s."""
    curve = predict_collective(system, Collective(collective), ranks, [size], settings)
    return curve.points[0].bus_bandwidth / 1e9


def test_time_and_bus_bandwidth_are_of_one_another() -> None:
    for point in predict_collective(gpu_node("h100-sxm"), Collective.ALL_REDUCE, "gpu[0-7]", CURVE).points:
        assert point.bus_bandwidth == pytest.approx(point.size / point.time * 2 * 7 / 8)
        assert point.low < point.bus_bandwidth < point.high


@pytest.mark.parametrize("system", [gpu_node("h100-sxm"), gpu_node("a100-sxm-80gb", 12), pcie_box()])
def test_a_longer_message_takes_longer(system: System) -> None:
    # Where the library changes its choice, time may fall a little: its own plan is no prediction.
    times = [p.time for p in predict_collective(system, Collective.ALL_REDUCE, "gpu[0-3]", CURVE).points]
    assert all(later > 0.95 * sooner for sooner, later in pairwise(times))
    assert times[-1] > 1000 * times[0]


def test_a_switch_that_reduces_serves_more_ranks_better() -> None:
    # Each rank sends a byte and a share 1/n of the result: 2 (n - 1) / (n + 1) of the rate of its links.
    eight, six = bus(gpu_node("h200-sxm"), "gpu[0-7]"), bus(gpu_node("h200-sxm"), "gpu[0-5]")
    assert eight / six == pytest.approx((7 / 9) / (5 / 7), rel=0.01)
    assert eight == pytest.approx(480, rel=0.03)  # NVIDIA/nccl-tests#212, the maintainer's figure


def test_half_the_nvlinks_carry_half() -> None:
    settings = CollectiveSettings(version="2.18")
    whole = bus(gpu_node("a100-sxm-80gb", 12), "gpu[0-7]", settings=settings)
    assert bus(gpu_node("a100-sxm-80gb", 6), "gpu[0-7]", settings=settings) == pytest.approx(whole / 2, rel=0.02)


def test_gathers_over_nodes_are_limited_by_their_cards() -> None:
    eight = bus(two_nodes(8, "connectx-7-ndr"), "n[0-1]gpu[0-7]", collective="all_gather")
    four = predict_collective(two_nodes(4, "connectx-7-ndr"), Collective.ALL_GATHER, "n[0-1]gpu[0-7]", [16 * GiB])
    assert four.points[0].bus_bandwidth / 1e9 == pytest.approx(4 * 48.5, rel=0.05)
    assert four.points[0].limit.startswith("4 network cards: link n0nic0->net")
    assert eight > 1.8 * four.points[0].bus_bandwidth / 1e9


def test_the_choice_names_the_planned_times_and_what_the_other_algorithms_would_reach() -> None:
    curve = predict_collective(two_nodes(8, "connectx-7-ndr"), Collective.ALL_REDUCE, "n[0-1]gpu[0-7]", [GiB], PLAIN)
    first, *others = curve.compared
    assert (first.algorithm, first.bus_bandwidth) == (curve.points[0].algorithm, curve.points[0].bus_bandwidth)
    assert [each.algorithm for each in others] == ["Ring", "Tree"]
    assert first.planned < others[0].planned < others[1].planned
    text = render_collective(curve)
    assert "choice at 1 GiB, by the times that NCCL itself plans: NVLSTree Simple" in text
    assert f"ms, would reach {others[0].bus_bandwidth / 1e9:.0f} GB/s; Tree Simple" in text


def test_each_size_is_marked_with_what_its_time_rests_on() -> None:
    curve = predict_collective(gpu_node("h100-sxm"), Collective.ALL_REDUCE, "gpu[0-7]", [KiB, 4 * MiB, GiB], PLAIN)
    marks = [line.rpartition("  ")[2] for line in render_collective(curve).splitlines()[3:6]]
    assert marks == ["[1]", "[1] [2] [3]", "[1] [2]"]
    assert curve.sources[1].startswith("share of the raw NVLink rate at which a switch reduces")
    assert curve.sources[2].startswith("time beyond that of the wire")


def test_a_forced_or_the_only_algorithm_is_no_choice_and_a_tuner_s_choice_says_so() -> None:
    nodes = two_nodes(8, "efa-400", nodes=3)
    forced = replace(PLAIN, algorithm=Algorithm.RING)
    assert not predict_collective(nodes, Collective.ALL_REDUCE, "n[0-2]gpu[0-7]", [GiB], forced).compared
    assert not predict_collective(nodes, Collective.ALL_GATHER, "n[0-2]gpu[0-7]", [GiB], PLAIN).compared
    tuned = predict_collective(nodes, Collective.ALL_REDUCE, "n[0-2]gpu[0-7]", [GiB], PLAIN)
    assert tuned.compared[0].algorithm is Algorithm.RING
    assert "choice at 1 GiB, the tuner of AWS' plug-in takes Ring" in render_collective(tuned)


def test_all_to_all_over_nodes_uses_the_card_of_each_gpu() -> None:
    # Of what a rank sends, 8 of 15 parts leave the node: 50 GB/s of cards become 93 of bus bandwidth.
    assert bus(two_nodes(8, "connectx-7-ndr"), "n[0-1]gpu[0-7]", collective="all_to_all") == pytest.approx(91, rel=0.04)


def test_pcie_peers_are_used_below_a_switch_or_where_asked_for() -> None:
    peers = bus(pcie_box(), "gpu[0-3]", settings=replace(PLAIN, p2p=True))
    memory = bus(pcie_box(), "gpu[0-3]")
    off = predict_collective(pcie_box(), Collective.ALL_REDUCE, "gpu[0-3]", [GiB], replace(PLAIN, p2p=False))
    pair = bus(pcie_box(gpus=2), "gpu[0-1]")  # two GPUs on an AMD CPU
    assert peers > 1.1 * memory
    assert off.points[0].limit.endswith("(through shared memory)")
    assert pair > 1.1 * memory


def test_shared_memory_costs_less_where_ports_carry_one_direction() -> None:
    # Two RTX 2080 Ti: 4.0 GB/s of all_reduce, 11.1 of broadcast; the maintainer says the same in NVIDIA/nccl#384.
    off = replace(PLAIN, p2p=False)
    pair = pcie_box(gpus=2)
    assert bus(pair, "gpu[0-1]", collective="broadcast", settings=off) > 1.4 * bus(pair, "gpu[0-1]", settings=off)
    four = pcie_box()
    both = bus(four, "gpu[0-3]", settings=off)
    assert bus(four, "gpu[0-3]", collective="broadcast", settings=off) == pytest.approx(both, rel=0.05)


def machine_bus(machine: str, ranks: str, collective: Collective) -> CollectivePoint:
    """1 GiB over shared memory on a measured machine."""
    system = next(m for m in ready_machines() if m.name == machine).system(builtin())
    return predict_collective(system, collective, ranks, [GiB], replace(PLAIN, p2p=False)).points[0]


def test_shared_memory_is_no_faster_than_a_measured_cpu() -> None:
    # DMA of the first CPU's generation was measured.
    measured, typical = (machine_bus(machine, "gpu[0-7]", Collective.ALL_REDUCE)
                         for machine in ("rtx5090-gold-6530-staged", "rtx5090-xeon-8480"))  # fmt: skip
    assert measured.limit in ("memory of cpu0", "memory of cpu1")
    assert typical.limit.endswith("(through shared memory)")
    assert measured.bus_bandwidth < 0.9 * typical.bus_bandwidth


def test_an_intel_cpu_reads_from_its_cache_what_a_gpu_of_its_socket_wrote() -> None:
    # Two Xeon 8558P: 35.5 GB/s of four GPUs of one socket, 24.0 of all eight, half of whose data cross the sockets.
    one, two = (machine_bus("rtx5090-xeon-8558p", ranks, Collective.ALL_TO_ALL) for ranks in ("gpu[0-3]", "gpu[0-7]"))
    assert two.limit.startswith("memory of cpu")  # where what crosses the sockets is written and read
    assert two.bus_bandwidth < 0.85 * one.bus_bandwidth


def test_kernels_are_not_slowed_by_what_copy_engines_take_from_each_other() -> None:
    # The reads of an A100's copy engine starve behind its writes, 15 of 26 GB/s; a ring of three measured 20 GB/s.
    system = next(m for m in ready_machines() if m.name == "a100-pairs-nccl").system(builtin())
    point = predict_collective(system, Collective.ALL_REDUCE, "gpu[0-2]", [12 * GiB], PLAIN).points[0]
    assert "copy engine" not in point.limit
    assert point.bus_bandwidth > 14e9


def test_peers_whose_kernels_have_fewer_loads_in_flight_reach_less_of_the_same_link() -> None:
    blackwell, ada = (bus(pcie_box(part=part), "gpu[0-3]", settings=replace(PLAIN, p2p=True))
                      for part in ("rtx-pro-6000-blackwell-workstation", "rtx-4090-p2p"))  # fmt: skip
    assert blackwell < 0.95 * ada


def test_nvlinks_switched_off_leave_shared_memory() -> None:
    with_links, without = (bus(gpu_node("h200-sxm", gpus=2), "gpu[0-1]", settings=replace(PLAIN, p2p=p2p))
                           for p2p in (None, False))  # fmt: skip
    assert with_links > 10 * without > 50


def test_who_issues_a_call_adds_to_short_messages_only() -> None:
    node = gpu_node("h100-sxm")
    times = {
        launch: [p.time for p in predict_collective(
            node, Collective.ALL_REDUCE, "gpu[0-7]", [KiB, 8 * GiB], CollectiveSettings(launch=launch)).points]
        for launch in Launch
    }  # fmt: skip
    short = {launch: pair[0] for launch, pair in times.items()}
    assert short[Launch.GRAPH] < short[Launch.NCCL_TESTS] < short[Launch.TORCH]
    assert short[Launch.ONE_PROCESS] > 1.5 * short[Launch.NCCL_TESTS]
    assert times[Launch.TORCH][1] == pytest.approx(times[Launch.GRAPH][1], rel=0.001)


def test_two_ranks_gather_and_scatter_at_less_than_they_reduce_and_send_at_more() -> None:
    pair = gpu_node("h200-sxm", gpus=2)
    rates = {operation: bus(pair, "gpu[0-1]", GiB, operation) for operation in Collective}
    order = ["all_gather", "all_reduce", "sendrecv", "broadcast"]
    assert sorted(order, key=lambda name: rates[Collective(name)]) == order
    assert rates[Collective.REDUCE_SCATTER] == rates[Collective.ALL_GATHER]
    assert rates[Collective.ALL_TO_ALL] == pytest.approx(rates[Collective.SENDRECV], rel=0.03)


def test_ranks_that_all_send_to_all_get_in_each_others_way_at_the_receivers() -> None:
    for part, links, gpus in (("a100-sxm-80gb", 12, 8), ("h200-sxm", 18, 4), ("b200-sxm", 18, 8)):
        node = gpu_node(part, links, gpus)
        to_all, ring = (bus(node, f"gpu[0-{gpus - 1}]", 16 * GiB, operation)
                        for operation in (Collective.ALL_TO_ALL, Collective.BROADCAST))  # fmt: skip
        assert 0.8 * ring < to_all < 0.97 * ring


@pytest.mark.parametrize("machine", ["h200-vm-2gpus-third", "h200-vm-2gpus-fourth"])
def test_two_h200_are_predicted_from_the_other_two(machine: str) -> None:
    found = next(each for each in ready_machines() if each.name == machine)
    rows = [row for row in predict_machine(found, builtin().without_machine(machine)) if row.flow_set == COLLECTIVE]
    long = [row for row in rows if row.observation.metric == "busbw" and row.row.path.endswith(("256 MiB", "1 GiB"))]
    assert len(long) == 10
    assert max(abs(row.error or 1.0) for row in long) < 0.11
    assert all(row.covered for row in long)


@pytest.mark.parametrize("machine", ["rtx4090-genoa", "rtx4090-48g-7302", "rtx4090-dual-epyc"])
def test_long_rings_of_rtx_4090_are_predicted_from_those_of_other_machines(machine: str) -> None:
    found = next(each for each in ready_machines() if each.name == machine)
    rows = [row for row in predict_machine(found, builtin().without_machine(machine)) if row.flow_set == COLLECTIVE]
    peers = [row for row in rows if row.row.path.endswith("1 GiB") and "shared memory" not in row.observation.limit]
    assert peers
    assert max(abs(row.error or 1.0) for row in peers) < 0.10


def test_one_process_may_take_longer_to_issue_a_short_message_than_predicted() -> None:
    # Two GPUs of a virtual machine: 22 to 42 us a call. Of long messages, or in a graph, that is nothing.
    pair = gpu_node("h200-sxm", gpus=2)

    def slowest(launch: Launch, size: float) -> float:
        settings = CollectiveSettings(launch=launch)
        point = predict_collective(pair, Collective.ALL_GATHER, "gpu[0-1]", [size], settings).points[0]
        return size / 2 / point.low / point.time

    assert slowest(Launch.ONE_PROCESS, MiB) > 3 > 2 > slowest(Launch.GRAPH, MiB)
    assert slowest(Launch.ONE_PROCESS, GiB) == pytest.approx(slowest(Launch.GRAPH, GiB), rel=0.01)


def test_a_machine_is_predicted_from_the_others() -> None:
    values = classes_of("nvls_share")["hopper"]
    name = max(values, key=lambda machine: values[machine])
    figure = learned("nvls_share", ["hopper"], {name})
    assert name not in figure.rests_on
    assert figure.value < learned("nvls_share", ["hopper"]).value or len(values) % 2
    assert learned("ramp", ["Ring unknown 1"]).value == 0


def test_learned_figures_come_from_machines_that_are_there_and_not_held_out() -> None:
    machines = {machine.name: machine.held_out for machine in ready_machines()}
    for key in ("ring_share", "ring_drift", "send_channel", "mesh_share", "nvls_share", "nvls_tree_share",
                "network_share", "ramp", "shared_memory_share", "shared_memory_gather", "shared_memory_channel",
                "device_cache", "far_memory_share", "peer_share"):  # fmt: skip
        for values in classes_of(key).values():
            assert {machines[name] for name in values} == {False}, key


def test_ranks_that_make_no_collective() -> None:
    node = gpu_node("h100-sxm")
    with pytest.raises(InputError, match="2 to 1024 ranks, not 1") as alone:
        bus(node, "gpu0")
    assert alone.value.hint == "name GPUs: --ranks 'gpu[0-7]'"
    with pytest.raises(InputError, match="each a GPU, and emulated-two-servers describes none"):
        predict_collective(load_system("emulated-two-servers"), Collective.ALL_REDUCE, [], [GiB])
    with pytest.raises(InputError, match="each a GPU, and pcie-box describes one, gpu0"):
        bus(pcie_box(gpus=1), "gpu0")
    with pytest.raises(Contradiction, match="cpu0 is no GPU"):
        bus(node, "gpu0, cpu0")
    with pytest.raises(UnknownName, match="unknown device"):
        bus(node, "gpu0, gpu77")


def test_nodes_without_cards_do_not_reach_each_other() -> None:
    system = two_nodes(8, "connectx-7-ndr")
    links = tuple(link for link in system.links if link.kind != "network")
    with pytest.raises(Unreachable, match="no network card joins n0gpu0 and n1gpu0"):
        bus(replace(system, links=links), "n[0-1]gpu[0-7]")


def test_collectives_by_any_of_their_names() -> None:
    assert collective_named("alltoall_perf") is Collective.ALL_TO_ALL
    assert collective_named("All-Reduce") is Collective.ALL_REDUCE
    with pytest.raises(UnknownName, match="unknown collective 'all_smash'"):
        collective_named("all_smash")
