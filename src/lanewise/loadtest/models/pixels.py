"""A user's image model made to take pixels: uint8 travels, and the first nodes of the graph normalise it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise.errors import FormatError, InputError, Location
from lanewise.loadtest.models.weights import pixel_scale
from lanewise.loadtest.spec import need

if TYPE_CHECKING:
    from pathlib import Path

NEW = "lanewise_pixels"


def with_pixels(path: Path, layout: str) -> bytes:
    """The ONNX file's content with an input of uint8 images in `layout` hwc or chw, normalised as ImageNet's are, in
    place of its own of normalised floats (n, 3, height, width)."""
    onnx = need("onnx", "giving a model uint8 pixels")
    try:
        model = onnx.load(path)
    except Exception as error:  # protobuf's own errors share no base
        raise FormatError(
            f"not an ONNX model: {error}", location=Location(str(path)), hint="name an .onnx file"
        ) from error
    if not model.graph.node:
        raise FormatError(
            "not an ONNX model: it holds no graph", location=Location(str(path)), hint="name an .onnx file"
        )
    own = _image_input(model.graph, path)
    kind = own.type.tensor_type.elem_type
    sizes = [dim.dim_value or dim.dim_param for dim in own.type.tensor_type.shape.dim]
    n, channels, height, width = sizes
    arranged = [n, height, width, channels] if layout == "hwc" else sizes
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    for index, values in enumerate(pixel_scale()):
        array = onnx.numpy_helper.from_array(values[None].astype(dtype), f"{NEW}_{('factor', 'shift')[index]}")
        model.graph.initializer.append(array)
    old = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(_nodes(onnx, layout, kind, own.name) + old)
    model.graph.input.remove(own)
    model.graph.input.insert(0, onnx.helper.make_tensor_value_info(NEW, onnx.TensorProto.UINT8, arranged))
    return bytes(model.SerializeToString())


def _image_input(graph: Any, path: Path) -> Any:
    """The only input, if it is of float images; InputError otherwise."""
    initializers = {array.name for array in graph.initializer}
    inputs = [value for value in graph.input if value.name not in initializers]
    floats = (1, 10)  # TensorProto.FLOAT and FLOAT16
    for value in inputs:
        tensor = value.type.tensor_type
        sizes = [dim.dim_value for dim in tensor.shape.dim]
        if len(inputs) == 1 and tensor.elem_type in floats and len(sizes) == 4 and sizes[1] == 3:
            return value
    raise InputError(
        "the model does not take normalised images: one input of floats (n, 3, height, width)",
        location=Location(str(path)),
        hint="use it without pixels: its samples are then what its input says",
    )


def _nodes(onnx: Any, layout: str, kind: int, into: str) -> list[Any]:
    make, steps, last = onnx.helper.make_node, [], NEW
    if layout == "hwc":
        steps.append(make("Transpose", [last], [f"{NEW}_planes"], perm=[0, 3, 1, 2]))
        last = f"{NEW}_planes"
    steps.append(make("Cast", [last], [f"{NEW}_floats"], to=kind))
    steps.append(make("Mul", [f"{NEW}_floats", f"{NEW}_factor"], [f"{NEW}_scaled"]))
    steps.append(make("Add", [f"{NEW}_scaled", f"{NEW}_shift"], [into]))
    return steps
