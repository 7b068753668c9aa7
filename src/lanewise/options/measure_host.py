"""Options of `lanewise measure host`: kinds of memory work, threads, NUMA nodes."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.errors import unknown_name
from lanewise.options.option import Options, option, whole_numbers, words
from lanewise.options.sampling import DEFAULT_RULE, SamplingRule

WORK = ("copy", "read", "write", "latency")


@dataclass(frozen=True, slots=True)
class MeasureHostOptions(Options):
    """Kinds of memory work, numbers of threads, NUMA nodes, the size of each buffer; UnknownName for a kind of work."""

    work: tuple[str, ...] = option(
        (), "Kinds of work: copy, read, write, latency.", "--what", metavar="KINDS", parse=words, default_text="all"
    )
    threads: tuple[int, ...] = option(
        (), "Numbers of threads, one a core.", metavar="N,...", parse=whole_numbers, default_text="1,2,4 ... all cores"
    )
    nodes: tuple[int, ...] = option((), "NUMA nodes.", metavar="N,...", parse=whole_numbers, default_text="all")
    bytes: int | None = option(
        None, "Size of each buffer.", metavar="SIZE", unit="B",
        default_text="3 times the last-level cache, at most a quarter of the free memory",
    )  # fmt: skip
    rule: SamplingRule = DEFAULT_RULE

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        for name in self.work:
            if name not in WORK:
                raise unknown_name("kind of memory work", name, WORK)
