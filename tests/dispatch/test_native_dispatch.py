"""Both sides of the native dispatch in one process: verified payloads over every transport, through a real system."""

import socket
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from lanewise import _native as native
from lanewise.options.loadtest import BatchingOptions

SLOTS, SAMPLES, BYTES = 64, 32, 20_000


@dataclass(frozen=True)
class Shape:
    slots: int = SLOTS
    sample_bytes: int = BYTES
    answer_bytes: int = 8


def tcp_pair() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        return client.detach(), listener.accept()[0].detach()


def connect(transport: str, frontend: native.NetworkSystem, session: native.NodeSession, slots: native.SharedMemory,
            index: int) -> None:  # fmt: skip
    shape = Shape()
    if transport == "shm":
        memory = native.SharedMemory(native.shm_bytes(shape))
        session.add_shm(shape, memory, slots, index * SLOTS)
        frontend.add_shm(0, shape, native.SharedMemory.map(memory.fd, memory.size),
                         native.SharedMemory.map(slots.fd, slots.size), index * SLOTS)  # fmt: skip
    else:
        near, far = tcp_pair()
        session.add_tcp(shape, far, slots, index * SLOTS)
        frontend.add_tcp(0, shape, near, zero_copy=transport == "tcp without copies")


@contextmanager
def one_node(transport: str, connections: int = 2, batch: int = 8) -> Iterator[native.NetworkSystem]:
    """A Frontend and a node whose system batches queries and answers with the sum of what reached the device."""
    slots = native.SharedMemory(connections * SLOTS * ((BYTES + 15) // 16 * 16))
    options = BatchingOptions(batch=batch, timeout=0.0005, service=(0.0, 0.0), sample_bytes=BYTES)
    system = native.BatchingSystem(options, [(-1, -1, None)], connections * SLOTS, None, True, 0, "", slots)
    session = native.NodeSession(system, "node0")
    frontend = native.NetworkSystem(SAMPLES, SAMPLES, BYTES)
    for index in range(connections):
        connect(transport, frontend, session, slots, index)
    frontend.load(list(range(SAMPLES)))
    try:
        yield frontend
    finally:
        session.close()


@pytest.mark.parametrize("transport", ["shm", "tcp", "tcp without copies"])
def test_a_batching_node_answers_with_the_sums_of_the_samples_that_were_sent(transport: str) -> None:
    sums = [zlib.crc32(native.synthetic_sample(i, BYTES)).to_bytes(4, "little") for i in range(SAMPLES)]
    with one_node(transport) as frontend:
        assert frontend.name == "Network SUT: node0"
        samples = np.random.default_rng(1).integers(0, SAMPLES, 1000).astype(np.uint64)
        result = native.replay(frontend, np.zeros(1000), samples, True, True, True)
        assert result["failure"] == ("", "")
        assert list(result["answers"]) == [1] * 1000
        assert result["data"] == [sums[sample] for sample in samples]
        stages = frontend.latencies()
        assert stages["total"]["mean"] >= stages["node"]["mean"]
        counters = frontend.counters()
        assert sum(each["bytes_out"] for each in counters) == 1000 * BYTES
        assert all(each["outstanding"] == each["lost"] == each["stale"] == 0 for each in counters)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_no_more_transactions_are_in_flight_than_slots(transport: str) -> None:
    with one_node(transport, connections=1) as frontend:
        native.replay(frontend, np.zeros(2000), np.zeros(2000, np.uint64), True, True, False)
        assert frontend.stalled > 0.0  # 2,000 at once have to wait for 64 slots


def test_a_system_that_fails_ends_the_run_with_its_own_words() -> None:
    def broken(batch: object, samples: object) -> None:
        raise ValueError("no such layer")

    slots = native.SharedMemory(SLOTS * ((BYTES + 15) // 16 * 16))
    system = native.BatchingSystem(
        BatchingOptions(sample_bytes=BYTES), [(-1, -1, broken)], SLOTS, None, False, 0, "", slots
    )
    session = native.NodeSession(system, "node0")
    frontend = native.NetworkSystem(SAMPLES, SAMPLES, BYTES)
    connect("shm", frontend, session, slots, 0)
    frontend.load([0])
    result = native.replay(frontend, np.zeros(50), np.zeros(50, np.uint64), True, True, True)
    assert set(result["answers"]) == {1}
    assert set(result["data"]) == {b""}
    assert "no such layer" in result["failure"][0]
    session.close()
