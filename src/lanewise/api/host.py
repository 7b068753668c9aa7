"""Measures memory copies of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lanewise.errors import unknown_name

if TYPE_CHECKING:
    from lanewise.results.estimate import Rule
    from lanewise.results.sample import Sample


def measure_host(
    what: Sequence[str] = (),
    rule: Rule | None = None,
    threads: Sequence[int] = (),
    nodes: Sequence[int] = (),
    bytes: int | None = None,
) -> Iterator[Sample]:
    """Samples of this machine's memory by NUMA node and number of threads, as they are taken.

    `what`: copy, read, write, latency (all); `threads`: 1, 2, 4, ... cores of a node; `nodes`: all; `bytes` of each
    buffer: several times the last-level cache. CannotMeasure where the machine does not let it be measured.
    """
    from lanewise.probes.machine import needs_linux

    needs_linux("memory")
    from lanewise.probes.host import probe as host

    for name in what:
        if name not in host.KINDS:
            raise unknown_name("kind of memory work", name, host.KINDS)
    plan = host.HostPlan(tuple(what) or host.KINDS, tuple(threads), tuple(nodes), bytes, rule or host.HOST_RULE)
    return host.measure(plan)


def host_conditions() -> dict[str, str]:
    """What decides about memory rates, for the record: cores by NUMA node, last-level cache."""
    from lanewise.probes.host.layout import read_layout

    layout = read_layout()
    cores = ", ".join(f"{node}: {len(cores)}" for node, cores in sorted(layout.cores.items()))
    cache = "unknown" if layout.cache is None else f"{layout.cache >> 20} MiB"
    return {"cores by NUMA node": cores, "last-level cache": cache}
