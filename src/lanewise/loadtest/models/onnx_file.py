"""A user's ONNX file: its input and outputs, and how an image model is changed to take pixels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanewise.errors import FormatError, InputError, Location, import_extra, unknown_name
from lanewise.loadtest.models.weights import pixel_scale
from lanewise.loadtest.spec import ITEM_BYTES, SampleSpec

# onnxruntime's names of types that differ from numpy's.
TYPES = {"float": "float32", "double": "float64"}
NEW = "lanewise_pixels"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The only input, one sample of it, the output that answers, and the batch if only one size is taken."""

    input: str
    spec: SampleSpec
    output: str
    fixed: int | None


def model_spec(session: Any, output: str, path: Path) -> ModelSpec:
    """Of an onnxruntime session: InputError for several inputs, or for symbolic dimensions other than the batch."""
    location, inputs = Location(str(path)), session.get_inputs()
    if len(inputs) != 1:
        raise InputError(
            f"the model has {len(inputs)} inputs ({', '.join(node.name for node in inputs)}), a query has one sample",
            location=location,
            hint="pack them into one input, and split it in the graph",
        )
    (node,) = inputs
    dtype = _type(node, location)
    batch, *rest = node.shape or [None]
    if not rest or any(not isinstance(size, int) or size < 1 for size in rest):
        raise InputError(
            f"the input '{node.name}' has the shape {node.shape}: sizes beside the first, the batch, must be known",
            location=location,
            hint="fix the other sizes, for example with onnxruntime.tools.make_dynamic_shape_fixed",
        )
    names = [value.name for value in session.get_outputs()]
    if output and output not in names:
        raise unknown_name("output", output, names, location)
    fixed = batch if isinstance(batch, int) and batch > 0 else None
    return ModelSpec(node.name, SampleSpec(tuple(rest), dtype), output or names[0], fixed)


def _type(value: Any, location: Location) -> str:
    """The numpy type of an input; InputError for strings, sequences and the like."""
    inner = str(value.type).removeprefix("tensor(").removesuffix(")")
    dtype = TYPES.get(inner, inner)
    if dtype not in ITEM_BYTES:
        raise InputError(
            f"the input '{value.name}' is of type {value.type}; numbers are needed",
            location=location,
            hint=f"known: {', '.join(ITEM_BYTES)}",
        )
    return dtype


def with_pixels(path: Path, layout: str) -> bytes:
    """The ONNX file's content with an input of uint8 images in `layout` hwc or chw, normalised as ImageNet's are, in
    place of its own of normalised floats (n, 3, height, width)."""
    onnx = import_extra("onnx", "loadtest", "giving a model uint8 pixels needs onnx")
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
