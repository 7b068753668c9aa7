"""Samples of a node's queries in the memory of its GPU: what that takes, and the memory itself."""

from __future__ import annotations

from lanewise import _native
from lanewise.errors import CannotMeasure
from lanewise.installed import cuda_driver
from lanewise.loadtest.system import cannot, gpus
from lanewise.options.loadtest import CPU, BatchingOptions


def check_gpu_memory(options: BatchingOptions) -> int:
    """CUDA's ordinal of the GPU that samples may arrive on; CannotMeasure says what driver, GPU or libibverbs lacks."""
    device = options.devices[0]
    if len(options.devices) != 1 or device == CPU:
        raise CannotMeasure(
            f"samples arrive in the memory of one GPU, this node has {', '.join(options.devices)}",
            hint="serve each GPU by a node of its own: --devices gpu0 --listen :7000",
        )
    ordinal: int = gpus(options.devices)[device].ordinal
    try:
        _native.check_gpu_memory(cuda_driver(), ordinal)
    except _native.ProbeFailure as failure:
        raise cannot(failure) from None
    return ordinal


def gpu_slots(options: BatchingOptions, size: int) -> _native.GpuMemory:
    """So many bytes of the GPU's memory; CannotMeasure also where it has too few, or exports none."""
    ordinal = check_gpu_memory(options)
    try:
        return _native.GpuMemory(cuda_driver(), ordinal, size)
    except _native.ProbeFailure as failure:
        raise cannot(failure) from None
