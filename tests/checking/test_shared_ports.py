"""Several ports at once that bring no more than one, and what else rows show that differ in one thing."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import QuestionThread, first_causes, verdict_of

from lanewise.checking.checkup import Checkup


def checkup(folder: Path, *rows: str, head: str = "") -> Checkup:
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    return QuestionThread("rows", text, "", (), (), "").check(folder)


def row(name: str, rate: float, line: str, rest: str = "") -> str:
    return f'flows: "host0->host1", path: {name}, value: {rate} Gb/s, line: {line}{rest}'


ALONE = row("iperf3 alone", 94, "100 Gb/s", ", connections: 8")


@pytest.mark.parametrize(
    ("name", "rate", "rest", "expected"),
    [
        ("iperf3 both cards", 104, ", connections: 16", ["uplink", "link"]),
        ("iperf3 both ports", 104, ", connections: 16", ["link", "uplink"]),
        ("iperf3 both ports at once", 104, "", ["link", "uplink"]),
    ],
)
def test_ports_at_once_that_add_nothing_share_a_slot_or_an_uplink(
    name: str, rate: float, rest: str, expected: list[str], tmp_path: Path
):
    assert first_causes(checkup(tmp_path, row(name, rate, "2x100 Gb/s", rest), ALONE)) == expected


@pytest.mark.parametrize(
    ("rate", "rest", "alone", "head"),
    [
        (125, ", connections: 16", ALONE, ""),  # they bring a third more
        (104, ", connections: 1", ALONE, ""),  # one connection stays on a port
        (104, "", ALONE, ""),  # nobody says how many
        (60, ", connections: 16", row("iperf3 alone", 55, "100 Gb/s", ", connections: 8"), ""),  # that is slow too
        (104, ", connections: 16", ALONE, "stated: {bond: 2 x 100 Gb/s}\n"),  # a hash chooses the port
    ],
)
def test_nothing_is_shared_for_sure_where_something_else_may_be_why(
    rate: float, rest: str, alone: str, head: str, tmp_path: Path
):
    found = checkup(tmp_path, row("iperf3 both ports", rate, "2x100 Gb/s", rest), alone, head=head)
    known = {cause.key[0] for each in found.findings for cause in each.causes if "fills 100 Gb/s" in cause.evidence}
    assert known == set()


def test_connections_over_another_line_show_no_limit_by_rate(tmp_path: Path):
    found = checkup(tmp_path, row("iperf3 ports", 95, "2x100 Gb/s", ", connections: 16"), ALONE)
    assert "a limit by rate" not in str([cause.what for each in found.findings for cause in each.causes])


def test_the_mtu_comes_first_where_it_alone_differs_whatever_the_connections(tmp_path: Path):
    rates = {(1, 1500): 5.2, (4, 1500): 9.8, (1, 9000): 10.9, (4, 9000): 19.6}
    rows = [
        row("iperf3", rate, "25 Gb/s", f", connections: {connections}, mtu: {mtu}")
        for (connections, mtu), rate in rates.items()
    ]
    assert first_causes(checkup(tmp_path, *rows))[0] == "mtu"
    assert first_causes(checkup(tmp_path, *rows[2:]))[0] == "window"


@pytest.mark.parametrize(("node", "rate", "expected"), [(":0", 152, "ok"), (":0", 50, "unknown"), ("", 50, "slow")])
def test_a_node_has_all_of_a_hosts_memory_or_a_part_of_it(node: str, rate: float, expected: str, tmp_path: Path):
    text = f'flows: "host0{node}->host0{node}", path: Triad, value: {rate} GB/s'
    assert verdict_of(checkup(tmp_path, text, head="stated: {memory rate: 187.7 GB/s}\n")) == expected


@pytest.mark.parametrize(
    ("model", "rate", "rest", "expected"),
    [
        ("Samsung PM9D3a 960GB", 1.87, "", "slow"),
        ("Samsung PM9D3a 960GB", 3.76, "", "unknown"),  # two lanes of Gen4, or a small model
        ("Samsung PM9D3a 15.36TB", 12.0, "", "ok"),
        ("Samsung PM9D3a 15.36TB", 6.0, "", "slow"),
        ("Samsung PM9D3a 960GB", 1.5, ", slot: gen3 x2", "ok"),  # all of that slot
        ("A drive of nobody", 1.87, "", "unknown"),
    ],
)
def test_a_drive_of_gen4_without_a_rate_reads_more_than_two_lanes_of_gen3(
    model: str, rate: float, rest: str, expected: str, tmp_path: Path
):
    text = f'flows: "nvme0n1->host0", value: {rate} GB/s, device: {model}, bytes: 1M, depth: 32, jobs: 4{rest}'
    found = checkup(tmp_path, text)
    assert verdict_of(found) == expected
    assert expected != "slow" or "link" in first_causes(found)


def test_the_sum_of_both_directions_is_no_measure_of_one(tmp_path: Path):
    text = "ib_write_bw 98.2 Gb/s, bidirectional 195 Gb/s, iperf3 94 Gb/s"
    assert verdict_of(QuestionThread("text", text, "", (), (), "").check(tmp_path)) == "unknown"
    text = "iperf3 94 Gb/s after the update, iperf3 50 Gb/s before"
    assert verdict_of(QuestionThread("text", text, "", (), (), "").check(tmp_path)) == "slow"


RAIL = row("ib_write_bw alone", 392, "400 Gb/s")


@pytest.mark.parametrize(
    ("name", "rate", "cpu", "far"),
    [
        ("ib_write_bw eight at once", 1665, "2x EPYC 9575F", True),
        ("ib_write_bw eight at once", 1665, "two Xeon 8480+", True),
        ("ib_write_bw eight at once", 1665, "EPYC 9575F", False),  # one socket
        ("ib_write_bw eight at once", 450, "2x EPYC 9575F", False),  # no more than one: a slot or an uplink
        ("ib_write_bw eight", 1665, "2x EPYC 9575F", False),  # perhaps over one rail
    ],
)
def test_cards_of_two_sockets_at_once_may_have_programs_on_the_other(
    name: str, rate: float, cpu: str, far: bool, tmp_path: Path
):
    found = checkup(tmp_path, row(name, rate, "8x400 Gb/s"), RAIL, head=f"stated: {{cpu: {cpu}}}\n")
    assert verdict_of(found) == "slow"
    assert ("far NUMA node" in first_causes(found)) is far


TUNNEL = "stated: {tunnel: USB4}\n"


@pytest.mark.parametrize(
    ("flow", "rate", "rest", "expected"),
    [
        ("disk0->host0", 1.05, ", path: hdparm", "slow"),
        ("disk0->host0", 3.4, ", path: hdparm", "ok"),
        ("disk0->host0", 1.05, "", "unknown"),  # nobody says what was in flight
        ("nvme0n1->host0", 1.05, ", bytes: 1M, depth: 8", "slow"),
        ("nvme0n1->host0", 1.05, ", bytes: 128k, depth: 1", "unknown"),
        ("disk0->host0", 0.55, ", path: hdparm", "unknown"),  # perhaps a drive of SATA
        ("host0->disk0", 1.05, ", bytes: 1M, depth: 8", "unknown"),  # writes wear and fill a cache
    ],
)
def test_a_drive_in_a_box_reads_what_its_tunnel_carries(
    flow: str, rate: float, rest: str, expected: str, tmp_path: Path
):
    found = checkup(tmp_path, f'flows: "{flow}", value: {rate} GB/s{rest}', head=TUNNEL)
    assert verdict_of(found) == expected
    assert expected != "slow" or first_causes(found)[0] == "link"


def test_a_fast_drive_in_a_box_is_fine_at_the_rate_of_the_tunnel(tmp_path: Path):
    text = 'flows: "nvme0n1->host0", value: 3.0 GB/s, device: Samsung SSD 990 PRO 2TB, bytes: 1M, depth: 32'
    assert verdict_of(checkup(tmp_path, text, head=TUNNEL)) == "ok"
    assert verdict_of(checkup(tmp_path, text)) == "slow"


def test_peers_of_cards_without_a_stated_bridge_may_go_through_an_iommu(tmp_path: Path):
    text = 'flows: "gpu0->gpu4", value: 0.9 GB/s, p2p: true'
    assert first_causes(checkup(tmp_path, text, head="gpus: NVIDIA GeForce RTX 3090\n"))[0] == "iommu"
    board = checkup(tmp_path, text, head="gpus: NVIDIA A100-SXM4-80GB\n")
    assert "iommu" not in first_causes(board)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Each of both 200G devices of the port alone writes 109 Gb/s, both together write 185 Gb/s.", "unknown"),
        ("ib_write_bw without IOMMU both together 185 Gb/s, with IOMMU both together 100 Gb/s", "slow"),
    ],
)
def test_a_sum_is_no_measure_of_one_alone(text: str, expected: str, tmp_path: Path):
    assert verdict_of(QuestionThread("text", text, "", (), (), "").check(tmp_path)) == expected
