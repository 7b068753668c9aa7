"""Buffers serve one measurement after the other, and are given back where memory is short."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fake_cuda
import pytest

from lanewise._native import Cuda, CudaFlow, ProbeFailure
from lanewise.options.measure_gpu import MeasureGpuOptions
from lanewise.options.sampling import SamplingRule
from lanewise.probes.gpu.probe import GpuProbe

Open = Callable[..., Cuda]
MIB = 2**20
HOST = -1


def made(library: Path) -> tuple[int, int]:
    """Host buffers registered and buffers allocated on GPUs so far, without the word that each comparison allocates."""
    compared = fake_cuda.calls(library, "cuMemsetD8Async")
    return fake_cuda.calls(library, "cuMemHostRegister"), fake_cuda.calls(library, "cuMemAlloc") - compared


def test_the_35_cases_on_four_gpus_need_few_buffers(cuda: Open, library: Path) -> None:
    probe = GpuProbe(cuda(GPUS=4))
    rule = SamplingRule(least=1, most=1)
    rows = list(probe.run(MeasureGpuOptions(cases=("nvbandwidth",), bytes=16 * 1024, rule=rule)))
    assert len(rows) > 300
    assert all(row.value for row in rows)
    hosts, devices = made(library)
    # Both ways for four GPUs at once, the pointer chase's larger one, the gate.
    assert hosts <= 8 + 1 + 1
    # Three on the one and one on each other GPU, for each GPU in turn; a larger one to chase pointers through.
    assert devices <= 4 * (3 + 1 + 1)


def test_a_closed_run_leaves_its_buffers_to_the_next(cuda: Open, library: Path) -> None:
    driver = cuda()
    first = driver.prepare([CudaFlow(HOST, 0, 2 * MIB, 1), CudaFlow(0, HOST, 2 * MIB, 1)])
    first.verify()
    before = made(library)
    beside = driver.prepare([CudaFlow(HOST, 0, MIB, 1)])  # while the first holds its own
    assert made(library) == (before[0] + 1, before[1] + 1)
    first.close()
    again = driver.prepare([CudaFlow(HOST, 0, MIB, 1), CudaFlow(0, HOST, 2 * MIB, 1)])
    again.verify()
    beside.verify()
    assert made(library) == (before[0] + 1, before[1] + 1)


def test_memory_that_waits_for_the_next_run_counts_as_free(cuda: Open) -> None:
    driver = cuda(MEMORY=64 * MIB)
    run = driver.prepare([CudaFlow(HOST, 0, 8 * MIB, 1)])
    assert driver.devices[0].free == 56 * MIB
    run.close()
    assert driver.devices[0].free == 64 * MIB


def test_where_memory_is_short_what_waits_is_given_back(cuda: Open) -> None:
    driver = cuda(MEMORY=8 * MIB)
    driver.prepare([CudaFlow(HOST, 0, 3 * MIB, 1), CudaFlow(0, HOST, 3 * MIB, 1)]).close()
    run = driver.prepare([CudaFlow(HOST, 0, 7 * MIB, 1)])
    run.verify()
    with pytest.raises(ProbeFailure, match=r"out of memory \(GPU 0, 2 MiB asked, 1 MiB free\)"):
        driver.prepare([CudaFlow(HOST, 0, 2 * MIB, 1)])
    run.verify()


def test_several_copies_between_two_marks_are_all_timed(cuda: Open) -> None:
    run = cuda().prepare([CudaFlow(HOST, 0, MIB, 1), CudaFlow(0, 1, MIB, 1, sm=True)])
    one = [timing.timestamps[0] for timing in run.run()]
    run.resize([2, 3], [5, 4])
    for timing, first, each in zip(run.run(), one, (5, 4), strict=True):
        ends = [first * each * (i + 1) for i in range(len(timing.timestamps))]
        assert timing.timestamps == pytest.approx(ends, rel=0.01)
    with pytest.raises(ProbeFailure, match="host0->gpu0: 257 copies"):
        run.resize([257 // 257, 1], [257, 1])
