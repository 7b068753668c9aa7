"""A run as JSON text and back, led by the dataclasses themselves: one definition, no second list of fields.

Numbers are numbers, a missing value is null (its note says why), and the first key names the version.
"""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union, cast

from lanewise.errors import FormatError, InputError, Location
from lanewise.results.network_share import NetworkShare
from lanewise.results.observation import Observation, Source
from lanewise.results.outline import Outline
from lanewise.results.run import Run
from lanewise.results.run_1 import run_2
from lanewise.results.service_result import SearchRun, ServiceResult

SCHEMA, BEFORE = "lanewise.run/2", "lanewise.run/1"
# Properties of a row that are written with its fields, for readers that do not compute; they are not read back.
DERIVED = {
    "unit": "SI unit of all values of the row: B/s, s, 1/s, B, or 1 for a ratio. Written, not read back.",
    "residual_pct": "100 * (value - published) / published; null where one is missing. Written, not read back.",
    "measured_residual_pct": "100 * (value - measured) / measured; null where one is missing. Written, not read back.",
}
T = TypeVar("T")

_NAMES = {
    kind.__name__: kind for kind in (Mapping, NetworkShare, Observation, Outline, SearchRun, ServiceResult, Source)
}
_PLAIN: dict[Any, tuple[Any, str]] = {
    float: ((int, float), "a number"),
    int: (int, "a whole number"),
    bool: (bool, "true or false"),
    str: (str, "text"),
}
_ITSELF = frozenset((str, int, bool))  # what is its own JSON
# The first key of a description of a system.
_DESCRIPTION = re.compile(r"^[{\s]*lanewise: ", re.MULTILINE)
_RERUN = "write it again with the command that made it"


def run_to_json(run: Run) -> str:
    """The run as indented JSON text; FormatError if a number that must be finite is not."""
    body = {"schema": SCHEMA, **encode(run, "run")}
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def run_from_json(text: str, file: str) -> Run:
    """The run in `text`, of this schema or the one before; FormatError with the place if it is cut short or wrong."""
    data = _parse(text, file)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema not in (SCHEMA, BEFORE):
        cause = f"its schema is {json.dumps(schema)}" if schema is not None else "it names no schema"
        hint = f'give a file written by lanewise, with "schema": "{SCHEMA}"'
        if isinstance(schema, str) and schema.startswith("lanewise.run/"):
            hint = f"this version reads {BEFORE} and {SCHEMA}; use the version of lanewise that wrote it, or run again"
        raise FormatError(f"not a run that this version reads: {cause}", location=Location(file), hint=hint)
    return decode(Run, run_2(data) if schema == BEFORE else data, "run", file)


def _parse(text: str, file: str) -> Any:
    def finite(literal: str) -> float:
        # NaN, Infinity and 1e999, which Python's reader would let through.
        if math.isfinite(float(literal)):
            return float(literal)
        location = Location(file, text.count("\n", 0, text.find(literal)) + 1)
        raise FormatError(f"{literal} is not a JSON number", location=location, hint="use null and a note")

    try:
        return json.loads(text, parse_float=finite, parse_constant=finite)
    except json.JSONDecodeError as error:
        location = Location(file, error.lineno, error.colno)
        if _DESCRIPTION.search(text):
            hint = "lanewise plan A.yaml B.yaml --pattern all-to-all ranks descriptions; --json or -o writes a run"
            raise FormatError("a description, not a run", location=Location(file), hint=hint) from None
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            cause = "the file is empty" if not text.strip() else "the file ends in the middle of a run"
            raise FormatError(cause, location=location, hint=f"the write was cut short; {_RERUN}") from None
        raise FormatError(f"not JSON: {error.msg}", location=location, hint=_RERUN) from None
    except ValueError:
        raise FormatError("it has a number of thousands of digits", location=Location(file), hint=_RERUN) from None
    except RecursionError:
        raise FormatError("nested too deeply to be a run", location=Location(file), hint=_RERUN) from None


def encode(value: object, path: str) -> Any:
    """`value` as plain JSON data: any dataclass, mapping or sequence of such; `path` names it in errors."""
    if value is None or value.__class__ in _ITSELF:  # most values: tens of thousands of scenarios wait for them
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return _encode_dataclass(value, path)
    if isinstance(value, Mapping):
        return {str(key): encode(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        raise FormatError(f"{path} is {value}, and JSON has no such number", hint="give null and a note instead")
    return value


def _encode_dataclass(value: Any, path: str) -> dict[str, object]:
    out: dict[str, object] = {}
    lost: list[str] = []
    for name, key, nullable in _layout(value.__class__):
        plain = getattr(value, name)
        if nullable and isinstance(plain, float) and not math.isfinite(plain):
            lost.append(f"{name} was {plain}")
            plain = None
        out[key] = plain if plain is None or plain.__class__ in _ITSELF else encode(plain, f"{path}.{key}")
    if lost and "note" in out:
        out["note"] = "; ".join([*filter(None, [str(out["note"])]), *lost])
    if isinstance(value, Observation):
        for name in DERIVED:
            derived = getattr(value, name)
            out[name] = None if isinstance(derived, float) and not math.isfinite(derived) else derived
    return out


def decode(kind: type[T], data: object, path: str, file: str) -> T:
    """`data` as a `kind`, unknown keys passed over; FormatError names the path of what is wrong."""
    return cast("T", _decode(kind, data, path, file))


def _decode(kind: Any, data: Any, path: str, file: str) -> Any:
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(typing.get_args(kind), data, path, file)
    if origin is tuple:
        return _decode_tuple(typing.get_args(kind), data, path, file)
    if origin is Mapping:
        _expect(isinstance(data, dict), "an object", data, path, file)
        item = typing.get_args(kind)[1]
        return {key: _decode(item, value, f"{path}.{key}", file) for key, value in data.items()}
    if is_dataclass(kind):
        return _decode_dataclass(kind, data, path, file)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        known = [member.value for member in kind]
        _expect(data in known, f"one of {', '.join(known)}", data, path, file)
        return kind(data)
    return _decode_plain(kind, data, path, file)


def _decode_plain(kind: Any, data: Any, path: str, file: str) -> Any:
    types_, name = _PLAIN[kind]
    _expect(isinstance(data, types_) and (kind is bool or not isinstance(data, bool)), name, data, path, file)
    try:
        return kind(data)
    except OverflowError:
        raise FormatError(f"{path} is too large a number", location=Location(file), hint=_RERUN) from None


def _decode_union(kinds: tuple[Any, ...], data: Any, path: str, file: str) -> Any:
    if data is None and type(None) in kinds:
        return None
    rest = [kind for kind in kinds if kind is not type(None)]
    if len(rest) > 1 and isinstance(data, str) and str in rest:
        return data
    return _decode(next(kind for kind in rest if len(rest) == 1 or kind is not str), data, path, file)


def _decode_tuple(kinds: tuple[Any, ...], data: Any, path: str, file: str) -> tuple[Any, ...]:
    _expect(isinstance(data, list), "a list", data, path, file)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_decode(kinds[0], item, f"{path}[{index}]", file) for index, item in enumerate(data))
    _expect(len(data) == len(kinds), f"a list of {len(kinds)}", data, path, file)
    return tuple(
        _decode(kind, item, f"{path}[{i}]", file) for i, (kind, item) in enumerate(zip(kinds, data, strict=True))
    )


def _decode_dataclass(kind: Any, data: Any, path: str, file: str) -> Any:
    _expect(isinstance(data, dict), "an object", data, path, file)
    kinds, values = hints(kind), {}
    for item in fields(kind):
        key = key_of(item)
        if key in data:
            values[item.name] = _decode(kinds[item.name], data[key], f"{path}.{key}", file)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise FormatError(f"{path} lacks '{key}'", location=Location(file), hint=_RERUN)
    try:
        return kind(**values)
    except InputError as error:
        raise FormatError(f"{path}: {error.cause}", location=Location(file), hint=error.hint) from None


def _expect(fine: bool, expected: str, data: object, path: str, file: str) -> None:
    if not fine:
        text = json.dumps(data)[:40]
        raise FormatError(f"{path} should be {expected}, not {text}", location=Location(file), hint=_RERUN)


def key_of(item: Field[Any]) -> str:
    """The key of a dataclass's field in the file: its name, where its metadata states no other `key`."""
    return str(item.metadata.get("key", item.name))


@cache
def _layout(kind: type) -> tuple[tuple[str, str, bool], ...]:
    """Name, key and whether null is a value, of each field of a dataclass."""
    kinds = hints(kind)
    return tuple((item.name, key_of(item), _nullable(kinds[item.name])) for item in fields(kind))


@cache
def hints(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields, names imported only for the type checker resolved."""
    return typing.get_type_hints(kind, localns=_NAMES)


def _nullable(kind: Any) -> bool:
    return typing.get_origin(kind) in (Union, types.UnionType) and type(None) in typing.get_args(kind)
