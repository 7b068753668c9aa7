"""Hostile requests: each is refused in Redfish's terms, and changes nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from director.directors import simulated
from director.redfish.body_schemas import bodies
from director.redfish.services import ACCOUNTS, SESSIONS, SYSTEMS, Client, link, serving, system
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanewise.director.redfish import push_targets
from lanewise.director.redfish.routes import route_table
from lanewise.pool.states import inconsistencies

PATCH = {"Password": "Another-horse-8"}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/redfish/v1/Systems/../../../etc/passwd", 404),
        ("/redfish/v1/Systems/%2e%2e/Managers", 404),
        ("/redfish/v1/Systems/host0%2fProcessors", 404),
        ("/redfish/v1//Systems", 404),
        ("/redfish/v1/Systems/%00", 404),
        ("/redfish/v1/Systems/%ff%fe", 404),
        ("/redfish/v1/Systems/%252e", 404),
        ("/redfish/v1/systems", 404),
        ("/redfish/v1/Systems/{system}", 404),
        ("/redfish/v1/Systems/" + "a" * 3000, 414),
        ("/redfish/v1/Schemas/../LanewiseOem_v1.xml", 404),
        ("/redfish/v1/Chassis/host0/PCIeDevices/gpu1", 404),
        ("/redfish/v2/", 404),
        ("/redfishx", 404),
    ],
)
def test_path_tricks_lead_nowhere(client: Client, path: str, status: int) -> None:
    import httpx

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
    }
    scope["headers"] = [(b"x-auth-token", client._token("admin").encode())]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    client.loop.run_until_complete(client.app(scope, receive, send))
    assert sent[0]["status"] == status
    assert httpx.Headers(sent[0]["headers"]).get("odata-version", "4.0") == "4.0"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST", "DELETE", "OPTIONS"])
def test_methods_that_a_resource_lacks_are_405_with_allow(client: Client, method: str) -> None:
    answer = client.call(method, "/redfish/v1/", {})
    assert (answer.status, answer.keys) == (405, ["OperationNotAllowed"])
    assert answer.headers["allow"] == "GET, HEAD"
    assert client.call("BREW", "/redfish/v1/").status == 501


def test_head_has_the_headers_of_get_and_no_body(client: Client) -> None:
    get, head = client.get(SYSTEMS), client.call("HEAD", SYSTEMS)
    assert head.body == {}
    assert {**head.headers} == {**get.headers}
    assert client.get(SYSTEMS, headers={"If-None-Match": get.headers["etag"]}).status == 304


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"OData-Version": "4.1"}, 412),
        ({"X-Auth-Token": "x" * 5000}, 401),
        ({"X-Auth-Token": ""}, 401),
        ({"Authorization": "Basic !!!"}, 401),
        ({"Authorization": "Basic " + "QQ==" * 500}, 401),
        ({"Authorization": "Bearer x"}, 401),
        ({"Cookie": "lanewise-session=" + "x" * 5000}, 401),
    ],
)
def test_odd_headers_are_refused(client: Client, headers: dict[str, str], status: int) -> None:
    assert client.get(SYSTEMS, user=None, headers=headers).status == status


def test_odd_bodies_are_refused_and_change_nothing(client: Client) -> None:
    before = client.running.director.view()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post(SYSTEMS, content=b"Name=x", headers=form).status == 415
    assert client.post(SYSTEMS, content=b'{"Name": "x"').keys == ["MalformedJSON"]
    assert client.post(SYSTEMS, content=b"x" * 300_000).keys == ["PayloadTooLarge"]
    assert client.post(SYSTEMS, system("job", "host0", "gpu1", Bogus=1)).keys == ["PropertyUnknown"]
    assert client.post(SYSTEMS, system("host1", "host0", "gpu1")).keys == ["PropertyValueFormatError"]
    assert client.post(SYSTEMS, system("job", "host0", "gpu1", "gpu1")).keys == ["PropertyValueError"]
    assert client.post(SYSTEMS, system("job", "host0", "gpu99")).keys == ["ResourceBlockNotFound"]
    assert client.post(SYSTEMS, system("job", "host0", "host1", "gpu1")).keys == ["PropertyValueError"]
    assert client.post(SYSTEMS, {"Name": "job"}).keys == ["CreateFailedMissingReqProperties"]
    assert client.post(f"{SYSTEMS}?$select=Name", system("job", "host0", "gpu1")).status == 400
    assert client.call("DELETE", f"{SYSTEMS}/host0").status == 405
    assert client.running.director.view() is before


def race(client: Client, count: int, method: str, path: str, body: Any, headers: dict[str, str]) -> Counter[int]:
    """The statuses of the same request sent so many times at once."""
    sent = {"x-auth-token": client._token("admin"), **headers}

    async def all_at_once() -> list[int]:
        replies = await asyncio.gather(*(client._send(method, path, body, None, sent) for _ in range(count)))
        return [reply.status_code for reply in replies]

    return Counter(client.loop.run_until_complete(all_at_once()))


def test_of_many_changes_with_one_etag_one_is_made(client: Client) -> None:
    etag = client.get(f"{ACCOUNTS}/reader").headers["etag"]
    found = race(client, 8, "PATCH", f"{ACCOUNTS}/reader", {"RoleId": "Operator"}, {"If-Match": etag})
    assert found == {200: 1, 412: 7}
    client.post(SYSTEMS, system("job", "host0", "gpu1"))
    etag = client.get(f"{SYSTEMS}/job").headers["etag"]
    body = {"ResourceBlock": link("gpu2")[0], "ComputerSystemETag": etag}
    found = race(client, 8, "POST", f"{SYSTEMS}/job/Actions/ComputerSystem.AddResourceBlock", body, {})
    assert found[204] == 1
    assert set(found) <= {204, 409, 412}


def test_of_many_that_want_one_block_one_gets_it(client: Client) -> None:
    assert race(client, 8, "POST", SYSTEMS, system("", "host0", "gpu1"), {})[201] == 1
    assert client.running.driver.observe("host0") == {"gpu1"}


WRITES = [
    (kind.path, method, write.form)
    for kind in route_table().types
    for method, write in kind.writes.items()
    if kind.path not in (f"{SESSIONS}/{{session}}",)
]
NAMES = {"system": "job", "account": "reader", "block": "gpu1"}


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Iterator[Client]:
    from director.directors import copied, running

    folder = tmp_path_factory.mktemp("fuzz")
    one = running(copied(template, folder / "director.db"), simulated())
    with serving(one, folder, most_sessions=10_000) as client:
        yield client
    one.close()


@given(data=st.data())
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_bodies_made_from_the_schemas_are_answered_in_redfish_terms(fuzzed: Client, data: st.DataObject) -> None:
    path, method, form = data.draw(st.sampled_from(WRITES))
    body = data.draw(bodies(form)) if form is not None else None
    for name, value in NAMES.items():
        path = path.replace(f"{{{name}}}", value)
    path = path.replace("{subscription}", "none").replace("{reservation}", "none")
    before = fuzzed.running.director.view()
    accounts = fuzzed.service.login.accounts
    answer = fuzzed.call(method, path, body)
    assert answer.status < 500 or answer.status == 503, (path, body, answer.body)
    if answer.status >= 400:
        assert answer.keys, answer.body
        if answer.status != 401:  # which counts a failed login
            assert fuzzed.service.login.accounts == accounts
        assert fuzzed.running.director.view().pool.blocks == before.pool.blocks
        assert fuzzed.running.director.view().pool.compositions.keys() == before.pool.compositions.keys()
    assert inconsistencies(fuzzed.running.director.view().pool) == []


@pytest.fixture(autouse=True)
def _no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> Any:
        raise OSError("no such name")

    monkeypatch.setattr(push_targets.socket, "getaddrinfo", unknown)
