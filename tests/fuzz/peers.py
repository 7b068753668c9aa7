"""What a listener and a client of `measure network` read: whole sessions as one side sends them, line by line."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from lanewise.control.handshake import Handshake, same
from lanewise.control.stream import (
    LONGEST_GREETING,
    DataHello,
    Hello,
    Message,
    MessageStream,
    Proof,
    Refusal,
    encode,
    parse_hello,
)  # fmt: skip
from lanewise.probes.network.messages import (
    SERVICE,
    Acknowledgement,
    ByteCounters,
    DataEnds,
    EndpointFacts,
    Marks,
    NetworkMeasurement,
    Readiness,
    Request,
)  # fmt: skip

# Each kind of line that a side reads, by the name that stands before it in an input of the family.
PEER_KINDS = {
    kind.__name__.encode(): kind
    for kind in (Proof, DataHello, Request, Acknowledgement, DataEnds, EndpointFacts, Readiness, Marks)
}
LISTENER = Handshake("a secret of the fuzzer", SERVICE.name, "c" * 64, "1" * 64)


def read_session(data: bytes) -> object:
    """What one side of a network measurement sends, read from a socket as the other side reads it.

    `KIND LINE` by line; the first is the greeting, then each line has the kind that its reader expects there.
    """
    pieces = [line.partition(b" ") for line in data.split(b"\n")]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        with contextlib.suppress(BlockingIOError):  # more than the socket holds: cut off, as by a peer that left
            theirs.send(b"\n".join(text for _, _, text in pieces))
        theirs.shutdown(socket.SHUT_WR)
        stream = MessageStream(ours, "f")
        read: list[object] = [parse_hello(stream.line(1.0, LONGEST_GREETING), "f", SERVICE)]
        for kind, _, _ in pieces[1:]:
            read.append(_used(stream.receive(PEER_KINDS.get(kind, Request), 1.0)))
    return read


def _used(message: Message) -> object:
    """What a reader makes of a message first."""
    if isinstance(message, Proof):
        return same(message.proof, LISTENER.client_proof), same(message.proof, LISTENER.listener_proof)
    if isinstance(message, DataHello):
        return same(message.data, LISTENER.data_token("n" * 64, message.index))
    if isinstance(message, Request) and message.cell is not None:
        return message.cell.directions, message.cell.memory, message.cell.counted_at_sender
    return encode(message)


def sessions() -> Iterator[bytes]:
    """A client's lines and a listener's, of TCP and of verbs, and one that refuses."""
    tcp = NetworkMeasurement("tcp", "bandwidth", 1 << 20, 4, "both")
    verbs = NetworkMeasurement("verbs", "latency", 64, 1, operation="send", depth=1, events=True)
    address: dict[str, int | str | list[int]] = {"gid": "fe80::1", "lid": 1, "qpns": [17, 18], "rkey": 2**32 - 1}
    marks = Marks(marks=[ByteCounters(seconds=1.5, bytes=[10**12, 0])])
    greeting, proof = Hello(nonce="c" * 64, service=SERVICE.name), Proof(proof=LISTENER.client_proof)
    sessions: tuple[tuple[Message, ...], ...] = (
        (greeting, proof, Request(do="open", cell=tcp), Request(do="begin", all=True), Request(do="close")),
        (greeting, proof, Request(do="open", cell=verbs), Request(do="ready", ends=[address])),
        (Hello(nonce="1" * 64, service=SERVICE.name), Proof(proof=LISTENER.listener_proof),
         DataEnds(nonce="e" * 64, ends=[address]), EndpointFacts(about=[{"node": "0"}]), Acknowledgement(),
         Readiness(reached=True), marks),
        (greeting, DataHello(data=LISTENER.data_token("n" * 64, 3), index=3)),
        (greeting, Refusal(error="no memory", hint="free some", crowded=True)),
    )  # fmt: skip
    for session in sessions:
        yield b"".join(type(message).__name__.encode() + b" " + encode(message) for message in session)[:-1]
