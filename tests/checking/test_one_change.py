"""Rows typed in that differ in one thing alone: a setting, threads, the number of rails."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import QuestionThread

from lanewise.checking.checkup import Checkup
from lanewise.checking.verdict import Verdict

SERVICE = 'flows: "host0->host0", path: llama 3B q4'
NETWORK = 'flows: "host0->host1", path: ucp_get'


def check(folder: Path, *rows: str, head: str = "") -> Checkup:
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    return QuestionThread("rows", text, "", (), (), "").check(folder)


def slow(checkup: Checkup) -> list[float]:
    return [result.row.value or 0.0 for result in checkup.results if result.verdict is Verdict.SLOW]


def keys(checkup: Checkup) -> list[str]:
    return [cause.key[0] for cause in checkup.findings[0].causes[:2]]


def test_more_threads_that_are_far_slower_are_slow_and_the_fast_row_is_not(tmp_path: Path):
    rows = [f"{SERVICE}, value: {value} tokens/s, threads: {count}" for count, value in ((8, 0.27), (4, 12), (2, 9))]
    checkup = check(tmp_path, *rows)
    assert slow(checkup) == [0.27]
    assert keys(checkup)[0] == "setting"
    assert "8 threads, more than the CPUs that the program may use" in checkup.findings[0].title


def test_the_number_of_cpus_that_was_stated_is_named(tmp_path: Path):
    rows = [f"{SERVICE}, value: {value} tokens/s, threads: {count}" for count, value in ((8, 0.27), (4, 12))]
    checkup = check(tmp_path, *rows, head="stated: {cpus: 4}\n")
    assert "8 threads, more than 4 CPUs" in checkup.findings[0].title


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("threads: 1, value: 2 tokens/s", "threads: 8, value: 12 tokens/s"),  # less is asked for
        ("threads: 8, value: 7 tokens/s", "threads: 4, value: 12 tokens/s"),  # they wait for each other a little
        ("batch: 64, value: 2 it/s", "batch: 8, value: 12 it/s"),
        ("context: 8192, value: 5 tokens/s", "context: 512, value: 12 tokens/s"),
        ("threads: 8, channels: 2, value: 2 tokens/s", "threads: 4, channels: 1, value: 12 tokens/s"),  # two differ
        ("attempt: 2, value: 2 it/s", "attempt: 1, value: 12 it/s"),
        ("tensor_parallel: 1, value: 5 tokens/s", "tensor_parallel: 2, value: 12 tokens/s"),
        ("read_percent: 70, value: 5 it/s", "read_percent: 100, value: 12 it/s"),
        ("threads: 8, note: per thread, value: 2 it/s", "threads: 1, note: per thread, value: 12 it/s"),
    ],
)
def test_other_work_is_no_setting(first: str, second: str, tmp_path: Path):
    assert slow(check(tmp_path, f"{SERVICE}, {first}", f"{SERVICE}, {second}")) == []


@pytest.mark.parametrize(
    ("key", "cause"), [("mtu: 1500", "mtu"), ("xpmem: 1", "setting"), ("ring_buffer: 256", "setting")]
)
def test_a_setting_of_ones_own_is_the_cause_where_all_else_is_alike(key: str, cause: str, tmp_path: Path):
    word = key.partition(":")[0]
    short = f"{NETWORK}, bytes: 4k, value: 2 Gb/s, {key}"
    checkup = check(tmp_path, short, f"{NETWORK}, bytes: 4k, value: 7 Gb/s, {word}: 9000")
    assert slow(checkup) == [0.25e9]
    assert keys(checkup)[0] == cause


def test_the_mtu_of_rdma_is_no_matter_of_the_cpu(tmp_path: Path):
    row = 'flows: "host0->host1", path: ib_write_bw, line: 25GbE'
    checkup = check(tmp_path, f"{row}, mtu: 256, value: 14 Gb/s", f"{row}, mtu: 4096, value: 24 Gb/s")
    cause = checkup.findings[0].causes[0]
    assert (cause.key, cause.what) == (("mtu",), "the setting mtu=256")


def test_a_setting_in_words_is_the_cause_and_no_word_beside_it_is(tmp_path: Path):
    row = 'flows: "host0->host1", path: iperf3 TCP'
    checkup = check(tmp_path, f"{row}, tso: off, value: 20 Gb/s", f"{row}, tso: on, value: 45 Gb/s")
    causes = checkup.findings[0].causes
    assert (causes[0].what, causes[0].evidence) == ("the setting tso=off", "tso=on reached 45 Gb/s, all else alike")
    assert "transport" not in [cause.key[0] for cause in causes]


def test_more_threads_of_a_drive_are_no_matter_of_cpus_alone(tmp_path: Path):
    row = 'flows: "nvme0n1->host0", path: fio read, bytes: 1M'
    checkup = check(tmp_path, f"{row}, threads: 64, value: 3 GB/s", f"{row}, threads: 4, value: 7 GB/s")
    assert "or the drive seeks between their requests" in checkup.findings[0].title


def test_rails_that_add_nothing_share_something(tmp_path: Path):
    rows = [f"{NETWORK} {name}, value: {value} GB/s" for name, value in (("1 rail", 11.7), ("2 rails", 11.8))]
    checkup = check(tmp_path, *rows)
    assert slow(checkup) == [11.8e9]
    assert keys(checkup) == ["shared", "setting"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("path: get 1 rail, value: 11.8 GB/s", "path: get 2 rails one port of each card, value: 23.6 GB/s"),
        ("path: get, rails: 1, value: 11.8 GB/s", "path: get, rails: 4, value: 40 GB/s"),
        ("path: get, value: 11.8 GB/s", "path: get two ports, value: 23.6 GB/s"),
        ("path: get 1 rail, value: 90 Gb/s, line: 100 Gb/s", "path: get 2 rails, value: 92 Gb/s, line: 100 Gb/s"),
        ("path: get 1 rail, bytes: 4k, value: 2 GB/s", "path: get 2 rails, bytes: 4k, value: 2 GB/s"),
        ("path: get 1 rail, value: 11.8 GB/s", "path: put 2 rails, value: 11.8 GB/s"),
        ("path: 1 rail get, value: 11.8 GB/s", "path: 2 rails put, value: 11.8 GB/s"),
        ("path: ConnectX-6 NIC, value: 12 GB/s", "path: ConnectX-7 NIC, value: 13 GB/s"),  # models
        ("path: get over a 2-port card, value: 12 GB/s", "path: get over a 4-port card, value: 12 GB/s"),
        ("path: get, nic: 1, value: 12 GB/s", "path: get, nic: 2, value: 12.1 GB/s"),  # which, not how many
    ],
)
def test_rails_that_add_up_or_are_of_another_test_are_not_slow(first: str, second: str, tmp_path: Path):
    ends = 'flows: "host0->host1"'
    assert slow(check(tmp_path, f"{ends}, {first}", f"{ends}, {second}")) == []


def test_a_variable_that_the_note_of_a_slow_collective_has_is_a_cause_unless_a_fine_row_has_it(tmp_path: Path):
    ring = 'flows: "gpu[0-7]->gpu[0-7]", path: all_reduce, metric: bus_bandwidth, ranks: 8, hosts: 1, bytes: 16 GiB'
    note = 'note: "NCCL_TOPO_FILE=/opt/topo.xml, NCCL_IB_PCI_RELAXED_ORDERING=1"'
    checkup = check(tmp_path, f"{ring}, value: 15 GB/s, {note}", head="gpus: NVIDIA H200\n")
    assert any("NCCL_TOPO_FILE=/opt/topo.xml" in cause.what for cause in checkup.findings[0].causes[:2])
    fine = f"{ring}, value: 480 GB/s, {note}"
    checkup = check(tmp_path, f"{ring}, value: 15 GB/s, {note}", fine, head="gpus: NVIDIA H200\n")
    assert not any("NCCL_TOPO_FILE" in cause.what for cause in checkup.findings[0].causes)


def pasted(folder: Path, text: str) -> Checkup:
    return QuestionThread("text", text, "", (), (), "").check(folder)


@pytest.mark.parametrize(
    "text",
    [
        "Results:\n16 threads = 0.83 t/s\n7 threads = 6.56 t/s\n",
        "With 8 threads I get 5200 requests/s, with 32 threads only 2100 requests/s. Why?\n",
        "llama.cpp: 4 threads 8.1 tokens/s, 16 threads 9.6 tokens/s, 32 threads 4.0 tokens/s\n",
        "| `num_thread` | tok/s |\n|---|---|\n| 8 (auto-detected) | **0.27** |\n| 4 | **12.07** |\n| 2 | 9.09 |\n",
    ],
)
def test_more_threads_of_a_pasted_text_are_slow_as_those_typed_in(text: str, tmp_path: Path):
    checkup = pasted(tmp_path, text)
    assert len(slow(checkup)) == 1
    assert checkup.findings[0].causes[0].key == ("setting", "threads")


@pytest.mark.parametrize(
    "text",
    [
        "Results:\n16 threads = 40.1 t/s\n1 threads = 6.56 t/s\n",
        "Results:\n16 threads = 5.1 t/s\n7 threads = 6.56 t/s\n",
        "Results per thread:\n16 threads = 0.83 t/s\n7 threads = 6.56 t/s\n",
        "Results:\n16 threads, llama 70B = 0.83 t/s\n7 threads, qwen = 6.56 t/s\n",
    ],
)
def test_other_threads_of_a_pasted_text_are_not_slow(text: str, tmp_path: Path):
    assert slow(pasted(tmp_path, text)) == []
