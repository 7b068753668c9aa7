"""Rows of healthy machines that are far below what their own figures would let: none is called slow."""

from __future__ import annotations

import pytest

from lanewise.checking.checkup import Checkup, check
from lanewise.checking.collective_rows import BUS_BANDWIDTH
from lanewise.checking.expectation_model import ExpectationModel
from lanewise.checking.verdict import Verdict
from lanewise.readers.kinds import read_results
from lanewise.results.observation import Observation, Source
from lanewise.topology.read import read_system

TWO_SOCKETS = """\
lanewise: 1
system: two-sockets
devices: {"cpu[0-1]": {cpu: milan}, gpu0: {gpu: a100-pcie-80gb}}
links:
  - {from: cpu0, to: cpu1, socket: auto}
  - {from: cpu0, to: gpu0, pcie: gen4 x16}
"""
OVER_A_NETWORK = """\
lanewise: 1
system: nfs
hosts: [client, server]
devices:
  cpu0: {cpu: milan, host: client}
  cpu1: {cpu: milan, host: server}
  gpu0: {gpu: a100-pcie-80gb}
  "nic[0-1]": {nic: connectx-5-edr}
  net: {netswitch: null}
links:
  - {from: cpu0, to: [gpu0, nic0], pcie: gen3 x16}
  - {from: cpu1, to: nic1, pcie: gen3 x16}
  - {from: "nic[0-1]", to: net, network: edr}
"""
EIGHT_BELOW_ONE_BRIDGE = """\
lanewise: 1
system: eight
devices: {cpu0: {cpu: "EPYC 9374F"}, "sw[0-1]": {switch: null}, "gpu[0-7]": {gpu: rtx-pro-6000-blackwell-workstation}}
links:
  - {from: cpu0, to: "sw[0-1]", pcie: gen5 x16}
  - {from: sw0, to: "gpu[0-3]", pcie: gen5 x16}
  - {from: sw1, to: "gpu[4-7]", pcie: gen5 x16}
"""


def checked(system: str, *rows: str) -> Checkup:
    text = "lanewise-rows: 1\nrows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    return check(read_results(text, "f").observations, target=read_system(system, "system.yaml"))


TWO_H200 = """\
lanewise: 1
system: two-h200
devices: {cpu0: {cpu: emerald-rapids}, "gpu[0-1]": {gpu: h200-sxm}, nvs: {nvswitch: null}}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: gen5 x16}
  - {from: "gpu[0-1]", to: nvs, nvlink: 18}
"""
TWO_ROOT_PORTS = """\
lanewise: 1
system: two-ports
devices: {cpu0: {cpu: haswell-ep}, "gpu[0-1]": {gpu: null}}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: gen3 x16}
"""


def test_what_a_root_complex_forwards_between_peers_differs_from_host_to_host():
    # Nobody named the GPUs: they may stage their copies, or be held back between root ports, as any of Gen3 is.
    rates = (("8.2", Verdict.OK), ("4", Verdict.SLOW))
    for rate, verdict in rates:
        checkup = checked(TWO_ROOT_PORTS, f'flows: "gpu0->gpu1", value: {rate} GB/s')
        assert checkup.results[0].verdict is verdict


BELOW_ONE_SWITCH = """\
lanewise: 1
system: one-switch
devices: {cpu0: {cpu: null}, sw0: {switch: null}, "gpu[0-1]": {gpu: rtx-2080-ti}}
links:
  - {from: cpu0, to: sw0, pcie: gen3 x16}
  - {from: sw0, to: "gpu[0-1]", pcie: gen3 x16}
"""


def test_a_staged_copy_is_fine_a_little_below_its_stages_in_turn():
    rates = (("5.7", Verdict.OK), ("4", Verdict.SLOW))
    for rate, verdict in rates:
        checkup = checked(BELOW_ONE_SWITCH, f'flows: "gpu0->gpu1", value: {rate} GB/s, p2p: false')
        assert checkup.results[0].verdict is verdict


def test_both_ways_to_the_memory_of_the_far_socket_may_be_as_slow_as_one_way():
    (one_way,) = checked(TWO_SOCKETS, 'flows: "host0:1->gpu0", value: 24 GB/s').results
    assert one_way.verdict is Verdict.OK
    verdicts = [
        checked(TWO_SOCKETS, f'flows: "host0:{node}<->gpu0", value: {rate} GB/s').results[0].verdict
        for node, rate in ((1, 25), (1, 10), (1, 17), (0, 17))
    ]
    assert verdicts == [Verdict.OK, Verdict.SLOW, Verdict.OK, Verdict.SLOW]


def test_memory_of_a_stated_node_may_be_far_where_nobody_described_the_machine():
    text = "lanewise-rows: 1\ngpus: AMD Instinct MI100\nrows:\n  - {{flows: {flows}, value: {rate} GB/s}}\n"
    rates = (('"cpu1<->gpu0"', 25), ('"host0:1->gpu0"', 14), ('"host0<->gpu0"', 25), ('"host0->gpu0"', 14))
    results = [read_results(text.format(flows=flows, rate=rate), "f") for flows, rate in rates]
    verdicts = [check(each.observations, posted=each.posted).results[0].verdict for each in results]
    assert verdicts == [Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.SLOW, Verdict.SLOW]


def test_over_a_network_only_perftest_reaches_the_payload_of_the_line():
    rates = (("10.2", Verdict.OK), ("7", Verdict.SLOW))
    for rate, verdict in rates:
        checkup = checked(OVER_A_NETWORK, f'flows: "server->gpu0", value: {rate} GB/s')
        assert checkup.results[0].verdict is verdict
        assert checkup.results[0].tolerance is not None
        assert checkup.results[0].tolerance.basis == "line"


def test_eight_gpus_below_one_bridge_may_reach_less_than_two_thirds_of_their_uplinks_but_not_half():
    rates = (("73", Verdict.OK), ("55", Verdict.SLOW))
    for rate, verdict in rates:
        checkup = checked(EIGHT_BELOW_ONE_BRIDGE, f'flows: "gpu[0-7]->host0", value: {rate} GB/s')
        assert checkup.results[0].verdict is verdict


@pytest.mark.parametrize(
    ("gpu", "cpu", "rate", "verdict"),
    [
        # The rate of Gen4 x16: a Gen5 card is fine there if its host has no more, which a board with NVLinks has.
        ("NVIDIA H100 PCIe", "", 26, Verdict.UNKNOWN), ("NVIDIA H100 PCIe", "", 14, Verdict.SLOW),
        ("NVIDIA H100 PCIe", "AMD EPYC 9374F", 26, Verdict.SLOW), ("NVIDIA H100 PCIe", "AMD EPYC 7763", 26, Verdict.OK),
        ("NVIDIA H100 80GB HBM3", "", 26, Verdict.SLOW),
        # Laptops have eight lanes.
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "", 12, Verdict.OK), ("NVIDIA GeForce RTX 3080", "", 10, Verdict.SLOW),
    ],
)  # fmt: skip
def test_a_card_is_not_slow_where_its_host_may_have_no_more(gpu: str, cpu: str, rate: int, verdict: Verdict):
    stated = f"stated: {{cpu: {cpu}}}\n" if cpu else ""
    row = f'{{flows: "host0->gpu0", value: {rate} GB/s, host memory: pinned}}'
    results = read_results(f"lanewise-rows: 1\ngpus: {gpu}\n{stated}rows:\n  - {row}\n", "f")
    (result,) = check(results.observations, posted=results.posted).results
    assert result.verdict is verdict


def test_two_gpus_whose_one_process_issues_slowly_and_whose_blocks_wait_for_posts():
    # Medians of a healthy virtual machine with two H200 (benchmarks/runs/2026-11-26-two-gpus/h200).
    ring, how = "gpu0->gpu1, gpu1->gpu0", {"library": "NCCL 2.28.9", "launch": "nccl-tests -g"}
    calls = [
        Observation(
            "reduce_scatter", ring, BUS_BANDWIDTH, rate * 1e9, "GB/s", Source.MEASURED, how=how,
            settings={"bytes": size, "hosts": 1, "ranks": 2},
        )
        for size, rate in ((2**20, 14.2), (2**22, 50.9), (2**28, 234.6))
    ]  # fmt: skip
    blocks = [
        Observation(
            "blocks both ways by cuMemcpyBatchAsync-256", flow, "goodput", rate * 1e9, "GB/s", Source.MEASURED,
            settings={"bytes": 2**17, "blocks": 8192}, path="peer",
            how={"flows": ring, "p2p": "on"},
        )
        for flow, rate in (("gpu0->gpu1", 72.3), ("gpu1->gpu0", 75.6))
    ]  # fmt: skip
    results = check(calls + blocks, target=read_system(TWO_H200, "system.yaml")).results
    assert [each.verdict for each in results] == [Verdict.OK] * 5


def test_small_copies_of_a_gpu_that_nobody_measured_are_not_judged():
    # What other GPUs take stands for it in `predict`, a factor of two apart.
    values = []
    for gpu in ("a30", "a100-pcie-40gb"):
        system = read_system(BELOW_ONE_SWITCH.replace("rtx-2080-ti", gpu), "s.yaml")
        row = Observation("small", "gpu0->gpu1", "latency", 90e-6, "us", Source.MEASURED, path="peer")
        values.append(ExpectationModel(system).value(row))
    assert values == [None, pytest.approx(2e-6, rel=0.05)]
