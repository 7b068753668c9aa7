"""Measures memory copies of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lanewise.probes.host.probe import HostProbe
    from lanewise.results.sample import Sample


def measure_host(work: Sequence[str] = (), **options: Any) -> Iterator[Sample]:
    """Samples of this machine's memory by NUMA node and number of threads, as they are taken.

    `work`: copy, read, write, latency (none: all). `options` are the fields of MeasureHostOptions: threads=(1, 8),
    nodes=(0,), bytes=2**30. CannotMeasure where the machine does not allow it.
    """
    from lanewise.options.measure_host import MeasureHostOptions

    return host_probe().run(MeasureHostOptions(tuple(work), **options))


def host_probe() -> HostProbe:
    """The probe of this machine's memory: its conditions, its samples; MissingDependency on any system but Linux."""
    from lanewise.probes.machine import needs_linux

    needs_linux("memory")
    from lanewise.probes.host.probe import HostProbe

    return HostProbe()
