"""measure collectives over an NCCL and a CUDA driver without GPUs."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import fake_cuda
import pytest

if sys.platform != "linux":
    pytest.skip("the CUDA part is for Linux", allow_module_level=True)

import lanewise
from lanewise.cli import verbs
from lanewise.errors import CannotMeasure, InputError, MissingDependency, UnknownName
from lanewise.options.sampling import SamplingRule
from lanewise.probes.collectives import data, session
from lanewise.probes.collectives.nccl import NcclLibrary
from lanewise.results.sample import Sample

ONCE = SamplingRule(1, 1)
Setup = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Setup]:
    """Sets the two libraries up; afterwards nothing of them may be left."""
    for name in [name for name in os.environ if name.startswith(("FAKE_CUDA_", "FAKE_NCCL_", "NCCL_"))]:
        monkeypatch.delenv(name)
    driver, nccl = fake_cuda.build(), fake_cuda.build_nccl()
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", str(driver))
    monkeypatch.setenv("LANEWISE_NCCL", str(nccl))
    for module in (data, session):
        monkeypatch.setattr(module, "PERIOD", 1021)  # so that short messages have several periods

    def settings(**values: object) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"FAKE_{name}", str(value))

    settings(CUDA_GPUS=3)
    yield settings
    assert fake_cuda.live(driver) == dict.fromkeys(fake_cuda.KINDS, 0)
    assert ctypes.CDLL(str(nccl)).fake_nccl_live() == 0


def measured(operations: object = "all_reduce", **options: object) -> list[Sample]:
    options = {"sizes": "12 KiB", "iterations": 2, "warmup": 0, "rule": ONCE, **options}
    return list(lanewise.measure_collectives(operations, **options))  # type: ignore[arg-type]


def test_rows_are_those_of_nccl_tests(machine: Setup) -> None:
    rows = measured()
    assert [(row.scenario, row.metric) for row in rows] == [
        ("all_reduce", "bus_bandwidth"), ("all_reduce", "time"),
        ("all_reduce in place", "bus_bandwidth"), ("all_reduce in place", "time"),
    ]  # fmt: skip
    rate, time = rows[0].value or 0, rows[1].value or 0
    size = 12 * 2**10
    assert time == pytest.approx(1e-6 + size / 100e9, rel=0.01)  # a copy within a GPU of this driver
    assert rate == pytest.approx(size / time * 2 * 2 / 3)
    assert rows[0].flow == "gpu0->gpu1, gpu1->gpu2, gpu2->gpu0"
    assert rows[0].settings == {"bytes": size, "hosts": 1, "ranks": 3}
    assert dict(rows[0].how) == {
        "engine": "NCCL", "library": "NCCL 2.27.7", "launch": "nccl-tests -g", "data": "verified", "wrong": "0",
    }  # fmt: skip


@pytest.mark.parametrize(
    "operation", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "sendrecv"]
)
def test_every_operation_moves_the_right_data_out_of_place_and_in_place(machine: Setup, operation: str) -> None:
    # 12 B: a float for each rank; 13 KiB: several periods of the data, no multiple of them
    rows = [row for row in measured(operation, sizes="8 B, 12 B, 13 KiB") if row.metric == "bus_bandwidth"]
    in_place = operation not in ("all_to_all", "sendrecv")
    assert {row.how["data"] for row in rows} == {"verified"}
    assert {row.scenario for row in rows} == {operation} | ({f"{operation} in place"} if in_place else set())
    divided = operation in ("all_gather", "reduce_scatter", "all_to_all")
    assert (rows[0].settings["bytes"] == 12) is divided  # 8 B are no float for each of three ranks


def test_calls_in_a_graph_take_the_same_time_and_leave_nothing(machine: Setup) -> None:
    rows = measured(launch="graph", iterations=3, warmup=1)
    assert {row.how["launch"] for row in rows} == {"graph"}
    assert {row.how["data"] for row in rows} == {"verified"}
    assert [row.value for row in rows if row.metric == "time"] == pytest.approx(
        [1e-6 + 12 * 2**10 / 100e9] * 2, rel=0.01
    )
    # Of each rank: one call compared, a warm-up and a sample, out of place and in place.
    assert fake_cuda.calls(fake_cuda.build(), "cuGraphLaunch") == 3 * 3 * 2
    with pytest.raises(UnknownName, match="unknown launch"):
        measured(launch="rocket")


@pytest.mark.parametrize("call", ["cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags", "cuGraphLaunch"])
def test_a_graph_that_fails_is_one_error_and_leaves_nothing(machine: Setup, call: str) -> None:
    machine(CUDA_FAIL=f"{call}:2")
    with pytest.raises(CannotMeasure, match=call):
        measured(launch="graph")


def test_a_call_that_fails_during_a_capture_ends_it(machine: Setup) -> None:
    machine(NCCL_FAIL_AT=5, NCCL_FAIL="ncclAllReduce")
    with pytest.raises(CannotMeasure, match="ncclAllReduce: internal error"):
        measured(launch="graph")


def test_wrong_data_is_counted_and_gives_no_rate(machine: Setup) -> None:
    machine(NCCL_CORRUPT=1)
    rows = measured()
    assert [row.value for row in rows] == [None, None]
    assert rows[0].note == "wrong values: 1 of gpu1"
    assert (rows[0].how["data"], rows[0].how["wrong"]) == ("not verified", "1")


def test_gpus_are_ranks_in_the_order_that_they_are_named(machine: Setup) -> None:
    assert measured(devices="gpu2, gpu0")[0].flow == "gpu2->gpu0, gpu0->gpu2"
    with pytest.raises(UnknownName, match="gpu7"):
        measured(devices="gpu7, gpu0")
    with pytest.raises(UnknownName, match="unknown collective"):
        measured("all_smash")


def test_what_is_missing_is_one_error(machine: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(CUDA_GPUS=1)
    with pytest.raises(InputError, match="two ranks or more, and here is gpu0 alone"):
        measured()
    machine(CUDA_GPUS=2, CUDA_MEMORY=2**14)
    with pytest.raises(CannotMeasure, match=r"rank 0 needs .* for two buffers"):
        measured()
    machine(CUDA_MEMORY=2**30, NCCL_FAIL="ncclCommInitAll")
    with pytest.raises(CannotMeasure, match="ncclCommInitAll: internal error: planted"):
        measured()
    machine(NCCL_FAIL="ncclAllReduce")
    with pytest.raises(CannotMeasure, match="ncclAllReduce: internal error"):
        measured()
    monkeypatch.setenv("LANEWISE_NCCL", "/nowhere/libnccl.so.2")
    with pytest.raises(MissingDependency, match="NCCL cannot be used") as caught:
        measured()
    assert "nvidia-nccl" in caught.value.hint


def test_the_verb_prints_a_table_like_nccl_tests_and_check_reads_the_run(
    machine: Setup, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(CUDA_GPUS=2)
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    run = tmp_path / "run.json"
    arguments = ["--sizes", "1 MiB, 4 MiB", "--iterations", "1", "-o", str(run)]
    assert verbs.run(["measure", "collectives", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "all_reduce of 2 GPUs: gpu0, gpu1; NCCL 2.27.7"
    assert lines[-1].split() == ["4", "MiB", "42.94", "97.67", "97.67", "0", "42.94", "97.67", "97.67", "0"]
    facts = json.loads(run.read_text())["machine"]
    assert "NCCL_ALGO=Ring" in json.dumps(facts)
    assert verbs.run(["check", str(run), "--system", "h200-pair"]) == 0
    assert "4 rows: 4 ok" in capsys.readouterr().out


def test_a_failing_call_ends_its_group_and_names_itself(machine: Setup) -> None:
    machine(NCCL_FAIL="ncclReduceScatter", NCCL_FAIL_AT=5)
    with pytest.raises(CannotMeasure, match="ncclReduceScatter: internal error: planted"):
        measured("reduce_scatter", sizes="12 KiB")


def test_a_group_is_put_together_once_for_all_its_calls(machine: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    address = NcclLibrary.address

    def counted(library: NcclLibrary, name: str) -> int:
        names.append(name)
        return address(library, name)

    monkeypatch.setattr(NcclLibrary, "address", counted)
    measured(iterations=50, warmup=5)
    # One call compared, a warm-up and a sample, out of place and in place, of three ranks each.
    assert names.count("ncclAllReduce") == 3 * 3 * 2
