"""A model written as an ONNX file by the onnx package alone; torch is not needed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.errors import InputError, import_extra
from lanewise.loadtest.cache import cache_folder, write_cached
from lanewise.loadtest.models import Model
from lanewise.loadtest.models.ops import Conv, Dense, Heads
from lanewise.loadtest.models.weights import Weights, pixel_scale

OPSET, IR = 17, 8  # what onnxruntime 1.17 reads
LAYOUT = 1  # of what this file writes; a higher number makes cached files anew
INPUT, OUTPUT = "samples", "scores"
FLOATS = {"fp32": "float32", "fp16": "float16"}


def onnx_file(model: Model, folder: Path | None = None, seed: int = 1, precision: str = "fp32") -> Path:
    """The model's file in `folder`, else in the user's cache; one written before is taken again if it is whole."""
    if precision not in FLOATS:
        raise InputError(f"ONNX models are not written in {precision}", hint=f"choose {' or '.join(FLOATS)}")
    home = folder or cache_folder("models")
    layout = "" if len(model.spec.below) else f"-{'hwc' if model.spec.shape[-1] == 3 else 'chw'}"
    path = home / f"{model.name}{layout}-{precision}-seed{seed}-v{LAYOUT}.onnx"
    digest = path.with_suffix(".sha256")
    if _is_whole(path, digest):
        return path
    content = onnx_bytes(model, seed, precision)
    write_cached(path, content)
    write_cached(digest, hashlib.sha256(content).hexdigest().encode())
    return path


def _is_whole(path: Path, digest: Path) -> bool:
    """Whether the file is there with the content it was written with."""
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == digest.read_text(encoding="ascii")
    except (OSError, ValueError):
        return False


def onnx_bytes(model: Model, seed: int = 1, precision: str = "fp32") -> bytes:
    """The model as the content of an ONNX file: input `samples` (n, ...), output `scores` of float32."""
    onnx = import_extra("onnx", "loadtest", "writing a model as ONNX needs onnx")
    graph = _Graph(onnx, Weights(seed), FLOATS[precision])
    scores = graph.node("Cast", model.network.run(graph, INPUT), to=onnx.TensorProto.FLOAT)
    graph.nodes.append(onnx.helper.make_node("Identity", [scores], [OUTPUT]))
    spec = model.spec
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype))
    graph_proto = onnx.helper.make_graph(
        graph.nodes,
        model.name,
        [onnx.helper.make_tensor_value_info(INPUT, kind, ["n", *spec.shape])],
        [onnx.helper.make_tensor_value_info(OUTPUT, onnx.TensorProto.FLOAT, ["n", *model.size().output])],
        graph.arrays,
    )
    whole = onnx.helper.make_model(
        graph_proto, producer_name="lanewise", opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR
    )
    whole.metadata_props.add(key="weights", value=f"random, seed {seed}")
    return bytes(whole.SerializeToString(deterministic=True))


class _Graph:
    """Ops whose values are names of tensors."""

    def __init__(self, onnx: Any, weights: Weights, dtype: str) -> None:
        self.onnx = onnx
        self.weights = weights
        self.dtype = np.dtype(dtype)
        self.nodes: list[Any] = []
        self.arrays: list[Any] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def array(self, values: Any, name: str = "") -> str:
        """A constant: floats in the model's precision, integers as they are."""
        constant = np.asarray(values)
        constant = np.asarray(constant, self.dtype if constant.dtype.kind == "f" else np.int64, order="C")
        name = name or f"constant_{len(self.arrays)}"
        self.arrays.append(self.onnx.numpy_helper.from_array(constant, name))
        return name

    def cast(self, x: str) -> str:
        return self.node("Cast", x, to=self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype))

    def pixels(self, samples: str, layout: str) -> str:
        planes = self.node("Transpose", samples, perm=[0, 3, 1, 2]) if layout == "hwc" else samples
        factor, shift = pixel_scale()
        return self.add(self.node("Mul", self.cast(planes), self.array(factor)), self.array(shift))

    def conv(self, name: str, images: str, conv: Conv) -> str:
        kernel, bias = self.weights.conv(name, conv)
        weights = (self.array(kernel, f"{name}.kernel"), self.array(bias, f"{name}.bias"))
        k, s = conv.kernel, conv.stride
        output = self.node("Conv", images, *weights, kernel_shape=[k, k], strides=[s, s], pads=[k // 2] * 4)
        return self.node("Relu", output) if conv.relu else output

    def add_relu(self, x: str, y: str) -> str:
        return self.node("Relu", self.add(x, y))

    def max_pool(self, images: str) -> str:
        return self.node("MaxPool", images, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)

    def mean_pool(self, images: str) -> str:
        return self.node("Flatten", self.node("GlobalAveragePool", images))

    def dense(self, name: str, x: str, dense: Dense) -> str:
        matrix, bias = self.weights.dense(name, dense)
        output = self.node("MatMul", x, self.array(matrix, f"{name}.matrix"))
        return self.add(output, self.array(bias, f"{name}.bias"))

    def row(self, samples: str, index: int) -> str:
        return self.node("Gather", samples, self.array(np.int64(index)), axis=1)

    def embed(self, name: str, ids: str, rows: int, width: int) -> str:
        return self.node("Gather", self.array(self.weights.table(name, rows, width), f"{name}.table"), ids, axis=0)

    def positions(self, name: str, x: str, length: int, width: int) -> str:
        return self.add(x, self.array(self.weights.table(name, length, width), f"{name}.table"))

    def add(self, x: str, y: str) -> str:
        return self.node("Add", x, y)

    def norm(self, name: str, x: str, width: int) -> str:
        scale, shift = self.weights.norm(name, width)
        weights = (self.array(scale, f"{name}.scale"), self.array(shift, f"{name}.shift"))
        return self.node("LayerNormalization", x, *weights, axis=-1, epsilon=1e-12)

    def gelu(self, x: str) -> str:
        error = self.node("Erf", self.node("Mul", x, self.array(2.0**-0.5)))
        return self.node("Mul", self.node("Mul", x, self.add(error, self.array(1.0))), self.array(0.5))

    def attention(self, query: str, key: str, value: str, mask: str, heads: Heads) -> str:
        q, v = (self._heads(x, heads, [0, 2, 1, 3]) for x in (query, value))
        scores = self.node("MatMul", q, self._heads(key, heads, [0, 2, 3, 1]))
        scores = self.node("Mul", scores, self.array(heads.size**-0.5))
        visible = self.node("Unsqueeze", self.cast(mask), self.array(np.array([1, 2])))
        hidden = self.node("Mul", self.node("Sub", visible, self.array(1.0)), self.array(1e4))
        shares = self.node("Softmax", self.add(scores, hidden), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", shares, v), perm=[0, 2, 1, 3])
        return self.node("Reshape", mixed, self.array(np.array([0, 0, heads.count * heads.size])))

    def _heads(self, x: str, heads: Heads, perm: list[int]) -> str:
        split = self.node("Reshape", x, self.array(np.array([0, 0, heads.count, heads.size])))
        return self.node("Transpose", split, perm=perm)
