"""The JSON Schema of a run file, made from the same dataclasses that the codec follows.

Write docs/reference/run.schema.json anew: python tests/oracles/run_schema.py > docs/reference/run.schema.json
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import Any, Union

from lanewise.results.codec import DERIVED, SCHEMA, hints, key_of
from lanewise.results.observation import Observation
from lanewise.results.run import Run

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {float: "number", int: "integer", bool: "boolean", str: "string", type(None): "null"}


def run_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) that every file written by `run_to_json` satisfies."""
    definitions: dict[str, Any] = {}
    _define(Run, definitions)
    run = definitions.pop("Run")
    run["properties"] = {
        "schema": {"const": SCHEMA, "description": "Name and version of this format."},
        **run["properties"],
    }
    run["required"] = ["schema", *run["required"]]
    return {"$schema": _DIALECT, "title": SCHEMA, **run, "$defs": dict(sorted(definitions.items()))}


def _define(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}
        kinds = hints(kind)
        properties = {key_of(item): _describe(kinds[item.name], definitions) for item in fields(kind)}
        if kind is Observation:
            properties |= {
                name: {"type": "string" if name == "unit" else ["number", "null"], "description": text}
                for name, text in DERIVED.items()
            }
        definitions[name] = {
            "type": "object",
            "description": " ".join((kind.__doc__ or "").split()),
            "properties": properties,
            "required": [key_of(i) for i in fields(kind) if i.default is MISSING and i.default_factory is MISSING],
        }
    return {"$ref": f"#/$defs/{name}"}


def _describe(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return _either(args, definitions)
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return {"type": "array", "items": _describe(args[0], definitions)}
        items = [_describe(arg, definitions) for arg in args]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _describe(args[1], definitions)}
    if is_dataclass(kind):
        return _define(kind, definitions)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [member.value for member in kind]}
    return {"type": _PLAIN[kind]}


def _either(args: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if all(arg in _PLAIN for arg in args):
        return {"type": [_PLAIN[arg] for arg in args]}
    return {"anyOf": [_describe(arg, definitions) for arg in args]}


if __name__ == "__main__":
    print(json.dumps(run_schema(), indent=1, ensure_ascii=False))
