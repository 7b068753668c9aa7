"""Small ONNX files that tests write, with known answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], fixed: Sequence[Any] = ()) -> Path:
    """A checked model of these nodes at `path`; `fixed` tensors are part of it."""
    graph = helper.make_graph(nodes, "made-by-a-test", inputs, outputs, list(fixed))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def floats(name: str, *shape: int | str) -> Any:
    """A float tensor of a graph."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def means(path: Path, batch: int | str = "n") -> Path:
    """Images of floats (n, 3, 8, 8) to the mean of each channel (n, 3), and to the index of the largest (n, 1)."""
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["means"], axes=[2, 3], keepdims=0),
        helper.make_node("ArgMax", ["means"], ["class"], axis=1, keepdims=1),
    ]
    classes = helper.make_tensor_value_info("class", TensorProto.INT64, [batch, 1])
    return write(path, nodes, [floats("images", batch, 3, 8, 8)], [floats("means", batch, 3), classes])


def colours(path: Path) -> Path:
    """Images of bytes (n, 224, 224, 3) to the mean of red, green and blue (n, 3)."""
    nodes = [
        helper.make_node("Cast", ["images"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["floats"], ["means"], axes=[1, 2], keepdims=0),
    ]
    pixels = helper.make_tensor_value_info("images", TensorProto.UINT8, ["n", 224, 224, 3])
    return write(path, nodes, [pixels], [floats("means", "n", 3)])


def fails_later(path: Path) -> Path:
    """Samples of two bytes; the operator fails for one value of both in 200 or so, which a warm-up does not meet."""
    nodes = [
        helper.make_node("Cast", ["sample"], ["bytes"], to=TensorProto.INT64),
        helper.make_node("MatMul", ["bytes", "places"], ["at"]),
        helper.make_node("Gather", ["table", "at"], ["answer"]),
    ]
    fixed = [
        numpy_helper.from_array(np.zeros(65536 - 300, np.float32), "table"),
        numpy_helper.from_array(np.array([[1], [256]], np.int64), "places"),
    ]
    pair = helper.make_tensor_value_info("sample", TensorProto.UINT8, ["n", 2])
    return write(path, nodes, [pair], [floats("answer", "n", 1)], fixed)


def two_inputs(path: Path) -> Path:
    """The sum of two tensors."""
    adds = helper.make_node("Add", ["a", "b"], ["c"])
    return write(path, [adds], [floats("a", "n", 4), floats("b", "n", 4)], [floats("c", "n", 4)])
