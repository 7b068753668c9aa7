"""One verdict a node: compared with siblings, with the model's findings, with its own past."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.fleet.judgement import FleetVerdicts, judge_fleet
from lanewise.fleet.node import (
    ALONE,
    MODEL,
    NETWORK,
    TOGETHER,
    NodeFinding,
    NodeReport,
    NodeState,
    NodeVerdict,
    in_phase,
)
from lanewise.fleet.pair_tests import SUSPECT, PairTest, network_rows, pairs_again, shared_paths, slow_pairs, suspects
from lanewise.fleet.rounds import all_pairs
from lanewise.results.observation import Observation, Source

FACTS = {"cpu": "EPYC", "sockets": "2", "memory": "1007.5 GiB"}


def row(flow: str, value: float | None, table: str = ALONE, unit: str = "GB/s", noise: float = 0.002) -> Observation:
    """A measured row with samples around its value."""
    samples = () if value is None else (value * (1 - noise), value, value * (1 + noise))
    metric = "latency" if unit == "us" else "goodput"
    return Observation(table, flow, metric, value, unit, Source.MEASURED, table=table, samples=samples)


def fleet(count: int, *rows: Observation, sigma: float = 0.005) -> list[NodeReport]:
    """Equal nodes with these rows, each off by a little."""
    chance = random.Random(count)
    return [
        NodeReport(f"n{number}", FACTS, ("H200",) * 8,
                   tuple(replace(entry, value=(entry.value or 0) * chance.gauss(1, sigma)) for entry in rows))
        for number in range(count)
    ]  # fmt: skip


def changed(reports: list[NodeReport], number: int, *rows: Observation) -> list[NodeReport]:
    """The fleet with other rows on one node."""
    return [replace(report, rows=rows) if i == number else report for i, report in enumerate(reports)]


def of(verdicts: FleetVerdicts, name: str) -> NodeVerdict:
    """The verdict on a node."""
    return next(verdict for verdict in verdicts.nodes if verdict.name == name)


COPY, MEMORY = row("host0->gpu3", 55e9), row("host0->host0", 90e9)


def test_a_slow_link_is_an_outlier_among_siblings_and_named() -> None:
    verdicts = judge_fleet(changed(fleet(12, COPY, MEMORY), 4, row("host0->gpu3", 27e9), MEMORY))
    assert verdicts.nodes[0].name == "n4"
    finding = verdicts.nodes[0].cause
    assert finding is not None
    assert (finding.cause, finding.about, finding.basis) == ("link", "gpu3", "siblings")
    assert finding.share == pytest.approx(0.49, abs=0.01)
    assert "27 GB/s, the median of 11 siblings is 5" in finding.evidence
    assert verdicts.count(NodeState.OK) == 11
    assert verdicts.exit_code == 1
    assert verdicts.nodes[0].shares[ALONE] == pytest.approx(0.49, abs=0.01)


@given(st.integers(3, 60), st.integers(0, 1000), st.sampled_from([0.001, 0.01, 0.02]))
def test_healthy_nodes_are_rarely_accused(count: int, seed: int, sigma: float) -> None:
    chance = random.Random(seed)
    reports = [
        NodeReport(f"n{i}", FACTS, (), tuple(row(f"host0->vol{k}", 5e9 * chance.gauss(1, sigma)) for k in range(10)))
        for i in range(count)
    ]
    assert judge_fleet(reports).count(NodeState.SLOW) <= 1


def test_a_time_is_worse_the_longer_it_is() -> None:
    times = fleet(12, row("gpu0->gpu1", 2e-6, unit="us"))
    assert of(judge_fleet(changed(times, 2, row("gpu0->gpu1", 4e-6, unit="us"))), "n2").state is NodeState.SLOW
    assert of(judge_fleet(changed(times, 2, row("gpu0->gpu1", 1e-6, unit="us"))), "n2").state is NodeState.OK


def test_rows_of_two_kinds_of_node_accuse_nobody() -> None:
    reports = fleet(12, MEMORY)
    for number in range(5):
        reports = changed(reports, number, row("host0->host0", 60e9))
    verdicts = judge_fleet(reports)
    assert verdicts.count(NodeState.SLOW) == 0
    assert "5 of 12 nodes are slower" in verdicts.notes[0]
    assert of(verdicts, "n0").tolerated == {ALONE: "in alone host0->host0 more than a quarter of the class is slow"}
    assert of(verdicts, "n9").tolerated == {}


def test_wide_intervals_widen_the_floor() -> None:
    steady = changed(fleet(12, MEMORY), 3, row("host0->host0", 78e9))
    assert of(judge_fleet(steady), "n3").state is NodeState.SLOW
    noisy = [replace(report, rows=tuple(replace(r, samples=tuple((r.value or 0) * s for s in (0.8, 1, 1.2)))
                                        for r in report.rows)) for report in steady]  # fmt: skip
    assert of(judge_fleet(noisy), "n3").state is NodeState.OK
    assert of(judge_fleet(steady), "n3").tolerated == {}
    why = "in alone host0->host0 its siblings differ as much; slow is below "
    assert of(judge_fleet(noisy), "n3").tolerated[ALONE].startswith(why)
    assert judge_fleet(noisy).exit_code == 0


def test_a_note_of_all_nodes_is_said_once_and_one_of_some_stays_theirs() -> None:
    reports = [replace(report, notes=("no driver",)) for report in fleet(4, MEMORY)]
    reports[2] = replace(reports[2], notes=("no driver", "no memory fast enough"))
    verdicts = judge_fleet(reports)
    assert verdicts.notes == ("all nodes: no driver",)
    assert [verdict.note for verdict in verdicts.nodes if verdict.note] == ["no memory fast enough"]
    alone = judge_fleet([replace(fleet(1, MEMORY)[0], notes=("no driver",), judged=1)])
    assert alone.nodes[0].note == "no driver"


def test_nodes_of_one_machine_are_said_to_be_one() -> None:
    reports = [replace(report, facts={**report.facts, "boot": "7f" if i < 2 else f"a{i}"})
               for i, report in enumerate(fleet(4, MEMORY))]  # fmt: skip
    (note,) = judge_fleet(reports).notes
    assert note.startswith("n0, n1 are one machine: ")


def test_what_is_slow_only_under_load_of_all_is_throttled() -> None:
    both = (COPY, row("host0->gpu3", 40e9, TOGETHER))
    verdict = of(judge_fleet(changed(fleet(12, *both), 0, COPY, row("host0->gpu3", 25e9, TOGETHER))), "n0")
    assert verdict.cause is not None
    assert verdict.cause.cause == "throttle"


def test_all_gpus_slow_is_no_single_link() -> None:
    copies = tuple(row(f"host0->gpu{k}", 55e9) for k in range(8))
    slow = tuple(row(f"host0->gpu{k}", 30e9) for k in range(8))
    verdict = of(judge_fleet(changed(fleet(12, *copies), 1, *slow)), "n1")
    assert [entry.cause for entry in verdict.findings] == ["host copies"]


def test_fewer_gpus_than_the_class_is_a_fault_and_its_other_rows_do_not_hide_it() -> None:
    reports = fleet(5, COPY)
    reports[2] = replace(reports[2], gpus=("H200",) * 7)
    reports[3] = replace(reports[3], gpus=())  # all of them: no class of its own
    verdicts = judge_fleet(reports)
    assert {verdict.name for verdict in verdicts.nodes if verdict.state is NodeState.FAULT} == {"n2", "n3"}
    assert len(verdicts.classes) == 1


def test_a_lost_node_is_a_finding_and_comes_first() -> None:
    reports = [*fleet(3, COPY), NodeReport("gone", failure="lost in phase alone: its connection ended")]
    verdicts = judge_fleet(reports)
    assert (verdicts.nodes[0].name, verdicts.nodes[0].state) == ("gone", NodeState.LOST)
    assert verdicts.exit_code == 1


@pytest.mark.parametrize(
    ("failure", "cause", "step"),
    [
        ("facts: its process ended with exit code 255: ssh: connect to host n9: No route to host", "unreachable",
         "ssh -o BatchMode=yes n9 true"),
        ("facts: its process ended with exit code 127: bash: lanewise: command not found", "program", "--program"),
        ("network: its process ended with exit code 255", "disconnected", "did it restart"),
        ("facts: it has Lanewise 0.1, this is 0.2: install the same", "version", "lanewise --version"),
        ("facts: its answer cannot be read: Expecting value", "answer", "login scripts"),
        ("facts: ssh cannot be started: No such file or directory", "command", "--via"),
        ("together: its process ended by signal 9", "killed", "oom"),
        ("alone: no answer within 180 s", "lost", "--patience 2"),
        ("alone: The actor died because its node has died.", "node of Ray", "ray status"),
        ("facts: srun: error: Unable to create step for job 7", "slurm", "scontrol show node n9"),
        ("it vanished", "lost", "ipmitool"),
    ],
)  # fmt: skip
def test_a_lost_node_has_the_step_that_fits_how_it_was_lost(failure: str, cause: str, step: str) -> None:
    (verdict,) = judge_fleet([NodeReport("n9", failure=f"lost in phase {failure}")]).nodes
    assert verdict.cause is not None
    assert verdict.cause.cause == cause
    assert step in verdict.cause.step


def test_what_nothing_can_be_said_of_is_not_judged() -> None:
    assert judge_fleet([]).exit_code == 3
    verdicts = judge_fleet(fleet(2, COPY))
    assert verdicts.count(NodeState.UNKNOWN) == 2
    assert verdicts.exit_code == 3
    busy = [*fleet(3, COPY), NodeReport("working", FACTS, ("H200",) * 8, busy="gpu0 is busy (97 %)")]
    assert of(judge_fleet(busy), "working").state is NodeState.BUSY
    assert judge_fleet(busy).exit_code == 3
    assert judge_fleet(fleet(3, COPY)).exit_code == 0


def test_the_models_finding_and_the_siblings_are_one() -> None:
    finding = NodeFinding(MODEL, "slow", "link", "gpu3", "gpu3's link runs at Gen5 x8", "reseat it", "read under load")
    reports = changed(fleet(12, COPY), 0, row("host0->gpu3", 27e9))
    reports[0] = replace(reports[0], findings=(finding,), judged=1)
    verdict = of(judge_fleet(reports), "n0")
    assert len(verdict.findings) == 1
    assert verdict.findings[0].basis == "model, siblings"
    assert verdict.findings[0].title == finding.title


def test_what_the_model_says_of_most_of_a_class_accuses_no_node() -> None:
    finding = NodeFinding(MODEL, "slow", "iommu", "", "the IOMMU translates", "iommu=pt")
    reports = [replace(report, findings=(finding,), judged=1) for report in fleet(6, COPY)]
    verdicts = judge_fleet(reports)
    assert verdicts.count(NodeState.OK) == 6
    assert [entry.cause for entry in verdicts.of_classes] == ["iommu"]
    assert "6 of 6 nodes" in verdicts.of_classes[0].evidence
    assert verdicts.exit_code == 1
    twice = (replace(finding, phase=ALONE), replace(finding, phase=TOGETHER))
    two = [replace(report, findings=twice if place < 2 else (), judged=1) for place, report in enumerate(reports)]
    assert judge_fleet(two).count(NodeState.SLOW) == 2  # of 6, however many phases show it


def test_a_node_is_compared_with_its_own_past() -> None:
    reports = fleet(2, row("host0->host0", 90e9))
    before = {"n0": [(f"{day}.json", (row("host0->host0", 110e9 + day * 1e8),)) for day in range(3)]}
    verdict = of(judge_fleet(reports, before), "n0")
    assert verdict.cause is not None
    assert (verdict.cause.cause, verdict.cause.basis) == ("memory", "past")
    same = {"n0": [(f"{day}.json", (row("host0->host0", 97e9),)) for day in range(3)]}  # 7 % less: not worth a look
    assert of(judge_fleet(reports, same), "n0").state is NodeState.OK
    few = {"n0": before["n0"][:2]}
    assert of(judge_fleet(reports, few), "n0").state is NodeState.UNKNOWN


def test_each_phase_is_compared_with_its_own_past() -> None:
    """While all nodes work a copy is slower each night: that is no past of the copy alone."""
    memory = row("host0->host0", 90e9)
    rows = {name: (in_phase(replace(memory, value=alone), ALONE), in_phase(replace(memory, value=60e9), TOGETHER))
            for name, alone in (("fine", 90e9), ("slow", 62e9))}  # fmt: skip
    past = {name: [(f"{day}.json", rows["fine"]) for day in range(3)] for name in rows}
    verdicts = judge_fleet([NodeReport(name, FACTS, (), own) for name, own in rows.items()], past)
    assert of(verdicts, "fine").state is NodeState.OK
    assert (cause := of(verdicts, "slow").cause) is not None
    assert "memory" in cause.cause
    assert "90 GB/s" in cause.evidence


# --- what pairs of nodes say of each ----------------------------------------------------------------------------------


def pair_tests(names: list[str], slow: dict[tuple[str, str], float]) -> list[PairTest]:
    """All pairs both ways at 10 GB/s, but for these; ('a', '') is all that a sends, ('', 'a') all that it receives."""
    return [
        PairTest(s, t, min(slow.get((s, t), 10e9), slow.get((s, ""), 10e9), slow.get(("", t), 10e9)), number)
        for number, pairs in enumerate(all_pairs(names)) for a, b in pairs for s, t in ((a, b), (b, a))
    ]  # fmt: skip


@given(st.integers(3, 12), st.integers(0, 11))
def test_the_slow_end_of_a_pair_is_named_and_not_its_partners(count: int, which: int) -> None:
    names = [f"n{number}" for number in range(count)]
    bad = names[which % count]
    tests = pair_tests(names, {("", bad): 4e9})
    assert suspects(tests) == [bad]
    rows = network_rows(tests)
    assert all(entry.value == (4e9 if (name, entry.scenario) == (bad, "network receive") else 10e9)
               for name, entries in rows.items() for entry in entries)  # fmt: skip
    verdicts = judge_fleet([NodeReport(name, FACTS, (), tuple(rows[name])) for name in names])
    assert [(verdict.name, verdict.cause.cause) for verdict in verdicts.nodes if verdict.cause] == [
        (bad, "network receive")
    ]


def test_a_slow_path_between_two_fine_nodes_is_said_and_accuses_neither() -> None:
    names = [f"n{number}" for number in range(6)]
    tests = pair_tests(names, {("n1", "n4"): 3e9})
    assert suspects(tests) == []
    assert [str(pair) for pair in slow_pairs(tests)] == [
        "n1 to n4: 3 GB/s, with others both reach 10 GB/s; the path between them is slow, or shared"
    ]
    assert pairs_again(tests) == (("n1", "n4"),)
    again = [*tests, PairTest("n1", "n4", 3e9, 9), PairTest("n4", "n1", 10e9, 9)]
    assert [(pair.source, pair.target) for pair in slow_pairs(again)] == [("n1", "n4")]
    assert pairs_again(again) == ()
    assert slow_pairs([*again, PairTest("n1", "n4", 9.5e9, 10)]) == []
    assert all(
        entry.table == NETWORK and entry.value == 10e9 for rows in network_rows(tests).values() for entry in rows
    )


def _by_chance(count: int, seed: int, least: float) -> list[PairTest]:
    """Tests of all pairs of so many nodes, whose rates differ by chance: from `least` to 1 of a loopback's 1.7 GB/s."""
    chance, names = random.Random(seed), [f"n{number}" for number in range(count)]
    return [replace(test, rate=1.7e9 * chance.uniform(least, 1)) for test in pair_tests(names, {})]


@given(st.integers(3, 12), st.integers(0, 10_000))
def test_paths_that_differ_by_less_than_the_share_of_suspects_are_not_called_slow(count: int, seed: int) -> None:
    assert slow_pairs(_by_chance(count, seed, SUSPECT)) == []


def test_paths_that_all_differ_by_chance_are_seldom_called_slow() -> None:
    # The bound follows the spread of all pairs: of 200 sets whose paths all differ by up to 30 % few have one beyond.
    assert sum(bool(slow_pairs(_by_chance(3 + seed % 10, seed, 0.7))) for seed in range(200)) <= 10


def test_suspects_that_are_fine_once_others_rest_share_something() -> None:
    slow = [PairTest("a", "x", 4e9, 8), PairTest("b", "y", 4e9, 8), PairTest("c", "z", 4e9, 8)]
    halves = [PairTest("a", "y", 10e9, 9), PairTest("b", "z", 10e9, 10), PairTest("c", "x", 4e9, 10)]
    assert shared_paths([*slow, *halves], 8) == ["a", "b"]
