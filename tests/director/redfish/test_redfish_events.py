"""Events over a socket: a stream with ids and replay, pushes with retries, connections that come too late."""

from __future__ import annotations

import contextlib
import json
import queue
import select
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from director.directors import Running, simulated
from director.redfish.live import PATIENCE, LiveService, documents, listening
from director.redfish.services import BLOCKS, SYSTEMS, system

SUBSCRIPTIONS = "/redfish/v1/EventService/Subscriptions"


@pytest.fixture
def live(start: Callable[..., Running], tmp_path: Path) -> Iterator[LiveService]:
    settings: dict[str, Any] = {
        "heartbeat_seconds": 0.05,
        "push_networks": ("127.0.0.0/8",),
        "push_retry_seconds": 0.01,
        "push_attempts": 2,
        "request_seconds": 0.5,
        "read_seconds": 0.3,
        "most_header": 4096,
    }
    with listening(start(simulated()), tmp_path, **settings) as one:
        yield one


def test_a_stream_tells_what_happens_and_replays_what_was_missed(live: LiveService) -> None:
    with live.stream() as lines:
        assert live.request("POST", SYSTEMS, system("job", "host0", "gpu1"))[0] == 201
        number, document = next(documents(lines))
        assert document["@odata.type"].startswith("#Event.")
        origins = {row["OriginOfCondition"]["@odata.id"] for row in document["Events"]}
        assert origins <= {f"{SYSTEMS}/job", f"{BLOCKS}/gpu1"}
    live.request("DELETE", f"{SYSTEMS}/job")
    with live.stream(**{"Last-Event-ID": str(number)}) as lines:
        for again, document in documents(lines):
            assert again > number
            number = again
            if any(row["MessageId"].endswith(".ResourceRemoved") for row in document["Events"]):
                break


def test_a_quiet_stream_sends_comments_and_shows_as_a_subscription(live: LiveService) -> None:
    with live.stream() as lines:
        comments = [line for line in (next(lines) for _ in range(5)) if line.startswith(":")]
        assert len(comments) >= 2
        members = live.request("GET", SUBSCRIPTIONS)[1]["Members"]
        assert len(members) == 1
        assert live.request("GET", members[0]["@odata.id"])[1]["SubscriptionType"] == "SSE"
        assert live.request("DELETE", members[0]["@odata.id"])[0] == 204
        assert list(documents(lines)) == [], "the stream has ended"


def test_a_stream_may_ask_for_some_events_only(live: LiveService) -> None:
    path = "/redfish/v1/EventService/SSE?$filter=MessageId%20eq%20'ResourceEvent.1.4.ResourceRemoved'"
    with live.stream(path) as lines:
        live.request("POST", SYSTEMS, system("job", "host0", "gpu1"))
        live.request("DELETE", f"{SYSTEMS}/job")
        document = next(documents(lines))[1]
        assert {row["MessageId"] for row in document["Events"]} == {"ResourceEvent.1.4.ResourceRemoved"}


def test_a_stream_ends_with_its_session(live: LiveService) -> None:
    _, body, headers = live.request(
        "POST", "/redfish/v1/SessionService/Sessions", {"UserName": "reader", "Password": "Correct-horse-7"}
    )
    with live.stream(**{"X-Auth-Token": headers["x-auth-token"]}) as lines:
        next(lines)
        assert live.request("DELETE", body["@odata.id"])[0] == 204
        assert list(documents(lines)) == []


class Receiver:
    """Takes pushed events; refuses the first `refusals` of them."""

    def __init__(self, refusals: int = 0) -> None:
        self.taken: queue.Queue[tuple[dict[str, str], dict[str, Any]]] = queue.Queue()
        self.refused = threading.Semaphore(0)
        left = [refusals]
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if left[0] > 0:
                    left[0] -= 1
                    self.send_error(500)
                    outer.refused.release()
                    return
                self.send_response(204)
                self.end_headers()
                outer.taken.put(({name.lower(): value for name, value in self.headers.items()}, body))

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/events?x=1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def subscribe(live: LiveService, receiver: Receiver, **more: Any) -> str:
    body = {"Destination": receiver.url, "Protocol": "Redfish", "Context": "mine", **more}
    status, made, headers = live.request("POST", SUBSCRIPTIONS, body)
    assert status == 201, made
    return headers["location"]


def test_events_are_pushed_in_order_again_after_a_refusal(live: LiveService) -> None:
    with Receiver(refusals=2) as receiver:
        place = subscribe(live, receiver, HttpHeaders=[{"X-Secret": "s3cret"}], ResourceTypes=["ComputerSystem"])
        assert "s3cret" not in json.dumps(live.request("GET", place)[1])
        live.request("POST", SYSTEMS, system("job", "host0", "gpu1"))
        live.request("DELETE", f"{SYSTEMS}/job")
        identifiers: list[str] = []
        while not identifiers or not identifiers[-1].endswith("ResourceRemoved"):
            headers, document = receiver.taken.get(timeout=PATIENCE)
            assert (headers["x-secret"], document["Context"]) == ("s3cret", "mine")
            identifiers += [row["MessageId"] for row in document["Events"]]
        assert identifiers[0].endswith("ResourceCreated")
        assert live.request("DELETE", place)[0] == 204


def test_a_subscriber_that_refuses_too_often_is_dropped_if_it_said_so(live: LiveService) -> None:
    with Receiver(refusals=100) as receiver:
        place = subscribe(live, receiver, DeliveryRetryPolicy="TerminateAfterRetries")
        live.request("POST", SYSTEMS, system("job", "host0", "gpu1"))
        for _ in range(3):
            assert receiver.refused.acquire(timeout=PATIENCE)
        ended = threading.Event()
        for _ in range(600):
            if live.request("GET", place)[0] == 404:
                ended.set()
                break
            ended.wait(0.05)
        assert ended.is_set()


def test_a_push_to_this_machine_is_refused_unless_allowed(start: Callable[..., Running], tmp_path: Path) -> None:
    from director.redfish.services import serving

    with serving(start(simulated()), tmp_path) as client:
        body = {"Destination": "http://127.0.0.1:1/", "Protocol": "Redfish"}
        assert client.post(SUBSCRIPTIONS, body).keys == ["PropertyValueError"]
        body["Destination"] = "http://[::ffff:169.254.169.254]/latest/meta-data"
        assert client.post(SUBSCRIPTIONS, body).keys == ["PropertyValueError"]
        assert client.post(SUBSCRIPTIONS, body, user="reader").status == 403
        assert client.get(SUBSCRIPTIONS).body["Members"] == []


def received(connection: Any) -> bytes:
    """Everything until the service closes."""
    text = b""
    with contextlib.suppress(ConnectionResetError):  # the service closes with some of what was sent unread
        while chunk := connection.recv(65536):
            text += chunk
    return text


def test_headers_that_come_too_late_or_are_too_large_end_the_connection(live: LiveService) -> None:
    with live.connect() as slow, live.connect() as wide, live.connect() as noise:
        slow.sendall(b"GET /redfish/v1/ HTTP/1.1\r\nHost: x\r\n")
        wide.sendall(b"GET /redfish/v1/ HTTP/1.1\r\nHost: x\r\nX-Wide: " + b"a" * 5000)
        noise.sendall(b"\x16\x03\x01 this is TLS\r\n\r\n")
        assert received(wide).startswith(b"HTTP/1.1 400")
        assert b"@Message.ExtendedInfo" in received(noise)
        assert received(slow) == b""
    assert live.request("GET", "/redfish/v1/")[0] == 200


def test_a_body_that_comes_too_slowly_is_given_up(live: LiveService) -> None:
    with live.connect() as slow:
        head = f"POST {SYSTEMS} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {live.token}\r\nContent-Type: application/json\r\n"
        slow.sendall(head.encode() + b'Content-Length: 100\r\n\r\n{"Na')
        answer = received(slow)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"OperationTimeout" in answer
    assert live.request("GET", SYSTEMS)[1]["Members@odata.count"] == 2


def test_a_body_that_is_too_large_is_not_read(live: LiveService) -> None:
    with live.connect() as large:
        head = f"POST {SYSTEMS} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {live.token}\r\nContent-Type: application/json\r\n"
        large.sendall(head.encode() + b"Content-Length: 9999999999\r\n\r\n{")
        assert received(large).startswith(b"HTTP/1.1 413")
    with live.connect() as chunked:
        chunked.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        block = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        with contextlib.suppress(OSError):
            for _ in range(200):
                chunked.sendall(block)
        assert received(chunked)[:12] in (b"HTTP/1.1 413", b""), "the service took 13 MB"


def test_a_client_that_reads_nothing_is_cut_off(live: LiveService) -> None:
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect(("127.0.0.1", live.port))
        request = f"GET /redfish/v1/?$expand=*($levels=3) HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {live.token}\r\n\r\n"
        lazy.sendall(3 * request.encode())
        watch = select.poll()
        watch.register(lazy, select.POLLHUP | select.POLLERR)
        assert watch.poll(1000 * PATIENCE), "the service still waits"
    assert live.request("GET", "/redfish/v1/")[0] == 200
