"""Typed rows of parts of a line: few connections over a bond, one half of a port, two switches, a bound port."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import QuestionThread, first_causes, verdict_of

from lanewise.checking.checkup import Checkup


def checkup(folder: Path, *rows: str, head: str = "") -> Checkup:
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    return QuestionThread("rows", text, "", (), (), "").check(folder)


def verdicts(folder: Path, *rows: str, head: str = "") -> list[str]:
    results = checkup(folder, *rows, head=head).results
    return [next(each.verdict.value for each in results if each.row.scenario == f"run{at}") for at in range(len(rows))]


def row(at: int, rate: float, line: str, rest: str = "") -> str:
    return f'flows: "host0->host1", path: run{at}, value: {rate} Gb/s, line: {line}{rest}'


@pytest.mark.parametrize(
    ("bond", "connections", "rate", "expected"),
    [
        ("LACP of 2 x 10 Gb/s", 1, 9.4, "ok"),
        ("2 x 10G", 1, 5.0, "slow"),  # of one port too
        ("2 ports", 1, 9.4, "ok"),
        ("2 x 10 Gb/s", 16, 9.4, "slow"),  # all hash to one port
        ("2 x 10 Gb/s", 16, 19.3, "ok"),
        ("2 x 10 Gb/s", 2, 9.4, "unknown"),  # both may hash to one port
        ("2 x 10 Gb/s", 0, 9.4, "unknown"),
        ("2 x 10 Gb/s", 0, 5.0, "slow"),
        ("4 x 10 Gb/s", 1, 9.4, "slow"),  # not the bond of this line
    ],
)
def test_a_connection_over_a_bond_has_one_port(bond: str, connections: int, rate: float, expected: str, tmp_path: Path):
    rest = f", connections: {connections}" if connections else ""
    assert verdicts(tmp_path, row(0, rate, "20 Gb/s", rest), head=f"stated: {{bond: {bond}}}\n") == [expected]


def test_one_connection_over_a_bond_is_not_compared_with_many_and_over_a_plain_line_it_is(tmp_path: Path):
    rows = row(0, 9.75, "20 Gb/s", ", connections: 1"), row(1, 19.3, "20 Gb/s", ", connections: 16")
    assert verdicts(tmp_path, *rows, head="stated: {lacp: 2 x 10GbE}\n") == ["ok", "ok"]
    assert verdicts(tmp_path, *rows) == ["slow", "ok"]


@pytest.mark.parametrize(("connections", "rate", "expected"), [(1, 9.4, "ok"), (16, 9.4, "slow"), (16, 19.3, "ok")])
def test_the_ports_of_a_bond_are_the_line_where_nobody_states_one(
    connections: int, rate: float, expected: str, tmp_path: Path
):
    text = f'flows: "host0->host1", value: {rate} Gb/s, connections: {connections}'
    assert verdict_of(checkup(tmp_path, text, head="stated: {bond: 2 x 10 Gb/s}\n")) == expected


@pytest.mark.parametrize(
    ("name", "slot", "rate", "expected"),
    [
        ("one half", "gen5 x4", 111, "ok"),
        ("one half", "gen5 x4", 60, "slow"),
        ("one half", "", 96, "ok"),  # half of the line at least
        ("both halves", "", 111, "slow"),
        ("one port", "gen5 x4", 111, "slow"),  # a card in a narrow slot
    ],
)
def test_one_half_of_a_port_has_its_own_lanes(name: str, slot: str, rate: float, expected: str, tmp_path: Path):
    text = f'flows: "host0->host1", path: {name}, value: {rate} Gb/s, line: 200 Gb/s' + f", slot: {slot}" * bool(slot)
    assert verdict_of(checkup(tmp_path, text)) == expected


@pytest.mark.parametrize(
    ("words", "rate", "expected"),
    [
        ("device: ConnectX-7 of a GB10", 109, "ok"),
        ("path: DGX Spark to DGX Spark", 109, "ok"),
        ("path: DGX Spark both halves", 109, "slow"),
        ("device: ConnectX-7", 109, "slow"),
    ],
)
def test_a_card_of_a_gb10_is_known_by_any_name(words: str, rate: float, expected: str, tmp_path: Path):
    text = f'flows: "host0->host1", value: {rate} Gb/s, line: 200 Gb/s, {words}'
    assert verdict_of(checkup(tmp_path, text)) == expected


def test_a_pair_across_switches_far_below_one_at_a_switch_shows_the_way_between_them(tmp_path: Path):
    near = 'flows: "host0->host1", value: 96 Gb/s, line: 100 Gb/s, path: same switch'
    across = 'flows: "host2->host0", value: {} Gb/s, line: 100 Gb/s, path: across switches'
    assert "uplink" in first_causes(checkup(tmp_path, near, across.format(4)))
    assert verdict_of(checkup(tmp_path, near, across.format(95))) == "ok"


@pytest.mark.parametrize(("device", "named"), [("mlx5_bond_0", True), ("mlx5_0,mlx5_1", False), ("^mlx5_2", False)])
def test_a_library_bound_to_one_port_may_use_another_than_that_of_the_line(device: str, named: bool, tmp_path: Path):
    rows = [f'flows: "host0->host1", value: {rate} GB/s, path: {name}, line: 400 Gb/s'
            for rate, name in ((2.7, "NCCL send"), (39, "MPI ping-pong"))]  # fmt: skip
    result = checkup(tmp_path, *rows, head=f'stated: {{NCCL_IB_HCA: "{device}"}}\n')
    assert ("port" in first_causes(result)) is named


@pytest.mark.parametrize(
    ("flows", "memory", "shown"),
    [
        ("host0->host1", "GPU", "gpu0->host1"),
        ("host1 -> host0", "cuda", "host1->gpu0"),
        ("host4->host5", "GPU", "host4->host5"),
        ("host0->host1", "host", "host0->host1"),
    ],
)
def test_memory_of_gpus_at_both_ends_is_a_row_of_the_near_one(flows: str, memory: str, shown: str, tmp_path: Path):
    (result,) = checkup(tmp_path, f'flows: "{flows}", memory: {memory}, value: 39 GB/s, line: 400 Gb/s').results
    assert result.row.flow == shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("path: STREAM Copy, value: 151 GB/s, threads: 8", "ok"),
        ("path: STREAM Triad, value: 107 GB/s, threads: 8", "unknown"),  # the store reads its line first
        ("path: STREAM Copy, value: 77 GB/s, threads: 16", "slow"),  # half of the channels
        ("path: STREAM Copy, value: 40 GB/s, threads: 6", "unknown"),  # six cores need not reach more
        ("path: STREAM Copy one thread, value: 12 GB/s", "unknown"),
        ("path: matrix product, value: 12 GB/s", "unknown"),  # takes what it needs
        ("path: STREAM Copy, value: 230 GB/s", "fast"),
    ],
)
def test_a_stated_rate_of_memory_judges_programs_that_measure_memory(text: str, expected: str, tmp_path: Path):
    head = "stated: {memory rate: 204.8 GB/s}\n"
    assert verdict_of(checkup(tmp_path, f'flows: "host0->host0", {text}', head=head)) == expected


def test_one_half_of_a_port_in_a_sentence_is_not_slow_beside_both(tmp_path: Path):
    text = "ib_write_bw -q 8: one half 111.86 Gb/s; both halves at once 196.08 Gb/s\n"
    assert verdict_of(QuestionThread("text", text, "", (), (), "").check(tmp_path)) != "slow"
