"""A model as a torch module, with the same weights as its ONNX file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lanewise.errors import import_extra
from lanewise.loadtest.models import Model
from lanewise.loadtest.models.ops import Conv, Dense, Heads
from lanewise.loadtest.models.weights import Weights, pixel_scale


def torch_module(model: Model, seed: int = 1) -> Any:
    """A torch.nn.Module on the CPU in float32: samples (n, ...) in, scores of float32 out."""
    torch = import_extra("torch", "torch", "a torch model needs torch")

    base: Any = torch.nn.Module

    class Network(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.ops = _Ops(torch, self, Weights(seed))
            spec = model.spec
            self(torch.zeros((1, *spec.shape), dtype=getattr(torch, spec.dtype)))
            self.ops.weights = None  # every weight exists: from now on they are only looked up

        def forward(self, samples: Any) -> Any:
            return model.network.run(self.ops, samples).float()

    with torch.inference_mode():
        return Network().eval()


class _Ops:
    """Ops whose values are tensors; the first run makes the weights as buffers of `home`."""

    def __init__(self, torch: Any, home: Any, weights: Weights) -> None:
        self.torch = torch
        self.functions = torch.nn.functional
        # Past Module.__setattr__, which would take the parent for its own child.
        self.home = (home,)
        self.weights: Weights | None = weights

    def buffers(self, name: str, *parts: str, make: Callable[[Weights], Any]) -> tuple[Any, ...]:
        names = [f"{name}.{part}".replace(".", "_") for part in parts]
        home = self.home[0]
        if self.weights is not None:
            arrays = make(self.weights)
            for key, array in zip(names, arrays if isinstance(arrays, tuple) else (arrays,), strict=True):
                home.register_buffer(key, self.torch.from_numpy(array.copy()))
        return tuple(getattr(home, key) for key in names)

    def pixels(self, samples: Any, layout: str) -> Any:
        factor, shift = self.buffers("pixels", "factor", "shift", make=lambda _: pixel_scale())
        planes = samples.permute(0, 3, 1, 2) if layout == "hwc" else samples
        return planes.to(factor.dtype) * factor + shift

    def conv(self, name: str, images: Any, conv: Conv) -> Any:
        kernel, bias = self.buffers(name, "kernel", "bias", make=lambda weights: weights.conv(name, conv))
        output = self.functions.conv2d(images, kernel, bias, stride=conv.stride, padding=conv.kernel // 2)
        return self.functions.relu(output) if conv.relu else output

    def add_relu(self, x: Any, y: Any) -> Any:
        return self.functions.relu(x + y)

    def max_pool(self, images: Any) -> Any:
        return self.functions.max_pool2d(images, 3, stride=2, padding=1)

    def mean_pool(self, images: Any) -> Any:
        return images.mean(dim=(2, 3))

    def dense(self, name: str, x: Any, dense: Dense) -> Any:
        matrix, bias = self.buffers(name, "matrix", "bias", make=lambda weights: weights.dense(name, dense))
        return self.functions.linear(x, matrix.T, bias)

    def row(self, samples: Any, index: int) -> Any:
        return samples[:, index]

    def embed(self, name: str, ids: Any, rows: int, width: int) -> Any:
        (table,) = self.buffers(name, "table", make=lambda weights: weights.table(name, rows, width))
        return self.functions.embedding(ids, table)

    def positions(self, name: str, x: Any, length: int, width: int) -> Any:
        (table,) = self.buffers(name, "table", make=lambda weights: weights.table(name, length, width))
        return x + table

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def norm(self, name: str, x: Any, width: int) -> Any:
        scale, shift = self.buffers(name, "scale", "shift", make=lambda weights: weights.norm(name, width))
        return self.functions.layer_norm(x, (width,), scale, shift, 1e-12)

    def gelu(self, x: Any) -> Any:
        return self.functions.gelu(x)

    def attention(self, query: Any, key: Any, value: Any, mask: Any, heads: Heads) -> Any:
        n, length, width = query.shape
        q, k, v = (x.view(n, length, heads.count, heads.size).transpose(1, 2) for x in (query, key, value))
        hidden = ((mask.to(q.dtype) - 1) * 1e4)[:, None, None, :]
        mixed = self.functions.scaled_dot_product_attention(q, k, v, attn_mask=hidden)
        return mixed.transpose(1, 2).reshape(n, length, width)
