"""Measures copies between hosts and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lanewise.probes.gpu.cases import GpuCase
    from lanewise.probes.gpu.probe import GpuProbe
    from lanewise.results.sample import Sample


def measure_gpu(flows: str = "", **options: Any) -> Iterator[Sample]:
    """Samples of flows measured together, 'gpu0->gpu1, host:1->gpu0', or of cases; neither: the default set.

    `options` are the fields of MeasureGpuOptions: cases=("nvbandwidth",), devices="0,2", bytes=2**20, no_p2p=True. Each
    sample comes as soon as it is taken; closing the iterator frees everything; `as_measured_run` makes a run of them.
    MissingDependency without a driver, CannotMeasure where a GPU has too little memory, UnknownName for a GPU.
    """
    from lanewise.options.measure_gpu import MeasureGpuOptions

    return gpu_probe().run(MeasureGpuOptions(flows, **options))


def gpu_probe() -> GpuProbe:
    """The probe over this machine's CUDA driver: its conditions, its measurements for options, its samples."""
    from lanewise.probes.gpu.probe import open_gpus

    return open_gpus()


def gpu_cases(names: Sequence[str] = ()) -> list[GpuCase]:
    """The named cases, those of a set, or those that patterns match; all if none is named. UnknownName."""
    from lanewise.probes.gpu.cases import select_cases

    return select_cases(names or ("all",))
