"""Checks of results whose machine nobody described, and of what people post with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lanewise import api
from lanewise.catalog import builtin
from lanewise.checking.causes.machine import MachineState
from lanewise.checking.checkup import Checkup, check
from lanewise.checking.named.abilities import ability, lesser_links
from lanewise.checking.verdict import Verdict
from lanewise.readers.kinds import read_posted, read_results
from lanewise.report.text.check import render_checkup
from lanewise.results.conditions import LinkState, MachineConditions, OffBus
from lanewise.results.observation import Observation, Source
from lanewise.results.posted import PostedFacts
from lanewise.topology.read import read_system

COPY = """\
 Device 0: {name}
 Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)\tBandwidth(GB/s)
   32000000\t\t\t{rate}
"""


def checked(text: str) -> Checkup:
    results = read_results(text, "f")
    return check(results.observations, posted=results.posted)


@pytest.mark.parametrize("name", ["RTX 4000", "NVIDIA RTX 6000", "RTX 3000"])
def test_a_number_that_cards_of_two_generations_have_says_neither(name: str):
    assert ability(name, builtin()) is None


SERIES = [
    ("Quadro RTX 8000", 3, 16), ("GeForce GTX 580", 2, 16), ("NVIDIA GeForce RTX 5050", 5, 8),
    ("NVIDIA RTX 2000 Ada Generation", 4, 8), ("Quadro RTX 4000", 3, 16), ("AMD Radeon RX 6600 XT", 4, 8),
    ("Vega 10 XT [Radeon RX Vega 64]", 3, 16), ("Intel(R) Arc(TM) A770 Graphics", 4, 16),
]  # fmt: skip


@pytest.mark.parametrize(("name", "gen", "lanes"), SERIES)
def test_a_series_says_generation_and_lanes_where_the_catalogue_has_no_part(name: str, gen: int, lanes: int):
    found = ability(name, builtin())
    assert found is not None
    assert (found.gen, found.lanes) == (gen, lanes)


@pytest.mark.parametrize("name", ["NVIDIA GH200 480GB", "NVIDIA GB200", "Some Card", ""])
def test_nothing_is_said_of_gpus_that_no_pcie_link_joins_or_nobody_knows(name: str):
    assert ability(name, builtin()) is None


def test_lesser_links_of_one_rate_are_together_and_each_is_listed_once():
    groups = lesser_links(3, 16)
    assert groups[:2] == [((3, 8), (2, 16)), ((3, 4), (2, 8), (1, 16))]
    assert sorted(link for same_rate in groups for link in same_rate) == sorted(
        (gen, lanes) for gen in (1, 2, 3) for lanes in (1, 2, 4, 8, 16) if (gen, lanes) != (3, 16)
    )


ONE_CARD = """lanewise: 1
system: one
devices: {{cpu0: {{cpu: null}}, gpu0: {{gpu: {part}}}}}
links:
  - {{from: cpu0, to: gpu0, pcie: gen{gen} x16}}
"""
SAME_RATES = [
    ("NVIDIA GeForce RTX 3090", "rtx-3090", 4, 12.4, "Gen3 x16 or Gen4 x8"),
    ("NVIDIA GeForce RTX 3090", "rtx-3090", 4, 6.2, "Gen3 x8, Gen2 x16 or Gen4 x4"),
    ("NVIDIA GeForce RTX 3090", "rtx-3090", 4, 3.1, "Gen3 x4, Gen2 x8, Gen1 x16 or Gen4 x2"),
    ("NVIDIA H100 PCIe", "h100-pcie", 5, 12.3, "Gen4 x8, Gen3 x16 or Gen5 x4"),
    ("NVIDIA H100 PCIe", "h100-pcie", 5, 6.3, "Gen3 x8, Gen4 x4, Gen2 x16 or Gen5 x2"),
    ("Tesla T4", "t4", 3, 6.3, "Gen3 x8 or Gen2 x16"),
]


@pytest.mark.parametrize(("name", "part", "gen", "rate", "links"), SAME_RATES)
def test_every_link_of_the_measured_rate_is_a_cause_with_and_without_a_description(
    name: str, part: str, gen: int, rate: float, links: str
):
    text = COPY.format(name=name, rate=rate)
    assert checked(text).findings[0].title == f"gpu0's link runs at {links} ({name} can Gen{gen} x16)"
    system = read_system(ONE_CARD.format(part=part, gen=gen), "one.yaml")
    (finding,) = check(read_results(text, "f").observations, target=system).findings
    assert finding.title == f"gpu0's link may be running at {links} (described as Gen{gen} x16)"


def test_the_first_line_says_that_nobody_described_the_machine():
    checkup = checked(COPY.format(name="Tesla T4", rate=12.3))
    assert not checkup.described
    assert render_checkup(checkup).startswith("Nobody described the machine.")
    assert (checkup.exit_code, checkup.count(Verdict.OK)) == (0, 1)


def test_what_nothing_says_anything_of_is_never_ok():
    checkup = checked(COPY.format(name="Unheard Of", rate=12.3))
    assert (checkup.exit_code, checkup.count(Verdict.UNKNOWN)) == (3, 1)
    assert "a link of Gen3 x16 gives" in checkup.findings[0].title


def test_rows_that_are_alike_are_not_ok_for_it_but_the_one_that_is_worse_is_slow():
    text = "lanewise-rows: 1\nrows:\n" + "".join(
        f'  - {{flows: "nvme{drive}->host0", value: {rate} GB/s}}\n' for drive, rate in enumerate((6.8, 6.9, 6.7, 3.1))
    )
    verdicts = {result.row.flow: result.verdict for result in checked(text).results}
    assert verdicts.pop("nvme3->host0") is Verdict.SLOW
    assert set(verdicts.values()) == {Verdict.UNKNOWN}


PEERS = """\
Device: 0, NVIDIA GeForce RTX 4090, pciBusID: 1, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA GeForce RTX 4090, pciBusID: 2, pciDeviceID: 0, pciDomainID:0
Device=0 {can} Access Peer Device=1
Device=1 {can} Access Peer Device=0
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 900.00  21.00
     1  21.00 900.00
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 900.00   {on}
     1   {on} 900.00
"""


def test_peer_copies_far_below_staged_ones_are_the_iommu_or_acs_unless_the_pair_are_no_peers():
    slow = checked(PEERS.format(can="CAN", on=" 2.10"))
    assert [cause.key for cause in slow.findings[0].causes[:2]] == [("iommu",), ("acs",)]
    assert "off 21 GB/s" in slow.findings[0].causes[0].evidence
    assert checked(PEERS.format(can="CANNOT", on="20.90")).count(Verdict.SLOW) == 0


POSTED = """\
node1:880:887 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.
node1:880:887 [0] NCCL INFO Channel 00 : 0[7000] -> 1[b000] via SHM/direct/direct
node1:880:887 [0] NCCL INFO Channel 00/0 : 1[b000] -> 2[7000] [send] via NET/IB/0
[    0.3] DMAR: IOMMU enabled
 PCIe relax order: OFF
GPU 00000000:65:00.0
    GPU Link Info
        PCIe Generation
            Max                       : 4
            Current                   : 1
        Link Width
            Max                       : 16x
            Current                   : 8x
    BAR1 Memory Usage
        Total                         : 256 MiB
    Clocks Event Reasons
        SW Power Cap                  : Active
NVRM: Xid (PCI:0000:41:00): 79, pid=0, GPU has fallen off the bus.
"""


def test_settings_logs_and_registers_are_statements_with_their_lines():
    statements = read_posted(POSTED, "log").posted.statements
    assert {(statement.key, statement.value, statement.source) for statement in statements} >= {
        ("NCCL_P2P_DISABLE", "1", "log:1"), ("peer transport", "SHM", "log:2"), ("GPUDirect RDMA", "off", "log:3"),
        ("iommu", "translate", "log:4"), ("relaxed ordering", "off", "log:5"),
        ("link width", "00000000:65:00.0 x8 of x16", "log:13"), ("BAR1", "256 MiB", "log:15"),
        ("clocks", "sw power cap", "log:17"),
    }  # fmt: skip


def test_what_is_broken_is_a_fault_without_any_figure(tmp_path: Path):
    (tmp_path / "log.txt").write_text(POSTED)
    checkup = api.check([tmp_path / "log.txt"])
    assert checkup.exit_code == 1
    assert [finding.causes[0].key[0] for finding in checkup.findings] == ["off bus", "link"]


NCCL_TABLE = (Path(__file__).parents[1] / "readers" / "data" / "nccl-tests.txt").read_text()


def test_wrong_values_of_nccl_tests_are_a_fault_whatever_the_rates():
    assert checked(NCCL_TABLE.replace("228.75      0", "228.75    N/A")).exit_code != 1
    for count in ("17", "4e+05"):
        checkup = checked(NCCL_TABLE.replace("232.08      0", f"232.08 {count:>6}"))
        assert checkup.exit_code == 1
        what = checkup.findings[0].causes[0].what
        assert what.endswith(f"{count} wrong values in all_reduce in place of 536,870,912 B")


def test_rows_of_another_gpu_than_the_description_has_are_unknown_with_that_reason():
    system = api.load_system("dgx-a100")
    for name, noted in (("NVIDIA A100-SXM4-80GB", False), ("NVIDIA H100 80GB HBM3", True), ("a card of ours", False)):
        results = read_results(NCCL_TABLE.replace("NVIDIA A100-SXM4-80GB", name), "f")
        checkup = check(results.observations, target=system, posted=results.posted)
        assert all("of another machine" in result.note for result in checkup.results) is noted
        if noted:
            assert ({result.verdict for result in checkup.results}, checkup.exit_code) == ({Verdict.UNKNOWN}, 3)
            assert any("in the description" in finding.title for finding in checkup.findings)


def test_a_stated_setting_is_a_cause_of_the_slow_rows_that_it_touches():
    rows = 'rows:\n  - {flows: "gpu0->gpu1", value: 2 GB/s}\n  - {flows: "gpu0->gpu1", value: 20 GB/s, p2p: false}\n'
    checkup = checked("lanewise-rows: 1\nstated: {NCCL_P2P_LEVEL: LOC}\n" + rows)
    causes = [cause for finding in checkup.findings for cause in finding.causes if finding.kind == "slow"]
    assert any(cause.key == ("setting", "NCCL_P2P_LEVEL") and cause.evidence == "f:2" for cause in causes)


@pytest.mark.parametrize(("word", "is_cause"), [("'yes'", True), ("KVM", True), ("'no'", False), ("'off'", False)])
def test_a_virtual_machine_that_is_denied_is_no_cause(word: str, is_cause: bool):
    rows = 'rows:\n  - {flows: "gpu0->gpu1", value: 2 GB/s}\n  - {flows: "gpu0->gpu1", value: 20 GB/s, p2p: false}\n'
    checkup = checked(f"lanewise-rows: 1\nstated: {{virtual machine: {word}}}\n" + rows)
    keys = [cause.key for finding in checkup.findings for cause in finding.causes]
    assert (("virtual machine",) in keys) == is_cause


def test_a_tool_that_saw_fewer_gpus_than_there_are_leaves_the_check_open():
    results = read_results(PEERS.format(can="CAN", on="25.80"), "f")
    checkup = check(results.observations, target=api.load_system("dgx-a100"))
    (finding,) = [finding for finding in checkup.findings if "saw 2 GPUs" in finding.title]
    assert finding.title == "p2pBandwidthLatencyTest saw 2 GPUs, dgx-a100 has 8"
    assert checkup.exit_code in (1, 3)


def test_a_device_that_reads_all_ones_is_a_fault_and_an_idle_link_a_note():
    lost = MachineConditions(off_bus=(OffBus("gpu1", "0000:41:00.0", "lspci:7 (rev ff)"),))
    (finding,) = check([], MachineState(None, lost)).findings
    assert finding.title == "gpu1 (0000:41:00.0) does not answer: its registers read all ones"
    link = LinkState("gpu0", "", 4, 16, 1, 16, False, "lspci:9 LnkSta", "cpu0", 4, 16, 4, 16)
    idle = check([], MachineState(None, MachineConditions(links=(link,))))
    assert (idle.exit_code, idle.findings) == (3, ())
    assert "load the link" in idle.notes[0]


@pytest.mark.parametrize(
    ("gpu", "rate", "verdict"),
    [("Unheard Of", "0.4 GB/s", Verdict.SLOW), ("Unheard Of", "1.2 GB/s", Verdict.UNKNOWN),
     ("NVIDIA GH200 480GB", "20 GB/s", Verdict.SLOW), ("NVIDIA GH200 480GB", "290 GB/s", Verdict.OK),
     ("NVIDIA GH200 480GB", "150 GB/s", Verdict.UNKNOWN)],
)  # fmt: skip
def test_a_copy_that_no_gpu_s_link_would_be_so_slow_in_is_slow_though_nobody_knows_the_gpu(
    gpu: str, rate: str, verdict: Verdict
):
    checkup = checked(f'lanewise-rows: 1\ngpus: {gpu}\nrows:\n  - {{flows: "gpu0->host0", value: {rate}}}\n')
    assert [result.verdict for result in checkup.results] == [verdict]


def test_a_link_that_is_fast_one_way_is_no_cause_the_other_way():
    rows = '  - {flows: "host0->gpu0", value: 24 GB/s}\n  - {flows: "gpu0->host0", value: 3.1 GB/s}\n'
    checkup = checked(f"lanewise-rows: 1\ngpus: NVIDIA GeForce RTX 3090\nrows:\n{rows}")
    (finding,) = checkup.findings
    assert finding.causes[0].key == ("pageable",)
    assert all(cause.key[0] != "link" for cause in finding.causes)


def test_pairs_that_exchange_far_less_than_others_are_far_apart():
    rates = {"gpu0->gpu1": 12, "gpu2->gpu3": 12, "gpu0->gpu2": 0.4}
    rows = "".join(f'  - {{flows: "{flow}", value: {rate} GB/s}}\n' for flow, rate in rates.items())
    (finding, *_) = checked(f"lanewise-rows: 1\nrows:\n{rows}").findings
    assert (finding.kind, finding.causes[0].key) == ("slow", ("far device", "gpu0", "gpu2"))
    assert "reached 12 GB/s" in finding.causes[0].evidence


@pytest.mark.parametrize(
    ("gpu", "verdict"), [("Tesla P100-SXM2-16GB", Verdict.OK), ("Tesla P100-PCIE-16GB", Verdict.FAST)]
)
def test_nvlinks_to_the_host_may_be_faster_than_pcie(gpu: str, verdict: Verdict):
    rows = '  - {flows: "gpu0->gpu1", value: 20 GB/s, p2p: false}\n  - {flows: "host0->gpu0", value: 33 GB/s}\n'
    checkup = checked(f"lanewise-rows: 1\ngpus: {gpu}\nrows:\n{rows}")
    assert {result.verdict for result in checkup.results} == {verdict}


def test_latencies_of_one_copy_are_compared():
    rows = [("hipMemcpy", 50), ("a test", 6), ("another", 14)]
    text = "".join(f'  - {{path: {path}, flows: "host0->gpu0", value: {value} us}}\n' for path, value in rows)
    checkup = checked(f"lanewise-rows: 1\nrows:\n{text}")
    (finding,) = checkup.findings
    assert [result.row.scenario for result in finding.results] == ["hipMemcpy"]
    assert finding.causes[0].key == ("software",)


def test_p2p_that_answers_later_than_host_memory_is_the_iommu_or_acs():
    rows = '  - {flows: "gpu0->gpu1", value: 49 ms}\n  - {flows: "gpu0->gpu1", value: 18 us, p2p: false}\n'
    (finding,) = checked(f"lanewise-rows: 1\nrows:\n{rows}").findings
    assert [cause.key[0] for cause in finding.causes[:2]] == ["iommu", "acs"]


def test_a_matrix_s_diagonal_is_never_judged():
    text = PEERS.format(can="CAN", on="25.80").replace("1  21.00 900.00", "1  21.00 200.00")
    assert all(result.row.path != "GPU memory" for result in checked(text).results)


def test_a_card_is_no_faster_than_the_host_that_the_text_names():
    rows = 'rows:\n  - {flows: "host0->gpu0", value: 12.3 GB/s}\n'
    named = "lanewise-rows: 1\ngpus: NVIDIA GeForce RTX 4090\n"
    assert checked(named + rows).count(Verdict.SLOW) == 1
    assert checked(named + "stated: {cpu: Xeon Gold 6248}\n" + rows).count(Verdict.OK) == 1


def test_sets_of_flows_are_no_siblings_of_each_other():
    rows = """\
lanewise-rows: 1
rows:
  - {flows: "gpu[0-3]->host0", value: 112 GB/s}
  - {flows: "gpu[4-7]->host0", value: 73 GB/s}
  - {flows: "gpu0->gpu[1-3]", value: 60 GB/s}
  - {flows: "gpu2->gpu3", value: 50 GB/s}
  - {flows: "gpu4->gpu3", value: 50 GB/s}
"""
    assert checked(rows).count(Verdict.SLOW) == 0


def test_nvlinks_that_are_down_are_a_fault_of_a_board_with_switches_alone():
    system = api.load_system("h200-pair")
    board = MachineState(system, figures={"gpu0": {"nvlinks_off": 2}})
    bridge = MachineState(api.load_system("puget-wrx90"), figures={"gpu0": {"nvlinks_off": 2}})
    assert [finding.causes[0].key for finding in check([], board).findings] == [("nvlink", "gpu0")]
    assert check([], bridge).findings == ()


def nccl_table(rates: dict[int, float], gpu: str = "NVIDIA H100 80GB HBM3", collective: str = "all_reduce") -> str:
    """What nccl-tests prints of eight GPUs: bus bandwidth in GB/s by message size in B."""
    ranks = [f"#  Rank  {n} Group  0 Pid  {880 + n} on  node device  {n} [0x0{n}] {gpu}" for n in range(8)]
    head = "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong"
    rows = [f"  {size} 4 float sum -1 1.0 1.0 {rate:.2f} 0 1.0 1.0 {rate:.2f} 0" for size, rate in rates.items()]
    return "\n".join([f"# {collective}_perf", *ranks, head, *rows, ""])


@pytest.mark.parametrize(
    ("rate", "verdict", "exit_code"),
    [(262.0, Verdict.UNKNOWN, 3), (300.0, Verdict.UNKNOWN, 3), (320.0, Verdict.OK, 0), (470.0, Verdict.OK, 0),
     (236.0, Verdict.SLOW, 1), (50.0, Verdict.SLOW, 1),
     (800.0, Verdict.FAST, 3)],
)  # fmt: skip
def test_a_collective_is_judged_by_its_bounds_and_ok_near_its_links(rate: float, verdict: Verdict, exit_code: int):
    checkup = checked(nccl_table({2**30: rate}))
    assert {result.verdict for result in checkup.results} == {verdict}
    assert (len(checkup.results), checkup.left_aside, checkup.exit_code) == (2, (), exit_code)
    if verdict is Verdict.UNKNOWN:
        (finding,) = checkup.findings
        assert finding.title.startswith("the rate is possible; what it should be depends on what joins the GPUs")
        assert "-o fine.json" in finding.step
    if verdict is Verdict.FAST:
        assert all(cause.key != ("nvlink",) for finding in checkup.findings for cause in finding.causes)


@pytest.mark.parametrize(
    "text",
    [
        nccl_table({8: 0.0, 2**20: 9.0, 2**24: 120.0, 2**30: 300.0}),
        nccl_table({2**30: 180.0}, collective="alltoall"),
        nccl_table({2**30: 4.5}, "NVIDIA GeForce RTX 4090"),
        nccl_table({2**30: 250.0}, "Unheard Of"),
        nccl_table({2**30: 40.0}).replace("on  node device  7", "on  other device  7"),
    ],
    ids=["short messages", "pairs", "staged", "unknown GPU", "two hosts"],
)
def test_what_the_bounds_of_a_collective_do_not_reach_is_unknown(text: str):
    checkup = checked(text)
    assert checkup.results
    assert {result.verdict for result in checkup.results} == {Verdict.UNKNOWN}
    assert checkup.exit_code == 3


def test_a_ring_on_pcie_is_too_fast_above_the_wire():
    assert checked(nccl_table({2**30: 33.0}, "NVIDIA GeForce RTX 4090")).count(Verdict.FAST) == 2


def measured_by_us(tmp_path: Path, host_to_device: float) -> Checkup:
    """Copies of one H200 both ways, as `measure gpu` writes them."""
    here = {"flows": "host0->gpu0, gpu0->host0", "engine": "copy engine"}
    both = "host to device, device to host"
    rows = [
        Observation("both ways", flow, metric, rate * 1e9, "B/s", Source.MEASURED, path=path, how=here)
        for flow, metric, rate, path in (
            ("host0->gpu0", "goodput", host_to_device, "host to device"),
            ("gpu0->host0", "goodput", 51.5, "device to host"),
            (here["flows"], "total", host_to_device + 51.5, both),
        )
    ]
    facts = {"gpu0": "NVIDIA H200, 0000:00:06.0, ordinal 0, NUMA node 0, at most Gen5 x16"}
    api.save_run(replace(api.as_measured_run((), facts), rows=tuple(rows)), tmp_path / "run.json")
    return api.check([tmp_path / "run.json"])


def test_a_run_of_our_own_names_its_gpus(tmp_path: Path):
    fine = [(result.row.metric, result.verdict) for result in measured_by_us(tmp_path, 45.7).results]
    assert fine == [("goodput", Verdict.OK), ("goodput", Verdict.OK), ("total", Verdict.OK)]
    assert Verdict.SLOW in [result.verdict for result in measured_by_us(tmp_path, 12.4).results]


@pytest.mark.parametrize(("ranks", "verdict"), [(2, Verdict.UNKNOWN), (8, Verdict.SLOW)])
def test_two_ranks_gather_at_less_of_their_nvlinks_than_more_do(ranks: int, verdict: Verdict):
    # Two healthy H200 reach 234.6 GB/s with messages of 256 MiB (benchmarks/runs/2026-11-26-two-gpus).
    ring = ", ".join(f"gpu{rank}->gpu{(rank + 1) % ranks}" for rank in range(ranks))
    settings = {"bytes": 2**28, "ranks": ranks, "hosts": 1}
    row = Observation("reduce_scatter", ring, "bus_bandwidth", 234.6e9, "GB/s", Source.MEASURED, settings=settings,
                      path="collective")  # fmt: skip
    (result,) = check([row], posted=PostedFacts({"gpu": "NVIDIA H200"})).results
    assert result.verdict is verdict


def test_the_sizes_of_a_collective_are_one_line():
    text = render_checkup(checked(nccl_table({2**28: 262.0, 2**29: 264.0, 2**30: 265.0})))
    (line,) = [line for line in text.splitlines() if "all_reduce, 3 sizes" in line]
    assert line.split()[:4] == ["unknown", "ring", "of", "gpu[0-7]"]
    assert "262 to 265 GB/s" in line
    assert "6 rows: 6 unknown" in text
