"""A simulated run as a timeline that https://ui.perfetto.dev and chrome://tracing open: Trace Event Format, JSON.

Each service is a process whose queries are asynchronous spans, as they overlap; each host is one whose threads are
GPUs and the slots of their copies. A query takes up to 900 B of text and a batch up to 600 B; `SimulationInput.trace`
bounds how many a run keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

import lanewise._native as _native
from lanewise.serving.load import ServiceLoad
from lanewise.serving.simulation import Simulation

Event = dict[str, Any]
Worker = tuple[int, ServiceLoad, str]  # the number of the service, its load, the GPU


def perfetto(simulation: Simulation, outcome: _native.Outcome) -> str:
    """The kept batches of a run, with their queries, in the order in which things happen."""
    workers = _workers(simulation)
    tracks = _Tracks(simulation)
    spans: list[tuple[int, Event]] = []
    for number, batch in enumerate(outcome.trace):
        spans += _queries(workers[batch.worker], batch, number)
    spans += _on_tracks(workers, outcome.trace, tracks)
    spans.sort(key=lambda span: span[0])  # stable: what coincides keeps its order
    events = [*tracks.names(), *({**event, "ts": time / 1e3} for time, event in spans)]
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    about = json.dumps({"system": simulation.system.name, "made by": "lanewise"})
    return f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":[\n{lines}\n]}}\n'


class _Tracks:
    """Process and thread numbers, in the order in which they are shown."""

    def __init__(self, simulation: Simulation) -> None:
        self._services = [
            f"{place + 1}: {deployment.load.workload.name} on {len(deployment.gpus)} GPUs"
            for place, deployment in enumerate(simulation.deployments)
        ]
        self._hosts = {gpu: simulation.system.device(gpu).host or "no host" for gpu in simulation.gpus}
        self._processes = list(dict.fromkeys(self._hosts.values()))
        self._threads: dict[tuple[str, str], int] = {}

    def of(self, gpu: str, name: str) -> Event:
        """The process and thread of a GPU's track."""
        thread = self._threads.setdefault((gpu, name), len(self._threads) + 1)
        return {"pid": len(self._services) + 1 + self._processes.index(self._hosts[gpu]), "tid": thread}

    def names(self) -> Iterator[Event]:
        """The metadata that names what was handed out."""
        for index, name in enumerate([*self._services, *self._processes]):
            kind = "queries" if index < len(self._services) else "host"
            yield _metadata("process_name", index + 1, 0, {"name": f"{kind} {name}"})
            yield _metadata("process_sort_index", index + 1, 0, {"sort_index": index})
        for index in range(len(self._services)):
            yield _metadata("thread_name", index + 1, 0, {"name": "queries"})
        gpus = list(self._hosts)
        for place, (gpu, name) in enumerate(sorted(self._threads, key=lambda key: (gpus.index(key[0]), key[1]))):
            track = self.of(gpu, name)
            yield _metadata("thread_name", track["pid"], track["tid"], {"name": f"{gpu} {name}".strip()})
            yield _metadata("thread_sort_index", track["pid"], track["tid"], {"sort_index": place})


def _workers(simulation: Simulation) -> list[Worker]:
    """A GPU as one service uses it, in the order in which the native core numbers them."""
    return [
        (place, deployment.load, gpu)
        for place, deployment in enumerate(simulation.deployments)
        for gpu in deployment.gpus
    ]


def _metadata(name: str, pid: int, tid: int, args: dict[str, Any]) -> Event:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _nanoseconds(seconds: float) -> int:
    """Whole ones: rounding keeps the order of times, so that what nests goes on nesting."""
    return round(seconds * 1e9)


def _queries(worker: Worker, batch: _native.TracedBatch, number: int) -> Iterator[tuple[int, Event]]:
    """The samples of a batch: each a span that holds its way to the pool, its wait and its batch."""
    service, load, gpu = worker
    for place, (scheduled, landed) in enumerate(zip(batch.scheduled, batch.landed, strict=True)):
        common = {"cat": "query", "id": f"0x{(number << 20) + place:x}", "pid": service + 1, "tid": 0}
        size = load.workload.bytes_in + load.workload.bytes_out
        stages = [("network" if load.frontend else "copy", scheduled, landed), ("queue", landed, batch.formed),
                  (f"batch {number}", batch.formed, batch.done)]  # fmt: skip
        args = {"batch": number, "gpu": gpu, "bytes": size}
        yield _nanoseconds(scheduled), {"ph": "b", "name": "query", **common, "args": args}
        for name, start, end in stages:
            if _nanoseconds(end) > _nanoseconds(start):
                yield _nanoseconds(start), {"ph": "b", "name": name, **common}
                yield _nanoseconds(end), {"ph": "e", "name": name, **common}
        yield _nanoseconds(batch.done), {"ph": "e", "name": "query", **common}


def _on_tracks(
    workers: Sequence[Worker], trace: Sequence[_native.TracedBatch], tracks: _Tracks
) -> Iterator[tuple[int, Event]]:
    """What each batch does on its GPU and on the ways there and back."""
    parts: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for number, batch in enumerate(trace):
        gpu = workers[batch.worker][2]
        for kind, start, end in (
            ("", batch.started, batch.served),
            ("copy", batch.formed, batch.copied),
            ("return", batch.served, batch.done),
        ):
            parts.setdefault((gpu, kind), []).append((_nanoseconds(start), _nanoseconds(end), number))
    for (gpu, kind), spans in parts.items():
        for slot, start, end, number in _side_by_side(spans):
            batch, load = trace[number], workers[trace[number].worker][1]
            args = {"batch": number, "samples": len(batch.scheduled)}
            if not kind:
                args["waited_ns"] = _nanoseconds(batch.started) - _nanoseconds(batch.copied)
            name = f"{kind or load.workload.name} {number}"
            track = tracks.of(gpu, f"{kind} {slot + 1}" if kind else "")
            last = (end - start) / 1e3
            yield start, {"ph": "X", "name": name, "cat": kind or "GPU", "dur": last, **track, "args": args}


def _side_by_side(spans: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Each span that lasts with the lowest track that is free for it: (track, start, end, batch)."""
    busy: list[tuple[int, int]] = []  # (until, track)
    free: list[int] = []
    tracks = 0
    for start, end, number in sorted(spans):
        if end == start:
            continue
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        if not free:
            heappush(free, tracks)
            tracks += 1
        track = heappop(free)
        heappush(busy, (end, track))
        yield track, start, end, number
