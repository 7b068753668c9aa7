"""Seconds until a friend's session is accepted by a listener that 500 hostile connections hold on to.

    python benchmarks/hostile_listener.py [-o benchmarks/runs/DATE-hostile-listener.json] [--connections 500]

Each round starts `lanewise measure network --listen`, opens the hostile connections (silent, half a line, garbage, half
handshakes, wrong proofs, overlong lines, lines of the first version, in equal parts; whoever is closed comes back at
once, from another process) and then lets one friend through the handshake, without data. The same without anybody
hostile stands beside it.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kept

from lanewise.control.stream import PROTOCOL
from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes.network.messages import SERVICE
from lanewise.probes.network.session import connect_session

LANEWISE = str(Path(sys.executable).with_name("lanewise"))
ROUNDS, TARGET_S = 5, 2.0
SECRET = "the secret of a benchmark"
HELLO = json.dumps({"lanewise": PROTOCOL, "nonce": "0" * 64, "service": SERVICE.name}).encode() + b"\n"
HOSTILE = (
    b"", b'{"lanew', b"GET / HTTP/1.1\r\n\r\n", HELLO, HELLO + b'{"proof": "' + b"0" * 64 + b'"}\n', b"[" * 100_000,
    b'{"lanewise": 1}\n{"do": "open"}\n',
)  # fmt: skip


@contextmanager
def listener() -> Iterator[tuple[str, int]]:
    process = subprocess.Popen(
        [LANEWISE, "measure", "network", "--listen", "127.0.0.1:0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "LANEWISE_SECRET": SECRET},
    )  # fmt: skip
    assert process.stderr is not None
    found = re.match(r"listening on (\S+) port (\d+)", process.stderr.readline())
    assert found
    try:
        yield found[1], int(found[2])
    finally:
        process.terminate()
        process.communicate(timeout=30)


def attack(address: tuple[str, int], count: int) -> None:
    """Hold that many hostile connections, come back at once where one is closed, say on stdout when all have come."""
    selector = selectors.DefaultSelector()

    def come(kind: int) -> None:
        try:
            connection = socket.create_connection(address)
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ, kind)
            connection.send(HOSTILE[kind])
        except OSError:
            return

    for i in range(count):
        come(i % len(HOSTILE))
    print("there", flush=True)
    while True:
        while len(selector.get_map()) < count:
            come(len(selector.get_map()) % len(HOSTILE))
        for key, _ in selector.select():
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            try:
                over = not connection.recv(4096)
            except OSError:
                over = True
            if over:
                selector.unregister(connection)
                connection.close()
                come(key.data)


@contextmanager
def attackers(address: tuple[str, int], count: int) -> Iterator[None]:
    if count == 0:
        yield
        return
    command = [sys.executable, __file__, "attack", address[0], str(address[1]), str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "there\n"
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate(timeout=30)


def seconds_to_a_session(count: int) -> float:
    with listener() as address, attackers(address, count):
        begin = time.perf_counter()
        with connect_session(address, NetworkSideOptions(), SECRET):
            return time.perf_counter() - begin


def page(made: kept.Record) -> str:
    """All values as a table."""
    lines = kept.heading("A listener under hostile connections", made)
    lines += [
        f"Target: a friend's session within {TARGET_S:g} s.",
        "",
        "| hostile | median s | largest s | every value |",
    ]
    lines.append("|---|---|---|---|")
    for row in made["rows"]:
        every = ", ".join(f"{value:.4f}" for value in row["seconds"])
        lines.append(f"| {row['hostile']} | {row['median']:.4f} | {max(row['seconds']):.4f} | {every} |")
    return "\n".join([*lines, "", __doc__.split("\n\n")[2].strip() if __doc__ else "", ""])


def main() -> None:
    """Measure both and keep them."""
    parser = kept.options(__doc__, "hostile-listener")
    parser.add_argument("--connections", type=int, default=500)
    asked = parser.parse_args()
    made = kept.begin(asked) | {"rows": []}
    for hostile in (0, asked.connections):
        values = [seconds_to_a_session(hostile) for _ in range(ROUNDS)]
        made["rows"].append({"hostile": hostile, "seconds": values, "median": statistics.median(values)})
    kept.keep(made, page, asked.out)


if __name__ == "__main__":
    if sys.argv[1:2] == ["attack"]:
        attack((sys.argv[2], int(sys.argv[3])), int(sys.argv[4]))
    else:
        main()
