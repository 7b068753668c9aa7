"""The header of a safetensors file: which bytes of it belong to which tensor. The file may be anybody's.

Format: 8 bytes, the length n of the header (little endian); n bytes of JSON, an object of names with dtype, shape and
data_offsets; then the data. https://github.com/safetensors/safetensors, "Format".
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from lanewise.errors import FormatError, Location, shorten

_LENGTH = 8
_MOST_HEADER = 100_000_000  # as the safetensors library
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "I64": 64, "U64": 64, "F64": 64, "C64": 64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor's bytes: from `start` to `end` of its file."""

    name: str
    start: int
    end: int


def tensors_of(descriptor: int, path: str) -> list[StoredTensor]:
    """The tensors of an open safetensors file in the order of their bytes; FormatError for anything else."""
    size = os.fstat(descriptor).st_size
    length = int.from_bytes(os.pread(descriptor, _LENGTH, 0), "little")
    if size < _LENGTH or length > min(_MOST_HEADER, size - _LENGTH):
        _refuse(path, f"no safetensors file: of {size:,} bytes, {length:,} would be its header")
    data = _LENGTH + length
    tensors = [
        _tensor(path, name, entry, data)
        for name, entry in _object(path, os.pread(descriptor, length, _LENGTH)).items()
        if name != "__metadata__"
    ]
    tensors.sort(key=lambda tensor: (tensor.start, tensor.end))
    at = data
    for tensor in tensors:
        if tensor.start != at:
            _refuse(path, f"the data of tensor '{shorten(tensor.name)}' does not begin where that before it ends")
        at = tensor.end
    if at != size:
        _refuse(path, f"its tensors end at byte {at:,}, the file at {size:,}")
    tensors = [tensor for tensor in tensors if tensor.end > tensor.start]
    if not tensors:
        _refuse(path, "holds no tensor with data")
    return tensors


def _object(path: str, text: bytes) -> Mapping[str, Any]:
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        _refuse(path, f"its header is no JSON: {shorten(str(error))}")
    if not isinstance(header, dict):
        _refuse(path, "its header is no JSON object")
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name stands twice in it")
    return entries


def _tensor(path: str, name: str, entry: Any, data: int) -> StoredTensor:
    subject = f"tensor '{shorten(name)}'"
    if not isinstance(entry, dict):
        _refuse(path, f"{subject} is no JSON object")
    kind, shape, offsets = entry.get("dtype"), _counts(entry.get("shape")), _counts(entry.get("data_offsets"))
    if not isinstance(kind, str) or kind not in _BITS:
        _refuse(path, f"{subject} has the unknown dtype '{shorten(str(kind))}'")
    if shape is None or offsets is None or len(offsets) != 2:
        _refuse(path, f"{subject} has no shape or data_offsets of whole numbers")
    begin, end = offsets
    elements = 0 if 0 in shape else math.prod(shape) if sum(each.bit_length() for each in shape) < 128 else -1
    if elements < 0 or end < begin or (end - begin) * 8 != elements * _BITS[kind]:
        _refuse(path, f"{subject} of {kind} {shorten(str(shape))} does not fill its {end - begin:,} bytes")
    return StoredTensor(name, data + begin, data + end)


def _counts(value: Any) -> list[int] | None:
    counts = isinstance(value, list) and all(type(each) is int and 0 <= each < 1 << 62 for each in value)
    return value if counts else None


def _refuse(path: str, cause: str) -> NoReturn:
    raise FormatError(cause, location=Location(path), hint="name a safetensors file")
