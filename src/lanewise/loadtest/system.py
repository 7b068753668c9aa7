"""The system under test: statistics of a run (time by stage, batch sizes, a trace), and the GPUs that it can use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lanewise import _native, units
from lanewise.dispatch.counters import ConnectionCounters
from lanewise.errors import CannotMeasure, unknown_name
from lanewise.installed import cuda_driver
from lanewise.options.loadtest import CPU


def cannot(failure: Exception) -> CannotMeasure:
    """A failure of the native part as one of ours."""
    cause, hint = (*failure.args, "")[:2]
    return CannotMeasure(str(cause), hint=str(hint))


@dataclass(frozen=True, slots=True)
class NodeTimes:
    """Where the time of one Accelerator node's queries went; `stages` as of SystemStatistics, `answered` queries.

    `lost`: why it was lost, with the stages that the Frontend knows and its `unanswered` queries; empty if it was not.
    """

    name: str
    address: str
    answered: int
    stages: Mapping[str, Mapping[str, float]]
    unanswered: int = 0
    lost: str = ""


@dataclass(frozen=True, slots=True)
class SystemStatistics:
    """A system's statistics of its last run. Times in s.

    `stages` are queue (arrival to batch), copy, infer, answer, total, each with p50, p90, p99, p99.9, mean, max over
    its queries, exact to 0.4 %; total ends when an answer is handed over, before LoadGen's completion: its latency is
    longer. `sizes` counts batches by size, `bytes` what was moved to devices. `failed` queries got an empty answer as
    the system had failed. `stalled`: how long issuing waited for room in the queues. `copies` names each device's way
    to copy, with the seconds that each way tried took for a full batch. `nodes`: the Accelerator nodes, if any,
    and `connections` those of the Frontend to them with what they did in the run.
    """

    stages: Mapping[str, Mapping[str, float]]
    sizes: Mapping[int, int]
    bytes: int
    answered: int
    failed: int
    stalled: float
    copies: tuple[tuple[str, Mapping[str, float]], ...]
    nodes: tuple[NodeTimes, ...] = ()
    connections: tuple[ConnectionCounters, ...] = ()

    def about_copies(self, devices: Sequence[str]) -> dict[str, object]:
        """In words how samples came to the devices, and a batch's share of the time that each way tried took."""
        setup: dict[str, object] = {"copy": ", ".join(dict.fromkeys(method for method, _ in self.copies))}
        for device, (_, seconds_of) in zip(devices, self.copies, strict=False):
            if seconds_of:
                times = (f"{method} {units.readable(seconds, 's', 3)}" for method, seconds in seconds_of.items())
                setup[f"copies tried, {device}"] = ", ".join(times)
        return setup if self.copies else {}

    @property
    def mean_batch(self) -> float:
        """Queries a batch; 0 if there was none."""
        batches = sum(self.sizes.values())
        return sum(size * count for size, count in self.sizes.items()) / batches if batches else 0.0


NO_STATISTICS = SystemStatistics({}, {}, 0, 0, 0, 0.0, ())


def statistics(system: _native.BatchingSystem) -> SystemStatistics:
    """What the system did since its last start; it may still run."""
    values = system.statistics()
    sizes = {size: int(count) for size, count in enumerate(values.pop("sizes")) if count}
    return SystemStatistics(**values, sizes=sizes, copies=tuple(system.copies))


def perfetto(system: _native.BatchingSystem, devices: tuple[str, ...]) -> str:
    """The kept batches as JSON for https://ui.perfetto.dev: a process a device, a thread a stream, queries as spans."""
    batches = system.trace()
    begin = min((int(arrived.min()) for *_, arrived in batches), default=0)
    events = [
        {"ph": "M", "name": "process_name", "pid": queue + 1, "tid": 0, "args": {"name": f"{queue + 1}: {device}"}}
        for queue, device in enumerate(devices)
    ]
    for number, batch in enumerate(batches):
        events += _events(number, batch, begin)
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    about = json.dumps({"system": system.name, "made by": "lanewise"})
    return f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":[\n{lines}\n]}}\n'


def _events(number: int, batch: tuple[Any, ...], begin: int) -> Iterator[dict[str, Any]]:
    """A batch's stages on its stream, and each of its queries from arrival to answer."""
    queue, stream, batched, copied, inferred, completed, arrived = batch

    def at(ns: int) -> float:
        return (int(ns) - begin) / 1e3

    for name, start, end in (("copy", batched, copied), ("infer", copied, inferred), ("answer", inferred, completed)):
        yield {"ph": "X", "name": f"{name} {number}", "cat": name, "pid": queue + 1, "tid": stream + 1, "ts": at(start),
               "dur": (end - start) / 1e3, "args": {"batch": number, "queries": len(arrived)}}  # fmt: skip
    for place, when in enumerate(arrived):
        common = {"cat": "query", "id": f"0x{(number << 20) + place:x}", "pid": queue + 1, "tid": 0}
        yield {"ph": "b", "name": "query", **common, "ts": at(when), "args": {"batch": number}}
        yield {"ph": "e", "name": "query", **common, "ts": at(completed)}


def native_part() -> Any:
    """The module `_native`; CannotMeasure where it has no load tests."""
    from lanewise import _native as native

    if not hasattr(native, "BatchingSystem"):
        raise CannotMeasure("load tests are for Linux", hint="predict the service instead: lanewise predict --service")
    return native


def gpus(devices: Sequence[str]) -> dict[str, Any]:
    """The GPUs here by name, gpu0 first by PCI address, if `devices` name any; `ordinal` is CUDA's in this process.

    Driver and runtime (torch's) count by the same variables, CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.
    CannotMeasure where there is no driver, UnknownName for a GPU that is absent.
    """
    if all(device == CPU for device in devices):
        return {}
    native = native_part()
    try:
        cuda = native.Cuda(cuda_driver(), module_loading="LAZY")  # in a load test no kernel waits at a gate
        ordered = sorted(cuda.devices, key=lambda gpu: (gpu.pci, gpu.ordinal))
    except native.ProbeFailure as failure:
        raise cannot(failure) from None
    gpu_of = {f"gpu{place}": gpu for place, gpu in enumerate(ordered)}
    for device in devices:
        if device != CPU and device not in gpu_of:
            raise unknown_name("device", device, [CPU, *gpu_of])
    return gpu_of
