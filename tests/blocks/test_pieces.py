"""Pieces from text and from the KV caches of models."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.blocks.pieces import BlockLayout, kv_models, kv_pieces, pieces_of
from lanewise.errors import FormatError, InputError, UnknownName


def test_text() -> None:
    pieces = pieces_of("40,064 x 64 KiB")
    assert (pieces.count, pieces.size, pieces.total) == (40064, 65536, 40064 * 65536)
    for text in ("64 KiB", "0 x 64 KiB", "3 x 0 B", "9999999999999 x 1 B", "many x 1 MiB"):
        with pytest.raises(FormatError):
            pieces_of(text)
    with pytest.raises(FormatError, match="'64' has no unit") as error:
        pieces_of("100 x 64")
    assert error.value.hint == "write '100 x 64 KiB'"


@pytest.mark.parametrize(
    ("model", "kib_a_token"),
    [("llama-3-8b", 128), ("llama-3-70b", 320), ("deepseek-v3", 68.625), ("qwen3-8b", 144), ("qwen3-32b", 256)],
)
def test_bytes_a_token(model: str, kib_a_token: float) -> None:
    for layout in BlockLayout:
        assert kv_pieces(model, 1600, layout=layout).total == 1600 * kib_a_token * 1024


def test_layouts_divide_a_block_of_llama_3_70b() -> None:
    # 16 tokens, 8 heads of 128 in bf16: 32 KiB for K of one layer.
    sizes = {layout: kv_pieces("llama-3-70b", 16, layout=layout) for layout in BlockLayout}
    assert [(sizes[layout].count, sizes[layout].size / 1024) for layout in BlockLayout] == [
        (160, 32), (80, 64), (1, 5120),
    ]  # fmt: skip
    assert kv_pieces("llama-3-70b", 16, tp=4).size == 8192
    assert kv_pieces("llama-3-70b", 16, tp=16).size == kv_pieces("llama-3-70b", 16, tp=8).size == 4096  # heads repeat
    assert kv_pieces("llama-3-70b", 16, tp=16).source.endswith("bf16; 16 ranks keep each of the 8 KV heads 2 times")
    assert kv_pieces("deepseek-v3", 16, tp=8) == kv_pieces("deepseek-v3", 16)  # a latent vector is not divided


def test_a_partial_block_moves_whole() -> None:
    assert kv_pieces("llama-3-8b", 17) == kv_pieces("llama-3-8b", 32)


def test_sliding_layers_keep_their_window() -> None:
    short, long = kv_pieces("gpt-oss-120b", 128), kv_pieces("gpt-oss-120b", 131072)
    assert short.count == 36 * 2 * 8
    assert long.count == 18 * 2 * 8 + 18 * 2 * 8192
    for model in kv_models():
        totals = {kv_pieces(model, 4096, layout=layout).total for layout in BlockLayout}
        assert len(totals) == 1, model


def test_what_divides_no_cache() -> None:
    with pytest.raises(InputError, match="does not divide the 8 KV heads"):
        kv_pieces("llama-3-70b", 16, tp=3)
    with pytest.raises(InputError, match="tokens is 0"):
        kv_pieces("llama-3-70b", 0)
    with pytest.raises(UnknownName, match="unknown model 'llama'"):
        lanewise.kv_pieces("llama", 16)
    with pytest.raises(UnknownName, match="unknown layout 'flat'"):
        lanewise.kv_pieces("llama-3-70b", 16, layout="flat")
