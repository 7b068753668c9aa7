"""Collectives of nccl-tests on a described machine: judged, and a planted fault named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from collectives.collective_systems import accelerators, gpu_node, pcie_box, two_nodes

from lanewise import api
from lanewise.checking.checkup import Checkup, check
from lanewise.checking.verdict import Verdict
from lanewise.collectives import curve
from lanewise.collectives.curve import CollectiveModel, collective_model, predict_collective
from lanewise.collectives.model import Algorithm, Collective, CollectiveSettings
from lanewise.errors import InputError
from lanewise.readers.tools.collectives.nccl_tests import read_text
from lanewise.readers.tools.collectives.torch_collectives import read_text as read_torch
from lanewise.report.text.check import render_checkup
from lanewise.results.observation import Observation, Source
from lanewise.results.posted import PostedFacts
from lanewise.topology.model import System

GiB = 2**30
NODE = gpu_node("h100-sxm")
NODES = two_nodes(8, "connectx-7-ndr")
DENSE_NODE = two_nodes(8, "connectx-7-ndr", nodes=1)


def rate(system: System, ranks: str, settings: CollectiveSettings | None = None, name: str = "all_reduce") -> float:
    """GB/s of 8 GiB."""
    curve = predict_collective(system, Collective(name), ranks, [8.0 * GiB], settings)
    return curve.points[0].bus_bandwidth / 1e9


def checked(system: System, rates: dict[int, float], hosts: int = 1, collective: str = "all_reduce") -> Checkup:
    """What check says of a table that nccl-tests printed on all GPUs of the machine."""
    ranks = [
        f"#  Rank {rank:2d} Group  0 Pid 1 on host{rank // 8} device {rank % 8} [0x1b] NVIDIA H100 80GB HBM3"
        for rank in range(8 * hosts)
    ]
    head = "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong"
    rows = [f"  {size} 4 float sum -1 1.0 1.0 {value:.2f} 0 1.0 1.0 {value:.2f} 0" for size, value in rates.items()]
    text = [f"# Collective test starting: {collective}_perf", *ranks, head, *rows]
    words = {f"gpu{rank}": f"n0gpu{rank}" for rank in range(8) if system is DENSE_NODE}
    return check(read_text(text, "nccl.txt").observations, target=system, device_of_word=words)


def titles(checkup: Checkup) -> list[str]:
    return [finding.title.removeprefix("perhaps ") for finding in checkup.findings if finding.kind != "unknown"]


def test_a_healthy_curve_is_ok_and_short_messages_are_not_judged() -> None:
    checkup = checked(NODE, {1024: 0.02, 2**25: 301.0, GiB: 467.0, 8 * GiB: 480.0})
    verdicts = [result.verdict for result in sorted(checkup.results, key=lambda result: result.row.settings["bytes"])]
    assert verdicts == [Verdict.UNKNOWN] * 2 + [Verdict.OK] * 6
    assert checkup.exit_code == 0
    assert "below 1 MiB" in checkup.results[0].note
    assert checkup.notes[-1].endswith("--launch 'nccl-tests -g'")  # all ranks have one Pid


@pytest.mark.parametrize(
    ("settings", "title"),
    [
        (CollectiveSettings(p2p=False), "peer copies are off: data goes through host memory"),
        (CollectiveSettings(algorithm=Algorithm.RING), "NCCL runs a ring where NVLink switches could reduce"),
        (CollectiveSettings(algorithm=Algorithm.TREE), "NCCL runs a tree where a ring is faster"),
    ],
)
def test_a_setting_that_costs_is_named(settings: CollectiveSettings, title: str) -> None:
    checkup = checked(NODE, {8 * GiB: rate(NODE, "gpu[0-7]", settings)})
    assert titles(checkup)[0].startswith(title)
    assert checkup.exit_code == 1


def test_cards_that_carry_nothing_are_counted() -> None:
    four = rate(two_nodes(4, "connectx-7-ndr"), "n[0-1]gpu[0-7]", name="all_gather")
    checkup = checked(NODES, {8 * GiB: four}, hosts=2, collective="all_gather")
    assert titles(checkup) == ["4 network cards of each host carry nothing"]
    healthy = rate(NODES, "n[0-1]gpu[0-7]", name="all_gather")
    assert checked(NODES, {8 * GiB: healthy}, hosts=2, collective="all_gather").exit_code == 0


@pytest.mark.parametrize("gigabytes", [27.0, 25.0, 23.0, 20.8])
def test_a_rate_within_the_interval_of_copies_through_host_memory_is_explained_by_them(gigabytes: float) -> None:
    (finding,) = checked(DENSE_NODE, {8 * GiB: gigabytes}).findings
    assert finding.causes[0].what.startswith("peer copies are off")
    assert "NCCL_P2P_DISABLE" in finding.step
    assert checked(DENSE_NODE, {8 * GiB: 450.0}).exit_code == 0


@pytest.mark.parametrize(
    ("gigabytes", "title", "others"),
    [
        (190.0, "6 network cards of each host carry nothing", ["GPUDirect RDMA is off"]),
        (48.0, "7 network cards of each host carry nothing, and NCCL runs a ring", []),
        (25.0, "peer copies are off", ["NCCL sends over sockets"]),
        (3.0, "NCCL sends over sockets", []),
    ],
)
def test_few_cards_and_sockets_are_named_between_hosts(gigabytes: float, title: str, others: list[str]) -> None:
    (finding,) = checked(NODES, {8 * GiB: gigabytes}, hosts=2).findings
    first, *rest = (cause.what for cause in finding.causes)
    assert first.startswith(title)
    assert all(any(what.startswith(other) for what in rest) for other in others)
    assert not any("NVLinks of a GPU" in cause.what for cause in finding.causes)


def test_between_hosts_the_network_comes_before_nvlinks() -> None:
    (finding,) = checked(NODES, {8 * GiB: 235.0}, hosts=2).findings
    kinds = [cause.key[1] for cause in finding.causes]
    assert kinds[0] == "cards"
    assert kinds[-1] == "nvlink"


@pytest.mark.parametrize("gigabytes", [54.0, 55.5, 57.0])
def test_a_rate_between_what_two_changes_explain_is_of_the_nearest(gigabytes: float) -> None:
    (finding,) = checked(NODES, {8 * GiB: gigabytes}, hosts=2).findings
    assert finding.causes[0].what == "7 network cards of each host carry nothing, and NCCL runs a ring"


def test_a_table_of_many_sizes_needs_each_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Collective] = []

    def counted(
        system: System, collective: Collective, ranks: Sequence[str], settings: CollectiveSettings
    ) -> CollectiveModel:
        calls.append(collective)
        return collective_model(system, collective, ranks, settings)

    monkeypatch.setattr(curve, "collective_model", counted)
    checked(NODE, {8 * GiB: 60.0})
    one_size = len(calls)
    calls.clear()
    checked(NODE, {size * GiB: 60.0 for size in (1, 2, 4, 8)})
    assert len(calls) == one_size > 3


def test_the_next_step_is_of_all_causes_that_are_as_likely() -> None:
    checkup = checked(NODES, {8 * GiB: 190.0}, hosts=2)
    assert "look at NCCL_IB_HCA" in checkup.findings[0].step
    assert "; or 'GDRDMA'; load nvidia-peermem" in checkup.findings[0].step
    text = render_checkup(checkup)
    assert "would give 440.2 GB/s, 147 to 844 (measured 190)" in " ".join(text.split())


def test_a_collective_that_nothing_explains_is_measured_again_as_a_collective() -> None:
    (one,) = checked(NODE, {8 * GiB: 60.0}).findings
    (two,) = checked(NODES, {8 * GiB: 460.0}, hosts=2, collective="all_gather").findings
    assert "on an idle machine: lanewise measure collectives --collective all_reduce -o again.json" in one.step
    assert two.step.startswith("mpirun -np 16 all_gather_perf ")


def test_the_version_of_the_text_chooses() -> None:
    # Six B200: NCCL 2.27 takes NVLS (778 GB/s), 2.28 plans a ring (678), NVIDIA's constants of either.
    head = ["# nccl-tests version 2.17.6 nccl-headers={0} nccl-library={0}", "NCCL version {1}+cuda12.9"]
    ranks = [f"#  Rank {rank:2d} Group  0 Pid 1 on host device {rank} [0x1b] NVIDIA B200" for rank in range(6)]
    table = ["# all_reduce_perf", *ranks, "#  size  count  type  redop  root  time  algbw  busbw  #wrong"]
    for code, version, rate in (("22707", "2.27.7", 763.0), ("22803", "2.28.3", 686.0)):
        for line in head:
            text = [line.format(code, version), *table, "  8589934592 4 float sum -1 1.0 1.0 700.00 0"]
            (result,) = check(read_text(text, "nccl.txt").observations, target=gpu_node("b200")).results
            assert result.row.how["library"] == f"NCCL {version}"
            assert result.expected.value == pytest.approx(rate * 1e9, rel=0.02)


def test_a_text_without_a_header_gets_its_version_and_launch_from_the_options(tmp_path: Path) -> None:
    ranks = [f"Rank {rank} Group 0 Pid {rank} on host device {rank} [0x1b] NVIDIA B200" for rank in range(6)]
    lines = ["all_reduce_perf", *ranks, f"{8 * GiB} 4 float sum -1 1.0 420.00 700.00 0 1.0 420.00 700.00 0"]
    (tmp_path / "pasted.txt").write_text("\n".join(lines))
    system = gpu_node("b200")

    def expected(**how: str) -> tuple[float, str]:
        found = api.check([tmp_path / "pasted.txt"], system, **how)  # type: ignore[arg-type]
        return (found.results[0].expected.value or 0.0) / 1e9, " ".join(found.notes)

    rate, notes = expected()
    assert "run by NCCL 2.28 to 2.30 (assumed, --nccl VERSION), --launch nccl-tests" in notes
    other, notes = expected(nccl="2.27.7")
    assert other > 1.05 * rate
    assert "run by NCCL 2.20 to 2.27 (--nccl 2.27.7), --launch nccl-tests" in notes
    with pytest.raises(InputError, match="--launch has no effect: the results say nccl-tests"):
        expected(launch="torch")
    text = (tmp_path / "pasted.txt").read_text()
    (tmp_path / "pasted.txt").write_text(re.sub("Rank.*\n", "", text))
    assert "a process for each GPU" in expected()[1]


def test_half_of_the_nvlinks_are_down() -> None:
    half = rate(gpu_node("h100-sxm", 9), "gpu[0-7]")
    assert titles(checked(NODE, {8 * GiB: half})) == ["9 of the 18 NVLinks of a GPU are down"]


@pytest.mark.parametrize(
    ("system", "hosts", "title"),
    [
        (gpu_node("h100-sxm", gpus=4), 1, "the table is of 8 ranks on 1 host, one-node has 4 GPUs on 1 host"),
        (NODE, 2, "the table is of 16 ranks on 2 hosts, one-node has 8 GPUs on 1 host"),
        (NODES, 1, "the table is of 8 ranks on 1 host, several-nodes has 16 GPUs on 2 hosts and no gpu0, "
         "gpu1, gpu2 ..."),
        (NODES, 3, "the table is of 24 ranks on 3 hosts, several-nodes has 16 GPUs on 2 hosts"),
    ],
)  # fmt: skip
def test_a_description_of_other_ranks_is_said(system: System, hosts: int, title: str) -> None:
    checkup = checked(system, {1024: 0.1, 8 * GiB: 480.0}, hosts)
    assert {result.verdict for result in checkup.results} == {Verdict.UNKNOWN}
    (finding,) = checkup.findings
    assert (finding.title, finding.kind, checkup.exit_code) == (title, "unknown", 3)
    assert "--as gpu0=DEVICE" in finding.step
    posted = PostedFacts({f"gpu{number}": "NVIDIA H100 80GB HBM3" for number in range(8)})
    bound = check([replace(checkup.results[0].row, value=900e9)], target=system, posted=posted)
    assert (bound.results[0].verdict is Verdict.FAST) == (hosts == 1) == any(title in note for note in bound.notes)


@pytest.mark.parametrize("words", [{}, {"gpu0": "n1gpu0"}])
def test_a_table_of_other_gpus_on_several_hosts_is_of_another_machine(words: dict[str, str]) -> None:
    (row, *_) = checked(NODES, {8 * GiB: 200.0}, hosts=2).results
    other, same = (check([row.row], target=NODES, device_of_word=words, posted=PostedFacts({"gpu0": title}))
                   for title in ("NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"))  # fmt: skip
    assert [result.verdict for result in (*other.results, *same.results)] == [Verdict.UNKNOWN, Verdict.SLOW]
    assert f"and n{'1' if words else '0'}gpu0 is h100-sxm in the description" in other.results[0].note


@pytest.mark.parametrize(
    ("name", "factor", "redop", "expected"),
    [
        ("all_reduce", 1.75, "sum", {Verdict.OK}),
        ("reduce_scatter", 0.875, "sum", {Verdict.OK}),
        ("all_gather", 0.875, "none", {Verdict.UNKNOWN}),  # all_to_all has the same factor
    ],
)
def test_a_table_that_names_no_collective_is_known_by_its_factor(
    name: str, factor: float, redop: str, expected: set[Verdict]
) -> None:
    bus = rate(NODE, "gpu[0-7]", name=name)
    ranks = [f"#  Rank {rank} Group 0 Pid 1 on a device {rank} [0x1b] NVIDIA H100 80GB HBM3" for rank in range(8)]
    head = "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong"
    numbers = f"1.0 {bus / factor:.2f} {bus:.2f} 0"
    rows = [
        f"8 2 float {redop} -1 1.0 0.01 0.01 0 1.0 0.01 0.01 0",
        f"{8 * GiB} 4 float {redop} -1 {numbers} {numbers}",
    ]
    checkup = check(read_text([*ranks, head, *rows], "nccl.txt").observations, target=NODE)
    assert {result.verdict for result in checkup.results if result.row.settings["bytes"] == 8 * GiB} == expected
    assert (expected == {Verdict.OK}) == all(result.row.scenario.startswith(name) for result in checkup.results)


def test_torch_s_timings_are_judged_on_as_many_gpus() -> None:
    text = ["The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):",
            f"|    8GiB | {rate(NODE, 'gpu[0-7]'):6.2f}GBps | 270.00GBps |"]  # fmt: skip
    rows = read_torch(text, "torch.txt").observations
    assert check(rows, target=NODE).exit_code == 0
    (result,) = check(rows, target=gpu_node("h100-sxm", gpus=4)).results
    assert result.verdict is Verdict.UNKNOWN
    slow = replace(rows[0], value=rate(NODE, "gpu[0-7]", CollectiveSettings(p2p=False)) * 1e9)
    assert titles(check([slow], target=NODE))[0].startswith("peer copies are off")


def test_a_slow_rank_is_the_one_that_all_slow_sets_have() -> None:
    def pair(a: int, b: int, gigabytes: float) -> Observation:
        ring = f"gpu{a}->gpu{b}, gpu{b}->gpu{a}"
        settings = {"bytes": 8 * GiB, "hosts": 1, "ranks": 2}
        return Observation("all_reduce", ring, "bus_bandwidth", gigabytes * 1e9, "GB/s", Source.MEASURED,
                           settings=settings, how={"tool": "nccl-tests"}, path="collective")  # fmt: skip

    fine = rate(NODE, "gpu[0-1]")
    rows = [pair(0, 3, 100), pair(1, 3, 100), pair(0, 1, fine), pair(1, 2, fine)]
    (finding,) = (finding for finding in check(rows, target=NODE).findings if finding.kind == Verdict.SLOW)
    assert finding.causes[0].what.startswith("gpu3 is a slow rank")
    assert finding.causes[0].evidence == "in all 2 slow sets of ranks, in none of 2 that are fine"
    alone = check([pair(0, 3, 100), pair(0, 1, fine), pair(1, 2, fine)], target=NODE)
    assert any(cause.what.startswith("gpu3") for finding in alone.findings for cause in finding.causes)
    unclear = check([pair(0, 3, 100), pair(1, 2, fine)], target=NODE)  # gpu0 or gpu3
    assert not any("slow rank" in cause.what for finding in unclear.findings for cause in finding.causes)


def test_a_rank_at_half_the_lanes_slows_a_ring_over_pcie() -> None:
    box = pcie_box(part="rtx-4090")
    half = rate(with_lanes(box, "gpu0", 8), "gpu[0-3]")
    rows = [replace(row, value=half * 1e9) for row in _ring_of(box, 4)]
    assert "the PCIe link of one rank runs at Gen4 x8 (Gen4 x16 is described)" in titles(check(rows, target=box))


def _ring_of(system: System, ranks: int) -> list[Observation]:
    text = [f"#  Rank {rank} Group 0 Pid 1 on a device {rank} [0x1b] GPU" for rank in range(ranks)]
    head = "#  size  count  type  redop  root  time  algbw  busbw  #wrong"
    row = f"  {8 * GiB} 4 float sum -1 1.0 1.0 1.00 0"
    return list(read_text(["# all_reduce_perf", *text, head, row], "nccl.txt").observations)


def with_lanes(system: System, gpu: str, lanes: int) -> System:
    links = tuple(replace(link, lanes=lanes) if link.b == gpu else link for link in system.links)
    return replace(system, links=links)


def test_a_table_of_accelerators_that_no_modelled_library_drives_is_unknown_with_the_reason() -> None:
    result = checked(accelerators(), {GiB: 513.0})
    assert {row.verdict for row in result.results} == {Verdict.UNKNOWN}
    assert "runs neither NCCL nor RCCL" in result.results[0].note
