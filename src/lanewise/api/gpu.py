"""Measures copies between hosts and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lanewise.perf.flow import Flow
    from lanewise.probes.gpu.cases import Case
    from lanewise.probes.gpu.probe import GpuProbe
    from lanewise.results.estimate import Rule
    from lanewise.results.sample import Sample


def measure_gpu(flows: str | Sequence[Flow] = (), rule: Rule | None = None, **settings: Any) -> Iterator[Sample]:
    """Samples of flows measured together, 'gpu0->gpu1, host:1->gpu0', or of cases; neither: the default set.

    `settings` are those of probes.gpu.session.GpuAsk: cases=("nvbandwidth",), devices="0,2", bytes=2**20, p2p=False.
    Samples come as they are taken, and closing the iterator frees everything; `as_measured_run` makes a run of them.
    MissingDependency without a driver, CannotMeasure where a GPU has too little memory, UnknownName for a GPU.
    """
    from lanewise.perf.flow import parse_flows
    from lanewise.probes.gpu.session import GpuAsk

    if rule is not None:
        settings["rule"] = rule
    if isinstance(flows, str):
        flows = parse_flows(flows) if flows else ()
    return gpu_probe().samples(GpuAsk(tuple(flows), **settings))


def gpu_probe() -> GpuProbe:
    """The probe over this machine's CUDA driver: its conditions, its plan for an ask, its samples."""
    from lanewise.probes.gpu.probe import open_gpus

    return open_gpus()


def gpu_cases(names: Sequence[str] = ("all",)) -> list[Case]:
    """The named cases, those of a set, or those that patterns match; UnknownName."""
    from lanewise.probes.gpu.cases import pick

    return pick(names)
