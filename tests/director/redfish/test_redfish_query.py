"""$filter, $expand, $select, $top, $skip and only, on plain objects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("argon2", reason="needs lanewise[director]")

from lanewise.director.redfish.filter import parse_filter
from lanewise.director.redfish.messages import RedfishError
from lanewise.director.redfish.query import apply_query, parse_query

ITEM: dict[str, Any] = {
    "Id": "gpu0",
    "Count": 3,
    "Enabled": True,
    "Note": None,
    "Name": "it's",
    "Status": {"Health": "OK"},
    "Types": ["A", "B"],
}
RESOURCES: dict[str, dict[str, Any]] = {
    f"/c/{n}": {
        "@odata.id": f"/c/{n}",
        "Id": str(n),
        "N": n,
        "Other": {"@odata.id": "/c/0"},
        "Links": {"Up": {"@odata.id": "/c"}},
    }
    for n in range(5)
}
COLLECTION = {
    "@odata.id": "/c",
    "Members@odata.count": 5,
    "Members": [{"@odata.id": path} for path in RESOURCES],
}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Id eq 'gpu0'", True),
        ("Id ne 'gpu0'", False),
        ("not (Id eq 'gpu1')", True),
        ("not Id eq 'gpu1' and Count lt 3", False),
        ("Count ge 3 and Count le 3.0", True),
        ("Count gt 3 or Status/Health eq 'OK'", True),
        ("Id eq 'x' or Id eq 'y' and Count eq 3", False),
        ("Enabled eq true", True),
        ("Enabled eq 1", False),
        ("Note eq null", True),
        ("Nothing eq null", True),
        ("Name eq 'it''s'", True),
        ("Types eq 'B'", True),
        ("Name gt 3", False),
        ("Status eq 'OK'", False),
        ("Status/Health/More eq 'OK'", False),
    ],
)
def test_a_filter_compares_as_odata_says(text: str, right: bool) -> None:
    assert parse_filter(text)(ITEM) is right


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Id",
        "Id eq",
        "Id is 'x'",
        "Id eq 'x",
        "(Id eq 'x'",
        "Id eq 'x')",
        "'x' eq Id",
        "Id eq 'x' and",
        "(" * 60,
        "x" * 2000,
        "Id eq 'a' 'b'",
        "not " * 40 + "Id eq 'x'",
        "Id eq (",
    ],
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(RedfishError) as caught:
        parse_filter(text)
    assert caught.value.status == 400


@given(st.text(alphabet="Id eqnot()and'or/1.5 \x00é", max_size=40))
def test_a_filter_is_read_or_refused(text: str) -> None:
    try:
        answer: object = parse_filter(text)(ITEM)
    except RedfishError as error:
        answer = error.status
    assert answer in (True, False, 400)


def shown(query: str, data: dict[str, Any] = COLLECTION) -> dict[str, Any]:
    return apply_query(data, parse_query(query, collection=True), RESOURCES.get)


def names(page: dict[str, Any]) -> list[str]:
    return [member["@odata.id"] for member in page["Members"]]


def test_pages_and_filters_of_a_collection() -> None:
    page = shown("$filter=N%20ge%201&$skip=1&$top=2")
    assert names(page) == ["/c/2", "/c/3"]
    assert page["Members@odata.count"] == 4
    rest = page["Members@odata.nextLink"].partition("?")[2]
    assert names(shown(rest)) == ["/c/4"]
    assert "Members@odata.nextLink" not in shown(rest)
    assert names(shown("$skip=9")) == []
    assert "Members@odata.nextLink" not in shown("$top=0")


def test_expand_takes_links_or_what_lies_below_or_both() -> None:
    first = RESOURCES["/c/1"]
    below = apply_query(first, parse_query("$expand=.", collection=False), {**RESOURCES, "/c": COLLECTION}.get)
    assert below["Other"]["N"] == 0
    assert below["Links"]["Up"] == {"@odata.id": "/c"}
    links = apply_query(first, parse_query("$expand=~", collection=False), {**RESOURCES, "/c": COLLECTION}.get)
    assert links["Other"] == {"@odata.id": "/c/0"}
    assert links["Links"]["Up"]["Members@odata.count"] == 5
    both = apply_query(
        first, parse_query("$expand=*($levels=2)", collection=False), {**RESOURCES, "/c": COLLECTION}.get
    )
    assert both["Links"]["Up"]["Members"][4]["N"] == 4
    assert first["Other"] == {"@odata.id": "/c/0"}, "the kept resource was changed"


def test_an_expansion_has_an_end() -> None:
    around = {"@odata.id": "/a", "Links": {"All": [{"@odata.id": "/a"}] * 30}}
    with pytest.raises(RedfishError) as caught:
        apply_query(around, parse_query("$expand=*($levels=6)", collection=False), {"/a": around}.get)
    assert caught.value.status == 507


def test_select_keeps_what_identifies_and_what_is_asked_for() -> None:
    chosen = apply_query(
        ITEM | {"@odata.id": "/x"}, parse_query("$select=Id,Status/Health", collection=False), RESOURCES.get
    )
    assert chosen == {"@odata.id": "/x", "Id": "gpu0", "Status": {"Health": "OK"}}
    assert shown("$expand=.&$select=Members/N")["Members"][2] == {"@odata.id": "/c/2", "N": 2}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("$top=x", 400),
        ("$top=-1", 400),
        ("$skip=1.5", 400),
        ("$expand=x", 400),
        ("$expand=.($levels=0)", 400),
        ("$expand=*($levels=99)", 400),
        ("$select=", 400),
        ("only=1", 400),
        ("only&$top=1", 400),
        ("$top=1&$top=2", 400),
        ("$orderby=Id", 501),
        ("$count", 501),
        ("$filter=" + "x" * 5000, 400),
    ],
)
def test_wrong_query_parameters_are_refused(query: str, status: int) -> None:
    with pytest.raises(RedfishError) as caught:
        parse_query(query, collection=True)
    assert caught.value.status == status


def test_a_single_resource_takes_no_pages_and_unknown_names_are_ignored() -> None:
    with pytest.raises(RedfishError):
        parse_query("$top=1", collection=False)
    assert not parse_query("unknown=1&x", collection=False).any
