"""The operations that networks are made of; each back end (ONNX, torch, shapes alone) gives them its own values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from lanewise.loadtest.spec import SampleSpec

T = TypeVar("T")

# Mean and standard deviation of ImageNet's pixels by channel (red, green, blue), on a scale of 0 to 255.
MEAN = (123.675, 116.28, 103.53)
DEVIATION = (58.395, 57.12, 57.375)


@dataclass(frozen=True, slots=True)
class Conv:
    """A square convolution with batch norm, padded by half its kernel; `gain` scales its random weights."""

    inside: int
    outside: int
    kernel: int = 1
    stride: int = 1
    relu: bool = True
    gain: float = 1.0


@dataclass(frozen=True, slots=True)
class Dense:
    """A matrix and a bias, on the last axis."""

    inside: int
    outside: int


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads of an attention, and the width of each."""

    count: int
    size: int


class Ops(Protocol[T]):
    """Operations on batches; images are (n, channels, height, width), sequences (n, length, width).

    Names are those of the weights, each used once in a network.
    """

    def pixels(self, samples: T, layout: str) -> T:
        """Images of uint8 in `layout` hwc or chw, normalised by MEAN and DEVIATION."""

    def conv(self, name: str, images: T, conv: Conv) -> T:
        """Convolution, batch norm and, if `conv` says so, ReLU."""

    def add_relu(self, x: T, y: T) -> T:
        """ReLU of the sum."""

    def max_pool(self, images: T) -> T:
        """The largest of 3x3, stride 2, padded by 1."""

    def mean_pool(self, images: T) -> T:
        """The mean of each channel: (n, channels)."""

    def dense(self, name: str, x: T, dense: Dense) -> T:
        """x @ matrix + bias."""

    def row(self, samples: T, index: int) -> T:
        """samples[:, index]."""

    def embed(self, name: str, ids: T, rows: int, width: int) -> T:
        """The rows of a table that `ids` name."""

    def positions(self, name: str, x: T, length: int, width: int) -> T:
        """x plus a table of (length, width)."""

    def add(self, x: T, y: T) -> T:
        """The sum."""

    def norm(self, name: str, x: T, width: int) -> T:
        """Layer norm over the last axis."""

    def gelu(self, x: T) -> T:
        """GELU by the error function."""

    def attention(self, query: T, key: T, value: T, mask: T, heads: Heads) -> T:
        """Scaled dot-product attention of (n, length, width); keys whose `mask` (n, length) is 0 are ignored."""


class NeuralNetwork(Protocol):
    """A network: what one sample is, and what is done with a batch of them."""

    @property
    def spec(self) -> SampleSpec:
        """One sample."""

    def run(self, ops: Ops[T], samples: T) -> T:
        """The outputs (n, ...) of a batch, in terms of `ops`."""
