"""The system on GPUs, by a CUDA driver without GPUs: each way to copy, the hold, failures, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_cuda
import numpy as np
import pytest
from garbage import collect

if sys.platform != "linux":
    pytest.skip("the CUDA part is for Linux", allow_module_level=True)

from lanewise import _native
from lanewise.errors import CannotMeasure, UnknownName
from lanewise.loadtest.detail_log import parse
from lanewise.loadtest.load_run import LoadSpec
from lanewise.loadtest.loadgen import LoadGenRunner, RunnerSetup
from lanewise.loadtest.session import open_system
from lanewise.loadtest.system import gpus, statistics
from lanewise.options.loadtest import BatchingOptions

BYTES, LIBRARY = 1000, 24  # not a multiple of 16
Open = Callable[..., _native.BatchingSystem]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a system on the fake driver: opened('12', GPUS=4, batch=8). At the end nothing may be left of it."""
    for name in [name for name in os.environ if name.startswith("FAKE_CUDA_")]:
        monkeypatch.delenv(name)
    libraries = []

    def of(
        variant: str = "13", engine: Any = None, checksum: bool = True, trace: int = 0, **asked: Any
    ) -> _native.BatchingSystem:
        libraries.append(fake_cuda.build(variant))
        monkeypatch.setenv("LANEWISE_CUDA_DRIVER", str(libraries[-1]))
        for name in [name for name in asked if name.isupper()]:
            monkeypatch.setenv(f"FAKE_CUDA_{name}", str(asked.pop(name)))
        defaults = {"sample_bytes": BYTES, "library": LIBRARY, "devices": ("gpu0",), "service": (0.0, 0.0)}
        options = BatchingOptions(**{**defaults, **asked})
        system = open_system(options, [engine] if engine else [], checksum=checksum, trace=trace)
        system.load(list(range(LIBRARY)))
        return system

    yield of
    collect()
    for library in libraries:
        assert fake_cuda.live(library) == dict.fromkeys(fake_cuda.KINDS, 0)


def driven(system: _native.BatchingSystem, count: int = 50) -> dict[str, Any]:
    samples = np.arange(count, dtype=np.uint64) * 7 % LIBRARY
    return _native.replay(system, np.arange(count) * 1e-4, samples, keep=True)


def right(count: int = 50) -> list[bytes]:
    sums = [zlib.crc32(_native.synthetic_sample(i * 7 % LIBRARY, BYTES)) for i in range(count)]
    return [value.to_bytes(4, "little") for value in sums]


@pytest.mark.parametrize("method", ["calls", "batch", "kernel", "staged"])
def test_each_way_to_copy_brings_the_right_samples_to_every_gpu(opened: Open, method: str) -> None:
    system = opened(copy=method, devices=("gpu0", "gpu1"), streams=3, service=(1e-4, 0.0), trace=64)
    found = driven(system)
    assert found["failure"] == ("", "")
    assert found["data"] == right()
    assert system.copies == [(method, {}), (method, {})]
    assert {batch[0] for batch in system.trace()} == {0, 1}
    assert statistics(system).bytes == 50 * BYTES


def test_a_cpu_and_a_gpu_serve_side_by_side(opened: Open) -> None:
    assert driven(opened(devices=("cpu", "gpu1")))["data"] == right()


@pytest.mark.parametrize(("variant", "ways"), [("13", 4), ("12", 4), ("no batch", 3)])
def test_the_fastest_way_that_the_driver_has_is_taken(opened: Open, variant: str, ways: int) -> None:
    system = opened(variant)
    ((method, tried),) = system.copies
    assert len(tried) == ways
    counts = {way: (1.1 if way == "kernel" else 1.0) * took for way, took in tried.items()}  # it has to win clearly
    assert counts[method] == min(counts.values())
    assert driven(system)["data"] == right()


@pytest.mark.parametrize("streams", [1, 4])
def test_every_way_is_tried_on_all_streams(opened: Open, streams: int) -> None:
    opened("13", streams=streams)  # the fake driver counts from here
    tried = fake_cuda.calls(fake_cuda.build("13"), "cuMemcpyBatchAsync")
    assert tried >= 5 * streams  # one to warm up, four that count


@pytest.mark.parametrize(("call", "lost"), [("cuLaunchKernel", "kernel"), ("cuMemcpyBatchAsync", "batch")])
def test_a_way_that_fails_when_it_is_tried_is_left_out(opened: Open, call: str, lost: str) -> None:
    ((method, tried),) = opened("13", FAIL=f"{call}:3").copies
    assert method != lost
    assert set(tried) == {"batch", "kernel", "staged", "calls"} - {lost}


def test_a_way_that_the_driver_lacks_is_refused(opened: Open) -> None:
    with pytest.raises(CannotMeasure, match="no cuMemcpyBatchAsync") as refused:
        opened("no batch", copy="batch")
    assert "12.8" in refused.value.hint


def test_the_gpu_is_held_by_a_kernel_for_each_batch(opened: Open) -> None:
    system = opened(service=(1e-3, 0.0), copy="staged", batch=4)
    library = fake_cuda.build()
    before = fake_cuda.calls(library, "cuLaunchKernel")
    driven(system, 20)
    assert fake_cuda.calls(library, "cuLaunchKernel") - before == sum(statistics(system).sizes.values())


def test_data_that_is_damaged_on_its_way_shows_in_the_checksum(opened: Open) -> None:
    assert driven(opened(CORRUPT="in", copy="calls"))["data"] != right()


@pytest.mark.parametrize("call", ["cuMemcpyHtoDAsync", "cuLaunchKernel", "cuEventSynchronize"])
def test_a_gpu_that_fails_in_a_run_is_told_and_every_query_answered(opened: Open, call: str) -> None:
    system = opened(FAIL=f"{call}:3", copy="staged", service=(1e-4, 0.0), batch=2, checksum=False)
    found = driven(system)
    assert call in found["failure"][0]
    assert found["failure"][1]
    assert list(found["answers"]) == [1] * 50


def test_a_gpu_that_fails_ends_the_run_of_loadgen_early(loadgen: object, opened: Open, tmp_path: Path) -> None:
    system, issued = opened(FAIL="cuMemcpyHtoDAsync:20", copy="staged", batch=1, checksum=False), [0]
    setup = RunnerSetup(samples=LIBRARY, resident=LIBRARY)
    runner = LoadGenRunner(system, tmp_path, setup, lambda count, *_: issued.append(count))
    with pytest.raises(CannotMeasure, match="cuMemcpyHtoDAsync"):
        runner.run(LoadSpec(qps=200.0, seconds=20.0, queries=10, bound=600.0))
    assert issued[-1] < 2000  # of 4000
    (log,) = tmp_path.glob("*/mlperf_log_detail.txt")
    assert "Lanewise ended the run early: the system under test failed" in parse(log.read_text()).errors


def test_too_little_gpu_memory_is_told_with_how_much(opened: Open) -> None:
    with pytest.raises(CannotMeasure, match=r"out of memory.*MiB asked"):
        opened(MEMORY=1 << 20, batch=2048)


def test_a_gpu_that_is_not_there_is_named(opened: Open) -> None:
    with pytest.raises(UnknownName, match="gpu7"):
        opened(devices=("gpu7",))


def test_an_engine_reads_the_batch_where_it_lies_on_the_gpu(opened: Open) -> None:
    seen = []

    def engine(batch: Any, samples: Any) -> bytes:
        view = batch.__cuda_array_interface__
        assert view["shape"] == (len(samples), BYTES)
        assert view["typestr"] == "|u1"
        seen.append((view["data"][0], view["strides"]))
        return bytes(len(samples))

    found = driven(opened(engine=engine, checksum=False, streams=2))
    assert found["failure"] == ("", "")
    assert {strides for _, strides in seen} == {(1008, 1)}
    assert len({address for address, _ in seen}) <= 2


def test_gpus_are_named_by_pci_address_whatever_cuda_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [SimpleNamespace(ordinal=i, pci=pci) for i, pci in enumerate(("0000:b1:00.0", "0000:0f:00.0"))]
    monkeypatch.setattr(_native, "Cuda", lambda driver, module_loading: SimpleNamespace(devices=known))
    assert {name: gpu.ordinal for name, gpu in gpus(("cpu", "gpu1")).items()} == {"gpu0": 1, "gpu1": 0}
    with pytest.raises(UnknownName, match="gpu2"):
        gpus(("gpu0", "gpu2"))


LOAD_TEST, TIMED_COPIES = "gpus(('gpu0',))", "_native.Cuda(cuda_driver())"


@pytest.mark.parametrize(
    ("code", "wish", "set_to"),
    [
        (LOAD_TEST, None, "LAZY"), (LOAD_TEST, "EAGER", "EAGER"), (TIMED_COPIES, None, "EAGER"),
        (TIMED_COPIES, "LAZY", "LAZY"),
    ],
)  # fmt: skip
def test_a_load_test_lets_kernels_be_loaded_when_they_are_used(code: str, wish: str | None, set_to: str) -> None:
    """What cuInit reads is C's environment, which the driver's opener sets; Python's stays as it was."""
    program = f"""
import ctypes, os
from lanewise import _native
from lanewise.installed import cuda_driver
from lanewise.loadtest.system import gpus
before = dict(os.environ)
{code}
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(getenv(b"CUDA_MODULE_LOADING").decode(), os.environ == before)
"""
    env = {name: value for name, value in os.environ.items() if name != "CUDA_MODULE_LOADING"}
    env["LANEWISE_CUDA_DRIVER"] = str(fake_cuda.build("13"))
    if wish is not None:
        env["CUDA_MODULE_LOADING"] = wish
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{set_to} True\n", "")


def test_without_a_gpu_no_driver_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", "absent-libcuda.so")
    assert gpus(("cpu", "cpu")) == {}
    with pytest.raises(CannotMeasure, match=r"absent-libcuda\.so"):
        gpus(("cpu", "gpu0"))
