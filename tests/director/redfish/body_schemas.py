"""Bodies made from the JSON schemas of the forms: mostly what a form allows, now and then something else."""

from __future__ import annotations

from functools import cache
from typing import Any

from director.redfish.services import BLOCKS
from hypothesis import strategies as st

from lanewise.director.redfish.json_body import RequestForm

WORDS = st.sampled_from(
    ["gpu1", "gpu2", "host0", "host1", "job", "admin", "reader", "", "../x", "%2e%2e", "\x00", "é" * 90, "A" * 300]
)
ADDRESSES = st.sampled_from(
    [f"{BLOCKS}/{name}" for name in ("gpu1", "gpu2", "gpu7", "host0", "none", "..", "")]
    + ["/redfish/v1/Systems/job", "/redfish/v1/Systems/host0", "http://127.0.0.1/", "x"]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)


@cache
def bodies(form: type[RequestForm]) -> st.SearchStrategy[Any]:
    """Bodies for a form."""
    schema = form.model_json_schema(by_alias=True)
    return _of(schema, schema.get("$defs", {}))


def _of(schema: dict[str, Any], names: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        schema = names[schema["$ref"].rpartition("/")[2]]
    return st.integers(0, 19).flatmap(lambda n: JUNK if n == 0 else _right(schema, names, depth))


def _right(schema: dict[str, Any], names: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
    if "anyOf" in schema:
        return st.one_of([_of(one, names, depth) for one in schema["anyOf"]])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, names, depth)
    if kind == "array":
        return st.lists(_of(schema["items"], names, depth + 1), max_size=3)
    if kind == "string":
        return WORDS | ADDRESSES | st.text(max_size=12)
    if kind == "integer":
        return st.integers(-1, 9) | st.integers()
    if kind == "number":
        return st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0, 12.5, 1e300])
    return {"boolean": st.booleans(), "null": st.none()}.get(str(kind), JUNK)


def _object(schema: dict[str, Any], names: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
    fields = {name: _of(one, names, depth + 1) for name, one in schema.get("properties", {}).items()}
    needed = {name: fields[name] for name in schema.get("required", ())}
    rest = {name: fields[name] for name in fields if name not in needed}
    whole = st.fixed_dictionaries(needed, optional=rest)
    extra = st.dictionaries(WORDS, JUNK, max_size=1)
    return st.integers(0, 9).flatmap(
        lambda n: whole if n else st.tuples(whole, extra).map(lambda pair: {**pair[1], **pair[0]})
    )
