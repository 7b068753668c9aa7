"""What `measure gpu` measures: one type for the command line and for Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from lanewise import units
from lanewise.errors import InputError
from lanewise.perf.flow import Flow
from lanewise.results.estimate import Rule

SWEEP = tuple(4**i for i in range(6, 16))  # 4 KiB to 1 GiB


@dataclass(frozen=True, slots=True)
class MeasureGpuOptions:
    """`flows` to measure together and `cases` by name, set or pattern (neither: the default set).

    `devices` names GPUs (empty: all). `bytes` is the size of one copy (0: 256 MiB from or to a host, 512 MiB between
    GPUs, 128 MiB where the driver stages). `node` is the NUMA node of host memory (None: the GPU's own). Without `p2p`
    two GPUs copy through host memory. `sizes` in bytes make a sweep, with a fit of latency and bandwidth. `rule` says
    when a row has enough samples: half a percent for the median, as results are compared to one percent; a sample takes
    20 to 40 ms. InputError for sizes that cannot be measured.
    """

    flows: tuple[Flow, ...] = ()
    cases: tuple[str, ...] = ()
    devices: str = ""
    bytes: int = 0
    node: int | None = None
    p2p: bool = True
    sizes: tuple[int, ...] = ()
    rule: Rule = field(default_factory=lambda: Rule(least=5, most=15, width=0.005))

    def __post_init__(self) -> None:
        if self.bytes < 0 or (self.sizes and min(self.sizes) <= 0):
            raise InputError("a copy has at least one byte", hint="for example --bytes '64 MiB'")
        if self.sizes and self.bytes:
            raise InputError("--sweep takes copies of many sizes, --bytes of one", hint="give one of the two")
        sized = [flow.name for flow in self.flows if flow.size is not None]
        if self.sizes and sized:
            raise InputError(f"{sized[0]} has a size, and a sweep takes many", hint="leave the size out, or --sweep")
        if any(flow.size == 0 for flow in self.flows):
            raise InputError("a flow of no bytes cannot be timed", hint="leave the size out, or give one above zero")

    @property
    def scenario(self) -> str:
        """The flows as users type them: 'gpu0->gpu1 read 4 GiB, host->gpu0'."""
        return ", ".join(
            flow.name + " read" * flow.read + " sm" * flow.sm + (f" {_size(flow.size)}" if flow.size else "")
            for flow in self.flows
        )


def _size(size: float) -> str:
    """Bytes in the largest unit that makes a whole number, without separators."""
    for unit in ("GiB", "MiB", "KiB"):
        if units.from_si(size, unit).is_integer():
            return f"{units.from_si(size, unit):.0f} {unit}"
    return f"{size:.0f} B"
