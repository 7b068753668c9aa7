"""Options of `lanewise measure collectives`: which operations, GPUs, sizes."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.errors import unknown_name
from lanewise.options.option import Options, option, words
from lanewise.options.sampling import SamplingRule

LAUNCHES = (STREAM, GRAPH) = ("stream", "graph")
_RULE = SamplingRule(least=3, most=9, width=0.01)


@dataclass(frozen=True, slots=True)
class MeasureCollectivesOptions(Options):
    """Collectives of some GPUs, launched one by one or in a graph.

    A sample is `iterations` calls after `warmup` of them, as in nccl-tests.

    `rule`: one percent for the median, as NCCL's rate varies more than a copy's.
    """

    operations: tuple[str, ...] = option(("all_reduce",), "Collectives, by name.", "--collective",
                                         metavar="NAME,...", parse=words)  # fmt: skip
    devices: str = option("", "Only these GPUs, in the order of the ranks: gpu[0-3], or 0,2.", metavar="NAMES",
                          complete="gpus")  # fmt: skip
    sizes: str = option("8B:1GiB", "Message sizes as nccl-tests counts them, by factors of two, or a list: "
                        "'1MiB,1GiB'.", metavar="FROM:TO")  # fmt: skip
    iterations: int = option(20, "Calls of a sample.", metavar="N", minimum=1)
    warmup: int = option(5, "Calls before the first sample of a size.", metavar="N", minimum=0)
    launch: str = option(STREAM, "How calls are launched: each on its stream, or a sample's captured in a CUDA graph.",
                         metavar="|".join(LAUNCHES))  # fmt: skip
    rule: SamplingRule = _RULE

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if self.launch not in LAUNCHES:
            raise unknown_name("launch", self.launch, LAUNCHES)
