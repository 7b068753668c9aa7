"""Pieces of memory over the paths of a system, predicted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.api.loading import as_system
from lanewise.topology.model import System

if TYPE_CHECKING:
    from lanewise.blocks.pieces import Pieces
    from lanewise.blocks.transfer import BlockPrediction
    from lanewise.perf.flow import Flow
    from lanewise.results.observation import Observation


def predict_blocks(
    system: System | str | Path,
    flows: str | Sequence[Flow],
    blocks: str | Pieces,
    software: str | None = None,
    posters: int = 1,
    p2p: bool = True,
    prefill: float | None = None,
) -> BlockPrediction:
    """Time (s) and rate (B/s) of many pieces over each of `flows` at once, and whether path or software limits them.

    `blocks` is a text such as '40064 x 64 KiB' or what `kv_pieces` returns. `software` names what moves them
    ("cuMemcpyBatchAsync"), by the path if None; `posters` (count) threads a flow post them. Without `p2p` two GPUs
    exchange data through host memory.

    With `prefill` (1/s: tokens that a prefill worker computes) and blocks of `kv_pieces`, `first_token` has the time to
    the first token and the transfer's share of it.

    Raises FormatError for text that is no flow or no blocks, UnknownName for a name that does not exist, InputError
    for software that does not move data over that path and for posters without effect, and Unreachable where nothing
    joins the ends.

    >>> kv = lanewise.predict_blocks("h200-pair", "gpu0->gpu1", "40064 x 64 KiB").transfers[0]
    >>> str(kv.limit), round(kv.rate / 1e9, 1)
    ('software', 11.1)
    """
    from lanewise.blocks.pieces import pieces_of
    from lanewise.blocks.transfer import predict_blocks as predict
    from lanewise.errors import InputError
    from lanewise.perf.flow import parse_flows
    from lanewise.perf.gpu_memory import check_fits

    parsed = parse_flows(flows, p2p) if isinstance(flows, str) else flows
    pieces = pieces_of(blocks) if isinstance(blocks, str) else blocks
    known = as_system(system)
    prediction = predict(known, parsed, pieces, software, posters, prefill)
    if pieces.tokens:
        ends = [end for flow in parsed for end in (flow.src, flow.dst)]
        check_fits(known, ends, pieces.total, "the KV cache", "write fewer --tokens or a larger --tp")
    if posters > 1 and all(transfer.posters == 1 for transfer in prediction.transfers):
        names = " and ".join(dict.fromkeys(transfer.software.name for transfer in prediction.transfers))
        cause = f"--posters has no effect with {names}: a piece waits for the one before, whoever posts it"
        raise InputError(cause, hint="leave it out, or name other software with --software")
    return prediction


def block_rows(prediction: BlockPrediction) -> tuple[Observation, ...]:
    """The rate (B/s) and the time a block (s) of each flow as predicted rows, of the identity of those of `measure_kv`.

    >>> predicted = lanewise.block_rows(lanewise.predict_blocks("h200-pair", "gpu0->host0", "1024 x 64 KiB"))
    >>> [(row.scenario, row.metric) for row in predicted]
    [('blocks by cuMemcpyBatchAsync', 'goodput'), ('blocks by cuMemcpyBatchAsync', 'block_time')]
    """
    from lanewise.results.block_rows import predicted_block_rows

    return predicted_block_rows(prediction)


def kv_pieces(
    model: str, tokens: int, tp: int = 1, block_tokens: int = 16, layout: str = "half", dtype: str = "bf16"
) -> Pieces:  # fmt: skip
    """The pieces of one rank's KV cache of a model, their size in B, for `predict_blocks`.

    `tokens` (count) lie in whole blocks of `block_tokens` (count); `tp` (count) GPUs divide the KV heads. `layout` says
    what of a block is contiguous: K or V of a layer ("half"), both ("layer"), or all layers ("block"). `dtype` is
    that of an element: "bf16", "fp16", "fp8", "int8", "fp32".

    Raises UnknownName for a model, layout or dtype that is not known, InputError for numbers that divide no cache.

    >>> kv = lanewise.kv_pieces("llama-3-70b", 32000, tp=4)
    >>> kv.count, kv.size
    (320000, 8192.0)
    """
    from lanewise.blocks.pieces import BlockLayout
    from lanewise.blocks.pieces import kv_pieces as pieces
    from lanewise.errors import unknown_name

    if layout not in list(BlockLayout):
        raise unknown_name("layout", layout, list(BlockLayout))
    return pieces(model, tokens, tp, block_tokens, BlockLayout(layout), dtype)
