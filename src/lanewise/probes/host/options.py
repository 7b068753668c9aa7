"""What `measure host` measures: one type for the command line and for Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from lanewise.errors import unknown_name
from lanewise.results.estimate import Rule

WORK = ("copy", "read", "write", "latency")


@dataclass(frozen=True, slots=True)
class MeasureHostOptions:
    """Kinds of memory `work` (none: all), numbers of `threads`, NUMA `nodes`, `bytes` of each buffer.

    No threads: 1, 2, 4, ... and all cores of a node; no nodes: all; no bytes: a power of two of at least three times
    the last-level cache, as far as a quarter of the free memory allows. UnknownName for a kind of work.
    """

    work: tuple[str, ...] = ()
    threads: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    bytes: int | None = None
    rule: Rule = field(default_factory=lambda: Rule(most=15))

    def __post_init__(self) -> None:
        for name in self.work:
            if name not in WORK:
                raise unknown_name("kind of memory work", name, WORK)
