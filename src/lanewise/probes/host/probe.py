"""Measures this machine's memory: copies, reads, writes and load latency by NUMA node and number of threads.

Goodput counts the payload once: a copy of 1 GB is 1 GB (STREAM counts 2 GB for it, one read and one written).
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise import _native as native
from lanewise.errors import CannotMeasure
from lanewise.probes.host.layout import Layout, huge_pages, read_layout
from lanewise.probes.machine import UNKNOWN, in_words, where
from lanewise.results.estimate import Rule
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from lanewise._native import HostCrew, HostMemory, HostWork

KINDS = ("copy", "read", "write", "latency")
_WORK = {
    "copy": {"memcpy": native.HostWork.COPY, "non-temporal": native.HostWork.STREAM_COPY},
    "read": {"": native.HostWork.READ},
    "write": {"memset": native.HostWork.WRITE, "non-temporal": native.HostWork.STREAM_WRITE},
}
_BLOCK = 512 * 1024
_PIECE = 32 * 2**20  # what is allocated, filled and verified between two looks at Ctrl-C
_LEAST = 64 * 2**20
_SECONDS = 0.04  # of one sample, for the same reason
_TRIALS = 2
HOST_RULE = Rule(most=15)


@dataclass(frozen=True, slots=True)
class HostPlan:
    """What to measure: kinds of work, numbers of threads, NUMA nodes, bytes of each buffer, when to stop.

    No threads: 1, 2, 4, ... and all cores of a node; no nodes: all; no bytes: a power of two of at least three times
    the last-level cache, as far as a quarter of the free memory allows.
    """

    kinds: Sequence[str] = KINDS
    threads: Sequence[int] = ()
    nodes: Sequence[int] = ()
    bytes: int | None = None
    rule: Rule = HOST_RULE


def measure(plan: HostPlan, layout: Layout | None = None) -> Iterator[Sample]:
    """Every sample as it is taken, pair of nodes by pair; CannotMeasure where this machine does not let it be."""
    here = layout if layout is not None else read_layout()
    _check(plan, here)
    size = plan.bytes if plan.bytes is not None else _default_bytes(here)
    nodes = tuple(dict.fromkeys(plan.nodes)) or here.nodes
    pairs = [_Pair(plan, here, size, source, target) for source in nodes for target in nodes]
    if not any(pair.possible(kind) for pair in pairs for kind in plan.kinds):
        cause = "these NUMA nodes have not both the memory and the CPUs that it needs"
        raise CannotMeasure(cause, hint=f"nodes with memory: {', '.join(map(str, here.memory))}")
    with in_words():
        for pair in pairs:
            yield from pair.samples()


def _check(plan: HostPlan, here: Layout) -> None:
    most = max(len(cores) for cores in here.cores.values())
    for node in plan.nodes:
        if node not in here.nodes:
            hint = f"its nodes: {', '.join(map(str, here.nodes))}"
            raise CannotMeasure(f"this machine has no NUMA node {node}", hint=hint)
    for count in plan.threads:
        if not 1 <= count <= most:
            cause = f"{count} threads do not fit the {most} cores of a NUMA node that this process may use"
            raise CannotMeasure(cause, hint=f"ask for 1 to {most}; two threads on one core share what it can move")
    if plan.bytes is not None and plan.bytes < _BLOCK * max(plan.threads, default=1):
        hint = f"ask for at least {_BLOCK >> 10} KiB a thread, better for several times the last-level cache"
        raise CannotMeasure(f"{plan.bytes} bytes are too few to measure memory", hint=hint)
    if plan.bytes is not None and here.available is not None and 2 * plan.bytes > 0.9 * here.available:
        cause = f"two buffers of {plan.bytes >> 20} MiB do not fit the {here.available >> 20} MiB of free memory"
        raise CannotMeasure(cause, hint="ask for less with --bytes")


def _default_bytes(here: Layout) -> int:
    size = _LEAST
    while size < 3 * (here.cache or 0):  # caches must not help
        size *= 2
    while here.available is not None and size > here.available // 4 and size > 2 * _BLOCK:
        size //= 2
    return size


class _Pair:
    """Memory of one node, and memory or CPUs of another (or the same): buffers for all cells between them."""

    def __init__(self, plan: HostPlan, here: Layout, size: int, source: int, target: int) -> None:
        self.plan = plan
        self.here = here
        self.source = source
        self.target = target
        most = max(plan.threads, default=max(len(cores) for cores in here.cores.values()))
        self.piece = max(_BLOCK, min(_PIECE, _power_below(size // most)))
        self.count = size // self.piece
        self.size = self.count * self.piece
        self.pages = ""
        fits = here.cache is not None and self.size < here.cache
        self.note = f"the buffer fits the last-level cache of {(here.cache or 0) >> 20} MiB" if fits else ""

    def samples(self) -> Iterator[Sample]:
        """All kinds of work on this pair; memory is held until the last sample is taken."""
        kinds = [kind for kind in self.plan.kinds if self.possible(kind)]
        before = huge_pages()
        sources = self.memory(self.source) if {"copy", "read", "latency"} & {*kinds} else []
        targets = self.memory(self.target) if {"copy", "write"} & {*kinds} else []
        self.pages = _pages(before, huge_pages(), self.piece * (len(sources) + len(targets)))
        for memory in sources:
            native.fill_pattern(memory)
        for kind in sorted(kinds, key=KINDS.index):  # the chase comes last: it writes its links over the sources
            used = {"copy": (sources, targets), "write": ([], targets)}.get(kind, (sources, []))
            if kind == "latency":
                yield from self.latency(sources)
            else:
                for threads in self.counts(kind):
                    yield from self.rates(kind, threads, *used)

    def possible(self, kind: str) -> bool:
        """Whether the nodes have what the work needs: memory to copy to, CPUs to read into."""
        source, target = (node in self.here.memory for node in (self.source, self.target))
        if kind == "copy":
            return source and target
        if kind == "write":
            return target and bool(self.here.cores.get(self.source))
        return source and bool(self.here.cores.get(self.target))

    def cores(self, kind: str) -> tuple[int, ...]:
        """The CPUs that work: those of the node that reads or writes; for copies the source's, if it has any."""
        near, far = self.here.cores.get(self.source, ()), self.here.cores.get(self.target, ())
        found = far if kind in ("read", "latency") else near or far
        return found or next(cores for cores in self.here.cores.values() if cores)

    def memory(self, node: int) -> list[HostMemory]:
        """Pieces on a node. Where there is one node nothing is bound, as containers may forbid that."""
        bound = node if len(self.here.memory) > 1 else -1
        return [native.HostMemory(self.piece, bound) for _ in range(self.count)]

    def counts(self, kind: str) -> list[int]:
        """Numbers of threads, as far as each gets a core and a piece."""
        most = min(len(self.cores(kind)), self.count)
        asked = self.plan.threads or [*(1 << power for power in range(most.bit_length())), most]
        return sorted({count for count in asked if count <= most})

    def rates(
        self, kind: str, threads: int, sources: Sequence[HostMemory], targets: Sequence[HostMemory]
    ) -> Iterator[Sample]:
        """Samples of one cell, by the better kind of stores; the data is verified after the first and the last."""
        cores = self.cores(kind)
        pieces = [native.HostPieces(cores[n], [*sources[n::threads]], [*targets[n::threads]]) for n in range(threads)]
        crew = native.HostCrew(pieces, _BLOCK)
        work, words = _better(crew, kind)
        how = self.how(kind, sources, targets) | words
        settings = {"threads": threads, "bytes": self.size}
        for memory in targets:
            native.spoil(memory)
        crew.mark()
        values: list[float] = []
        while not self.plan.rule.enough(values):
            value, note = _rate(crew, work)
            if not values:
                how |= {"data": self.verified(crew, work, threads, bool(targets))}
            yield Sample(
                f"memory {kind}", self.flow, "goodput", value, "GB/s", settings, how, "host memory", note or self.note
            )
            if value is None:
                return
            values.append(value)
        self.verified(crew, work, threads, bool(targets))

    def verified(self, crew: HostCrew, work: HostWork, threads: int, written: bool) -> str:
        """`verified`; CannotMeasure if what work left behind, or read, is not what it should be."""
        fine = True
        for thread in range(threads):
            if written:
                held = range(len(range(thread, self.count, threads)))
                fine = fine and all(crew.holds(work, thread, piece) for piece in held)
            else:
                fine = fine and crew.adds_up(thread)
        if not fine:
            cause = f"memory of {self.flow} does not hold what was written"
            raise CannotMeasure(cause, hint="trust no figure of this machine before its memory is tested")
        return "verified"

    def latency(self, sources: Sequence[HostMemory]) -> Iterator[Sample]:
        """Samples of a chain of loads by one thread, through as much of the buffer as is a power of two."""
        chase = native.HostChase(sources[: _power_below(self.count)])
        for piece in range(_power_below(self.count)):
            chase.fill(piece)
        how = self.how("latency", sources, ())
        settings = {"threads": 1, "bytes": chase.lines * 64}
        values: list[float] = []
        while not self.plan.rule.enough(values):
            values.append(chase.run(self.cores("latency")[0], _SECONDS))
            if not chase.verify():
                raise CannotMeasure("a chain of loads went astray", hint="test this machine's memory")
            how["data"] = "verified"
            yield Sample(
                "memory latency", self.flow, "chase_latency", values[-1], "ns", settings, how, "host memory", self.note
            )

    @property
    def flow(self) -> str:
        """Which way the data goes, as users write it."""
        return f"host0:{self.source}->host0:{self.target}"

    def how(self, kind: str, sources: Sequence[HostMemory], targets: Sequence[HostMemory]) -> dict[str, str]:
        """What was seen: where the pages are and how large, whose CPUs worked."""
        words = [_node_of(memory) for memory in (sources, targets) if memory]
        core = self.cores(kind)[0]
        near = next(node for node, cores in self.here.cores.items() if core in cores)
        flows = {"flows": self.flow} if self.source != self.target else {}
        return flows | {
            "engine": "CPU",
            "NUMA node": " to ".join(words),
            "threads on": f"NUMA node {near}",
            "pages": self.pages,
        }


def _better(crew: HostCrew, kind: str) -> tuple[HostWork, dict[str, str]]:
    """The kind of stores that moves more here, tried in turns, and what the other one does."""
    kinds = {name: work for name, work in _WORK[kind].items() if name != "non-temporal" or native.has_streams()}
    if len(kinds) == 1:
        ((name, work),) = kinds.items()
        return work, {"stores": name} if name else {}
    tried: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(_TRIALS):
        for name, work in kinds.items():
            tried[name].append(_rate(crew, work)[0] or 0.0)
    medians = {name: statistics.median(values) for name, values in tried.items()}
    best, rest = sorted(medians, key=lambda name: -medians[name])
    return kinds[best], {"stores": best, "other stores": f"{rest} {medians[rest]:.3g} GB/s in a short trial"}


def _rate(crew: HostCrew, work: HostWork) -> tuple[float | None, str]:
    """GB/s of all threads in the window in which all of them run; None and why if there is none."""
    window = crew.run(work, _SECONDS)
    if window.seconds <= 0:
        return None, "the threads did not run at the same time; is this machine busy?"
    return sum(window.bytes) / window.seconds / 1e9, ""


def _node_of(pieces: Sequence[HostMemory]) -> str:
    pages = Counter[int]()
    for piece in pieces:
        pages.update(piece.nodes(64))
    return where(pages)


def _pages(before: int | None, after: int | None, wanted: int) -> str:
    """Which part of the buffers came as huge pages, by what this process has more of them than before."""
    if before is None or after is None or not wanted:
        return UNKNOWN
    share = min(1.0, max(0, after - before) / wanted)
    return "huge" if share > 0.95 else "small" if share < 0.05 else f"{100 * share:.0f} % huge"


def _power_below(number: int) -> int:
    """The largest power of two that is no larger."""
    return 1 << (max(number, 1).bit_length() - 1)


__all__ = ["HOST_RULE", "KINDS", "HostPlan", "measure"]
