"""Blocks of memory to host memory, another GPU and test files, over a CUDA driver and a cuFile without GPUs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lanewise
from lanewise._native import io_uring_missing
from lanewise.checking.checkup import check
from lanewise.errors import CannotMeasure, FormatError, InputError, MissingDependency, UnknownName
from lanewise.report.text.blocks import render_measured_blocks
from lanewise.results.compare import compare_runs
from lanewise.results.match import CONTEXT, identity
from lanewise.results.observation import Observation
from lanewise.results.sample import Sample, summarise

COPIES = (
    "cuMemcpyAsync", "cuMemcpyBatchAsync", "cuMemcpyBatchAsync-256", "cuMemcpyBatchAsync-256-sorted", "kernel",
)  # fmt: skip
RING = "psync" if io_uring_missing() else "io_uring"
COMPAT = not Path("/proc/driver/nvidia-fs/version").exists()
BLOCKS = "8 x 64 KiB"
EIGHT = {"bytes": 65536, "blocks": 8}


def measure(to: str | Path, source: str = "gpu0", blocks: str = BLOCKS, **options: Any) -> list[Sample]:
    """One run of each row, with short copies for the peak."""
    return list(lanewise.measure_kv(to, blocks, source, runs=1, peak_bytes=1 << 20, **options))


def of_metric(samples: list[Sample], metric: str) -> dict[tuple[str, str], Sample]:
    return {(s.scenario, s.flow): s for s in samples if s.metric == metric and s.settings == EIGHT}


@pytest.mark.parametrize(("to", "path"), [("host", "device to host"), ("gpu1", "peer")])
def test_blocks_go_there_back_and_both_ways_by_each_software(gpus, to, path):
    samples = measure(to)
    end = "host0" if to == "host" else to
    flows = (f"gpu0->{end}", f"{end}->gpu0")
    rates = of_metric(samples, "goodput")
    assert list(rates) == [
        (f"blocks {both}by {software}", flow) for software in COPIES for both in ("", "both ways ") for flow in flows
    ]
    assert {s.how["data"] for s in rates.values()} == {"verified"}
    for key, time in of_metric(samples, "block_time").items():
        rate = rates[key].value
        assert rate is not None
        assert time.value == pytest.approx(65536 / rate)
    assert of_metric(samples, "share").keys() == rates.keys()
    assert rates["blocks by kernel", flows[0]].path == path
    assert rates["blocks by kernel", flows[0]].how["engine"] == "SM"
    assert rates["blocks both ways by kernel", flows[0]].how["flows"] == ", ".join(flows)
    lines = render_measured_blocks(summarise(samples)).splitlines()
    assert len(lines) == 1 + len(rates) + 4 + 2  # the head, the rows, four of long copies, what holds for all


def test_measured_and_predicted_blocks_are_the_same_rows(gpus):
    measured = summarise(measure("host"))
    for flows in ("gpu0->host0", "host0->gpu0", "gpu0->host0, host0->gpu0"):
        for software in COPIES:
            rows = lanewise.block_rows(lanewise.predict_blocks("h200-pair", flows, BLOCKS, software))
            ignore = (*CONTEXT, "engine", "NUMA node")
            known = {identity(row, ignore) for row in measured}
            assert {identity(row, ignore) for row in rows} <= known
    predicted = lanewise.as_measured_run((), rows=rows)
    comparison = compare_runs(predicted, lanewise.as_measured_run((), rows=measured))
    assert [(pair.left.flow, pair.right.flow) for pair in comparison.pairs] == [(row.flow, row.flow) for row in rows]
    assert {pair.right.scenario for pair in comparison.pairs} == {"blocks both ways by kernel"}


def as_measured(row: Observation, value: float) -> Observation:
    from lanewise.results.observation import Source

    return replace(row, source=Source.MEASURED, value=value, low=None, high=None, samples=(value,), limit="")


def test_check_judges_blocks_by_what_their_software_costs():
    row = lanewise.block_rows(lanewise.predict_blocks("h200-pair", "gpu0->host0", "8192 x 64 KiB", "cuMemcpyAsync"))[0]
    assert row.value is not None
    assert row.limit == "software: posts, completions and start of cuMemcpyAsync"
    system = lanewise.load_system("h200-pair")
    verdicts = {}
    for share in (1.0, 0.3):
        checkup = check([as_measured(row, share * row.value)], target=system)
        (result,) = checkup.results
        notes = [note for note in checkup.notes if "blocks up to 64 KiB by cuMemcpyAsync wait for the software" in note]
        assert len(notes) == (share == 1.0)
        assert (result.expected.value, result.expected.limit) == (row.value, row.limit)
        verdicts[share] = str(result.verdict)
    assert verdicts == {1.0: "ok", 0.3: "slow"}


def test_blocks_go_to_a_test_file_and_back_and_nothing_stays_behind(gpus, direct):
    samples = measure(direct / "cache.bin")
    compat = "cuFile compat" if COMPAT else "cuFile"
    rates = of_metric(samples, "goodput")
    assert list(rates) == [
        (f"blocks {both}by {software}", flow)
        for software in (RING, compat) for both in ("", "both ways ")
        for flow in ("gpu0->cache.bin", "cache.bin->gpu0")
    ]  # fmt: skip
    assert {s.how["data"] for s in rates.values()} == {"verified"}
    assert {s.how["mode"] for s in rates.values()} == {"bounce", compat}
    assert of_metric(samples, "share").keys() == rates.keys()
    assert list(direct.iterdir()) == []


def test_without_a_gpu_blocks_of_host_memory_go_to_a_file(monkeypatch, direct):
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", "libnocuda.so")
    samples = measure(direct, "host", software=("io_uring",), threads=2, depth=2)
    assert {s.how["mode"] for s in samples} == {"direct"}
    assert {s.settings["posters"] for s in samples} == {2}
    assert {s.flow for s in samples if s.metric == "goodput"} == {f"host0->{direct.name}", f"{direct.name}->host0"}
    with pytest.raises(MissingDependency, match="the CUDA driver cannot be opened") as missing:
        measure(direct)
    assert "--from host --to FOLDER" in missing.value.hint


@pytest.mark.parametrize(
    ("arguments", "error", "cause"),
    [
        ({"to": "host", "source": "host"}, InputError, "touches neither a GPU nor a file"),
        ({"to": "gpu0"}, InputError, "start and end in gpu0"),
        ({"to": "host", "software": ("io_uring",)}, InputError, "io_uring moves nothing from gpu0 to host"),
        ({"to": ".", "source": "host", "software": ("cuFile",)}, InputError, "cuFile moves nothing"),
        ({"to": "host", "depth": 4}, InputError, "have no effect between gpu0 and host0"),
        ({"to": "host", "list_length": 8}, InputError, "--list, --secret-file and --device are of a network"),
        ({"to": "host", "software": ("magic",)}, UnknownName, "magic"),
        ({"to": "host", "blocks": "many"}, FormatError, "no number of blocks"),
        ({"to": "host", "blocks": "8 x 100 B"}, InputError, "no multiple of 16 B"),
        ({"to": ".", "blocks": "8 x 1 KiB"}, InputError, "no multiple of 4,096 B"),
        ({"to": "gpu7"}, UnknownName, "gpu7"),
        ({"to": "host", "source": "disk"}, InputError, "'disk' is no memory"),
    ],
)
def test_what_cannot_be_moved_is_refused_with_a_hint(gpus, arguments, error, cause):
    with pytest.raises(error, match=cause) as refused:
        measure(**arguments)
    assert refused.value.hint


def test_a_file_of_the_user_is_not_written_to(gpus, tmp_path):
    own = tmp_path / "own.bin"
    own.write_bytes(b"mine")
    with pytest.raises(InputError, match="nothing of yours is written to") as refused:
        measure(own)
    assert str(tmp_path) in refused.value.hint
    assert own.read_bytes() == b"mine"


def test_data_that_arrives_wrong_ends_the_measurement(gpus, direct):
    gpus.setenv("FAKE_CUDA_CORRUPT", "out")
    with pytest.raises(CannotMeasure, match="arrived wrong"):
        measure("host", software=("kernel",))
    with pytest.raises(CannotMeasure, match="is not what was written there"):
        measure(direct)
    assert os.listdir(direct) == []


def test_software_that_is_not_here_is_a_row_with_the_reason_unless_it_is_named(gpus, direct):
    gpus.setenv("FAKE_CUFILE_OPEN", "5001")
    row = measure(direct)[-1]
    assert (row.scenario, row.value) == ("blocks by cuFile", None)
    assert "nvidia-fs is not loaded" in row.note
    with pytest.raises(CannotMeasure, match="nvidia-fs is not loaded"):
        measure(direct, software=("cuFile",))
    gpus.delenv("FAKE_CUFILE_OPEN")
    gpus.setenv("FAKE_CUFILE_WRITE", "5011")
    with pytest.raises(CannotMeasure, match="cuFileWrite: error 5011"):
        measure(direct, software=("cuFile",))


def test_both_ways_of_a_drive_are_not_compared_with_one_way_of_it():
    def row(flow: str, together: str, value: float) -> Observation:
        how = {"flows": together, "engine": "io_uring", "mode": "direct"}
        scenario = f"blocks {'both ways ' * (together != flow)}by io_uring"
        return summarise([Sample(scenario, flow, "goodput", value, "GB/s", {"bytes": 1 << 20}, how, "storage")])[0]

    rows = [row("disk->host0", "disk->host0", 3e9), row("disk->gpu0", "disk->gpu0, gpu0->disk", 1.4e9)]
    assert [str(result.verdict) for result in check(rows).results] == ["unknown", "unknown"]
    both = "host0->disk, disk->host0"
    writes = [row("host0->disk", "host0->disk", 3e9), row("disk->host0", both, 1.4e9), row("host0->disk", both, 1.4e9)]
    assert {str(result.verdict) for result in check(writes).results} == {"unknown"}
    rows[1] = row("disk->gpu0", "disk->gpu0", 1.4e9)
    assert {str(result.verdict) for result in check(rows).results} == {"unknown", "slow"}
