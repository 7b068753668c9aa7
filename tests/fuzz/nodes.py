"""What a Frontend and a node read of each other once both are proven: messages of query dispatch."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise.control.rdma import RdmaPort
from lanewise.control.stream import Message, encode, parse
from lanewise.dispatch import messages
from lanewise.dispatch.frontend import FrontendNode
from lanewise.loadtest.datasets import Synthetic
from lanewise.loadtest.frontend_session import agreed, sample_spec
from lanewise.loadtest.frontend_statistics import combined

NODE_KINDS: dict[bytes, type[Message]] = {
    kind.__name__.encode(): kind
    for kind in (messages.NodeRequest, messages.NodeFacts, messages.OpenReply, messages.NodeStatistics)
}


class NoLink:
    """The address of a node that nobody is connected to."""

    address = "f:7000"


def read_message(data: bytes) -> object:
    """`KIND LINE` as its reader takes it, and what it makes of it first."""
    kind, _, line = data.partition(b" ")
    message = parse(NODE_KINDS.get(kind, messages.NodeRequest), line, "f")
    if isinstance(message, messages.NodeFacts):
        node = FrontendNode(0, NoLink(), message)  # type: ignore[arg-type]
        spec = sample_spec(agreed([node, node]))
        return Synthetic(spec, 1).sample(0) if spec.bytes < 1 << 16 else spec
    if isinstance(message, messages.NodeStatistics):
        return combined([message, message])
    return encode(message)


def node_messages() -> Iterator[bytes]:
    """One of each kind."""
    port = RdmaPort("mlx5_0", 1, 3, 20 * "0" + "ffff0a090001", "RoCE v2 IPv4", 1)
    host = messages.HostFacts(name="h", boot="b", memory=1 << 33, nodes=2, rdma=[port],
                              cards=[messages.NetworkCard(name="eth0", rate=10**11, node=1)])  # fmt: skip
    sample = messages.SampleForm(shape=[2, 8], dtype="int64", below=[30522, 2], bytes=128)
    times = {"p50": 0.001, "p99": 0.002, "mean": 0.0011}
    every: tuple[Message, ...] = (
        messages.NodeRequest(do="describe", dispatch=messages.DISPATCH),
        messages.NodeRequest(do="open", open=messages.OpenRequest(
            answer="checksums", transport="tcp", connections=4, slots=1024, sample_bytes=128)),
        messages.NodeFacts(name="a", host=host, devices=["gpu0"], batch=8, synthetic=False, sample=sample,
                           setup={"engine": "torch", "model": "bert"}, socket="lanewise-1"),
        messages.OpenReply(answer_bytes=8, checksum="crc32", nonce="e" * 64),
        messages.NodeStatistics(stages={"queue": times, "total": times}, sizes=[(1, 5), (8, 2)], bytes=2688,
                                answered=21, failed=0, stalled=0.0, copies=[("memcpy", {"batch": 0.001})]),
    )  # fmt: skip
    for message in every:
        yield type(message).__name__.encode() + b" " + encode(message)
