"""A BERT-style encoder that finds the span of an answer, as SQuAD asks: tokens in, two scores a token out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lanewise.loadtest.models.ops import Dense, Heads
from lanewise.loadtest.spec import SampleSpec

if TYPE_CHECKING:
    from lanewise.loadtest.models.ops import Ops

T = TypeVar("T")

VOCABULARY, SEGMENTS, LENGTH = 30522, 2, 384  # of bert-large-uncased; the length is MLPerf's


@dataclass(frozen=True, slots=True)
class Shape:
    """Layers, width and heads; the inner width of a feed-forward layer is four times the width. The table of positions
    is as long as the sequence (BERT's own has 512 rows, of which such sequences use as many)."""

    layers: int
    width: int
    heads: int
    length: int = LENGTH
    dtype: str = "int32"


LARGE = Shape(layers=24, width=1024, heads=16)
MINI = Shape(layers=4, width=256, heads=4)


@dataclass(frozen=True, slots=True)
class Encoder:
    """One sample is three rows of `length` integers: token ids, mask (1 is seen), segment ids."""

    shape: Shape

    @property
    def spec(self) -> SampleSpec:
        """One packed sequence."""
        return SampleSpec((3, self.shape.length), self.shape.dtype, (VOCABULARY, 2, SEGMENTS))

    def run(self, ops: Ops[T], samples: T) -> T:
        """Scores of start and end (n, length, 2)."""
        width = self.shape.width
        mask = ops.row(samples, 1)
        x = ops.embed("tokens", ops.row(samples, 0), VOCABULARY, width)
        x = ops.add(x, ops.embed("segments", ops.row(samples, 2), SEGMENTS, width))
        x = ops.norm("embedded", ops.positions("positions", x, self.shape.length, width), width)
        for layer in range(self.shape.layers):
            x = self._layer(ops, f"layer{layer}", x, mask)
        return ops.dense("span", x, Dense(width, 2))

    def _layer(self, ops: Ops[T], name: str, x: T, mask: T) -> T:
        width = self.shape.width
        query, key, value = (ops.dense(f"{name}.{part}", x, Dense(width, width)) for part in ("query", "key", "value"))
        mixed = ops.attention(query, key, value, mask, Heads(self.shape.heads, width // self.shape.heads))
        x = ops.norm(f"{name}.seen", ops.add(x, ops.dense(f"{name}.out", mixed, Dense(width, width))), width)
        inner = ops.gelu(ops.dense(f"{name}.wide", x, Dense(width, 4 * width)))
        return ops.norm(f"{name}.fed", ops.add(x, ops.dense(f"{name}.narrow", inner, Dense(4 * width, width))), width)
