"""A Frontend and its nodes over RDMA, each a process: what tests and benchmarks run in a guest that has rxe0.

python verbs_guest.py '{"nodes": 2, "connections": 4, "queries": 1000, ...}' prints a line of JSON for each argument,
behind one of refused addresses. Addresses of queue pairs travel over pipes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading
import time
import zlib
from dataclasses import asdict, dataclass
from typing import IO, Any

import numpy as np

from lanewise import _native as native

SAMPLES = 32


@dataclass(frozen=True)
class GuestRun:
    nodes: int = 1
    connections: int = 4  # queue pairs to each node
    slots: int = 64  # of each
    sample_bytes: int = 8192
    answer_bytes: int = 8
    queries: int = 1000
    qps: float = 0.0  # 0: all at once
    kill: bool = False  # the first node, amid the run
    device: str = "rxe0"
    gid_index: int = 1


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def tell(stream: IO[str] | None, value: Any) -> None:
    assert stream is not None
    print(json.dumps(value), file=stream, flush=True)


def hear(stream: IO[str] | None) -> Any:
    assert stream is not None
    return json.loads(stream.readline())


def serve() -> None:
    """A node: every answer is the CRC-32 of what lies in the query's slot."""
    run = GuestRun(**hear(sys.stdin))
    slots = native.SharedMemory(run.connections * run.slots * ((run.sample_bytes + 15) // 16 * 16))
    system = native.ChecksumSystem(slots, run.sample_bytes)
    session = native.NodeSession(system, "node")
    endpoints = [
        native.VerbsEndpoint.of_node(run, slots, index * run.slots, run.device, gid_index=run.gid_index)
        for index in range(run.connections)
    ]
    tell(sys.stdout, [endpoint.address() for endpoint in endpoints])
    for endpoint, peer in zip(endpoints, hear(sys.stdin), strict=True):
        endpoint.connect(peer)
        session.add_verbs(endpoint)
    tell(sys.stdout, "connected")
    hear(sys.stdin)
    before = cpu_seconds()
    tell(sys.stdout, "begun")
    hear(sys.stdin)
    counters = {name: getattr(session, name) for name in ("received", "answered", "doorbells", "wakeups", "reason")}
    tell(sys.stdout, {**counters, "cpu_seconds": cpu_seconds() - before})
    session.close()


def connect(frontend: native.NetworkSystem, node: int, run: GuestRun) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tell(process.stdin, asdict(run))
    endpoints = [native.VerbsEndpoint.of_frontend(run, run.device, gid_index=run.gid_index)
                 for _ in range(run.connections)]  # fmt: skip
    peers = hear(process.stdout)
    tell(process.stdin, [endpoint.address() for endpoint in endpoints])
    for endpoint, peer in zip(endpoints, peers, strict=True):
        endpoint.connect(peer)
    assert hear(process.stdout) == "connected"
    for endpoint in endpoints:
        frontend.add_verbs(node, endpoint)
    return process


def kill_amid(frontend: native.NetworkSystem, process: subprocess.Popen[str]) -> None:
    while frontend.counters()[0]["completed"] < 20:
        time.sleep(0.001)
    process.kill()
    process.wait()
    frontend.lose(0, "killed")  # as the control channel would: of queries that had arrived the fabric gives no sign


def issue(frontend: native.NetworkSystem, run: GuestRun) -> dict[str, Any]:
    """How many queries came back corrupt, lost or twice."""
    sums = [zlib.crc32(native.synthetic_sample(i, run.sample_bytes)).to_bytes(4, "little") for i in range(SAMPLES)]
    samples = np.random.default_rng(1).integers(0, SAMPLES, run.queries).astype(np.uint64)
    times = np.arange(run.queries) / run.qps if run.qps > 0 else np.zeros(run.queries)
    result = native.replay(frontend, times, samples, True, True, True, 300.0)
    answers = list(zip(result["data"], samples, strict=True))
    return {
        "failure": result["failure"],
        "answered_once": int(np.count_nonzero(np.asarray(result["answers"]) == 1)),
        "empty": sum(data == b"" for data, _ in answers),
        "corrupt": sum(data not in (b"", sums[sample]) for data, sample in answers),
    }


def run_frontend(run: GuestRun) -> dict[str, Any]:
    """The row of one run."""
    frontend = native.NetworkSystem(SAMPLES, SAMPLES, run.sample_bytes)
    frontend.load(list(range(SAMPLES)))
    nodes = [connect(frontend, node, run) for node in range(run.nodes)]
    row: dict[str, Any] = {**asdict(run), "name": frontend.name}
    for process in nodes:
        tell(process.stdin, "begin")
        assert hear(process.stdout) == "begun"
    if run.kill:
        threading.Thread(target=kill_amid, args=(frontend, nodes[0])).start()
    cpu, began = cpu_seconds(), time.monotonic()
    row |= issue(frontend, run)
    row |= {"seconds": time.monotonic() - began, "cpu_seconds": cpu_seconds() - cpu, "frontend": frontend.counters()}
    row["node"] = []
    for process in nodes:
        if process.poll() is None:
            tell(process.stdin, "end")
            row["node"].append(hear(process.stdout))
    frontend = None  # type: ignore[assignment]
    for process in nodes:
        process.wait()
    return row


def refusals() -> dict[str, str]:
    """What connect() says to addresses that no node of ours sends."""
    run = GuestRun()
    endpoint = native.VerbsEndpoint.of_frontend(run, run.device, gid_index=run.gid_index)
    good, said = endpoint.address(), {}
    for name, value in {"ring": "7", "ring_key": 2**32, "key": -1, "pairs": [1, 2], "gid": "z" * 32}.items():
        try:
            endpoint.connect({**good, name: value})
        except native.ProbeFailure as failure:
            said[name] = failure.args[0]
    try:
        native.NetworkSystem(1, 1, 16).add_verbs(0, endpoint)
    except native.ProbeFailure as failure:
        said["unconnected"] = failure.args[0]
    return said


if __name__ == "__main__":
    if len(sys.argv) == 1:
        serve()
    else:
        tell(sys.stdout, refusals())
    for argument in sys.argv[1:]:
        tell(sys.stdout, run_frontend(GuestRun(**json.loads(argument))))
