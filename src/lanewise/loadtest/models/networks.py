"""The networks: ResNet50 v1.5, a small one for images, and a BERT-style encoder.

Batch norm is folded into the convolutions, as servers do. The encoder finds the span of an answer, as SQuAD asks:
tokens in, two scores a token out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar

from lanewise.errors import InputError
from lanewise.loadtest.models.ops import Conv, Dense, Heads, Ops
from lanewise.loadtest.spec import SampleSpec

T = TypeVar("T")

SIDE, CLASSES = 224, 1000
# Bottlenecks of a stage, their inner width and the stride of the first: He et al., table 1.
STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))
# The last convolution of a bottleneck is made small, so that sums of random weights do not outgrow 16 bits.
LAST_GAIN = 0.25
VOCABULARY, SEGMENTS, LENGTH = 30522, 2, 384  # of bert-large-uncased; the length is MLPerf's


@dataclass(frozen=True, slots=True)
class Pixels:
    """Images of 224x224 in red, green and blue, one byte each: 150,528 bytes, rows of pixels (hwc) or planes (chw)."""

    layout: str = "hwc"

    @property
    def spec(self) -> SampleSpec:
        """One image; InputError for another layout."""
        shapes = {"hwc": (SIDE, SIDE, 3), "chw": (3, SIDE, SIDE)}
        if self.layout not in shapes:
            raise InputError(f"there is no image layout '{self.layout}'", hint="hwc or chw")
        return SampleSpec(shapes[self.layout], "uint8")


@dataclass(frozen=True, slots=True)
class Classifier(ABC):
    """What networks for images have in common: pixels in, the mean of each channel of their features into one layer."""

    pixels: Pixels

    @property
    def spec(self) -> SampleSpec:
        """One image."""
        return self.pixels.spec

    def run(self, ops: Ops[T], samples: T) -> T:
        """Scores (n, 1000)."""
        x, width = self.features(ops, ops.pixels(samples, self.pixels.layout))
        return ops.dense("head", ops.mean_pool(x), Dense(width, CLASSES))

    @abstractmethod
    def features(self, ops: Ops[T], x: T) -> tuple[T, int]:
        """Features of normalised images, and how many channels they have."""


class ResNet50(Classifier):
    """ResNet50 v1.5: the stride of a stage is in the 3x3 convolution, not in the 1x1 before it."""

    __slots__ = ()

    def features(self, ops: Ops[T], x: T) -> tuple[T, int]:
        """See Classifier."""
        x = ops.max_pool(ops.conv("stem", x, Conv(3, 64, kernel=7, stride=2)))
        inside = 64
        for stage, (blocks, width, stride) in enumerate(STAGES, 1):
            for block in range(blocks):
                x = _bottleneck(ops, f"stage{stage}.{block}", x, (inside, width, stride if block == 0 else 1))
                inside = 4 * width
        return x, inside


def _bottleneck(ops: Ops[T], name: str, x: T, shape: tuple[int, int, int]) -> T:
    inside, width, stride = shape
    outside = 4 * width
    y = ops.conv(f"{name}.reduce", x, Conv(inside, width))
    y = ops.conv(f"{name}.middle", y, Conv(width, width, kernel=3, stride=stride))
    y = ops.conv(f"{name}.expand", y, Conv(width, outside, relu=False, gain=LAST_GAIN))
    if inside != outside or stride != 1:
        x = ops.conv(f"{name}.beside", x, Conv(inside, outside, stride=stride, relu=False))
    return ops.add_relu(x, y)


class SmallCnn(Classifier):
    """Four strided convolutions and a head: about a hundredth of ResNet50's work on the same 150,528 bytes."""

    __slots__ = ()

    def features(self, ops: Ops[T], x: T) -> tuple[T, int]:
        """See Classifier."""
        x = ops.conv("stem", x, Conv(3, 32, kernel=7, stride=4))
        for index, (inside, outside) in enumerate(((32, 32), (32, 64), (64, 128)), 1):
            x = ops.conv(f"conv{index}", x, Conv(inside, outside, kernel=3, stride=2))
        return x, 128


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """Layers, width and heads; the inner width of a feed-forward layer is four times the width. The table of positions
    is as long as the sequence (BERT's own has 512 rows, of which such sequences use as many)."""

    layers: int
    width: int
    heads: int
    length: int = LENGTH
    dtype: str = "int32"


LARGE = EncoderShape(layers=24, width=1024, heads=16)
MINI = EncoderShape(layers=4, width=256, heads=4)


@dataclass(frozen=True, slots=True)
class Encoder:
    """One sample is three rows of `length` integers: token ids, mask (1: attended to), segment ids."""

    shape: EncoderShape

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
