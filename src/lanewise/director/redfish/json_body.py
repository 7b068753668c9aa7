"""Request bodies: JSON objects, strictly read, checked by a pydantic form, errors in Redfish's terms."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from lanewise.director.redfish.messages import RedfishError, RedfishMessage, refusal
from lanewise.errors import printable, shorten

MOST_MESSAGES = 16
_DEEPEST = 24
_ANNOTATIONS = frozenset({"@odata.type", "@odata.etag", "@odata.context"})


class RequestForm(BaseModel):
    """The base of all forms: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


_Form = TypeVar("_Form", bound=RequestForm)


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; RedfishError for anything else, duplicates and NaN included."""
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise refusal(400, "Base.MalformedJSON") from None
    if not isinstance(value, dict):
        raise refusal(400, "Base.UnrecognizedRequestBody")
    return value


def checked(
    form: type[_Form], value: dict[str, Any], *, action: str = "", readable: frozenset[str] = frozenset()
) -> _Form:
    """The object as a form; RedfishError naming every property that is wrong.

    `readable` are properties that the resource has, but which cannot be written; `action` names an action.
    """
    plain = _without_annotations(value, 0)
    plain.pop("@odata.id", None)
    if value and not plain:
        raise refusal(400, "Base.NoOperation")
    try:
        return form.model_validate(plain)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=True)
    messages = [_message(problem, action, readable) for problem in problems[:MOST_MESSAGES]]
    raise RedfishError(400, *messages)


def _message(problem: Any, action: str, readable: frozenset[str]) -> RedfishMessage:
    place = "/".join(str(step) for step in problem["loc"]) or "body"
    name = shorten(printable(place))
    kind = str(problem["type"])
    value = shorten(printable(str(problem["input"])), 60)
    if kind == "extra_forbidden":
        if action:
            return RedfishMessage("Base.ActionParameterUnknown", (action, name), (name,))
        key = "Base.PropertyNotWritable" if name in readable else "Base.PropertyUnknown"
        return RedfishMessage(key, (name,), (name,))
    if kind == "missing":
        if action:
            return RedfishMessage("Base.ActionParameterMissing", (action, name), (name,))
        return RedfishMessage("Base.PropertyMissing", (name,), (name,))
    if kind == "string_too_long":
        return RedfishMessage("Base.StringValueTooLong", (value, str(problem["ctx"]["max_length"])), (name,))
    if kind == "too_long":
        return RedfishMessage("Base.ArraySizeTooLong", (name, str(problem["ctx"]["max_length"])), (name,))
    what = _VALUE_ERRORS.get(kind, "TypeError" if kind.endswith("_type") else "FormatError")
    said = str(problem["msg"]) if kind == "value_error" else ""
    if action:
        if what == "OutOfRange":
            return RedfishMessage("Base.ActionParameterValueError", (name, action), (name,), said)
        return RedfishMessage(f"Base.ActionParameterValue{what}", (value, name, action), (name,), said)
    return RedfishMessage(f"Base.PropertyValue{what}", (value, name), (name,), said)


def _without_annotations(value: Any, depth: int) -> Any:
    """The value without what a resource that was read before carries along, such as its ETag, at any depth."""
    if depth > _DEEPEST:
        raise refusal(400, "Base.MalformedJSON", text=f"The body is nested more than {_DEEPEST} deep.")
    if isinstance(value, list):
        return [_without_annotations(entry, depth + 1) for entry in value]
    if not isinstance(value, dict):
        return value
    kept = {name: entry for name, entry in value.items() if name not in _ANNOTATIONS}
    return {name: _without_annotations(entry, depth + 1) for name, entry in kept.items()}


_VALUE_ERRORS = {
    "literal_error": "NotInList",
    "enum": "NotInList",
    "greater_than": "OutOfRange",
    "greater_than_equal": "OutOfRange",
    "less_than": "OutOfRange",
    "less_than_equal": "OutOfRange",
    "finite_number": "OutOfRange",
}


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) == len(pairs):
        return table
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            break
        seen.add(name)
    raise refusal(400, "Base.PropertyDuplicate", shorten(printable(name)))


def _no_constant(_: str) -> NoReturn:
    raise ValueError
