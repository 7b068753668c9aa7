"""Planted faults of the data paths of LLMs, each named by check from what a user has: tables, logs and descriptions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from collectives.collective_systems import pcie_box, two_nodes

from lanewise import api
from lanewise.checking.checkup import Checkup
from lanewise.checking.verdict import Verdict
from lanewise.collectives.curve import predict_collective
from lanewise.collectives.model import Collective, CollectiveSettings
from lanewise.results.observation import Observation, Source
from lanewise.topology.model import LinkKind, System

PAIR = api.load_system("h200-pair")
SIZE = 2**33


def table(
    system: System, ranks: str, count: int, hosts: int = 1, settings: CollectiveSettings | None = None
) -> str:  # fmt: skip
    """What nccl-tests would print of all_gather on that system."""
    rate = predict_collective(system, Collective.ALL_GATHER, ranks, [float(SIZE)], settings).points[0].bus_bandwidth
    lines = [
        f"# Rank {rank} Group 0 Pid {rank} on node{rank * hosts // count} device {rank % (count // hosts)} [0x1b] GPU"
        for rank in range(count)
    ]
    return "\n".join(["# all_gather_perf", *lines, f"{SIZE} 4 float none -1 " + f"9.0 9.00 {rate / 1e9:.2f} 0 " * 2])


def checked(folder: Path, system: System, *texts: str) -> Checkup:
    files = [folder / f"{number}.txt" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return api.check(files, system)


def causes(checkup: Checkup) -> list[str]:
    return [finding.causes[0].what for finding in checkup.findings if finding.causes]


def block_rows(folder: Path, pieces: str, time: float | None = None) -> Path:
    """A measured run of blocks that took as long as predicted, or that many seconds."""
    rows: list[Observation] = []
    for row in api.block_rows(api.predict_blocks(PAIR, "gpu0->gpu1", pieces)):
        value = row.value if time is None else row.settings["bytes"] * row.settings["blocks"] / time
        rows += [replace(row, source=Source.MEASURED, value=value)] if row.metric == "goodput" else []
    api.save_run(api.as_measured_run((), rows=rows), folder / "blocks.json")
    return folder / "blocks.json"


def test_one_nvlink_down_in_what_the_driver_says_is_named_though_the_rate_is_within_the_tolerance(tmp_path: Path):
    links = [
        replace(link, count=17) if link.kind is LinkKind.NVLINK and "gpu0" in (link.a, link.b) else link
        for link in PAIR.links
    ]
    nccl = table(replace(PAIR, links=tuple(links)), "gpu[0-1]", 2)
    states = [
        f"GPU {gpu}: NVIDIA H200 (UUID: GPU-{gpu})\n"
        + "".join(f"\t Link {link}: {'<inactive>' if link == gpu + 17 else '26.562 GB/s'}\n" for link in range(18))
        for gpu in (0, 1)
    ]
    checkup = checked(tmp_path, PAIR, nccl, "".join(states))
    assert (causes(checkup), checkup.exit_code) == (["an NVLink of gpu0 is down"], 1)
    whole = checked(tmp_path, PAIR, table(PAIR, "gpu[0-1]", 2), "".join(states).replace("<inactive>", "26.562 GB/s"))
    assert (causes(whole), whole.exit_code) == ([], 0)


def test_peers_that_are_off_are_named_in_collectives_and_in_kv_blocks(tmp_path: Path):
    nccl = table(PAIR, "gpu[0-1]", 2, settings=CollectiveSettings(p2p=False))
    assert causes(checked(tmp_path, PAIR, nccl)) == ["peer copies are off: data goes through host memory"]
    staged = api.predict_blocks(PAIR, "gpu0->gpu1", "8192 x 1 MiB", p2p=False).transfers[0].time
    (what,) = causes(api.check([block_rows(tmp_path, "8192 x 1 MiB", staged)], PAIR))
    assert what == "these GPUs exchange data over PCIe: their NVLinks are down or not in use"


@pytest.mark.parametrize("described", ["off", "translate"])
def test_an_iommu_that_translates_is_named_where_it_is_not_described(tmp_path: Path, described: str):
    box = pcie_box("milan", part="rtx-4090")
    free = replace(box, policies=replace(box.policies, iommu="off"))
    translating = replace(box, policies=replace(box.policies, iommu="translate"))
    nccl = table(translating, "gpu[0-3]", 4, settings=CollectiveSettings(small_pages=True))
    found = causes(checked(tmp_path, free if described == "off" else translating, nccl))
    # Described, the range of the expected value has it.
    named = "the IOMMU translates, and pages of shared memory are of 4 KiB"
    assert found == ([named] if described == "off" else [])


@pytest.mark.parametrize(("cards", "left", "title"), [(2, 1, "one network card of"), (8, 4, "4 network cards of")])
def test_network_cards_that_are_missing_are_counted(tmp_path: Path, cards: int, left: int, title: str):
    described, real = (two_nodes(number, "connectx-7-ndr") for number in (cards, left))
    (what, *_) = causes(checked(tmp_path, described, table(real, "n[0-1]gpu[0-7]", 16, hosts=2)))
    assert what.startswith(title)


def test_blocks_that_are_too_small_are_named(tmp_path: Path):
    checkup = api.check([block_rows(tmp_path, "8192 x 4 KiB")], PAIR)
    assert checkup.results[0].verdict is Verdict.OK
    assert any("blocks up to 4 KiB by nixl-cuda-ipc wait for the software" in note for note in checkup.notes)
    head = "Block Size (B)      Batch Size     B/W (GB/Sec)   Avg Lat. (us)\n"
    notes = checked(tmp_path, PAIR, f"{head}4096                1              0.30           13.6\n").notes
    assert any("blocks up to 4 KiB of nixlbench, 13.7 us a batch of 1: small blocks" in note for note in notes)


def test_pageable_memory_is_named(tmp_path: Path):
    log = "LMCache INFO: Stored 3866 out of total 3866 tokens. size: 0.5309 gb, cost 36 ms, throughput: 14.7 GB/s;"
    copy = 'lanewise-rows: 1\nrows:\n  - {flows: "host0->gpu0", value: 11 GB/s, host memory: pageable}\n'
    for text in (log, copy):
        checkup = checked(tmp_path, PAIR, text)
        named = [cause.key[0] for finding in checkup.findings for cause in finding.causes]
        assert "pageable" in named or any("pageable memory" in note for note in checkup.notes), text
