"""The service as a client sees it: reading, composing, hot add and remove, who may do what."""

from __future__ import annotations

from typing import Any

from director.redfish.services import ACCOUNTS, BLOCKS, PASSWORD, SESSIONS, SYSTEMS, Client, link, system


def walk(client: Client) -> dict[str, dict[str, Any]]:
    """Every resource that can be reached from the root by links."""
    found: dict[str, dict[str, Any]] = {}
    left = ["/redfish/v1/"]
    while left:
        path = left.pop()
        answer = client.get(path)
        assert answer.status == 200, f"{path}: {answer.body}"
        found[path] = answer.body
        assert answer.body["@odata.id"] == path
        assert answer.headers["etag"] == answer.body["@odata.etag"]
        left += [one for one in set(references(answer.body)) if one not in found and one not in left]
    return found


def references(value: Any) -> list[str]:
    """The addresses of resources that a value refers to."""
    if isinstance(value, list):
        return [one for entry in value for one in references(entry)]
    if not isinstance(value, dict):
        return []
    own = [value["@odata.id"]] if value.keys() == {"@odata.id"} and "#" not in value["@odata.id"] else []
    return own + [one for entry in value.values() for one in references(entry)]


def test_every_link_leads_to_a_resource_before_and_after_a_composition(client: Client) -> None:
    before = walk(client)
    assert f"{SYSTEMS}/host0" in before
    assert client.post(SYSTEMS, system("job", "host0", "gpu1", "gpu2")).status == 201
    after = walk(client)
    assert {path for path in after if "/job" in path} >= {f"{SYSTEMS}/job", f"{SYSTEMS}/job/Processors/gpu1"}


def test_a_system_is_composed_changed_and_released(client: Client) -> None:
    made = client.post(SYSTEMS, system("job", "host1", "gpu3"))
    assert (made.status, made.headers["location"]) == (201, f"{SYSTEMS}/job")
    assert made.body["SystemType"] == "Composed"
    assert [one["@odata.id"] for one in made.body["Links"]["ResourceBlocks"]] == [f"{BLOCKS}/host1", f"{BLOCKS}/gpu3"]
    assert client.running.driver.observe("host1") == {"gpu3"}
    block = client.get(f"{BLOCKS}/gpu3").body
    assert (block["CompositionStatus"]["CompositionState"], block["Pool"]) == ("Composed", "Active")

    action = f"{SYSTEMS}/job/Actions/ComputerSystem.AddResourceBlock"
    assert client.post(action, {"ResourceBlock": link("gpu4")[0]}).status == 204
    assert client.running.driver.observe("host1") == {"gpu3", "gpu4"}
    zone = client.get("/redfish/v1/Fabrics/PCIe/Zones/host1").body
    assert {one["@odata.id"].rpartition("/")[2] for one in zone["Links"]["Endpoints"]} == {"host1", "gpu3", "gpu4"}
    action = f"{SYSTEMS}/job/Actions/ComputerSystem.RemoveResourceBlock"
    assert client.post(action, {"ResourceBlock": link("gpu3")[0]}).status == 204
    assert client.running.driver.observe("host1") == {"gpu4"}

    assert client.call("DELETE", f"{SYSTEMS}/job").status == 204
    assert client.get(f"{SYSTEMS}/job").status == 404
    assert client.running.driver.observe("host1") == frozenset()
    assert client.get(f"{BLOCKS}/gpu4").body["Pool"] == "Free"


def test_the_second_to_ask_for_a_block_is_told_who_has_it(client: Client) -> None:
    client.post(SYSTEMS, system("first", "host0", "gpu1"))
    late = client.post(SYSTEMS, system("second", "host1", "gpu1", "gpu2"))
    assert (late.status, late.keys) == (409, ["ResourceBlockInUse"])
    assert late.body["error"]["@Message.ExtendedInfo"][0]["Oem"]["Lanewise"]["Holder"] == "first"
    assert client.get(f"{SYSTEMS}/second").status == 404
    assert client.get(f"{BLOCKS}/gpu2").body["Pool"] == "Free"


def test_a_repeated_request_with_a_key_composes_once(client: Client) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = client.post(SYSTEMS, system("", "host0", "gpu1"), headers=headers)
    again = client.post(SYSTEMS, system("", "host0", "gpu1"), headers=headers)
    assert (first.status, again.status) == (201, 201)
    assert first.headers["location"] == again.headers["location"]
    other = client.post(SYSTEMS, system("", "host1", "gpu2"), headers=headers)
    assert other.status == 409


def test_a_stale_etag_changes_nothing(client: Client) -> None:
    client.post(SYSTEMS, system("job", "host0", "gpu1"))
    old = client.get(f"{SYSTEMS}/job").headers["etag"]
    add = f"{SYSTEMS}/job/Actions/ComputerSystem.AddResourceBlock"
    assert client.post(add, {"ResourceBlock": link("gpu2")[0], "ComputerSystemETag": old}).status == 204
    late = client.post(add, {"ResourceBlock": link("gpu3")[0], "ComputerSystemETag": old})
    assert (late.status, late.keys) == (412, ["PreconditionFailed"])
    assert client.call("DELETE", f"{SYSTEMS}/job", headers={"If-Match": old}).status == 412
    assert client.running.driver.observe("host0") == {"gpu1", "gpu2"}
    new = client.get(f"{SYSTEMS}/job").headers["etag"]
    assert client.call("DELETE", f"{SYSTEMS}/job", headers={"If-Match": new}).status == 204


def test_roles_decide_who_changes_what(client: Client) -> None:
    body = system("job", "host0", "gpu1")
    assert client.post(SYSTEMS, body, user=None).status == 401
    assert client.post(SYSTEMS, body, user="reader").status == 403
    assert client.post(SYSTEMS, body, user="operator").status == 201
    assert client.call("DELETE", f"{SYSTEMS}/job", user="reader").status == 403
    new = {"UserName": "eve", "Password": PASSWORD, "RoleId": "Administrator"}
    assert client.post(ACCOUNTS, new, user="operator").status == 403
    assert client.get(f"{ACCOUNTS}/admin", user="operator").status == 403
    assert client.get(f"{ACCOUNTS}/operator", user="operator").status == 200
    raised = client.call("PATCH", f"{ACCOUNTS}/operator", {"RoleId": "Administrator"}, user="operator")
    assert (raised.status, raised.keys) == (403, ["InsufficientPrivilege"])
    assert client.get("/redfish/v1/Managers/Director/LogServices/Audit/Entries", user="operator").status == 403
    entries = client.get("/redfish/v1/Managers/Director/LogServices/Audit/Entries").body["Members"]
    assert "operator" in entries[0]["Message"]
    assert "403" in entries[0]["Message"]


def test_a_token_ends_with_its_session_its_password_and_its_time(client: Client) -> None:
    login = {"UserName": "operator", "Password": PASSWORD}

    def opened() -> dict[str, str]:
        answer = client.post(SESSIONS, login, user=None)
        assert answer.status == 201
        assert "Password" not in str(answer.body.get("Password") or "")
        return {"X-Auth-Token": answer.headers["x-auth-token"], "location": answer.headers["location"]}

    first = opened()
    assert client.get(SYSTEMS, user=None, headers=first).status == 200
    assert client.call("DELETE", first["location"], user=None, headers=first).status == 204
    replayed = client.get(SYSTEMS, user=None, headers=first)
    assert (replayed.status, replayed.keys) == (401, ["NoValidSession"])
    second = opened()
    assert client.call("PATCH", f"{ACCOUNTS}/operator", {"Password": "Another-horse-8"}).status == 200
    assert client.get(SYSTEMS, user=None, headers=second).status == 401
    login["Password"] = "Another-horse-8"
    third = opened()
    client.running.clock.now += 1801
    assert client.get(SYSTEMS, user=None, headers=third).status == 401


def test_failed_logins_lock_an_account_and_slow_an_address_down(client: Client) -> None:
    wrong = {"UserName": "operator", "Password": "wrong-horse-77"}
    right = wrong | {"Password": PASSWORD}
    for _ in range(5):
        assert client.post(SESSIONS, wrong, user=None).keys == ["AccessUnauthorized"]
    assert client.post(SESSIONS, right, user=None).status == 401, "locked"
    client.running.clock.now += 31
    assert client.post(SESSIONS, wrong, user=None).status == 401
    assert client.post(SESSIONS, right, user=None).status == 201, "one failure after a pause locks nothing"
    for _ in range(20):
        last = client.post(SESSIONS, {"UserName": "nobody", "Password": "x"}, user=None)
    assert last.status == 429
    assert int(last.headers["retry-after"]) > 0
    assert client.get(SYSTEMS).status == 200, "open sessions go on"


def test_the_last_administrator_stays(client: Client) -> None:
    assert client.call("DELETE", f"{ACCOUNTS}/admin").status == 409
    assert client.call("PATCH", f"{ACCOUNTS}/admin", {"RoleId": "ReadOnly"}).status == 409
    assert client.call("PATCH", f"{ACCOUNTS}/admin", {"Enabled": False}).status == 409


def test_a_cookie_alone_changes_nothing(client: Client) -> None:
    login = {"UserName": "admin", "Password": PASSWORD, "Oem": {"Lanewise": {"Cookie": True}}}
    cookie = client.post(SESSIONS, login, user=None).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    sent = {"Cookie": cookie.partition(";")[0]}
    assert client.get(SYSTEMS, user=None, headers=sent).status == 200
    body = system("job", "host0", "gpu1")
    assert client.post(SYSTEMS, body, user=None, headers=sent).status == 403
    assert client.post(SYSTEMS, body, user=None, headers={**sent, "X-Requested-With": "fetch"}).status == 201
