"""Causes of slow and of impossibly fast copies and kernels within a GPU's own memory."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.references.gpu_memory import GPU_MEMORY
from lanewise.checking.symptom import RowSymptom, value_text


def slow_gpu_memory(symptom: RowSymptom) -> Iterator[Cause]:
    """The program, or a memory clock that stayed low."""
    row = symptom.row
    if row.path != GPU_MEMORY or row.metric != "goodput":
        return
    better = [other for other in symptom.better(same_flow=True) if other.scenario != row.scenario]
    evidence = f"'{better[0].scenario}' reached {value_text(better[0])}" if better else ""
    what = "the program: too few bytes in flight, strided or narrow accesses, copies by the copy engine, small buffers"
    step = "compare BabelStream, or nvbandwidth -t device_local_copy -b 1024; Nsight Compute: Memory Workload Analysis"
    yield Cause(("software",), what, step, evidence=evidence)
    if not better:
        what = "the memory's clock is low: power saving, a power cap or heat"
        step = "while it runs: nvidia-smi -q -d CLOCK,PERFORMANCE; rocm-smi --showclocks"
        yield Cause(("throttling",), what, step)


def in_the_cache(symptom: RowSymptom) -> Iterator[Cause]:
    """More than the memory's pins carry: the data never left the chip, or was compressed."""
    if symptom.row.path == GPU_MEMORY:
        what = "the buffers lie in the GPU's cache, or their contents are so regular that the GPU compresses them"
        step = "use buffers of four times the L2 cache (1 GiB and more), filled with random data"
        yield Cause(("cache",), what, step)
        what = "bytes are counted that were never moved, as where a formula of another algorithm is used"
        yield Cause(
            ("counting",), what, "count what the kernel moves: ncu --metrics dram__bytes.sum; rocprof FETCH_SIZE"
        )
