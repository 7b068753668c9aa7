"""A network's size without its weights: its operations run on shapes alone, counting what they would take."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from lanewise.loadtest.models.ops import Conv, Dense, Heads, NeuralNetwork

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Trained parameters (scale and shift of batch norms included, running means not), multiply-adds of one sample,
    shape of its output."""

    parameters: int
    multiply_adds: int
    output: tuple[int, ...]


def size_of(network: NeuralNetwork) -> ModelSize:
    """Counts a network for one sample."""
    ops = _Shapes()
    output = network.run(ops, (1, *network.spec.shape))
    return ModelSize(ops.parameters, ops.multiply_adds, output[1:])


class _Shapes:
    """Ops whose values are shapes."""

    def __init__(self) -> None:
        self.parameters = 0
        self.multiply_adds = 0

    def pixels(self, samples: Shape, layout: str) -> Shape:
        n, *image = samples
        return (n, image[2], image[0], image[1]) if layout == "hwc" else samples

    def conv(self, name: str, images: Shape, conv: Conv) -> Shape:
        n, channels, height, width = images
        assert channels == conv.inside, name
        shape = (n, conv.outside, -(-height // conv.stride), -(-width // conv.stride))
        weights = conv.inside * conv.outside * conv.kernel**2
        self.parameters += weights + 2 * conv.outside
        self.multiply_adds += weights * shape[2] * shape[3]
        return shape

    def add_relu(self, x: Shape, y: Shape) -> Shape:
        return self.add(x, y)

    def max_pool(self, images: Shape) -> Shape:
        n, channels, height, width = images
        return (n, channels, -(-height // 2), -(-width // 2))

    def mean_pool(self, images: Shape) -> Shape:
        return images[:2]

    def dense(self, name: str, x: Shape, dense: Dense) -> Shape:
        assert x[-1] == dense.inside, name
        self.parameters += (dense.inside + 1) * dense.outside
        self.multiply_adds += prod(x) * dense.outside
        return (*x[:-1], dense.outside)

    def row(self, samples: Shape, index: int) -> Shape:
        assert index < samples[1]
        return (samples[0], *samples[2:])

    def embed(self, name: str, ids: Shape, rows: int, width: int) -> Shape:
        self.parameters += rows * width
        return (*ids, width)

    def positions(self, name: str, x: Shape, length: int, width: int) -> Shape:
        self.parameters += length * width
        return self.add(x, (x[0], length, width))

    def add(self, x: Shape, y: Shape) -> Shape:
        assert x == y, (x, y)
        return x

    def norm(self, name: str, x: Shape, width: int) -> Shape:
        assert x[-1] == width, name
        self.parameters += 2 * width
        return x

    def gelu(self, x: Shape) -> Shape:
        return x

    def attention(self, query: Shape, key: Shape, value: Shape, mask: Shape, heads: Heads) -> Shape:
        n, length, width = query
        assert query == key == value
        assert mask == (n, length)
        assert width == heads.count * heads.size
        self.multiply_adds += 2 * length * length * width
        return query
