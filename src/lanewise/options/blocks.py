"""Options of `lanewise predict --blocks`: the pieces or the model whose KV cache moves, and the software."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lanewise import units
from lanewise.errors import FormatError, shorten
from lanewise.options.option import Options, argument, option

LAYOUTS = ("half", "layer", "block")
DTYPES = ("bf16", "fp16", "fp8", "int8", "fp32")


def tokens_a_second(text: str) -> float:
    """'8000', '8k' or '8,000 tokens/s' in 1/s; FormatError for other text."""
    try:
        return units.parse(text.strip().removesuffix("tokens/s"), "1")
    except FormatError:
        hint = "write 8000, 8k or '8,000 tokens/s'"
        raise FormatError(f"'{shorten(text)}' is not a number of tokens/s", hint=hint) from None


@dataclass(frozen=True, slots=True)
class BlockOptions(Options):
    """Pieces of memory that flows carry."""

    heading: ClassVar[str] = "Blocks of memory and KV caches"
    path: str | None = argument("FLOW", "With --blocks or --tokens: from where to where, 'gpu0->gpu1'.", None)
    blocks: str | None = option(
        None, "Many pieces of one size, such as a KV cache: time, and whether the path or the software limits it.",
        metavar="'40064 x 64 KiB'",
    )  # fmt: skip
    tokens: int | None = option(None, "The KV cache of so many tokens of --model.", metavar="N", minimum=1)
    model: str | None = option(None, "With --tokens: llama-3-70b, deepseek-v3, qwen3-8b, ...", metavar="NAME")
    tp: int = option(1, "With --tokens: GPUs over which the KV heads are divided.", metavar="N", minimum=1)
    block_tokens: int = option(16, "With --tokens: tokens of a block.", metavar="N", minimum=1)
    layout: str = option("half", "With --tokens: what of a block is contiguous: K or V of a layer, both, all layers.",
                         metavar="|".join(LAYOUTS), choices=LAYOUTS)  # fmt: skip
    kv_dtype: str = option("bf16", "With --tokens: an element of the KV cache, as vLLM's --kv-cache-dtype.",
                           metavar="|".join(DTYPES), choices=DTYPES)  # fmt: skip
    software: str | None = option(None, "With --blocks or --tokens: what moves them, such as cuMemcpyBatchAsync.",
                                  metavar="NAME", default_text="by the path")  # fmt: skip
    prefill: float | None = option(
        None, "With --tokens: tokens/s that the prefill computes, for the transfer's share of the time to first token.",
        metavar="RATE", unit="1/s", minimum=0, parse=tokens_a_second,
    )  # fmt: skip
    posters: int = option(1, "With --blocks or --tokens: threads a flow that post pieces.", metavar="N", minimum=1)
