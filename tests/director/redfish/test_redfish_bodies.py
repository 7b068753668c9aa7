"""Request bodies and messages: strict JSON, every wrong property named, identifiers of the standard registries."""

from __future__ import annotations

import json
import os
import string
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("argon2", reason="needs lanewise[director]")

from pydantic import Field

from lanewise.director.redfish import messages
from lanewise.director.redfish.json_body import RequestForm, checked, read_object
from lanewise.director.redfish.messages import RedfishError, refusal

REGISTRIES = Path(os.environ.get("LANEWISE_REDFISH", Path(__file__).parents[4] / "shared/redfish")) / "registries"


class Inner(RequestForm):
    Rate: Annotated[float, Field(gt=0)]


class Example(RequestForm):
    Name: Annotated[str, Field(max_length=5)]
    Kind: Literal["GPU", "SSD"] = "GPU"
    Count: Annotated[int, Field(ge=1)] = 1
    Paths: Annotated[list[Inner], Field(max_length=2)] = Field(default=[])


def identifiers(error: RedfishError) -> list[str]:
    return [message.key for message in error.messages]


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b"", "Base.MalformedJSON"),
        (b"{", "Base.MalformedJSON"),
        (b"\xff", "Base.MalformedJSON"),
        (b"[1]", "Base.UnrecognizedRequestBody"),
        (b'"x"', "Base.UnrecognizedRequestBody"),
        (b'{"a":NaN}', "Base.MalformedJSON"),
        (b'{"a":1,"a":2}', "Base.PropertyDuplicate"),
        (b'{"b":{"a":1,"a":2}}', "Base.PropertyDuplicate"),
        (b"[" * 100_000, "Base.MalformedJSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "Base.MalformedJSON"),
    ],
)
def test_what_is_no_json_object_is_refused(body: bytes, key: str) -> None:
    with pytest.raises(RedfishError) as caught:
        read_object(body)
    assert (caught.value.status, identifiers(caught.value)) == (400, [key])


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ({}, ["Base.PropertyMissing"]),
        ({"Name": "a", "Bogus": 1}, ["Base.PropertyUnknown"]),
        ({"Name": "a", "Id": "x"}, ["Base.PropertyNotWritable"]),
        ({"Name": 3}, ["Base.PropertyValueTypeError"]),
        ({"Name": "toolong"}, ["Base.StringValueTooLong"]),
        ({"Name": "a", "Kind": "CPU"}, ["Base.PropertyValueNotInList"]),
        ({"Name": "a", "Count": 0}, ["Base.PropertyValueOutOfRange"]),
        ({"Name": "a", "Count": "1"}, ["Base.PropertyValueTypeError"]),
        ({"Name": "a", "Count": True}, ["Base.PropertyValueTypeError"]),
        ({"Name": "a", "Paths": [{"Rate": 1.0}] * 3}, ["Base.ArraySizeTooLong"]),
        ({"Name": "a", "Paths": [{"Rate": -1.0, "More": 1}]}, ["Base.PropertyValueOutOfRange", "Base.PropertyUnknown"]),
        ({"@odata.etag": "x"}, ["Base.NoOperation"]),
    ],
)
def test_every_wrong_property_is_named(value: dict[str, Any], keys: list[str]) -> None:
    with pytest.raises(RedfishError) as caught:
        checked(Example, value, readable=frozenset({"Id"}))
    assert identifiers(caught.value) == keys
    body = caught.value.as_json()["error"]
    assert body["code"] == body["@Message.ExtendedInfo"][0]["MessageId"]


def test_parameters_of_an_action_are_called_so() -> None:
    with pytest.raises(RedfishError) as caught:
        checked(Example, {"Bogus": 1}, action="A.Do")
    assert identifiers(caught.value) == ["Base.ActionParameterMissing", "Base.ActionParameterUnknown"]


def test_annotations_of_a_resource_that_was_read_are_no_properties() -> None:
    form = checked(
        Example, {"@odata.id": "/x", "@odata.type": "#X", "Name": "a", "Paths": [{"@odata.type": "#Y", "Rate": 1.0}]}
    )
    assert form.Paths[0].Rate == 1.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Name", "Kind", "Count", "Paths", "Rate", "@odata.id", "x"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)


@given(JSON)
def test_any_json_is_a_form_or_refused(value: Any) -> None:
    status = 200
    try:
        checked(Example, read_object(json.dumps(value).encode()))
    except RedfishError as error:
        status = error.status
        json.dumps(error.as_json(), allow_nan=False)
    assert status in (200, 400)


def test_messages_are_those_of_the_registries_in_our_own_words() -> None:
    if not REGISTRIES.is_dir():
        pytest.skip(f"needs the registries of DMTF in {REGISTRIES}")
    published: dict[str, dict[str, Any]] = {}
    for path in REGISTRIES.glob("*.json"):
        registry = json.loads(path.read_text(encoding="utf-8"))
        published |= {f"{registry['RegistryPrefix']}.{key}": entry for key, entry in registry["Messages"].items()}
    for key, (severity, words, _) in messages._WORDS.items():
        entry = published[key]
        assert severity == entry["MessageSeverity"], key
        fields = {name for _, name, _, _ in string.Formatter().parse(words) if name is not None}
        assert fields <= {str(number) for number in range(entry["NumberOfArgs"])}, key
        assert words.strip(".").lower() != entry["Message"].strip(".").lower(), f"{key}: copied words"
        filled = refusal(400, key, *"abcd"[: entry["NumberOfArgs"]]).as_json()
        assert len(filled["error"]["@Message.ExtendedInfo"][0]["MessageArgs"]) == entry["NumberOfArgs"]
