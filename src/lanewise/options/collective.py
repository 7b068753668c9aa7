"""Options of `lanewise predict --collective`: the operation, its ranks and sizes, and the settings of the library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lanewise.options.option import Options, option

LAUNCHES = ("graph", "nccl-tests", "nccl-tests -g", "torch")
ALGORITHMS = ("Ring", "Tree", "NVLS", "NVLSTree")
P2P_LEVELS = ("default", "sys")


@dataclass(frozen=True, slots=True)
class CollectiveOptions(Options):
    """A collective of several GPUs."""

    heading: ClassVar[str] = "A collective"
    collective: str | None = option(
        None, "A collective: time and bus bandwidth against size, and what NCCL or RCCL chooses.",
        metavar="all_reduce|all_gather|reduce_scatter|broadcast|all_to_all|sendrecv",
    )  # fmt: skip
    ranks: str | None = option(None, "With --collective: its GPUs, in the order of the ranks.", metavar="gpu[0-7]",
                               complete="gpus", default_text="all GPUs")  # fmt: skip
    sizes: str = option("8B:8GiB", "With --collective: message sizes as nccl-tests counts them, by factors of two, or "
                        "a list: '1MiB,1GiB'.", metavar="FROM:TO")  # fmt: skip
    launch: str = option("nccl-tests", "With --collective: who issues it. 'nccl-tests -g' is one process for all GPUs.",
                         metavar="|".join(LAUNCHES), choices=LAUNCHES)  # fmt: skip
    nccl: str = option("", "With --collective: the version of NCCL, such as 2.27.7.", metavar="VERSION",
                       default_text="the newest known")  # fmt: skip
    algorithm: str | None = option(None, "With --collective: what NCCL_ALGO forces.", metavar="|".join(ALGORITHMS),
                                   choices=ALGORITHMS)  # fmt: skip
    p2p_level: str = option("default", "With --collective: sys lets PCIe peers cross CPUs, as NCCL_P2P_LEVEL=SYS; "
                            "--no-p2p is NCCL_P2P_DISABLE=1.", metavar="|".join(P2P_LEVELS),
                            choices=P2P_LEVELS)  # fmt: skip
