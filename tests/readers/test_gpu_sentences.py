"""Sentences about GPUs: collectives of so many of them, peers, and numbers that are part of a name."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import verdict_of

from lanewise import api
from lanewise.checking.checkup import Checkup
from lanewise.readers.kinds import read_plain


def asked(text: str, folder: Path) -> Checkup:
    path = folder / "question.txt"
    path.write_text(text + "\n", "utf-8")
    return api.check([path])


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("NCCL within one host (eight H200): 347 GB/s at 256 MB.", "ok"),
        ("AllReduce of eight MI300X in one host stays at 24 GB/s.", "slow"),
        ("AllReduce of eight MI300X in one host reaches 322 GB/s.", "ok"),
        ("Four RTX PRO 6000 on one socket: scatter 1.85 GB/s by NCCL.", "slow"),
        ("NCCL over two hosts with one L4 each: 1.03 GB/s.", "unknown"),  # the network, whatever it is
        ("An all-reduce of 4 MB over eight H100 has 24 GB/s.", "unknown"),  # short messages
        ("nvbandwidth of eight H100: 371 GB/s between any two.", "ok"),
        ("nixlbench moves 0.4 GB/s between two A100-SXM4-80GB that NVLinks join.", "slow"),
        ("An RTX 3090 gets 12 GB/s from the host.", "slow"),
        ("An RTX 3090 gets 24 GB/s from the host.", "ok"),
        ("rocm_bandwidth_test gives 0.76 GB/s to a Vega Frontier Edition.", "slow"),
        ("Two machines with A30: 12 GB/s between GPUs over 200 Gb/s.", "unknown"),
    ],
)
def test_collectives_and_peers_of_a_sentence_are_judged_by_their_gpus(text: str, verdict: str, tmp_path: Path):
    assert verdict_of(asked(text, tmp_path)) == verdict


def test_the_ranks_of_a_collective_are_those_that_the_sentence_counts(tmp_path: Path):
    [result] = asked("All-reduce of four MI355X in one host: 165 GB/s.", tmp_path).results
    assert result.row.flow == "gpu0->gpu1, gpu1->gpu2, gpu2->gpu3, gpu3->gpu0"


@pytest.mark.parametrize("name", ["RTX PRO 6000", "RTX 4090", "EPYC 9554"])
def test_the_number_of_a_part_is_no_figure(name: str, tmp_path: Path):
    checkup = asked(f"Four {name}: all_reduce of a pair has 21 GB/s, of another pair 38.", tmp_path)
    assert {result.row.value for result in checkup.results} <= {21e9, 38e9}


def test_a_time_is_no_rate_without_its_unit(tmp_path: Path):
    checkup = asked("Peer copies of two RTX 4090: 24 GB/s and 1.5 to 3 us, through the host 11 GB/s.", tmp_path)
    assert {result.row.value for result in checkup.results} <= {24e9, 11e9}


def test_several_gpus_at_once_are_no_measure_of_one(tmp_path: Path):
    text = "MI300X: 50 GB/s from the memory of either socket, 97 {}."
    assert verdict_of(asked(text.format("for two GPUs at once"), tmp_path)) != "slow"
    # What the first figure says may hold for both.
    text = "Two pairs at once reach 112.5 GB/s to one other switch but 56.4 to another: why the half?"
    assert verdict_of(asked(text, tmp_path)) == "slow"


NUMBERED = {
    "4x L40S: host to device 13.2 GB/s on GPU 2 while the others get 26.4 GB/s.": ["host0->gpu2", "host0->gpu0"],
    "Two RTX 3090: gpu1 is filled at 6.2 GB/s from pinned memory, gpu0 at 12.4 GB/s.": ["host0->gpu1", "host0->gpu0"],
    "device_to_device_memcpy_write_ce of eight H200: 390 GB/s": ["gpu0->gpu1"],
}


@pytest.mark.parametrize("text", NUMBERED)
def test_a_figure_is_of_the_gpu_that_its_clause_numbers(text: str):
    assert [row.flow for row in read_plain(f"{text}\n", "f").observations] == NUMBERED[text]


def test_a_lone_gpu_at_half_of_the_others_has_a_lesser_link(tmp_path: Path):
    path = tmp_path / "question.txt"
    path.write_text(f"{next(iter(NUMBERED))}\n", encoding="utf-8")
    assert api.check([path]).findings[0].causes[0].key == ("link", "gpu2")
