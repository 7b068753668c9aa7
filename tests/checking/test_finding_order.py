"""Findings of several devices that say the same, and rows that differ in the number of their GPU."""

from __future__ import annotations

from pathlib import Path

from checking.test_stated_words import typed
from checking.thread_list import first_causes

from lanewise import api

HEAD = "gpus: NVIDIA RTX A6000\n"


def rows(*rates: float) -> list[str]:
    return [f'path: gpu{at}, flows: "host0->gpu{at}", value: {rate} GB/s' for at, rate in enumerate(rates)]


def test_gpus_at_one_lesser_rate_make_one_finding_that_names_all_of_them(tmp_path: Path):
    [finding] = typed(tmp_path, *rows(12.3, 12.2, 12.3, 12.3), head=HEAD).findings
    assert finding.title.startswith("each link of gpu0, gpu1, gpu2 and gpu3 runs at Gen3 x16 or Gen4 x8")
    assert len(finding.results) == 4
    assert finding.causes[0].key == ("link", "gpu0", "gpu1", "gpu2", "gpu3")


def test_gpus_at_two_lesser_rates_make_two_findings(tmp_path: Path):
    findings = typed(tmp_path, *rows(12.3, 6.2, 12.3, 6.2), head=HEAD).findings
    assert sorted(len(finding.results) for finding in findings) == [2, 2]


def test_rows_named_after_their_gpus_are_of_one_program(tmp_path: Path):
    checkup = typed(tmp_path, *rows(25.1, 12.3))
    assert first_causes(checkup)[0] == "link"
    assert checkup.findings[0].title.startswith("gpu1's link")


def test_a_gpu_of_a_sentence_that_is_slower_than_another_has_a_lesser_link(tmp_path: Path):
    path = tmp_path / "question.txt"
    path.write_text("Copies to gpu0 run at 25.1 GB/s, to gpu1 at 12.3 GB/s, both are A100 PCIe cards.\n", "utf-8")
    checkup = api.check([path])
    assert checkup.findings[0].causes[0].key == ("link", "gpu1")


def test_cores_that_a_sentence_states_are_those_that_threads_wait_for(tmp_path: Path):
    path = tmp_path / "question.txt"
    text = "llama.cpp with 64 threads makes 4 tokens/s on my machine, with 16 threads 9 tokens/s; it has 16 cores.\n"
    path.write_text(text, "utf-8")
    assert "more than 16 CPUs" in api.check([path]).findings[0].title
