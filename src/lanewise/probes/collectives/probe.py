"""The probe of collectives: NCCL on this machine's GPUs, as nccl-tests runs it with one process for all of them.

Each size runs once with its data compared, then a few times to warm up, then in samples of many calls, out of place and
in place where there is one. A row is of the identity that readers of nccl-tests and predictions have.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise

from lanewise.collectives.model import Collective, collective_named
from lanewise.collectives.sizes import sizes_of
from lanewise.errors import InputError
from lanewise.installed import cuda_driver, nccl
from lanewise.options.measure_collectives import GRAPH, STREAM, MeasureCollectivesOptions
from lanewise.probes.collectives.driver import CudaDriver
from lanewise.probes.collectives.nccl import NcclLibrary
from lanewise.probes.collectives.session import IN_PLACE, CollectiveCall, CollectiveSession
from lanewise.probes.gpu.probe import open_gpus
from lanewise.probes.sampling import sample_until
from lanewise.results.sample import Sample

BUS_BANDWIDTH, TIME = "bus_bandwidth", "time"
# Who issues the calls, as predictions name it: one process those of all ranks, or a graph of each rank.
_LAUNCH = {STREAM: "nccl-tests -g", GRAPH: "graph"}


class CollectiveProbe:
    """Measures collectives of the GPUs that the driver shows."""

    def __init__(self, driver: str = "", library: str = "") -> None:
        path = driver or cuda_driver()
        self._gpus = open_gpus(path).gpus
        self._library = NcclLibrary(library or nccl())
        self._driver = CudaDriver(path)

    def machine_facts(self) -> dict[str, str]:
        """Driver, GPUs, the library and what the environment sets of it, for a run's record of the machine."""
        settings = " ".join(f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith("NCCL_"))
        facts = {"NCCL": f"{self._library.version}, {self._library.path}", "NCCL settings": settings}
        return self._gpus.machine_facts() | {key: text for key, text in facts.items() if text}

    def run(self, options: MeasureCollectivesOptions) -> Iterator[Sample]:
        """Each sample as soon as it is taken; closing the iterator frees buffers and communicators.

        InputError for fewer than two GPUs, UnknownName for a GPU or operation that does not exist.
        """
        operations = [collective_named(name) for name in options.operations]
        names = self._gpus.names(options.devices)
        if len(names) < 2:
            hint = "run it where there are several GPUs, or name more of them with --devices"
            raise InputError(f"a collective has two ranks or more, and here is {names[0]} alone", hint=hint)
        sizes = [int(size) for size in sizes_of(options.sizes)]
        ordinals = [self._gpus.device(name).ordinal for name in names]
        graphs = options.launch == GRAPH
        with CollectiveSession(self._driver, self._library, ordinals, max(sizes), graphs) as session:
            for operation in operations:
                for size in sizes:
                    for in_place in (False, True)[: 1 + (operation.value in IN_PLACE)]:
                        call = session.call(operation.value, size, in_place)
                        if call is not None:
                            yield from self._samples(session, operation, call, names, options)

    def _samples(
        self, session: CollectiveSession, operation: Collective, call: CollectiveCall, names: tuple[str, ...],
        options: MeasureCollectivesOptions,
    ) -> Iterator[Sample]:  # fmt: skip
        ring = ", ".join(f"{a}->{b}" for a, b in pairwise([*names, names[0]]))
        wrong = session.wrong(call)
        how = {
            "engine": "NCCL", "library": f"NCCL {self._library.version}", "launch": _LAUNCH[options.launch],
            "data": "not verified" if any(wrong) else "verified", "wrong": str(sum(wrong)),
        }  # fmt: skip

        def row(metric: str, value: float | None, unit: str, note: str = "") -> Sample:
            return Sample(
                operation.value + " in place" * call.in_place, ring, metric, value, unit,
                {"bytes": call.size, "hosts": 1, "ranks": len(names)}, how, "collective", note,
            )  # fmt: skip

        if any(wrong):
            bad = ", ".join(f"{count:,} of {names[rank]}" for rank, count in enumerate(wrong) if count)
            yield row(BUS_BANDWIDTH, None, "GB/s", f"wrong values: {bad}")
            return
        if options.warmup:
            session.seconds(call, options.warmup)

        def measure() -> Iterable[Sample]:
            seconds = session.seconds(call, options.iterations)
            rate = call.size / seconds * operation.bus_factor(len(names)) if seconds else None
            return row(BUS_BANDWIDTH, rate, "GB/s"), row(TIME, seconds, "us")

        yield from sample_until(options.rule, BUS_BANDWIDTH, measure)


def open_collectives(driver: str = "", library: str = "") -> CollectiveProbe:
    """A probe over the CUDA driver and the NCCL library in these files (empty: those of `installed`).

    MissingDependency where one of them is missing or the driver shows no GPU.
    """
    return CollectiveProbe(driver, library)
