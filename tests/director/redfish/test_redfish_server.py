"""A service from its first start to its end: certificate, first password, addresses, streams that end."""

from __future__ import annotations

import http.client
import os
import signal
import ssl
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from director.directors import Running, simulated
from director.redfish.live import PATIENCE, LiveService, listening

from lanewise.director.redfish.server import serve
from lanewise.director.redfish.settings import ServiceSettings
from lanewise.director.redfish.tls import certificate_files, fingerprint, tls_context
from lanewise.errors import InputError


def test_a_certificate_is_made_once_and_its_key_is_private(tmp_path: Path) -> None:
    settings = ServiceSettings(tmp_path / "new", host="192.0.2.5")
    certificate, key = certificate_files(settings)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    before = fingerprint(certificate)
    assert len(before.split(":")) == 32
    assert certificate_files(settings) == (certificate, key)
    assert fingerprint(certificate) == before
    assert tls_context(certificate, key).minimum_version is ssl.TLSVersion.TLSv1_2
    with pytest.raises(InputError):
        certificate_files(ServiceSettings(tmp_path, certificate=certificate))
    with pytest.raises(InputError):
        tls_context(key, certificate)


def test_only_loopback_is_served_without_tls(start: Callable[..., Running], tmp_path: Path) -> None:
    one = start(simulated())
    with pytest.raises(InputError, match="loopback"):
        serve(one.director, one.store, ServiceSettings(tmp_path, host="0.0.0.0", port=0, tls=False))
    with pytest.raises(InputError, match="cannot listen"):
        serve(one.director, one.store, ServiceSettings(tmp_path, host="192.0.2.1"))


def test_the_first_start_makes_an_administrator_and_sigterm_ends_it(
    start: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from director.redfish import services

    one = start(simulated())
    found: dict[str, Any] = {}
    assert services.PASSWORD  # hashes are quick in tests
    monkeypatch.setattr(signal, "raise_signal", lambda _: None)  # uvicorn passes the signal on once it has ended

    def ready(service: Any) -> None:
        def read() -> None:
            trusted = ssl.create_default_context(cafile=service.certificate)
            port = int(service.url.rpartition(":")[2])
            link = http.client.HTTPSConnection("localhost", port, context=trusted, timeout=PATIENCE)
            link.request("GET", "/redfish/v1/")
            found["root"] = link.getresponse().read()
            link.close()
            os.kill(os.getpid(), signal.SIGTERM)

        found["password"] = service.password
        threading.Thread(target=read).start()

    serve(one.director, one.store, ServiceSettings(tmp_path, port=0), ready)
    assert b'"RedfishVersion"' in found["root"]
    assert [account.name for account in one.store.accounts()] == ["admin"]
    assert found["password"] not in one.store.accounts()[0].password_hash
    found.clear()
    serve(one.director, one.store, ServiceSettings(tmp_path, port=0), ready)
    assert found["password"] is None, "shown at the first start only"


def test_a_service_that_ends_does_not_wait_for_its_streams(start: Callable[..., Running], tmp_path: Path) -> None:
    live: LiveService
    with listening(start(simulated()), tmp_path, heartbeat_seconds=60.0) as live, live.stream() as lines:
        next(lines)
        live.server.should_exit = True
        assert [line for line in lines if line.startswith("data")] == []
