"""A node with a GPU and its Frontend in one process, over a CUDA driver and a libibverbs without devices.

python gpu_memory_runs.py FOLDER '{"gpu_memory": "on", ...}' prints a line of JSON for each argument. The environment
names both libraries; what they lack is set here, by run.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_cuda
import numpy as np

from lanewise import _native as native
from lanewise.api.node import serve_node
from lanewise.control import rdma
from lanewise.dispatch.frontend import connect
from lanewise.errors import LanewiseError
from lanewise.loadtest.frontend_session import about
from lanewise.loadtest.frontend_statistics import merged
from lanewise.options.loadtest import RunOptions
from lanewise.options.serve import ServeOptions

BYTES, SAMPLES, QUERIES, SECRET = 5000, 16, 200, "a secret of the tests"
DRIVER = Path(os.environ["LANEWISE_CUDA_DRIVER"])
GID = "0000:0000:0000:0000:0000:ffff:0a09:0001"


def make_port(root: Path) -> None:
    """What the kernel says of one active port."""
    port = root / "fake0/ports/1"
    for name, text in {"state": "4: ACTIVE", "link_layer": "Ethernet", "gids/0": GID,
                       "gid_attrs/types/0": "RoCE v2"}.items():  # fmt: skip
        (port / name).parent.mkdir(parents=True, exist_ok=True)
        (port / name).write_text(text)


def row(gpu_memory: str, transport: str = "verbs", devices: str = "gpu0", **environment: str) -> dict[str, Any]:
    """What a run came to: what both sides say, wrong answers, and what the driver has not got back."""
    os.environ.update(environment)
    said: list[str] = []
    ready, ports = threading.Event(), list[int]()
    options = ServeOptions(
        engine="synthetic", devices=tuple(devices.split(",")), service=(0.0, 0.0), sample_bytes=BYTES, listen=":0",
        once=True, gpu_memory=gpu_memory, name="a", copy="kernel",
    )  # fmt: skip

    def listens(port: int) -> None:
        ports.append(port)
        ready.set()

    def serve() -> None:
        try:
            serve_node(options, say=said.append, on_ready=listens)
        except LanewiseError as error:
            said.append(f"error: {error}; hint: {error.hint}")
        ready.set()

    node = threading.Thread(target=serve)
    node.start()
    ready.wait()
    values = run(f"127.0.0.1:{ports[0]}", transport) if ports else {}
    node.join()
    for name in environment:
        del os.environ[name]
    gc.collect()
    return {**values, "said": said, "left": sum(fake_cuda.live(DRIVER).values())}


def run(address: str, transport: str) -> dict[str, Any]:
    """The Frontend's part."""
    options = replace(RunOptions(nodes=(address,), connections=2, depth=16, transport=transport), library=SAMPLES)
    try:
        with connect(options, SECRET) as frontend:
            system = native.NetworkSystem(SAMPLES, SAMPLES, BYTES)
            system.load(list(range(SAMPLES)))
            frontend.attach(system, BYTES, "checksums")
            samples = np.arange(QUERIES, dtype=np.uint64) * 7 % SAMPLES
            result = native.replay(system, np.zeros(QUERIES), samples, keep=True)
            flushes = fake_cuda.calls(DRIVER, "cuFlushGPUDirectRDMAWrites")
            sums = [zlib.crc32(native.synthetic_sample(int(i), BYTES)).to_bytes(4, "little") for i in samples]
            wrong = sum(one != other for one, other in zip(result["data"], sums, strict=True))
            setup = {**about(options, frontend.nodes, None), **merged(system, frontend, ()).about_copies(["gpu0"])}
    except LanewiseError as error:
        return {"error": str(error), "hint": error.hint}
    return {"failure": result["failure"], "wrong": wrong, "flushes": flushes, "GPU memory": setup.get("GPU memory"),
            "copy": setup["copy"]}  # fmt: skip


def main(folder: Path, runs: list[dict[str, str]]) -> None:
    """The runs."""
    os.environ["LANEWISE_SECRET"] = SECRET
    rdma.RDMA = folder
    make_port(folder)
    for each in runs:
        print(json.dumps(row(**each)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [json.loads(text) for text in sys.argv[2:]])
