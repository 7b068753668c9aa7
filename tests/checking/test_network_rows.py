"""Causes of slow rows over a network: the program, several senders, one host, the way between GPU and card."""

from __future__ import annotations

import pytest

from lanewise.checking.checkup import check
from lanewise.checking.findings import Finding
from lanewise.checking.verdict import Verdict
from lanewise.readers.kinds import read_posted, read_results
from lanewise.results.posted import join
from lanewise.topology.model import System
from lanewise.topology.read import read_system


def findings(*rows: str, head: str = "", system: System | None = None) -> tuple[Finding, ...]:
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    results = read_results(text, "f")
    return check(results.observations, target=system, posted=results.posted).findings


def causes(finding: Finding) -> list[str]:
    return [cause.key[0] for cause in finding.causes]


def test_flows_of_one_direction_need_no_more_than_one_line_and_both_directions_need_two():
    one_way = 'flows: "gpu0->host1, gpu1->host1", value: {} Gb/s, line: 100 Gb/s'
    assert findings(one_way.format(90)) == findings(one_way.format(180)) == ()
    assert [finding.kind for finding in findings(one_way.format(210))] == [Verdict.FAST]
    (finding,) = findings('flows: "gpu0<->host1", value: 90 Gb/s, line: 100 Gb/s')
    assert finding.kind == Verdict.SLOW


def test_a_host_that_gets_less_than_another_by_the_same_program_has_a_reason_of_its_own():
    slow, fast = 'flows: "host1->host0", value: 3 GB/s', 'flows: "host2->host0", value: 5 GB/s'
    finding, *_ = findings(slow, fast)
    assert [cause.key for cause in finding.causes[:2]] == [("far NUMA node",), ("link", "host1")]
    assert finding.causes[0].evidence == "host2->host0 reached 5 GB/s with the same program"
    finding, *_ = findings(f"path: iperf3, {slow}", f"path: iperf, {fast}")
    assert causes(finding)[0] == "software"


def test_gpu_memory_that_is_as_slow_as_host_memory_waits_for_the_card():
    gpu, host = (f'flows: "{end}->host1", value: {{}} Gb/s, line: 400 Gb/s' for end in ("gpu0", "host0"))
    first, *_ = findings(gpu.format(100), host.format(101))
    assert first.causes[0].key == ("link", "network card")
    assert first.causes[0].evidence == "host0->host1 is no faster (101 Gb/s)"
    first, *_ = findings(gpu.format(100), host.format(390))
    assert "link" not in causes(first)


def test_reads_of_a_gpu_that_are_slower_than_writes_into_it_cross_a_root_complex():
    rows = [f'flows: "{flow}", value: {rate} Gb/s, line: 400 Gb/s' for flow, rate in (
        ("host0->host1", 380), ("gpu0->host1", 150), ("host1->gpu0", 240))]  # fmt: skip
    (reads, *_) = (finding for finding in findings(*rows) if finding.results[0].row.flow == "gpu0->host1")
    assert causes(reads)[0] == "acs"
    assert reads.causes[0].evidence == "writes into gpu0 reached 240 Gb/s, reads wait longer there"
    # As slow both ways: through host memory.
    (reads, *_) = findings(*rows[:2], rows[2].replace("240", "155"))
    assert causes(reads)[0] == "staged"


@pytest.mark.parametrize(
    ("rate", "more", "kinds"),
    [(4, "line: 100 Gb/s", ["slow"]), (6, "line: 100 Gb/s", ["unknown"]), (4, "line: 100 Gb/s, ranks: 16", ["unknown"]),
     (20, "line: 100 Gb/s", ["unknown"]), (4, "line: 100 Gb/s, bytes: 1 MiB", ["unknown"]), (1.1, "", ["unknown"])],
)  # fmt: skip
def test_a_ring_of_one_rank_a_host_is_slow_far_below_the_line_and_never_ok(rate: float, more: str, kinds: list[str]):
    row = f'path: all_gather, flows: "gpu0->host1", value: {rate} GB/s, metric: bus_bandwidth'
    result = findings(f"{row}, {'bytes: 1 GiB, ' * ('bytes' not in more)}{'ranks: 2, ' * ('ranks' not in more)}{more}")
    assert [finding.kind for finding in result] == kinds
    assert ("state the network's rate" in result[0].step) is ("line" not in more)


@pytest.mark.parametrize(("rate", "verdict"), [(64, Verdict.SLOW), (68, Verdict.UNKNOWN)])
def test_less_than_two_thirds_of_a_line_are_slow(rate: int, verdict: Verdict):
    (finding,) = findings(f'flows: "gpu0->host1", value: {rate} Gb/s, line: 100 Gb/s')
    assert finding.kind == verdict


def test_another_program_that_carries_more_over_the_same_network_comes_first():
    line = 'flows: "gpu0->host1", value: 13 GB/s, line: 400 Gb/s'
    wire = 'flows: "host0->host1", value: 390 Gb/s, line: 400 Gb/s'
    (finding,) = findings(f"path: NCCL, {line}", f"path: ib_write_bw, {wire}")
    assert causes(finding)[:2] == ["software", "staged"]
    assert finding.causes[0].evidence == "'ib_write_bw' reached 390 Gb/s over the same network"
    # One program alone: the memory makes the difference.
    (finding,) = findings(line, wire)
    assert "software" not in causes(finding)


def test_several_senders_that_get_less_together_than_one_alone_are_congested():
    alone = 'flows: "host0->host2", value: 23 Gb/s, line: 25 Gb/s'
    both = 'flows: "host0->host2, host1->host2", value: 5 Gb/s, line: 25 Gb/s'
    (finding,) = findings(alone, both)
    assert causes(finding)[0] == "congestion"
    assert "2 senders share a port of host2" in finding.title


def test_a_host_that_every_slow_pair_has_is_the_cause_and_no_gpu_is_far_for_it():
    pairs = [("gpu0", 3, 45), ("gpu1", 3, 44), ("gpu0", 1, 88), ("gpu0", 2, 87)]
    (finding,) = findings(*(f'flows: "{gpu}->host{n}", value: {v} GB/s, line: 800 Gb/s' for gpu, n, v in pairs))
    assert finding.causes[0].key == ("common", "host3")
    assert not any(cause.evidence for cause in finding.causes if cause.key[0] == "far device")


def test_a_gpu_without_memory_of_its_own_is_not_far_from_a_card():
    (finding,) = findings('flows: "gpu0->host1", value: 3 GB/s, line: 200 Gb/s', head="gpus: NVIDIA GB10\n")
    assert causes(finding)[0] == "software"
    assert not {"far device", "staged", "acs"} & set(causes(finding))


def test_half_of_a_line_may_be_one_port_of_two():
    (finding,) = findings('flows: "host0->host1", value: 100 Gb/s, line: 200 Gb/s')
    assert causes(finding) == ["software", "link", "port"]


TWO_HOSTS = """\
lanewise: 1
system: two
hosts: [near, far]
devices:
  cpu0: {cpu: "EPYC 9554", host: near}
  cpu1: {cpu: "EPYC 9554", host: far}
  sw0: {switch: null, host: near}
  gpu0: {gpu: h100-sxm, host: near}
  nic0: {nic: connectx-7-ndr, host: near}
  nic1: {nic: connectx-7-ndr, host: far}
  net: {netswitch: null}
links:
  - {from: cpu0, to: sw0, pcie: gen5 x16}
  - {from: sw0, to: [gpu0, nic0], pcie: gen5 x16}
  - {from: cpu1, to: nic1, pcie: gen5 x16}
  - {from: "nic[0-1]", to: net, network: ndr}
"""


@pytest.fixture(scope="module")
def two_hosts() -> System:
    return read_system(TWO_HOSTS, "two.yaml")


def test_of_described_hosts_links_are_one_kind_of_cause_and_gpudirect_another(two_hosts: System):
    (finding,) = findings('flows: "gpu0->far", value: 15 GB/s', system=two_hosts)
    assert causes(finding) == ["link", "staged", "far device"]
    stated = "stated: {GPUDirect RDMA: off}\n"
    (finding,) = findings('flows: "gpu0->far", value: 15 GB/s', head=stated, system=two_hosts)
    assert (causes(finding)[0], finding.causes[0].evidence) == ("staged", "f:2")
    (finding,) = findings('flows: "near->far", value: 16 GB/s', system=two_hosts)
    assert causes(finding) == ["link", "software", "relaxed ordering"]


def test_the_line_that_ibstat_or_ethtool_show_is_that_of_rows_over_the_network():
    iperf = "[SUM]   0.00-10.04  sec  41.0 GBytes  35.2 Gbits/sec                  receiver\n"
    for line in ("\t\tRate: 100\n", "\trate:\t\t 100 Gb/sec (4X EDR)\n", "\tSpeed: 100000Mb/s\n"):
        results = read_results(line + iperf, "f")
        (result,) = check(results.observations, posted=results.posted).results
        assert (result.verdict, result.expected.limit) == (Verdict.SLOW, "the line of 100 Gb/s")


def test_a_link_that_the_kernel_calls_limited_is_evidence():
    kernel = "pci 0000:01:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link at 0000:00:01.0 "
    kernel += "(capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)\n"
    statements = read_posted(kernel, "dmesg").posted
    rows = 'lanewise-rows: 1\ngpus: NVIDIA GeForce RTX 3090\nrows:\n  - {flows: "host0->gpu0", value: 3.1 GB/s}\n'
    results = read_results(rows, "f")
    (finding,) = check(results.observations, posted=join([results.posted, statements])).findings
    assert finding.title == "the kernel says that a link runs at Gen3 x4 at 0000:00:01.0, a device there can Gen4 x16"
    assert finding.causes[0].evidence == "dmesg:1"


def test_a_drive_at_half_of_its_equals_may_have_a_narrow_link_and_one_that_writes_faster_has_none():
    rates = {"nvme0": 6.8, "nvme1": 6.9, "nvme2": 6.7, "nvme3": 3.4}
    (finding, *_) = findings(*(f'flows: "{drive}->host0", value: {rate} GB/s' for drive, rate in rates.items()))
    assert [cause.key for cause in finding.causes] == [("link", "nvme3"), ("drive", "nvme3"), ("software",)]
    (finding, *_) = findings('flows: "nvme0->host0", value: 1.5 GB/s', 'flows: "host0->nvme0", value: 2.9 GB/s')
    assert (finding.kind, causes(finding)) == (Verdict.SLOW, ["software", "setting"])
    assert finding.results[0].expected.limit == "writes to the same drive"


def test_perftest_counts_megabytes_of_two_to_the_twenty():
    row = 'flows: "host0->host1", value: 1139 MB/s, bytes: 64 KiB, line: 40 Gb/s'
    (finding,) = findings(f"path: ib_write_bw, {row}")
    assert causes(finding)[0] == "port"
    assert "10 Gb/s" in finding.causes[0].what
    (finding,) = findings(f"path: a program, {row}")
    assert "port" not in causes(finding)


def test_the_commonest_cause_of_a_path_is_told_after_a_single_one_that_nothing_speaks_for():
    (finding,) = findings('path: wget, flows: "host0->host1", value: 3 Gb/s, line: 10 Gb/s, metric: total')
    assert causes(finding)[:2] == ["software", "setting"]
    assert finding.causes[1].rank == 5


@pytest.mark.parametrize(("depth", "slow"), [(64, 1), (1, 0)])
def test_short_requests_to_a_drive_are_compared_where_their_settings_are_equal(depth: int, slow: int):
    row = 'flows: "nvme0->host0", bytes: 64 KiB'
    one, sixteen = (
        f"{row}, path: one thread, value: 0.7 GB/s, depth: {depth}",
        f"{row}, path: sixteen, value: 3 GB/s, depth: 64",
    )
    found = [finding for finding in findings(one, sixteen) if finding.kind == Verdict.SLOW]
    assert len(found) == slow
    assert all("software" in causes(finding)[:2] for finding in found)


@pytest.mark.parametrize(("name", "named"), [("one NUMA node", True), ("other program", False)])
def test_rows_of_one_path_that_are_named_after_nodes_differ_in_their_memory(name: str, named: bool):
    row = 'flows: "host0->gpu0"'
    (finding, *_) = findings(f"{row}, path: {name}, value: 4.5 GB/s", f"{row}, path: usual, value: 12.7 GB/s")
    assert ("far NUMA node" in causes(finding)[:2]) == named
