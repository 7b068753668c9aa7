"""What an ONNX file says of its input and outputs, and whether a load test can send it samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanewise.errors import InputError, Location, unknown_name
from lanewise.loadtest.spec import ITEM_BYTES, SampleSpec

if TYPE_CHECKING:
    from pathlib import Path

# onnxruntime's names of types that differ from numpy's.
TYPES = {"float": "float32", "double": "float64"}


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The only input, one sample of it, the output that answers, and the batch if only one size is taken."""

    input: str
    spec: SampleSpec
    output: str
    fixed: int | None


def model_spec(session: Any, output: str, path: Path) -> ModelSpec:
    """Of an onnxruntime session: InputError for several inputs, or sizes that stay open beside the batch."""
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
