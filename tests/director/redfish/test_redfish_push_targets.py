"""Where events may be pushed to."""

from __future__ import annotations

import ipaddress

import pytest

pytest.importorskip("argon2", reason="needs lanewise[director]")

from lanewise.director.redfish import push_targets
from lanewise.director.redfish.messages import RedfishError
from lanewise.director.redfish.push_targets import PushTarget, allowed, parse_target, resolve


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "169.254.169.254",
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::7f00:1",
    ],
)
def test_local_addresses_are_refused_in_every_form(address: str) -> None:
    assert not allowed(ipaddress.ip_address(address), ())


def test_only_the_networks_that_the_operator_names() -> None:
    inside, outside = ipaddress.ip_address("10.1.2.3"), ipaddress.ip_address("192.0.2.1")
    assert allowed(inside, ())
    assert allowed(inside, ("10.0.0.0/8",))
    assert not allowed(outside, ("10.0.0.0/8",))
    assert allowed(ipaddress.ip_address("127.0.0.1"), ("127.0.0.0/8",))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "ftp://a/",
        "file:///etc/passwd",
        "http://",
        "http://u:p@h/",
        "http://h:99999/",
        "http://h/\r\nX: y",
        "http://h/ x",
        "http://h\\@127.0.0.1/",
        "http://h/#x",
        "gopher://h/",
        "http://[::1",
        "http://" + "h" * 2000,
    ],
)
def test_what_is_no_plain_address_is_refused(text: str) -> None:
    with pytest.raises(RedfishError) as caught:
        parse_target(text)
    assert caught.value.status == 400


def test_every_address_of_a_name_must_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*addresses: str) -> None:
        found = [(2, 1, 6, "", (address, 80)) for address in addresses]
        monkeypatch.setattr(push_targets.socket, "getaddrinfo", lambda *_, **__: found)

    target = PushTarget("http", "h", 80, "/")
    answer("203.0.113.9")
    assert resolve(target, ("203.0.113.0/24",)) == "203.0.113.9"
    answer("203.0.113.9", "127.0.0.1")
    with pytest.raises(RedfishError):
        resolve(target, ("203.0.113.0/24",))
    answer()
    with pytest.raises(RedfishError):
        resolve(target, ())
