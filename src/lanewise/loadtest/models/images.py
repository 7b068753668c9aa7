"""Networks for images: ResNet50 v1.5 and a small one. Batch norm is folded into the convolutions, as servers do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lanewise.errors import InputError
from lanewise.loadtest.models.ops import Conv, Dense
from lanewise.loadtest.spec import SampleSpec

if TYPE_CHECKING:
    from lanewise.loadtest.models.ops import Ops

T = TypeVar("T")

SIDE, CLASSES = 224, 1000
# Bottlenecks of a stage, their inner width and the stride of the first: He et al., table 1.
STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))
# The last convolution of a bottleneck is made small, so that sums of random weights do not outgrow 16 bits.
LAST_GAIN = 0.25


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
