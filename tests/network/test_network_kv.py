"""Blocks between two processes: over sockets to a listener of this process, over verbs in a device within one."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import fake_verbs
import pytest
from control.peers import SECRET
from network import peers

import lanewise
from lanewise import _native
from lanewise.errors import CannotMeasure, InputError, MissingDependency, UnknownName
from lanewise.report.text.blocks import render_measured_blocks
from lanewise.results.compare import compare_runs
from lanewise.results.sample import summarise

BLOCKS = "8 x 64 KiB"
PAIR = """\
lanewise: 1
system: pair
hosts: [host0, host1]
devices:
  a: {cpu: epyc-7742, host: host0}
  b: {cpu: epyc-7742, host: host1}
  "nic[0-1]": {nic: connectx-6-hdr}
links:
  - {from: [a, b], to: "nic[0-1]", pairs: true, pcie: gen4 x16}
  - {from: nic0, to: nic1, network: hdr}
"""


def test_blocks_over_sockets_are_the_rows_that_are_predicted(tmp_path, monkeypatch):
    monkeypatch.setenv("LANEWISE_SECRET", SECRET)
    with peers.server() as listener:
        host, port = listener.address
        samples = list(lanewise.measure_kv(f"{host}:{port}", BLOCKS, "host", over="tcp", runs=1, peak_bytes=1 << 20))
    rows = summarise(samples)
    rates = {row.settings["bytes"]: row for row in rows if row.metric == "goodput"}
    assert list(rates) == [1 << 20, 64, 64 << 10]
    assert {row.how["data"] for row in rows} == {"verified"}
    assert [row.how.get("limit") in ("path", "software") for row in rates.values()] == [False, False, True]
    times = {row.metric: row.value or 0.0 for row in rows if row.settings["bytes"] == 64 << 10}
    assert set(times) == {"goodput", "block_time", "post_time", "completion_time", "share"}
    assert 0 < times["post_time"] + times["completion_time"] <= times["block_time"]
    assert "us to post" in render_measured_blocks(rows)

    description = tmp_path / "pair.yaml"
    description.write_text(PAIR)
    predicted = lanewise.block_rows(lanewise.predict_blocks(description, "host0->host1", BLOCKS, "tcp"))
    pairs = compare_runs(
        lanewise.as_measured_run((), rows=predicted), lanewise.as_measured_run((), rows=rows)
    ).pairs  # fmt: skip
    assert {(pair.left.metric, pair.right.settings["bytes"]) for pair in pairs} == {
        ("goodput", 64 << 10), ("block_time", 64 << 10),
    }  # fmt: skip


def socket_ends(count: int, size: int, seed: int) -> tuple[list[socket.socket], _native.TcpBlocks, _native.TcpBlocks]:
    """Two sockets, the sender over the first, the receiver over the second, which expects the pattern of `seed`."""
    pair = list(socket.socketpair())
    ends = [_native.EndSetup(size, -1, [], each) for each in (1, seed)]
    sender = _native.TcpBlocks(pair[0].fileno(), True, ends[0], count, 64)
    return pair, sender, _native.TcpBlocks(pair[1].fileno(), False, ends[1], count, 64)


@pytest.mark.parametrize(("count", "size"), [(1, 1), (1500, 3), (70, 5000)])
def test_every_block_arrives_at_its_place_and_the_end_is_seen(count, size):
    pair, sender, receiver = socket_ends(count, size, seed=1)
    with closing(pair[0]), closing(pair[1]):
        for _ in range(2):
            times = sender.transfer()
            assert 0 <= times.posting + times.completing <= times.seconds
        while not receiver.ready():
            pass
        receiver.check()
        sender.stop()
        while not receiver.done():
            pass


def test_wrong_bytes_and_a_receiver_that_leaves_are_noticed():
    pair, sender, receiver = socket_ends(3, 100, seed=2)
    with closing(pair[0]), closing(pair[1]):
        sender.transfer()
        with pytest.raises(_native.ProbeFailure, match="data arrived changed: block 0, byte"):
            receiver.check()
        pair[1].shutdown(socket.SHUT_RDWR)
        with pytest.raises(_native.ProbeFailure, match=r"ended a transfer early|a connection broke"):
            sender.transfer()
        del sender, receiver


class NixlAgent:
    """An agent of NIXL within this process: what it is told to write is copied when a transfer is posted."""

    spoil = 0  # added to the first byte of each block

    def __init__(self, name: str, config: object) -> None:
        self.name = name

    def register_memory(self, regions: list[tuple[int, int, int, str]], kind: str) -> object:
        return regions

    def get_agent_metadata(self) -> bytes:
        return self.name.encode()

    def add_remote_agent(self, metadata: bytes) -> str:
        return metadata.decode()

    def prep_xfer_dlist(self, agent: str, blocks: Any, kind: str) -> SimpleNamespace:
        return SimpleNamespace(blocks=blocks, release=lambda: None)

    def make_prepped_xfer(self, operation: str, near: Any, own: Any, far: Any, theirs: Any) -> SimpleNamespace:
        pairs = list(zip(near.blocks[own].tolist(), far.blocks[theirs].tolist(), strict=True))
        return SimpleNamespace(pairs=pairs, release=lambda: None)

    def transfer(self, handle: SimpleNamespace) -> str:
        for (source, size, _), (target, _, _) in handle.pairs:
            ctypes.memmove(target, source, size)
            first = ctypes.c_uint8.from_address(target)
            first.value = (first.value + self.spoil) % 256
        return "PROC"

    def check_xfer_state(self, handle: SimpleNamespace) -> str:
        return "DONE"

    def deregister_memory(self, registered: object) -> None:
        pass


@pytest.fixture
def nixl(monkeypatch: pytest.MonkeyPatch) -> type[NixlAgent]:
    """A NIXL that is installed."""
    agent = type("Agent", (NixlAgent,), {})
    api = SimpleNamespace(nixl_agent=agent, nixl_agent_config=lambda backends: backends)
    monkeypatch.setitem(sys.modules, "nixl", SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, "nixl._api", api)
    monkeypatch.setenv("LANEWISE_SECRET", SECRET)
    return agent


def test_blocks_over_nixl_go_in_one_transfer_and_are_compared(nixl):
    with peers.server() as listener:
        host, port = listener.address
        samples = list(lanewise.measure_kv(f"{host}:{port}", BLOCKS, "host", over="nixl", runs=1, peak_bytes=1 << 20))
    assert {sample.scenario for sample in samples} <= {"blocks by nixl-ucx", "blocks by nixl-rc"}
    assert [sample.settings["bytes"] for sample in samples if sample.metric == "goodput"] == [1 << 20, 64, 64 << 10]
    assert samples[0].how["engine"].endswith(", UCX")
    nixl.spoil = 1
    with peers.server() as listener:
        host, port = listener.address
        with pytest.raises(CannotMeasure, match="data arrived changed: block 0"):
            list(lanewise.measure_kv(f"{host}:{port}", BLOCKS, "host", over="nixl", runs=1, peak_bytes=1 << 20))


def test_without_nixl_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "nixl", None)
    with pytest.raises(MissingDependency, match="NIXL cannot be used") as missing:
        list(lanewise.measure_kv("loopback", BLOCKS, "host", over="nixl"))
    assert missing.value.hint == "pip install nixl, on both sides"


VERBS = """
import json, sys
from lanewise import _native

def end(is_source, seed=7, depth=16):
    setup = _native.VerbsSetup(_native.EndSetup(3000, -1, [], seed))
    setup.device, setup.gid_index, setup.is_source, setup.depth = "fake0", 0, is_source, depth
    return _native.VerbsBlocks(setup, 100, 8)

def pair(**target):
    source, sink = end(True), end(False, **target)
    source.connect(sink.address())
    sink.connect(source.address())
    times = source.transfer()
    assert 0 < times.posting + times.completing <= times.seconds
    return source, sink

source, sink = pair()
sink.check()
source.transfer()
sink.check()
try:
    wrong = pair(seed=8)
    wrong[1].check()
except _native.ProbeFailure as failure:
    print(json.dumps(failure.args))
source.connect(sink.address() | {"key": 1})
try:
    source.transfer()
except _native.ProbeFailure as failure:
    print(json.dumps(failure.args))
"""


def test_blocks_over_verbs_are_posted_in_lists_and_compared():
    paths = {"LD_LIBRARY_PATH": str(fake_verbs.build())}
    done = subprocess.run(
        [sys.executable, "-c", VERBS], capture_output=True, text=True, check=False, env={**os.environ, **paths}
    )
    assert done.returncode == 0, done.stderr
    wrong, refused = [json.loads(line) for line in done.stdout.splitlines()]
    assert wrong[0].startswith("data arrived changed: block 0")
    assert refused[0].startswith("a work request failed: ")


@pytest.mark.parametrize(
    ("options", "error", "cause"),
    [
        ({"over": "carrier pigeon"}, UnknownName, "carrier pigeon"),
        ({"source": "gpu0"}, InputError, "gpu0's memory is not sent by --over tcp"),
        ({"software": ("kernel",)}, InputError, "have no effect with --over tcp"),
        ({"threads": 4}, InputError, "have no effect with --over tcp"),
    ],
)
def test_what_cannot_go_over_a_network_is_refused_with_a_hint(options, error, cause):
    with pytest.raises(error, match=cause) as refused:
        list(lanewise.measure_kv("loopback", BLOCKS, **{"source": "host", "over": "tcp", **options}))
    assert refused.value.hint


def test_a_listener_refuses_blocks_that_it_cannot_take(monkeypatch):
    monkeypatch.setenv("LANEWISE_SECRET", SECRET)
    with pytest.raises(InputError, match="B in all buffers cannot be"):
        list(lanewise.measure_kv("127.0.0.1:1", "1000000 x 1 MiB", "host", over="tcp"))
