"""Measures this machine's memory: copies, reads, writes and load latency by NUMA node and number of threads.

Goodput counts the payload once: a copy of 1 GB is 1 GB (STREAM counts 2 GB for it, one read and one written).
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lanewise import _native as native
from lanewise.errors import CannotMeasure
from lanewise.options.measure_host import WORK, MeasureHostOptions
from lanewise.probes.host.layout import HostLayout, huge_pages, read_layout
from lanewise.probes.machine import UNKNOWN, native_errors, numa_nodes
from lanewise.probes.sampling import sample_until
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from lanewise._native import HostCrew, HostMemory, HostWork

_STORES = {
    "copy": {"memcpy": native.HostWork.COPY, "non-temporal": native.HostWork.STREAM_COPY},
    "read": {"": native.HostWork.READ},
    "write": {"memset": native.HostWork.WRITE, "non-temporal": native.HostWork.STREAM_WRITE},
}
_BLOCK = 512 * 1024
_PIECE = 32 * 2**20  # what is allocated, filled and verified between two checks for Ctrl-C
_LEAST = 64 * 2**20
_SECONDS = 0.04  # of one sample, for the same reason
_TRIALS = 2


class HostProbe:
    """Measures this machine's memory; `layout` says where memory and CPUs are (None: read from /sys)."""

    def __init__(self, layout: HostLayout | None = None) -> None:
        self.layout = layout if layout is not None else read_layout()

    def machine_facts(self) -> dict[str, str]:
        """Cores by NUMA node and the last-level cache, for a run's record of the machine."""
        cores = ", ".join(f"{node}: {len(cores)}" for node, cores in sorted(self.layout.cores.items()))
        cache = UNKNOWN if self.layout.cache is None else f"{self.layout.cache >> 20} MiB"
        return {"cores by NUMA node": cores, "last-level cache": cache}

    def run(self, options: MeasureHostOptions) -> Iterator[Sample]:
        """Each sample as it is taken, pair of nodes by pair; CannotMeasure where this machine does not allow it."""
        layout = self.layout
        _check(options, layout)
        size = options.bytes if options.bytes is not None else _default_bytes(layout)
        nodes = tuple(dict.fromkeys(options.nodes)) or layout.nodes
        pairs = [_NodePair(options, layout, size, source, target) for source in nodes for target in nodes]
        if not any(pair.work for pair in pairs):
            cause = "these NUMA nodes have not both the memory and the CPUs that it needs"
            raise CannotMeasure(cause, hint=f"nodes with memory: {', '.join(map(str, layout.memory))}")
        with native_errors():
            for pair in pairs:
                yield from pair.samples()


def _check(options: MeasureHostOptions, layout: HostLayout) -> None:
    most = max(len(cores) for cores in layout.cores.values())
    for node in options.nodes:
        if node not in layout.nodes:
            hint = f"its nodes: {', '.join(map(str, layout.nodes))}"
            raise CannotMeasure(f"this machine has no NUMA node {node}", hint=hint)
    for count in options.threads:
        if not 1 <= count <= most:
            cause = f"{count} threads do not fit the {most} cores of a NUMA node that this process may use"
            raise CannotMeasure(cause, hint=f"ask for 1 to {most}; two threads on one core share what it can move")
    if options.bytes is not None and options.bytes < _BLOCK * max(options.threads, default=1):
        hint = f"ask for at least {_BLOCK >> 10} KiB a thread, better for several times the last-level cache"
        raise CannotMeasure(f"{options.bytes} bytes are too few to measure memory", hint=hint)
    if options.bytes is not None and layout.available is not None and 2 * options.bytes > 0.9 * layout.available:
        cause = f"two buffers of {options.bytes >> 20} MiB do not fit the {layout.available >> 20} MiB of free memory"
        raise CannotMeasure(cause, hint="ask for less with --bytes")


def _default_bytes(layout: HostLayout) -> int:
    size = _LEAST
    while size < 3 * (layout.cache or 0):  # caches must not help
        size *= 2
    while layout.available is not None and size > layout.available // 4 and size > 2 * _BLOCK:
        size //= 2
    return size


class _NodePair:
    """Memory of one node, and memory or CPUs of another (or the same), with the buffers of all work between them."""

    def __init__(self, options: MeasureHostOptions, layout: HostLayout, size: int, source: int, target: int) -> None:
        self.options = options
        self.layout = layout
        self.source = source
        self.target = target
        most = max(options.threads, default=max(len(cores) for cores in layout.cores.values()))
        self.piece = max(_BLOCK, min(_PIECE, _power_below(size // most)))
        self.count = size // self.piece
        self.size = self.count * self.piece
        self.pages = ""
        cached = layout.cache is not None and self.size < layout.cache
        self.note = f"the buffer fits the last-level cache of {(layout.cache or 0) >> 20} MiB" if cached else ""

    def samples(self) -> Iterator[Sample]:
        """All work on this pair; buffers are freed after the last sample."""
        before = huge_pages()
        sources = self.memory(self.source) if {"copy", "read", "latency"} & {*self.work} else []
        targets = self.memory(self.target) if {"copy", "write"} & {*self.work} else []
        self.pages = _pages(before, huge_pages(), self.piece * (len(sources) + len(targets)))
        for memory in sources:
            native.fill_pattern(memory)
        for work in sorted(self.work, key=WORK.index):  # the chase is last: it writes its links over the sources
            if work == "latency":
                yield from self.latency(sources)
                continue
            buffers = {"copy": (sources, targets), "write": ([], targets)}.get(work, (sources, []))
            for threads in self.counts(work):
                yield from self.rates(work, threads, *buffers)

    @property
    def work(self) -> list[str]:
        """The kinds of work in the options for which the nodes have memory to copy to, CPUs to read into."""
        source, target = (node in self.layout.memory for node in (self.source, self.target))
        near, far = (bool(self.layout.cores.get(node)) for node in (self.source, self.target))
        possible = {"copy": source and target, "read": source and far, "write": target and near,
                    "latency": source and far}  # fmt: skip
        return [work for work in self.options.work or WORK if possible[work]]

    def cores(self, work: str) -> tuple[int, ...]:
        """The CPUs that work: those of the node that reads or writes; for copies the source's, if it has any."""
        near, far = self.layout.cores.get(self.source, ()), self.layout.cores.get(self.target, ())
        cores = far if work in ("read", "latency") else near or far
        return cores or next(cores for cores in self.layout.cores.values() if cores)

    def memory(self, node: int) -> list[HostMemory]:
        """Pieces on a node. A machine with one node binds nothing, as containers may forbid that."""
        bound = node if len(self.layout.memory) > 1 else -1
        return [native.HostMemory(self.piece, bound) for _ in range(self.count)]

    def counts(self, work: str) -> list[int]:
        """Numbers of threads, up to one for each core and each piece."""
        most = min(len(self.cores(work)), self.count)
        counts = self.options.threads or [*(1 << power for power in range(most.bit_length())), most]
        return sorted({count for count in counts if count <= most})

    def rates(
        self, work: str, threads: int, sources: Sequence[HostMemory], targets: Sequence[HostMemory]
    ) -> Iterator[Sample]:
        """Samples by the faster kind of stores; the data is verified after the first and the last."""
        cores = self.cores(work)
        pieces = [native.HostPieces(cores[n], [*sources[n::threads]], [*targets[n::threads]]) for n in range(threads)]
        crew = native.HostCrew(pieces, _BLOCK)
        stores, words = _faster_stores(crew, work)
        how = self.how(work, sources, targets) | words
        settings = {"threads": threads, "bytes": self.size}
        for memory in targets:
            native.spoil(memory)
        crew.begin_check()

        def measure() -> Iterator[Sample]:
            rate, note = _rate(crew, stores)
            if "data" not in how:
                how["data"] = self.verified(crew, stores, threads, bool(targets))
            note = note or self.note
            yield Sample(f"memory {work}", self.flow, "goodput", rate, "GB/s", settings, how, "host memory", note)

        yield from sample_until(self.options.rule, "goodput", measure)
        self.verified(crew, stores, threads, bool(targets))

    def verified(self, crew: HostCrew, stores: HostWork, threads: int, written: bool) -> str:
        """`verified`; CannotMeasure if the data written, or read, is not what it should be."""
        for thread in range(threads):
            pieces = range(len(range(thread, self.count, threads)))
            right = all(crew.holds(stores, thread, piece) for piece in pieces) if written else crew.adds_up(thread)
            if not right:
                cause = f"memory of {self.flow} does not hold what was written"
                raise CannotMeasure(cause, hint="trust no figure of this machine before its memory is tested")
        return "verified"

    def latency(self, sources: Sequence[HostMemory]) -> Iterator[Sample]:
        """Samples of a chain of loads by one thread, through as much of the buffer as is a power of two."""
        chase = native.HostChase(sources[: _power_below(self.count)])
        for piece in range(_power_below(self.count)):
            chase.fill(piece)
        how = self.how("latency", sources, ()) | {"data": "verified"}
        settings = {"threads": 1, "bytes": chase.lines * 64}

        def measure() -> Iterator[Sample]:
            time = chase.run(self.cores("latency")[0], _SECONDS) * 1e-9
            if not chase.verify():
                raise CannotMeasure("a chain of loads went astray", hint="test this machine's memory")
            yield Sample(
                "memory latency", self.flow, "chase_latency", time, "ns", settings, how, "host memory", self.note
            )

        return sample_until(self.options.rule, "chase_latency", measure)

    @property
    def flow(self) -> str:
        """From which node to which the data goes, as users write it."""
        return f"host0:{self.source}->host0:{self.target}"

    def how(self, work: str, sources: Sequence[HostMemory], targets: Sequence[HostMemory]) -> dict[str, str]:
        """Where the pages are and how large, and the node of the CPUs that worked."""
        core = self.cores(work)[0]
        near = next(node for node, cores in self.layout.cores.items() if core in cores)
        flows = {"flows": self.flow} if self.source != self.target else {}
        return flows | {
            "engine": "CPU",
            "NUMA node": " to ".join(
                numa_nodes(sum((Counter(piece.nodes(64)) for piece in memory), Counter[int]()))
                for memory in (sources, targets) if memory
            ),
            "threads on": f"NUMA node {near}",
            "pages": self.pages,
        }  # fmt: skip


def _faster_stores(crew: HostCrew, work: str) -> tuple[HostWork, dict[str, str]]:
    """The kind of stores with the higher rate, timed in turns, and what the other one reaches."""
    kinds = {name: kind for name, kind in _STORES[work].items() if name != "non-temporal" or native.has_streams()}
    if len(kinds) == 1:
        ((name, kind),) = kinds.items()
        return kind, {"stores": name} if name else {}
    rates: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(_TRIALS):
        for name, kind in kinds.items():
            rates[name].append(_rate(crew, kind)[0] or 0.0)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    best, rest = sorted(medians, key=lambda name: -medians[name])
    return kinds[best], {"stores": best, "other stores": f"{rest} {medians[rest] / 1e9:.3g} GB/s in a short trial"}


def _rate(crew: HostCrew, stores: HostWork) -> tuple[float | None, str]:
    """B/s of all threads in the window in which all of them run; None and why if there is none."""
    window = crew.run(stores, _SECONDS)
    if window.seconds <= 0:
        return None, "the threads did not run at the same time; is this machine busy?"
    return sum(window.bytes) / window.seconds, ""


def _pages(before: int | None, after: int | None, size: int) -> str:
    """The share of `size` bytes of buffers in huge pages, from this process's huge pages before and after."""
    if before is None or after is None or not size:
        return UNKNOWN
    share = min(1.0, max(0, after - before) / size)
    return "huge" if share > 0.95 else "small" if share < 0.05 else f"{100 * share:.0f} % huge"


def _power_below(number: int) -> int:
    """The largest power of two that is no larger."""
    return 1 << (max(number, 1).bit_length() - 1)
