"""Pieces of memory: so many of one size, from text or from a model's KV cache."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from lanewise import package_data, units
from lanewise.errors import FormatError, InputError, shorten, unknown_name
from lanewise.yaml_loader import load

MOST_PIECES = 10**12
_PIECES = re.compile(r"\s*(\d[\d,_]*)\s*x\s*(.+)")
# Bytes of an element of a KV cache; scales of quantised ones are not counted.
ELEMENTS = {"bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "fp32": 4}


class BlockLayout(StrEnum):
    """What of a block of tokens is contiguous: K or V of one layer, both of one layer, or all layers."""

    HALF = "half"
    LAYER = "layer"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Pieces:
    """`count` pieces of `size` B; `source` says where they come from, `tokens` of how many tokens they are if known."""

    count: int
    size: float
    source: str = ""
    tokens: int = field(default=0, compare=False)

    @property
    def total(self) -> float:
        """All bytes."""
        return self.count * self.size


def pieces_of(text: str) -> Pieces:
    """The pieces of '40064 x 64 KiB'; FormatError for other text."""
    match = _PIECES.fullmatch(text)
    if match is None:
        raise FormatError(f"'{shorten(text)}' is no number of blocks of a size", hint="write '40064 x 64 KiB'")
    digits = match[1].replace(",", "").replace("_", "")
    count = units.whole(digits)
    size = units.parse_with_unit(match[2], "B", f"'{match[1]} x 64 KiB'")
    if not count or count > MOST_PIECES or not 1 <= size < math.inf:
        raise FormatError(f"'{shorten(text)}' moves nothing or too much", hint="write '40064 x 64 KiB'")
    return Pieces(count, size)


def kv_models() -> tuple[str, ...]:
    """The names of the models whose KV caches are known."""
    return tuple(_models())


def kv_pieces(
    model: str, tokens: int, tp: int = 1, block_tokens: int = 16, layout: BlockLayout = BlockLayout.HALF,
    dtype: str = "bf16",
) -> Pieces:  # fmt: skip
    """The pieces of one rank's KV cache of `tokens` with elements of `dtype`, in whole blocks of `block_tokens`.

    UnknownName for a model or dtype that is not known, InputError for numbers that divide no cache.
    """
    if model not in _models():
        raise unknown_name("model", model, _models())
    if dtype not in ELEMENTS:
        raise unknown_name("dtype", dtype, ELEMENTS)
    for name, number in (("tokens", tokens), ("tp", tp), ("block-tokens", block_tokens)):
        if number < 1:
            raise InputError(f"--{name} is {number}", hint="write 1 or more")
    entry = _models()[model]
    halves, width = _vectors(entry, model, tp)
    full, sliding = entry["layers"] - entry.get("sliding", 0), entry.get("sliding", 0)
    size = block_tokens * width * ELEMENTS[dtype]
    if layout is BlockLayout.HALF:
        per_layer = halves
    else:
        size, per_layer = size * halves, 1
    # Sliding layers keep their window: the blocks that hold its tokens.
    blocks = [math.ceil(kept / block_tokens) for kept in (tokens, min(tokens, entry.get("window", tokens)))]
    if layout is BlockLayout.BLOCK:
        # Layers that keep other tokens are blocks of their own; in every known model as many layers as the others.
        size, layers = size * full, (1, 1 if sliding else 0)
    else:
        layers = (full, sliding)
    count = sum(number * block for number, block in zip(layers, blocks, strict=True)) * per_layer
    source = f"{entry['source']}, blocks of {block_tokens} tokens, {dtype}{_replicated(entry, tp)}"
    return Pieces(count, float(size), source, tokens)


def _replicated(entry: Mapping[str, Any], tp: int) -> str:
    """That more ranks than KV heads keep copies of them, so that a rank's cache gets no smaller."""
    heads = entry.get("kv_heads", tp)
    return f"; {tp} ranks keep each of the {heads} KV heads {tp // heads} times" if tp > heads else ""


def _vectors(entry: Mapping[str, Any], model: str, tp: int) -> tuple[int, int]:
    """Of a token and a layer on one rank: how many vectors, and their elements."""
    if "latent" in entry:
        return 1, entry["latent"]
    heads = entry["kv_heads"]
    if heads % tp and tp % heads:
        raise InputError(f"--tp {tp} does not divide the {heads} KV heads of {model}", hint=f"write --tp {heads}")
    return 2, max(1, heads // tp) * entry["head"]


@cache
def _models() -> Mapping[str, Mapping[str, Any]]:
    values: Mapping[str, Mapping[str, Any]] = load(*package_data.text("blocks", "models", "file of models")).root.value
    return values
