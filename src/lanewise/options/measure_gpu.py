"""Options of `lanewise measure gpu`: flows, cases, sizes."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.errors import InputError
from lanewise.options.option import Options, option, words
from lanewise.options.sampling import DEFAULT_RULE, SamplingRule

SWEEP = tuple(4**i for i in range(6, 16))  # 4 KiB to 1 GiB


@dataclass(frozen=True, slots=True)
class MeasureGpuOptions(Options):
    """Flows measured together, and cases; neither: the default set. `sizes` in bytes are those of a sweep.

    `rule`: half a percent for the median, as results are compared to one percent; a sample takes 20 to 40 ms.
    """

    flows: str = option("", "Flows measured together: 'gpu0->gpu1, host:1->gpu0 read, gpu2->gpu3 sm'.", metavar="FLOWS")
    cases: tuple[str, ...] = option(
        (), "Cases by name or pattern, or default, nvbandwidth, all (--list).", metavar="NAME,...", parse=words
    )
    latency: bool = option(False, "The cases of latency: '*latency*'.")
    queries: bool = option(False, "The cases of scattered 150,528 B queries: 'queries_*'.")
    sweep: bool = option(False, "Copies of 4 KiB to 1 GiB, with latency and bandwidth fitted.")
    devices: str = option("", "Only these GPUs: gpu[0-3], or 0,2.", metavar="NAMES", complete="gpus")
    bytes: int = option(
        0, "Size of one copy.", metavar="SIZE", unit="B", minimum=0,
        default_text="256 MiB; between GPUs 512 MiB, staged 128 MiB",
    )  # fmt: skip
    node: int | None = option(None, "NUMA node of host memory.", metavar="N", minimum=0, default_text="near the GPU")
    no_p2p: bool = option(False, "Copy between two GPUs through host memory.")
    sizes: tuple[int, ...] = ()
    rule: SamplingRule = DEFAULT_RULE

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if self.sizes and min(self.sizes) <= 0:
            raise InputError("a copy has at least one byte", hint="for example sizes=(4096, 2**20)")
        if self.copy_sizes and self.bytes:
            raise InputError("--sweep takes copies of many sizes, --bytes of one", hint="give one of the two")

    @property
    def copy_sizes(self) -> tuple[int, ...]:
        """The sizes of a sweep in bytes; none without one."""
        return self.sizes or (SWEEP if self.sweep else ())

    @property
    def case_names(self) -> tuple[str, ...]:
        """Names, sets and patterns of the selected cases."""
        return (*self.cases, *["*latency*"] * self.latency, *["queries_*"] * self.queries)
