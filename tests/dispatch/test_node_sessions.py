"""Sessions of a node and of a Frontend in one process: limits, refusals, heartbeats by clocks that tests move."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("nodes run on Linux alone", allow_module_level=True)

from control.peers import HANGS, SECRET, Server, fake_listener, line_of

from lanewise import _native as native
from lanewise.control.client import connect
from lanewise.control.listener import open_listener, serve
from lanewise.control.stream import PeerLost
from lanewise.dispatch import host, messages, pulse
from lanewise.dispatch.frontend import Frontend
from lanewise.dispatch.frontend import connect as connect_frontend
from lanewise.dispatch.messages import DISPATCH, SERVICE, NodeFacts, NodeRequest, OpenReply, OpenRequest, SampleForm
from lanewise.dispatch.node import DispatchSession, SlotSystem
from lanewise.errors import CannotMeasure, Contradiction
from lanewise.options.loadtest import RunOptions

BYTES, SAMPLES = 300, 16
NO_STATISTICS = messages.NodeStatistics(stages={}, sizes=[], bytes=0, answered=0, failed=0, stalled=0.0, copies=[])
OPEN = OpenRequest(answer="checksums", transport="tcp", connections=1, slots=4, sample_bytes=BYTES)


class Sums:
    """A node without engines: the CRC-32 of each slot, at once."""

    name, gpu_memory = "a", "off"

    def facts(self) -> NodeFacts:
        sample = SampleForm(shape=[BYTES], dtype="uint8", bytes=BYTES)
        return NodeFacts(
            name=self.name, host=host.host_facts(), devices=["cpu"], batch=1, synthetic=True, sample=sample, setup={}
        )

    def answer_form(self, answer: str) -> tuple[int, Any]:
        return 8, "crc32"

    def gpu_slots(self, size: int) -> native.GpuMemory:
        raise AssertionError

    def open(self, answer: str, slots: native.SlotMemory, count: int) -> SlotSystem:
        assert isinstance(slots, native.SharedMemory)
        return SlotSystem(native.ChecksumSystem(slots, BYTES), lambda: NO_STATISTICS)


@contextlib.contextmanager
def node(clock: Callable[[], float] | None = None) -> Iterator[Server]:
    """A node in a thread; its sessions read `clock`."""
    session = {"clock": clock} if clock else {}
    run = lambda opened, **more: serve(  # noqa: E731
        opened, SECRET, SERVICE, lambda client: DispatchSession(client, Sums(), **session), **more
    )
    with open_listener("127.0.0.1:0", SERVICE) as opened:
        server = Server(opened, run)
        yield server
        server.stop()


class Clock:
    """Stands still, then goes on by a second with each look."""

    def __init__(self, runs: bool = False) -> None:
        self.runs = runs
        self.seconds = itertools.count()

    def __call__(self) -> float:
        return float(next(self.seconds)) if self.runs else 0.0


def options(address: tuple[str, int], **more: Any) -> RunOptions:
    return replace(RunOptions(nodes=(f"{address[0]}:{address[1]}",), connections=2, depth=8), **more)


@contextlib.contextmanager
def attached(ask: RunOptions, clock: Callable[[], float] | None = None) -> Iterator[Frontend]:
    """A Frontend whose sessions are open."""
    with connect_frontend(ask, SECRET, *([clock] if clock else [])) as frontend:
        frontend.attach(native.NetworkSystem(SAMPLES, SAMPLES, BYTES), BYTES, "checksums")
        yield frontend


def answered(frontend: Frontend) -> list[bytes]:
    assert frontend.system is not None
    frontend.system.load(list(range(SAMPLES)))
    samples = np.arange(SAMPLES, dtype=np.uint64)
    result = native.replay(frontend.system, np.zeros(SAMPLES), samples, True, True, True)
    assert result["failure"] == ("", "")
    return list(result["data"])


@pytest.mark.parametrize("transport", ["auto", "shm", "tcp"])
def test_answers_come_back_over_every_transport(transport: str) -> None:
    with node() as server, attached(options(server.address, transport=transport)) as frontend:
        assert frontend.nodes[0].transport == ("tcp" if transport == "tcp" else "shm")
        sums = [zlib.crc32(native.synthetic_sample(i, BYTES)).to_bytes(4, "little") for i in range(SAMPLES)]
        assert answered(frontend) == sums


def test_auto_is_tcp_where_the_nodes_socket_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.dispatch.frontend.reach", lambda name: None)
    with node() as server:
        with attached(options(server.address)) as frontend:
            assert frontend.nodes[0].transport == "tcp"
        with pytest.raises(CannotMeasure, match="shares no memory"), attached(options(server.address, transport="shm")):
            pass


def test_another_version_hears_both_versions() -> None:
    with node() as server, connect(server.address, SECRET, SERVICE) as control:
        with pytest.raises(CannotMeasure, match=f"this node speaks version {DISPATCH} .* the Frontend {DISPATCH + 1}"):
            control.stream.request(NodeRequest(do="describe", dispatch=DISPATCH + 1), NodeFacts)
        with pytest.raises(PeerLost):
            control.stream.line(HANGS, 100)


def test_samples_of_another_size_are_refused_with_both_sizes() -> None:
    with node() as server, connect(server.address, SECRET, SERVICE) as control:
        wrong = OPEN.model_copy(update={"sample_bytes": 301})
        with pytest.raises(CannotMeasure, match="node a takes samples of 300 B, the Frontend sends 301 B"):
            control.stream.request(NodeRequest(do="open", open=wrong), OpenReply)
    with (
        node() as server,
        connect_frontend(options(server.address), SECRET) as frontend,
        pytest.raises(Contradiction, match=r"samples of 300 B, the Frontend sends 301 B"),
    ):
        frontend.attach(native.NetworkSystem(1, 1, 301), 301, "")


@pytest.mark.parametrize(
    ("ports", "said"), [([63], "this node has no such RDMA port"), ([], "verbs need an RDMA port for each connection")]
)
def test_ports_that_a_node_does_not_have_end_the_session_and_the_next_is_served(ports: list[int], said: str) -> None:
    wrong = OPEN.model_copy(update={"transport": "verbs", "ports": ports})
    with node() as server:
        with connect(server.address, SECRET, SERVICE) as control, pytest.raises(CannotMeasure, match=said):
            control.stream.request(NodeRequest(do="open", open=wrong), OpenReply)
        with attached(options(server.address)) as frontend:
            assert len(answered(frontend)) == SAMPLES


def test_memory_is_checked_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.dispatch.node.available_memory", lambda: 1 << 20)
    monkeypatch.setattr(native, "SharedMemory", lambda *_: pytest.fail("memory was taken"))
    with node() as server, connect(server.address, SECRET, SERVICE) as control:
        much = OPEN.model_copy(update={"connections": 64, "slots": 65536})
        with pytest.raises(CannotMeasure, match=r"GB for queries in flight, 0.00105 GB are free"):
            control.stream.request(NodeRequest(do="open", open=much), OpenReply)


def test_depth_is_what_a_quarter_of_the_nodes_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "available_memory", lambda root: 4 * 2 * 304 * 100)
    with node() as server, connect_frontend(options(server.address, depth=0), SECRET) as frontend:
        assert frontend.depth(frontend.nodes[0]) == 64  # 100 would fit


@pytest.mark.parametrize(
    "lines",
    [
        [NodeRequest(do="begin")],
        [NodeRequest(do="statistics")],
        [NodeRequest(do="open")],
        [NodeRequest(do="open", open=OPEN), NodeRequest(do="open", open=OPEN)],
    ],
    ids=["begins first", "asks first", "opens nothing", "opens twice"],
)
def test_a_request_out_of_order_ends_the_session_and_the_next_is_served(lines: list[NodeRequest]) -> None:
    with node() as server:
        with connect(server.address, SECRET, SERVICE) as control:
            for line in lines:
                control.stream.send(line)
            for _ in lines[1:]:
                control.stream.receive(OpenReply, HANGS)
            with pytest.raises(CannotMeasure, match=r"says: (nothing is open|a session is opened once)"):
                control.stream.receive(OpenReply, HANGS)
        with attached(options(server.address)) as frontend:
            assert len(answered(frontend)) == SAMPLES


def test_what_a_client_with_the_secret_says_without_sense_is_told_and_ends_its_session_alone() -> None:
    rubbish = [b"\0\n", b"{}\n", b'{"do": "fly"}\n', b'{"do": "open", "open": {"slots": 1e99}}\n', b"[" * 70000]
    with node() as server:
        for line in rubbish:
            with connect(server.address, SECRET, SERVICE) as control:
                control.stream.connection.sendall(line)
                with pytest.raises(CannotMeasure):
                    control.stream.receive(OpenReply, HANGS)
        with attached(options(server.address)) as frontend:
            assert len(answered(frontend)) == SAMPLES


def test_silence_is_counted_in_looks_so_that_a_machine_that_stood_still_loses_nobody() -> None:
    now = [0.0]
    beat = pulse.Pulse(lambda: now[0])
    now[0] = 1000.0  # the machine slept
    assert not beat.look()
    beat.heard()
    for _ in range(5):
        now[0] += pulse.INTERVAL_S
        assert not beat.look()
    now[0] += pulse.INTERVAL_S
    assert beat.look()


def test_a_silent_frontend_is_left_by_the_node() -> None:
    with node(Clock(True)) as server:
        with contextlib.suppress(PeerLost), connect(server.address, SECRET, SERVICE) as control:
            control.stream.line(HANGS, 100)  # its end
        while len(server.said) < 2:
            threading.Event().wait(0.01)
    assert server.said[1] == "client 127.0.0.1 was silent for 5 s after 0 queries"


def test_a_silent_node_is_lost() -> None:
    facts = json.loads(Sums().facts().model_dump_json(exclude_none=True))

    def mute(request: dict[str, Any]) -> bytes:
        """A node that describes itself and then says nothing more."""
        if request["do"] != "describe":
            return b""
        return line_of({**facts, "socket": "none"})

    clock = Clock()
    with (
        fake_listener(mute, secret=SECRET, service=SERVICE) as address,
        connect_frontend(options(address), SECRET, clock) as frontend,
    ):
        link = frontend.nodes[0].link
        clock.runs = True
        while not link.reason:
            threading.Event().wait(0.01)
        assert link.reason == "it was silent for 5 s"
        with pytest.raises(PeerLost, match=r"node .* was lost: it was silent for 5 s"):
            link.describe()


def test_words_of_a_node_reach_the_terminal_without_control_characters() -> None:
    facts = json.loads(Sums().facts().model_dump_json(exclude_none=True))
    facts["setup"] = {"model": "\033[2Jresnet\n50"}

    def answer(request: dict[str, Any]) -> bytes:
        return line_of({"beat": True} if request["do"] == "beat" else facts)

    with (
        fake_listener(answer, secret=SECRET, service=SERVICE) as address,
        connect_frontend(options(address), SECRET, lambda: 0.0) as frontend,
    ):
        assert frontend.nodes[0].facts.setup["model"] == "?[2Jresnet?50"


def test_a_process_of_another_user_gets_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.dispatch.shm.os.geteuid", lambda: 12345)
    with node() as server, attached(options(server.address)) as frontend:
        assert frontend.nodes[0].transport == "tcp"


def test_a_stranger_at_the_descriptor_socket_is_sent_away() -> None:
    with node() as server, connect_frontend(options(server.address), SECRET) as frontend:
        name = frontend.nodes[0].facts.socket
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(f"\0{name}")
            stranger.sendall(b"0" * 64)
            frontend.attach(native.NetworkSystem(SAMPLES, SAMPLES, BYTES), BYTES, "checksums")
            assert stranger.recv(1) == b""
        assert len(answered(frontend)) == SAMPLES
