"""GPU memory at the end of a path, over a CUDA driver and a cuFile without GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lanewise
from lanewise.errors import CannotMeasure
from lanewise.results.sample import Sample

SMALL: dict[str, Any] = {"io": "64 KiB", "size": "1 MiB", "threads": 2, "depth": 2, "to": "gpu0"}
COMPAT = not Path("/proc/driver/nvidia-fs/version").exists()


def measure(path: Path, **settings: Any) -> list[Sample]:
    """One run of each mode."""
    return list(lanewise.measure_storage(path, runs=1, **{**SMALL, **settings}))


def test_all_modes_into_a_gpu_stand_side_by_side_with_their_data_verified(gpus, direct, data):
    rates = {s.scenario: s for s in measure(data) if s.metric == "goodput"}
    compat = "read cuFile compat" if COMPAT else "read cuFile"
    assert list(rates) == ["read cached", "read bounce", compat]
    assert {s.flow for s in rates.values()} == {"data.bin->gpu0"}
    assert {s.how["data"] for s in rates.values()} == {"verified"}
    assert all(s.value for s in rates.values())
    if COMPAT:
        assert rates[compat].how["mode"] == "cuFile compat"
        assert "COMPAT MODE (nvidia-fs is not loaded)" in rates[compat].how["engine"]


def test_a_striped_volume_lands_in_gpu_memory_in_its_order(gpus, direct):
    folders = [direct / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    samples = list(lanewise.measure_storage(folders, runs=1, make="2 MiB", stripe="16 KiB", **SMALL))
    assert {s.how["data"] for s in samples} == {"verified"}


def test_a_machine_without_cufile_tells_so_in_a_row_unless_cufile_was_asked_for(gpus, direct, data):
    gpus.setenv("LANEWISE_CUFILE", "libnone.so")
    row = measure(data)[-1]
    assert (row.scenario, row.value) == ("read cuFile", None)
    assert row.note.startswith("cuFile cannot be opened: libnone.so")
    with pytest.raises(CannotMeasure, match="cuFile cannot be opened") as missing:
        measure(data, modes="cuFile")
    assert "--modes bounce,cached" in missing.value.hint


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("FAKE_CUFILE_OPEN", "5001", "cuFileDriverOpen: error 5001, nvidia-fs is not loaded, and compat mode is not"),
        ("FAKE_CUFILE_READ", "5011", "cuFileRead: error 5011"),
        ("FAKE_CUDA_MEMORY", "100000", "cuMemAlloc: out of memory"),
        ("FAKE_CUDA_GPUS", "0", "no CUDA-capable device is detected"),
        ("FAKE_CUDA_FAIL", "cuMemHostRegister:1", "cuMemHostRegister: unknown error"),
        ("FAKE_CUDA_FAIL", "cuStreamCreate:2", "cuStreamCreate: unknown error"),
    ],
)
def test_what_a_gpu_or_cufile_refuses_is_an_error_and_everything_is_given_back(gpus, direct, data, name, value, cause):
    gpus.setenv(name, value)
    with pytest.raises(CannotMeasure) as refused:
        measure(data, modes="cuFile")
    assert cause in str(refused.value)
    assert refused.value.hint


def test_memory_that_cufile_cannot_register_is_told(gpus, direct, data):
    gpus.setenv("FAKE_CUFILE_NO_PIN", "1")
    assert measure(data, modes="cuFile")[0].how["engine"].endswith("GPU memory not registered")


def test_a_copy_that_fails_while_reading_ends_the_measurement(gpus, direct, data):
    gpus.setenv("FAKE_CUDA_FAIL", "cuMemcpyHtoDAsync:5")
    with pytest.raises(CannotMeasure, match="cuMemcpyHtoDAsync"):
        measure(data, modes="bounce")


def test_a_gpu_that_is_not_there_is_an_error(gpus, data):
    with pytest.raises(CannotMeasure, match="no GPU 7 here: the driver has 2"):
        measure(data, to="gpu7", modes="cached")


def test_without_a_driver_a_gpu_is_an_error_with_a_hint(monkeypatch, data):
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", "libnocuda.so")
    with pytest.raises(CannotMeasure, match="the CUDA driver cannot be opened") as missing:
        measure(data, modes="cached")
    assert "nvidia-smi" in missing.value.hint
