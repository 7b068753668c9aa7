"""Causes that only rates speak for: NVLinks not in use, narrow links of pairs, IOMMU; and those that cannot be."""

from __future__ import annotations

import pytest

from lanewise import api
from lanewise.checking.checkup import Checkup, check
from lanewise.checking.verdict import Verdict
from lanewise.collectives.curve import predict_collective
from lanewise.collectives.model import Collective
from lanewise.errors import FormatError, UnknownName
from lanewise.readers.kinds import read_results
from lanewise.topology.model import System
from lanewise.topology.read import read_system

PAIRS = [(a, b) for a in range(4) for b in range(4) if a != b]
STAGED = [f'flows: "gpu{a}->gpu{b}", value: 20.9 GB/s, p2p: false' for a, b in PAIRS]


def checked(*rows: str, system: System | None = None, head: str = "") -> Checkup:
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    results = read_results(text, "f")
    return check(results.observations, target=system, posted=results.posted)


def causes(checkup: Checkup) -> list[str]:
    return [cause.key[0] for cause in checkup.findings[0].causes]


@pytest.fixture(scope="module")
def board() -> System:
    return api.load_system("dgx-a100")


@pytest.mark.parametrize("rate", [19.5, 11.0])
def test_nvlinks_that_are_not_in_use_are_named_though_host_memory_would_explain_the_rate(board: System, rate: float):
    checkup = checked(*(f'flows: "gpu{a}->gpu{b}", value: {rate} GB/s' for a, b in PAIRS), *STAGED, system=board)
    (finding,) = checkup.findings
    assert finding.causes[0].key == ("nvlink",)
    assert "carries 31.5 GB/s" in finding.causes[0].evidence
    assert len(finding.results) == len(PAIRS)


def test_half_of_a_gpu_s_nvlinks_are_named_where_staged_copies_are_a_little_above_their_prediction(board: System):
    rows = [f'flows: "gpu{a}->gpu{b}", value: {130 if 2 in (a, b) else 268} GB/s' for a, b in PAIRS]
    staged = [row.replace("20.9", "24") for row in STAGED]
    (finding,) = checked(*rows, *staged, system=board).findings
    assert finding.causes[0].key == ("nvlink", "gpu2")
    assert finding.causes[0].what == "6 of the 12 NVLinks of gpu2 may be down"


def test_a_staged_copy_that_no_link_explains_may_lose_time_between_its_stages():
    pair = read_system(
        "lanewise: 1\nsystem: pair\ndevices:\n  cpu0: {cpu: milan}\n  gpu[0-1]: {gpu: rtx-4090}\n"
        "links:\n  - {from: cpu0, to: 'gpu[0-1]', pcie: gen4 x16}\n", "pair.yaml",
    )  # fmt: skip
    fine = [f'flows: "{a}->{b}", value: 25 GB/s' for a, b in (("host0", "gpu0"), ("gpu0", "host0"), ("host0", "gpu1"))]
    assert "staging" in causes(checked('flows: "gpu0->gpu1", value: 9 GB/s', *fine, system=pair))
    assert not checked('flows: "gpu0->gpu1", value: 22 GB/s', *fine, system=pair).count(Verdict.SLOW)


def test_a_pair_that_is_slow_with_no_copy_through_host_memory_may_suffer_from_the_iommu():
    checkup = checked('flows: "gpu0->gpu1", value: 1.9 GB/s', head="gpus: GeForce RTX 4090\n")
    assert checkup.count(Verdict.SLOW) == 1
    assert "iommu" in causes(checkup)[:2]


_TWO_A40 = """
lanewise: 1
system: two-a40
devices: {cpu0: {cpu: %s}, "gpu[0-1]": {gpu: a40}}
links: [{from: cpu0, to: "gpu[0-1]", pcie: gen4 x16}]
policies: {peers: system, iommu: %s}
"""


def test_a_description_that_leaves_the_iommu_open_is_no_excuse_and_names_it_first():
    peers = 'flows: "gpu0->gpu1", value: 1.3 GB/s'
    silent, off = (read_system(_TWO_A40 % ("null", mode), "s.yaml") for mode in ("null", "off"))
    checkup = checked(peers, system=silent)
    assert checkup.count(Verdict.SLOW) == 1
    assert causes(checkup)[0] == "iommu"
    assert causes(checked(peers, system=off))[0] == "link"


def test_a_ring_through_shared_memory_is_slow_where_only_an_open_iommu_would_make_it_so():
    silent = read_system(_TWO_A40 % ("null", "null"), "s.yaml")
    low = predict_collective(silent, Collective.ALL_REDUCE, ["gpu0", "gpu1"], [2.0**30]).points[0].low
    value = 'flows: "gpu[0-1]->gpu[0-1]", value: %.2f GB/s, path: all_reduce, bytes: 1 GiB'
    checkup = checked(value % (1.4 * low / 1e9), system=silent)
    assert checkup.count(Verdict.SLOW) == 1


def test_a_copy_at_the_rate_of_page_walks_is_the_iommus_unless_it_is_stated_off():
    row = 'flows: "gpu0->host0", value: 21.4 GB/s'
    text = _TWO_A40.replace("a40}", "rtx-4090}")
    (finding,) = checked(row, system=read_system(text % ("rome", "null"), "s.yaml")).findings
    assert finding.causes[0].key == ("iommu",)
    assert finding.causes[0].explains
    assert "iommu" not in causes(checked(row, system=read_system(text % ("rome", "off"), "s.yaml")))


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ('flows: "gpu0->gpu1", value: 270 MB/s', "270 MB/s is 1,000 times too low, 270 GB/s would be fine"),
        ('flows: "host0->gpu1", value: 24900 GB/s', "24,900 GB/s is 1,000 times too high, 24.9 GB/s would be fine"),
        ('flows: "gpu0->gpu1", value: 2.4 ms', "2.4 ms is 1,000 times too high, 2.4 us would be fine"),
    ],
)
def test_a_value_a_thousand_times_off_names_its_unit(board: System, row: str, what: str):
    (finding,) = checked(row, system=board).findings
    assert finding.title == f"perhaps the unit is mistaken: {what}"
    assert "MB/s or GB/s" in finding.step


def test_a_value_that_no_unit_explains_has_no_such_cause(board: System):
    assert "unit" not in causes(checked('flows: "gpu0->gpu1", value: 100 GB/s', system=board))


def test_a_narrow_link_is_named_for_a_pair_and_for_both_ways_of_one_gpu():
    pair = checked('flows: "gpu0->gpu1", value: 3.4 GB/s', head="gpus: GeForce RTX 4090\n")
    assert pair.findings[0].causes[0].key == ("link", "gpu0", "gpu1")
    known = checked(
        'flows: "gpu0->gpu1", value: 3.4 GB/s', 'flows: "host0->gpu1", value: 3.2 GB/s', head="gpus: GeForce RTX 4090\n"
    )
    assert ("link", "gpu1") in [finding.causes[0].key for finding in known.findings]
    both = checked('flows: "host0<->gpu0", value: 24.5 GB/s', head="gpus: GeForce RTX 3090\n")
    assert both.findings[0].causes[0].key == ("link", "gpu0")
    assert "a host or slot of Gen3 gives no more" in both.findings[0].step


@pytest.mark.parametrize(
    ("head", "named"),
    [
        ("gpus: GeForce GTX 1080\n", False), ("gpus: Tesla T4\n", True),
        ("gpus: GeForce GTX 1080\nstated: {cpu: EPYC 7742}\n", True),
        ("gpus: Tesla T4\nstated: {cpu: Core i7-9700}\n", False),
    ],
)  # fmt: skip
def test_a_desktop_has_no_far_memory(head: str, named: bool):
    checkup = checked('flows: "host0->gpu0", value: 4.5 GB/s', head=head)
    assert ("far NUMA node" in causes(checkup)) is named


def test_tools_that_pin_their_buffers_are_not_suspected_of_pageable_memory():
    text = (
        "nvbandwidth Version: v0.4\nDevice 0: Tesla T4\nRunning host_to_device_memcpy_ce.\n"
        "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n           0\n 0     4.50\n"
    )
    results = read_results(text, "f")
    checkup = check(results.observations, posted=results.posted)
    assert checkup.count(Verdict.SLOW) == 1
    assert "pageable" not in causes(checkup)


def test_a_fine_copy_of_pageable_memory_is_called_one():
    checkup = checked('flows: "host0->gpu0", value: 6 GB/s, host memory: pageable', head="gpus: Tesla T4\n")
    assert checkup.count(Verdict.OK) == 1
    assert "pageable memory" in (checkup.results[0].expected.limit or "")
    (note,) = checkup.notes
    assert note.startswith("a copy of pageable memory is as fast as those are; pinned memory reaches about 12.4 GB/s")


def test_latencies_that_no_figure_tells_leave_nothing_open_beside_fine_rates():
    rows = ('flows: "gpu0->gpu1", value: 24 GB/s', 'flows: "gpu0->gpu1", value: 12 us')
    checkup = checked(*rows, head="gpus: GeForce RTX 4090\n")
    assert (checkup.exit_code, len(checkup.left_aside)) == (0, 1)
    assert checked(rows[1], head="gpus: GeForce RTX 4090\n").exit_code == 3


def test_a_collective_between_its_bounds_leaves_nothing_open_beside_fine_rates():
    bus = 'flows: "gpu0->gpu1, gpu1->gpu0", value: 12 GB/s, metric: bus_bandwidth'
    rate = 'flows: "gpu0->gpu1", value: 24 GB/s'
    assert checked(bus, rate, head="gpus: GeForce RTX 4090\n").exit_code == 0
    assert checked(bus, head="gpus: GeForce RTX 4090\n").exit_code == 3


def test_a_drive_that_a_gpu_reads_slower_than_host_memory_does_is_slow():
    drive = 'flows: "storage0->gpu0", value: 6.9 GiB/s, bytes: 1 MiB'
    assert checked(drive).count(Verdict.SLOW) == 0
    checkup = checked(drive, 'flows: "storage0->host0", value: 20.6 GiB/s, bytes: 1 MiB')
    assert checkup.count(Verdict.SLOW) == 1
    assert causes(checkup) == ["staged", "far device", "acs"]
    smaller = checked(drive, 'flows: "storage0->host0", value: 20.6 GiB/s, bytes: 4 MiB')
    assert smaller.count(Verdict.SLOW) == 0


@pytest.mark.parametrize(
    ("row", "slow"),
    [
        ('flows: "host0->gpu0", value: 3 GB/s, bytes: 4 MiB', True),
        ('flows: "host0->gpu0", value: 6 GB/s, bytes: 4 MiB', False),
        ('flows: "host0->gpu0", value: 4 GB/s, bytes: 1 MB', False),
        ('flows: "host0->gpu0", value: 0.1 GB/s, bytes: 64 KiB', False),
        ('flows: "gpu0->gpu1", value: 0.5 GB/s, bytes: 1 MB', True),
    ],
)
def test_a_short_copy_is_slow_only_where_no_launch_takes_that_long(row: str, slow: bool):
    checkup = checked(row, head="gpus: Tesla V100-SXM2-32GB\n")
    assert checkup.count(Verdict.SLOW) == slow
    assert checkup.count(Verdict.OK) == 0
    if slow:
        assert "software" in causes(checkup)[:2]
    else:
        assert checkup.exit_code == 3


def test_a_short_copy_that_is_as_fast_as_a_long_one_is_fine():
    row = 'flows: "host0->gpu0", value: 20 GB/s, engine: CPU, bytes: 8 MB'
    assert checked(row, head="gpus: NVIDIA A100 80GB PCIe\n").count(Verdict.OK) == 1


def test_kernels_that_read_host_memory_are_fine_at_six_tenths_of_a_copy_engine():
    for rate, verdict in ((35, Verdict.OK), (25, Verdict.SLOW)):
        row = f'flows: "host0->gpu0", value: {rate} GB/s, engine: SM'
        assert checked(row, head="gpus: NVIDIA H100 80GB HBM3\n").results[0].verdict is verdict
        described = "lanewise: 1\nsystem: s\ndevices: {cpu0: {cpu: sapphire-rapids}, gpu0: {gpu: h100-sxm}}\nlinks:\n"
        system = read_system(described + "  - {from: cpu0, to: gpu0, pcie: gen5 x16}\n", "s.yaml")
        assert checked(row, system=system).results[0].verdict is verdict


def test_peers_at_the_best_of_pcie_are_fine_where_a_bridge_is_an_option_and_a_note_says_so():
    checkup = checked('flows: "gpu0->gpu1", value: 26 GB/s', head="gpus: GeForce RTX 3090\n")
    assert checkup.count(Verdict.OK) == 1
    assert checkup.notes[-1].endswith("if a bridge joins these GPUs, its NVLinks are not in use (nvidia-smi nvlink -s)")
    board = checked('flows: "gpu0->gpu1", value: 26 GB/s', head="gpus: NVIDIA H100 80GB HBM3\n")
    assert (board.count(Verdict.SLOW), causes(board)[0]) == (1, "nvlink")


def test_rows_over_lines_of_other_rates_are_not_compared_with_each_other():
    one, four = (f'flows: "gpu{gpu}->host1", value: {rate} GB/s, line: {line} Gb/s' for gpu, rate, line in
                 ((1, 24, 200), (0, 86, 800)))  # fmt: skip
    assert checked(one, four).count(Verdict.OK) == 2
    assert checked(one, four.replace("line: 800", "line: 200")).count(Verdict.SLOW) == 1


def test_a_network_card_whose_link_carries_no_more_is_named():
    checkup = checked('flows: "host0->host1", value: 12.9 GB/s, line: 200 Gb/s')
    keys = [cause.key for cause in checkup.findings[0].causes]
    assert keys[:2] == [("software",), ("link", "network card")]
    assert "Gen3 x16 or Gen4 x8" in checkup.findings[0].causes[1].what
    assert "link" not in causes(checked('flows: "host0->host1", value: 5 GB/s, line: 200 Gb/s'))


def test_a_program_of_one_thread_may_be_why_a_network_of_hosts_is_slow():
    assert causes(checked('flows: "host0->host1", value: 12.5 Gb/s, line: 100 Gb/s'))[0] == "software"


def test_pageable_memory_is_no_cause_where_the_gpu_reads_it_coherently():
    rows = ('path: bound, flows: "host0->gpu0", value: 330 GB/s', 'path: free, flows: "host0->gpu0", value: 115 GB/s')
    assert causes(checked(*rows, head="gpus: NVIDIA GB200\n")) == ["software", "far NUMA node"]


def test_no_host_is_known_that_gives_a_card_gen6():
    assert checked('flows: "host0->gpu0", value: 55 GB/s', head="gpus: NVIDIA B300 SXM\n").count(Verdict.OK) == 1


def test_a_stated_slot_is_what_a_card_can_reach_and_is_left_out_where_the_description_has_it(board: System):
    row = 'flows: "host0->gpu0", value: 6.2 GB/s'
    stated = "stated: {slot: gen3 x8}\n"
    assert checked(row, head="gpus: GeForce RTX 3090\n").count(Verdict.SLOW) == 1
    assert checked(row, head=f"gpus: GeForce RTX 3090\n{stated}").count(Verdict.OK) == 1
    assert checked(row, head=stated).count(Verdict.OK) == 1
    described = checked('flows: "host0->gpu0", value: 25 GB/s', head=stated, system=board)
    assert described.notes[-1] == "the slot 'gen3 x8' is left out: the description has each link"


@pytest.mark.parametrize(
    ("cpu", "verdict", "notes"),
    [("Core i7-6850K", Verdict.OK, 0), ("Core i9-13900K", Verdict.SLOW, 0), ("Foo 3000", Verdict.SLOW, 1)],
)
def test_the_generation_of_a_desktop_cpu_is_known_by_its_name(cpu: str, verdict: Verdict, notes: int):
    checkup = checked(
        'flows: "host0->gpu0", value: 12.2 GB/s', head=f"gpus: GeForce RTX 3090\nstated: {{cpu: {cpu}}}\n"
    )
    assert checkup.results[0].verdict is verdict
    assert len(checkup.notes) == notes


def test_a_near_miss_of_what_can_be_stated_is_refused_with_its_line():
    with pytest.raises(FormatError, match="'slto' is nothing that can be stated") as raised:
        checked('flows: "host0->gpu0", value: 6 GB/s', head="stated: {slto: chipset}\n")
    assert raised.value.hint.startswith("known: cpu, tunnel, slot,")
    assert ":2:" in str(raised.value)


TWO_HOSTS = """\
lanewise: 1
system: pair
hosts: [host0, host1]
devices:
  cpu0: {cpu: emerald-rapids, host: host0}
  cpu1: {cpu: emerald-rapids, host: host1}
  "nic[0-1]": {nic: connectx-7-ndr}
links:
  - {from: "cpu[0-1]", to: "nic[0-1]", pairs: true, pcie: auto}
  - {from: nic0, to: nic1, network: auto}
"""


@pytest.mark.parametrize(("rate", "first"), [(197.96, "port"), (213.0, "link")])
def test_a_port_at_a_lower_rate_is_named_where_the_row_is_just_its_payload(rate: float, first: str):
    head = "RDMA_Write BW Test\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    rows = read_results(f"{head} 65536      20000            {rate}            {rate}            0.37\n", "ib.txt")
    checkup = check(rows.observations, target=read_system(TWO_HOSTS, "pair.yaml"))
    assert causes(checkup)[0] == first


def test_one_gpu_of_several_of_one_name_differs_in_its_slot_or_node():
    rows = 'flows: "host0->gpu0", value: 9 GB/s', 'flows: "host0->gpu1", value: 5 GB/s'
    checkup = checked(*rows, head="gpus: NVIDIA GeForce RTX 3080\n")
    slow = next(finding for finding in checkup.findings if finding.results[0].row.flow == "host0->gpu1")
    assert slow.causes[0].key == ("link", "gpu1")
    assert slow.causes[0].evidence == "host0->gpu0 reached 9 GB/s by the same program"
    server = checked(*rows, head="gpus: NVIDIA A100 80GB PCIe\n")
    assert causes(server)[:2] == ["link", "far NUMA node"]
    # By another program, from other memory, or of another GPU it says nothing.
    other = checked(f"path: one, {rows[0]}", f"path: two, {rows[1]}", head="gpus: NVIDIA GeForce RTX 3080\n")
    pinned = checked(f"{rows[0]}, host memory: pinned", rows[1], head="gpus: NVIDIA GeForce RTX 3080\n")
    unlike = checked(*rows, head="gpus: {gpu0: NVIDIA GeForce RTX 4090, gpu1: NVIDIA GeForce RTX 3080}\n")
    assert {each.findings[0].causes[0].key[0] for each in (other, pinned, unlike)} == {"pageable"}


@pytest.mark.parametrize(
    ("rows", "head", "key"),
    [
        # Three hosts of one kind, of which one has half of the lanes.
        (
            ['path: host a, flows: "host0->gpu0", value: 25.95 GB/s, host memory: pinned',
             'path: host b, flows: "host0->gpu0", value: 13.35 GB/s, host memory: pinned'],
            "gpus: GeForce RTX 5090\n", ("link", "gpu0"),
        ),
        # 1.5 times faster is no other link.
        (
            ['path: program a, flows: "host0->gpu0", value: 20 GB/s, host memory: pinned',
             'path: program b, flows: "host0->gpu0", value: 13.35 GB/s, host memory: pinned'],
            "gpus: GeForce RTX 5090\n", ("software",),
        ),
        (
            ['flows: "host0->gpu0", value: 35.4 GB/s, host memory: pinned, bytes: 4 MiB',
             'flows: "host0->gpu1", value: 3.5 GB/s, host memory: pinned, bytes: 4 MiB'],
            "gpus: {gpu0: GeForce RTX 5090, gpu1: Intel Arc Pro B70}\n", ("link", "gpu1"),
        ),
        (
            ['path: own node, flows: "host0:0->gpu0", value: 3706 GB/s, engine: SM',
             'path: next node, flows: "host0:1->gpu0", value: 67.5 GB/s, engine: SM'],
            "gpus: AMD Instinct MI300A\n", ("far NUMA node",),
        ),
        (
            ['path: "sendrecv, defaults", flows: "gpu[0-7]->gpu[0-7]", value: 0.04 GB/s, bytes: 16 MiB',
             'path: "sendrecv, NCCL_P2P_LEVEL=SYS", flows: "gpu[0-7]->gpu[0-7]", value: 32.7 GB/s, bytes: 16 MiB'],
            "gpus: RTX PRO 6000 Blackwell Server Edition\n", ("setting",),
        ),
        (
            ['path: stock driver, flows: "gpu[0-7]->gpu[0-7]", value: 0.8 GB/s, bytes: 1 GiB, p2p: false',
             'path: patched driver, flows: "gpu[0-7]->gpu[0-7]", value: 12.9 GB/s, bytes: 1 GiB'],
            "gpus: GeForce RTX 4090\n", ("peers",),
        ),
        (
            [f'flows: "{", ".join(f"gpu{b}->gpu{a}" for b in range(4) if b != a)}", value: {88 if a == 2 else 175} GB/s'
             for a in range(4)],
            "", ("link", "gpu2"),
        ),
        (  # a name that says what is off needs no other row
            ['path: "UCX_IB_GPU_DIRECT_RDMA=no", flows: "gpu0->gpu1", value: 625 MB/s, bytes: 100 MB'],
            "gpus: Tesla V100-SXM2-32GB\n", ("setting",),
        ),
        (  # four other GPUs copy from that node at twice the rate
            [f'flows: "host0:0->gpu{a}", value: {56.2 if a else 28.7} GB/s' for a in range(4)],
            "gpus: Radeon AI PRO R9700\nstated: {cpu: AMD EPYC 9575F}\n", ("link", "gpu0"),
        ),
        (
            ['path: NUMA1, flows: "host0:1->gpu4, host0:1->gpu5", value: 55.65 GB/s, of: each',
             'path: NUMA0, flows: "host0:0->gpu4, host0:0->gpu5", value: 37.15 GB/s, of: each'],
            "gpus: Radeon AI PRO R9700\n", ("far NUMA node",),
        ),
        (
            ['flows: "host0->gpu0", value: 10.3 GB/s', 'flows: "gpu0->host0", value: 0.33 GB/s'],
            "gpus: AMD Radeon 8060S\n", ("software",),
        ),
        (
            ['path: "RDMA all_reduce", flows: "gpu[0-7]->gpu[0-7]", value: 316 GB/s, bytes: 1 GiB, hosts: 2',
             'path: "TCP Socket all_reduce", flows: "gpu[0-7]->gpu[0-7]", value: 3.67 GB/s, bytes: 256 MiB, hosts: 2'],
            "gpus: NVIDIA GB300\n", ("transport",),
        ),
        (
            ['path: "all_reduce, EFA", flows: "gpu0->gpu0", value: 4.76 GB/s, metric: bus_bandwidth, hosts: 2',
             'path: "all_reduce, TCP", flows: "gpu0->gpu0", value: 1.03 GB/s, metric: bus_bandwidth, hosts: 2'],
            "gpus: NVIDIA L4\n", ("transport",),
        ),
        (
            ['path: "all_reduce", flows: "gpu[0-3]->gpu[0-3]", value: 103 us, bytes: 80 KiB',
             'path: "all_reduce, NCCL_ALGO=Tree", flows: "gpu[0-3]->gpu[0-3]", value: 150 us, bytes: 80 KiB'],
            "gpus: gfx900\n", ("setting",),
        ),
        (
            ['flows: "host0->host1", value: 2.34 Gb/s, line: 2.5 Gb/s',
             'flows: "host0->host1, host0->host2", value: 1.1 Gb/s, of: each, line: 2.5 Gb/s'],
            "", ("shared", "network card"),
        ),
    ],
)  # fmt: skip
def test_what_differs_between_two_rows_is_the_first_cause(rows: list[str], head: str, key: tuple[str, ...]):
    checkup = checked(*rows, head=head)
    assert checkup.findings[0].kind == "slow"
    assert checkup.findings[0].causes[0].key == key


@pytest.mark.parametrize(
    ("rows", "head", "verdicts"),
    [
        # The service's load is the remark.
        (['path: a, flows: "host0->gpu0", value: 1253 tokens/s, note: "50 prompts"',
          'path: b, flows: "host0->gpu0", value: 50 tokens/s, note: "50 long prompts"'], "", []),
        # Each slot is full.
        (['flows: "nvme0->host0", value: 436 MB/s, bytes: 1 MiB, slot: gen2 x1',
          'flows: "nvme0->host0", value: 781 MB/s, bytes: 1 MiB, slot: gen3 x1'], "", ["ok", "ok"]),
        (['flows: "nvme0->host0", value: 230 MB/s, bytes: 1 MiB, slot: gen2 x1',
          'flows: "nvme0->host0", value: 781 MB/s, bytes: 1 MiB, slot: gen3 x1'], "", ["slow", "ok"]),
        (['flows: "host0->hdd0", value: 189 MB/s', 'flows: "host0->hdd0", value: 1616 MB/s'], "", ["fast", "ok"]),
        (['path: a, flows: "host0->host0", value: 20 GB/s', 'path: b, flows: "host0->host0", value: 60 GB/s'],
         "stated: {memory rate: 25.6 GB/s}\n", ["fast"]),
        (['path: expected, flows: "ssd0->host0", value: 4 GB/s', 'path: dd, flows: "ssd0->host0", value: 14.2 GB/s'],
         "", ["fast", "unknown"]),
        (['flows: "gpu0->gpu0", value: 905 GB/s'], "gpus: TPU\nstated: {memory rate: 900 GB/s}\n", ["fast"]),
        (['path: "decode, INT4", flows: "gpu0->gpu0", value: 33 GB/s'], "gpus: GeForce RTX 5090\n", ["slow"]),
        (['path: "decode, INT4", flows: "gpu0->gpu0", value: 500 GB/s'], "gpus: GeForce RTX 5090\n", []),
        # Rings over NVSwitches near what copies reach are fine, and below it unknown; short messages are.
        (['path: all_reduce, flows: "gpu[0-7]->gpu[0-7]", value: 347 GB/s, metric: bus_bandwidth, bytes: 256 MB'],
         "gpus: NVIDIA H200\n", ["ok"]),
        (['path: all_reduce, flows: "gpu[0-7]->gpu[0-7]", value: 280 GB/s, metric: bus_bandwidth, bytes: 256 MB'],
         "gpus: NVIDIA H200\n", ["unknown"]),
        (['path: all_reduce, flows: "gpu[0-7]->gpu[0-7]", value: 340 GB/s, metric: bus_bandwidth, bytes: 1 MB'],
         "gpus: NVIDIA H200\n", ["unknown"]),
        (['path: all_reduce, flows: "gpu[0-7]->gpu[0-7]", value: 838 GB/s, bytes: 8 GiB, hosts: 2'],
         "gpus: NVIDIA GB300\n", ["ok"]),
        (['path: all_reduce, flows: "gpu[0-7]->gpu[0-7]", value: 41.6 GB/s, metric: bus_bandwidth, hosts: 2'],
         "gpus: Tesla V100-SXM2-16GB\nstated: {line: 200 Gb/s}\n", ["ok"]),
        # No path is as slow as that; fewer and more GPUs do better.
        (['path: all_reduce, flows: "gpu[0-1]->gpu[0-1]", value: 0.2 GB/s, bytes: 128 MiB'],
         "gpus: AMD Instinct MI355X\n", ["slow"]),
        ([f'path: all_reduce, flows: "gpu[0-{n - 1}]->gpu[0-{n - 1}]", value: {v} GB/s, bytes: 1 GiB'
          for n, v in ((4, 165), (5, 37), (8, 386))], "gpus: AMD Instinct MI355X\n", ["ok", "slow", "ok"]),
        # The GPU's link, not the line; a dock of four lanes; GPUs that have no memory of their own.
        (['flows: "nfs->gpu0", value: 26.4 GiB/s, line: 400 Gb/s'], "gpus: NVIDIA L40S\n", ["ok"]),
        (['path: M.2 to OCuLink, flows: "host0->gpu0", value: 6.77 GB/s'], "gpus: Intel Arc B580\n", ["ok"]),
        (['path: OCuLink, flows: "host0->gpu0", value: 2.9 GB/s'], "gpus: GeForce RTX 5070 Ti\n", ["slow"]),
        (['flows: "host0->gpu0", value: 59.5 GB/s, host memory: pinned, bytes: 2 GiB'],
         "gpus: NVIDIA GB10\n", ["unknown"]),
        # Links of their own, of no known rate.
        (['flows: "gpu0->gpu1", value: 158.5 GB/s'], "gpus: Intel Data Center GPU Max 1550\n", ["ok"]),
        # Decoding that leaves the memory idle; another kernel that says no work; a step's time.
        (['path: decode, flows: "gpu0->gpu0", value: 45 GB/s'], "stated: {memory rate: 256 GB/s}\n", ["slow"]),
        (['path: "any, fp16", flows: "gpu0->gpu0", value: 692 GB/s',
          'path: tiled, flows: "gpu0->gpu0", value: 3200 GB/s'],
         "gpus: GH200 120GB\n", ["slow", "ok"]),
        (['path: step, flows: "host0->gpu0", value: 20 s', 'path: "step, pinned", flows: "host0->gpu0", value: 10 s'],
         "", ["slow"]),
        # A dongle at an old port, an SD card, memory of an embedded chip.
        (['path: USB 2.0 adapter, flows: "host0->pc", value: 311 Mbits/sec, line: 1 Gb/s'], "", ["ok"]),
        (['path: USB 2.0 adapter, flows: "host0->pc", value: 200 Mbits/sec, line: 1 Gb/s'], "", ["slow"]),
        (['flows: "sd0->host0", value: 88 MB/s, bytes: 16M', 'flows: "host0->sd0", value: 65 MB/s, bytes: 16M'], "",
         ["unknown", "unknown"]),
        (['flows: "host0->host0", value: 3900 MB/s'], "stated: {memory rate: 3200 MB/s}\n", ["fast"]),
        # One and two of the four NVLinks of a P100, two of a V100's six; half of one is neither.
        (['flows: "gpu0->gpu3", value: 36.39 GB/s', 'flows: "gpu0->gpu1", value: 18.31 GB/s'],
         "gpus: Tesla P100-SXM2-16GB\n", ["ok", "ok"]),
        (['flows: "gpu1->gpu2", value: 45.93 GB/s'], "gpus: Tesla V100-SXM2-32GB\n", ["ok"]),
        (['flows: "gpu1->gpu2", value: 33 GB/s'], "gpus: Tesla V100-SXM2-32GB\n", ["unknown"]),
        (['flows: "host0->gpu0", value: 20.1 GB/s, host memory: pinned'],
         "gpus: GeForce RTX 5070 Laptop GPU\nstated: {slot: gen5 x8}\n", ["ok"]),
    ],
)  # fmt: skip
def test_rows_of_other_work_and_other_slots_are_no_measure_and_what_no_device_does_is_fast(
    rows: list[str], head: str, verdicts: list[str]
):
    assert sorted(result.verdict.value for result in checked(*rows, head=head).results) == sorted(verdicts)


def test_flows_may_be_parted_by_blanks_and_a_remark_with_a_comma_needs_quotes():
    checkup = checked('flows: "nvme0->host0 nvme1->host0", value: 5 GB/s')
    assert checkup.results[0].row.flow == "nvme0->host0, nvme1->host0"
    with pytest.raises(UnknownName) as error:
        checked('flows: "nvme0->host0", value: 5 GB/s, note: sequential, 3 x Intel')
    assert error.value.hint == 'a text with a comma needs quotes: "..., 3 x Intel"'


def test_a_program_on_host_copies_and_one_on_peers_are_two_findings():
    paths = ('flows: "host0->gpu0", host memory: pinned', 'flows: "gpu0->gpu1", p2p: true')
    checkup = checked(
        *(f"path: {name}, {path}, value: {value} GB/s" for path in paths for name, value in (("one", 24), ("other", 9)))
    )
    findings = [finding for finding in checkup.findings if finding.kind == Verdict.SLOW]
    assert [finding.causes[0].key for finding in findings] == [("software",), ("software",)]
    rows = [{result.row.path for result in finding.results} for finding in findings]
    assert rows == [{"host to device"}, {"peer"}]


def test_another_program_on_one_path_explains_no_slow_row_of_another():
    rows = [
        f'flows: "{flow}", value: {rate} GB/s'
        for flow, rate in {"host0->gpu0": 27, "gpu0->host0": 55, "gpu0->gpu1": 390, "gpu2->gpu3": 222}.items()
    ]
    findings = {each.results[0].row.flow: each for each in checked(*rows, system=api.load_system("dgx-h100")).findings}
    assert findings.keys() == {"host0->gpu0", "gpu2->gpu3"}
    assert findings["host0->gpu0"].title == "perhaps another program copies host0->gpu0 at the same time"
    assert findings["gpu2->gpu3"].causes[0].key[0] == "nvlink"


@pytest.mark.parametrize(
    ("gpu", "tool"), [("l40s", "nvidia-smi pmon"), ("mi210", "amd-smi process"), ("arc-pro-b60", "xpu-smi ps")]
)
def test_who_else_uses_a_gpu_is_asked_of_the_tool_of_its_maker(gpu: str, tool: str):
    body = f"lanewise: 1\nsystem: one\ndevices: {{cpu0: {{cpu: genoa}}, gpu0: {{gpu: {gpu}}}}}\n"
    one = read_system(body + "links: [{from: cpu0, to: gpu0, pcie: gen4}]\n", "one.yaml")
    half = api.predict(one, "host0->gpu0").rates[0].rate / 2e9
    findings = checked(f'flows: "host0->gpu0", value: {half:.2f} GB/s', system=one).findings
    (step,) = [cause.step for cause in findings[0].causes if cause.key[0] == "others"]
    assert step.startswith(tool)
