"""What an Accelerator node hears of those who come to its port, through the real reception and the real session.

Nothing may be opened for who has not proven the secret, and for who has no more memory than the node has to give.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any
from unittest import mock

from lanewise import _native as native
from lanewise.control import reception, session
from lanewise.control.handshake import Handshake
from lanewise.control.stream import DataHello, Hello, Message, Proof, encode
from lanewise.dispatch import node, shm
from lanewise.dispatch.messages import (
    DISPATCH,
    SERVICE,
    HostFacts,
    NodeFacts,
    NodeRequest,
    NodeStatistics,
    OpenRequest,
    SampleForm,
)  # fmt: skip

SECRET, NONCE, FREE = "a secret of the fuzzer", "1" * 64, 1 << 20
SAMPLE = 64  # bytes
FRONTEND = Handshake(SECRET, SERVICE.name, "c" * 64, NONCE)


class Systems:
    """A node's systems, which count what they were opened with."""

    gpu_memory = "off"

    def __init__(self) -> None:
        self.taken = 0

    def facts(self) -> NodeFacts:
        """What the node is."""
        host = HostFacts(name="h", boot="b", memory=FREE, nodes=1, cards=[], rdma=[])
        sample = SampleForm(shape=[SAMPLE], dtype="uint8", bytes=SAMPLE)
        return NodeFacts(name="a", host=host, devices=["cpu"], batch=8, synthetic=True, sample=sample, setup={})

    def answer_form(self, answer: str) -> tuple[int, Any]:
        """Eight bytes, of whatever kind."""
        return 8, "crc32"

    def gpu_slots(self, size: int) -> native.GpuMemory:
        """None here."""
        raise AssertionError

    def open(self, answer: str, slots: native.SlotMemory, count: int) -> node.SlotSystem:
        """A system without an engine."""
        assert isinstance(slots, native.SharedMemory)
        self.taken += slots.size
        statistics = NodeStatistics(stages={}, sizes=[], bytes=0, answered=0, failed=0, stalled=0.0, copies=[])
        return node.SlotSystem(native.ChecksumSystem(slots, SAMPLE), lambda: statistics)


@cache
def _listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def _nonce() -> str:
    return NONCE


def _free() -> int:
    return FREE


@contextlib.contextmanager
def _still() -> Iterator[None]:
    """Nobody waits for connections that do not come, and the node's number is known, so that proofs fit."""
    with (
        mock.patch.object(reception, "new_nonce", _nonce), mock.patch.object(session, "DATA_S", 0.0),
        mock.patch.object(shm, "JOIN_S", 0.0), mock.patch.object(node, "available_memory", _free),
    ):  # fmt: skip
        yield


def read_frontend(data: bytes) -> object:
    """Everything that one side sends to a node, in one piece; what the node says of it."""
    systems, said = Systems(), list[str]()
    linger = struct.pack("ii", 1, 0)  # no port is left waiting
    with _still(), socket.create_connection(_listener().getsockname()) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):  # more than the socket holds: cut off, as by a peer that left
            client.send(data)
        client.shutdown(socket.SHUT_WR)
        with reception.Reception(_listener(), SECRET, SERVICE, say=said.append) as door:
            arrivals = door.poll(1.0)
            while not arrivals and door.strangers:
                arrivals = door.poll(1.0)
        assert not systems.taken
        for arrival in arrivals:
            _serve(arrival, systems, said, data)
    assert systems.taken <= FREE / 2, f"{systems.taken} B were taken"
    return said


def _serve(arrival: object, systems: Systems, said: list[str], data: bytes) -> None:
    if isinstance(arrival, reception.DataConnection):
        arrival.connection.close()
        return
    assert isinstance(arrival, reception.ProvenClient)
    assert arrival.handshake.client_proof.encode() in data, "a stranger is let in"
    served = node.DispatchSession(arrival, systems)
    served._run(said.append, lambda: None)
    assert served.ended


def frontend_sessions() -> Iterator[bytes]:
    """Sessions over shared memory and TCP, one that asks for too much, one out of order, and of strangers."""
    greeting, proof = Hello(nonce="c" * 64, service=SERVICE.name), Proof(proof=FRONTEND.client_proof)
    describe, begin = NodeRequest(do="describe", dispatch=DISPATCH), NodeRequest(do="begin")

    def opening(transport: Any, connections: int, slots: int) -> NodeRequest:
        shape: dict[str, Any] = {"connections": connections, "slots": slots, "sample_bytes": SAMPLE}
        return NodeRequest(do="open", open=OpenRequest(answer="checksums", transport=transport, **shape))

    beat, statistics = NodeRequest(do="beat"), NodeRequest(do="statistics")
    every: tuple[tuple[Message, ...], ...] = (
        (greeting, proof, describe, opening("shm", 2, 16), beat, statistics, begin),
        (greeting, proof, describe, opening("tcp", 4, 64), statistics, beat, begin),
        (greeting, proof, describe, opening("tcp", 64, 65536), begin),
        (greeting, proof, begin, statistics),
        (greeting, Proof(proof="0" * 64), describe, opening("shm", 2, 16)),
        (greeting, describe, opening("shm", 2, 16)),
        (DataHello(data="d" * 64, index=3), describe),
    )  # fmt: skip
    for messages in every:
        yield b"".join(map(encode, messages))
