"""What the words of a figure state of its cause comes before what is merely common on such a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes

from lanewise import api
from lanewise.checking.checkup import Checkup


def checked(text: str, folder: Path) -> Checkup:
    path = folder / "question.txt"
    path.write_text(text, encoding="utf-8")
    return api.check([path])


def typed(folder: Path, *rows: str, head: str = "") -> Checkup:
    return checked(f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows), folder)


STATED = {
    "Two servers: 2.1 GB/s over sockets, 23.8 over RDMA": "transport",
    "Copies to four GPUs at once: 6.1 GB/s each, 24 GB/s alone": "shared",
    "The GPU is filled at 24 GB/s from the memory of its own socket, 9 from the other socket": "far NUMA node",
    "An NVMe drive reads 3.4 GB/s in the slot of the board, 0.8 on a riser": "link",
    "Two hosts: 40 Gb/s with packets of 1500 bytes, 97 with 9000": "mtu",
    "Bus bandwidth 9 GB/s over two hosts with EDR cards, 22 expected": "staged",
    "ib_write_bw to a GPU in a KVM guest: 30 Gb/s, 95 expected": "virtual machine",
    "iperf3 over a bond of two ports: 9.4 Gb/s of 20": "port",
    "ib_write_bw from a GPU on the other NUMA node: 30 Gb/s, 95 expected": "far device",
    "ib_write_bw from memory of two H100 over one 400 Gb/s card: 390 and 250 Gb/s": "far device",
    "all_gather of two cards with an NVLink bridge: 9 GB/s, 40 expected": "nvlink",
}  # fmt: skip


@pytest.mark.parametrize("text", STATED)
def test_what_the_words_of_a_text_state_is_among_the_first_two(text: str, tmp_path: Path):
    assert STATED[text] in first_causes(checked(text, tmp_path))


def test_the_condition_of_a_figure_stands_behind_it_where_that_of_the_last_does(tmp_path: Path):
    finding = checked("Small reads: 0.9 GB/s with 512 bytes, 6.8 with 4096", tmp_path).findings[0]
    assert finding.causes[0].key == ("requests",)
    assert finding.causes[0].evidence.startswith("'with 4096' reached 6.8 GB/s")


def test_what_only_differs_between_two_runs_comes_after_a_condition_and_before_a_second_one(tmp_path: Path):
    assert first_causes(checked("Two servers, new version: 2.1 GB/s over sockets, 23.8 over RDMA", tmp_path)) == [
        "transport", "software",
    ]  # fmt: skip


def test_the_sockets_of_a_processor_are_no_transport(tmp_path: Path):
    causes = first_causes(checked("iperf3: 90 Gb/s on socket 0, 40 Gb/s on socket 1", tmp_path))
    assert "transport" not in causes


def test_a_variable_that_alone_differs_from_a_faster_row_is_named_though_another_is_faster_still(tmp_path: Path):
    checkup = typed(
        tmp_path,
        'path: "copies, timed by the host", flows: "gpu0->gpu1", value: 90 GB/s',
        'path: "copies, timed by the host, HSA_QUEUES=8", flows: "gpu0->gpu1", value: 150 GB/s',
        'path: "copies, by the GPU", flows: "gpu0->gpu1", value: 240 GB/s',
    )
    slow = next(each for each in checkup.findings if "HSA" not in each.results[0].row.scenario)
    assert "setting" in [cause.key[0] for cause in slow.causes[:2]]


def test_gpudirect_that_is_slower_than_staging_crosses_a_root_complex(tmp_path: Path):
    rows = [
        f'path: {name}, flows: "gpu0->host1", value: {value} GB/s' for name, value in (("GDR", 7.8), ("Staged", 21))
    ]
    causes = first_causes(typed(tmp_path, *rows))
    assert causes[0] == "far device"
    rows = [row.replace("GDR", "plain").replace("Staged", "GDR") for row in rows]
    assert first_causes(typed(tmp_path, *rows))[0] == "staged"


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        ('path: iperf3 in a VM, flows: "host0->host1", value: 4 Gb/s, line: 10 Gb/s', "virtual machine"),
        ('flows: "host1->host0", value: 10 Gb/s, line: 100 Gb/s, note: both senders at once', "shared"),
        ('path: from the far socket, flows: "host0->host1", value: 30 Gb/s, line: 100 Gb/s', "far NUMA node"),
    ],
)
def test_a_slow_row_s_own_name_or_note_states_a_cause(row: str, cause: str, tmp_path: Path):
    assert first_causes(typed(tmp_path, row))[0] == cause


def test_a_link_that_the_faster_of_two_drives_has_is_no_cause(tmp_path: Path):
    checkup = checked("A USB 3 drive writes 0.8 MB/s over Samba, a USB 2 drive 20 MB/s", tmp_path)
    assert "link" not in [cause.key[0] for cause in checkup.findings[0].causes if cause.evidence]


def test_a_monitor_may_show_less_than_there_is(tmp_path: Path):
    row = 'path: "reads, sampled", flows: "gpu0->gpu0", value: 28 GB/s'
    assert "counting" in first_causes(typed(tmp_path, row, head="stated: {memory rate: 546 GB/s}\n"))


@pytest.mark.parametrize(("value", "told"), [("no", True), ("yes", False)])
def test_a_stated_variable_that_turns_something_off_is_a_cause(value: str, told: bool, tmp_path: Path):
    row = 'flows: "gpu0->host1", value: 0.6 GB/s, line: 100 Gb/s'
    causes = first_causes(typed(tmp_path, row, head=f'stated: {{UCX_IB_GPU_DIRECT_RDMA: "{value}"}}\n'))
    assert (causes[0] == "setting") is told


def test_what_a_fine_row_says_as_well_is_no_cause(tmp_path: Path):
    row = 'path: {} in a VM, flows: "host0->host1", value: {} Gb/s, line: 10 Gb/s'
    assert first_causes(typed(tmp_path, row.format("iperf3", 3), row.format("iperf2", 9.4)))[0] != "virtual machine"


def test_a_drive_in_another_mode_is_not_nearer_to_its_gpu(tmp_path: Path):
    row = 'path: {}, flows: "nvme0->gpu0", value: {} GB/s, bytes: 1 MiB'
    causes = typed(tmp_path, row.format("one file", 0.4), row.format("another", 2.4)).findings[0].causes
    assert all(not cause.evidence for cause in causes if cause.key[0] == "far device")


@pytest.mark.parametrize(
    ("row", "cause", "what"),
    [
        ('path: iperf3 -P 8, flows: "host0->host1", value: 30 Gb/s, line: 100 Gb/s', "software", "one thread"),
        ('path: scp, flows: "host0->host1", value: 2 Gb/s, line: 25 Gb/s', "software", "in one stream"),
    ],
)
def test_the_limit_of_a_tool_that_a_slow_row_names_comes_before_what_is_common(
    row: str, cause: str, what: str, tmp_path: Path
):
    first = typed(tmp_path, row).findings[0].causes[0]
    assert (first.key[0], what in first.what) == (cause, True)


def test_dd_has_one_request_in_flight(tmp_path: Path):
    (finding,) = checked("dd reads 600 MB/s of an NVMe drive, 3400 MB/s expected", tmp_path).findings
    assert finding.causes[0].what == "dd has one request in flight at a time"


def test_iperf3_fills_a_line_of_10_gb_s_in_one_thread(tmp_path: Path):
    causes = typed(tmp_path, 'path: iperf3, flows: "host0->host1", value: 4 Gb/s, line: 10 Gb/s').findings[0].causes
    assert all("one thread, on one core" not in cause.what for cause in causes)


def test_the_words_that_lead_on_to_a_slow_figure_are_not_those_of_the_fast_one_before(tmp_path: Path):
    text = "iperf3 gives 9.41 Gb/s, but the NFS copy only reaches 1.2 Gb/s over 10GbE.\n"
    assert checked(text, tmp_path).findings[0].causes[0].evidence == "'iperf3 gives' reached 9.41 Gb/s"
