"""What datasets, models and engines share: what one sample is (shape, type, bytes), and batches of samples."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import Contradiction

Array = NDArray[Any]

ITEM_BYTES = {
    "uint8": 1, "int8": 1, "float16": 2, "int16": 2, "uint16": 2, "float32": 4, "int32": 4, "uint32": 4, "float64": 8,
    "int64": 8, "uint64": 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """The shape and numpy type of one sample; `below`: values of row i along its first axis are in [0, below[i])."""

    shape: tuple[int, ...]
    dtype: str
    below: tuple[int, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of one sample: what travels for a query."""
        return prod(self.shape) * ITEM_BYTES[self.dtype]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}], {self.bytes} B"


def batch_of(samples: Array, spec: SampleSpec) -> Array:
    """A batch as (n, *shape): from (n, bytes) of uint8 without a copy where alignment allows; Contradiction if it does
    not fit."""
    dtype = np.dtype(spec.dtype)
    if samples.shape[1:] == spec.shape and samples.dtype == dtype:
        return samples
    if samples.dtype != np.uint8 or samples.ndim != 2 or samples.shape[1] != spec.bytes:
        raise Contradiction(
            f"a batch of {samples.dtype}{list(samples.shape)} does not hold samples of {spec}",
            hint="let dataset and model agree on the sample: its shape, type and bytes",
        )
    rows = samples if samples.flags.c_contiguous else np.ascontiguousarray(samples)
    return rows.view(dtype).reshape(len(rows), *spec.shape)


def in_memory(address: int, n: int, spec: SampleSpec, stride: int = 0) -> Array:
    """n samples (n, *shape) that lie `stride` bytes apart (0: in a row) in host memory, which the caller keeps alive;
    without a copy where they lie in a row."""
    import ctypes

    step = stride or spec.bytes
    buffer = (ctypes.c_uint8 * ((n - 1) * step + spec.bytes)).from_address(address)
    flat = np.ctypeslib.as_array(buffer)
    return batch_of(np.lib.stride_tricks.as_strided(flat, (n, spec.bytes), (step, 1)), spec)


def agree(dataset: SampleSpec, engine: SampleSpec, name: str) -> None:
    """Contradiction where a dataset's samples are not what an engine of that name takes."""
    if (dataset.shape, dataset.dtype) != (engine.shape, engine.dtype):
        raise Contradiction(
            f"{name} takes samples of {engine}, the dataset has {dataset}",
            hint="choose the dataset's layout (hwc or chw) for the model, or let the model take uint8 pixels",
        )
