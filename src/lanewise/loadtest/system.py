"""The system under test as it is asked for, and what it says of a run: time by stage, sizes of batches, a trace."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lanewise import _native, units
from lanewise.errors import CannotMeasure, InputError, unknown_name
from lanewise.installed import cuda_driver
from lanewise.loadtest.load_run import available_memory
from lanewise.options.loadtest import COPIES

SYNTHETIC = "synthetic"
CPU = "cpu"
BALANCES = ("least-outstanding", "round-robin")

# call(batch, samples): the (n, bytes) uint8 array of a batch (on a GPU an object with __cuda_array_interface__) and the
# samples' indices; it returns None, a buffer of n equal parts, or n of bytes or None.
BatchCall = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """A batching system under test, of which the native one reads each field by its name. Times in s, sizes in bytes.

    `engine` is 'synthetic', which holds a device for `service_batch` + n x `service_query`, or a callable; of a tuple
    each device has one. `devices` are 'cpu' or 'gpu0' ..., a queue each. A batch goes when it has `batch` queries or
    its oldest has waited `timeout`; `streams` batches of a device are in flight. Of the data set's `samples` (None: as
    many as `library`), `library` are in memory at once, on NUMA node `node` (-1: a GPU's own, for a CPU any). `fill`
    gives a sample's bytes; without it they are synthetic. `copy` is for GPUs; 'auto' takes what is fastest here.
    `checksum` answers each query with the CRC-32 (zlib's, little endian) of what arrived on the device. `waiting` is
    the most queries that wait for a device; issuing waits beyond. The first `trace` batches of a run are kept.
    `spin` is the last part of a CPU's service time, which is spun as sleep ends late.
    """

    engine: str | BatchCall | tuple[str | BatchCall, ...] = SYNTHETIC
    devices: tuple[str, ...] = (CPU,)
    batch: int = 64
    timeout: float = 0.001
    streams: int = 2
    sample_bytes: int = 150528
    library: int = 1024
    samples: int | None = None
    node: int = -1
    copy: str = "auto"
    balance: str = BALANCES[0]
    service_batch: float = 0.0
    service_query: float = 0.0
    fill: Callable[[int], Any] | None = None
    checksum: bool = False
    waiting: int = 1 << 18
    trace: int = 0
    spin: float = 20e-6
    name: str = "lanewise"

    def __post_init__(self) -> None:
        self._check_counts()
        for device in self.devices:
            if device != CPU and not re.fullmatch(r"gpu\d+", device):
                raise unknown_name("device", device, [CPU, "gpu0", "gpu1", "..."])
        if self.copy not in COPIES:
            raise unknown_name("way to copy", self.copy, COPIES)
        if self.balance not in BALANCES:
            raise unknown_name("balance", self.balance, BALANCES)
        for engine in self.engines():
            if not callable(engine) and engine != SYNTHETIC:
                raise unknown_name("engine", str(engine), [SYNTHETIC])

    def _check_counts(self) -> None:
        for what in ("batch", "streams", "sample_bytes", "library", "waiting"):
            if getattr(self, what) < 1:
                raise InputError(f"{what} {getattr(self, what)}", hint="take 1 or more")
        for what in ("timeout", "service_batch", "service_query", "trace", "spin"):
            if not getattr(self, what) >= 0:  # NaN neither
                raise InputError(f"{what} {getattr(self, what)}", hint="take 0 or more")
        if not self.devices:
            raise InputError("a system without a device", hint="name one at least: cpu, gpu0")
        if self.samples is not None and self.samples < 1:
            raise InputError("a data set without samples", hint="take one sample at least")

    def engines(self) -> tuple[str | BatchCall, ...]:
        """The engine of each device; InputError if there are more or fewer."""
        if not isinstance(self.engine, tuple):
            return (self.engine,) * len(self.devices)
        if len(self.engine) != len(self.devices):
            raise InputError(f"{len(self.engine)} engines for {len(self.devices)} devices", hint="give each its own")
        return self.engine

    def memory(self, nodes: int = 1) -> int:
        """Bytes of host memory that it takes at most: a library on each of `nodes`, queues, buffers."""
        stride = -(-self.sample_bytes // 16) * 16
        buffers = len(self.devices) * self.batch * self.streams * stride
        return self.library * stride * nodes + buffers + len(self.devices) * self.waiting * 24


def open_system(spec: SystemSpec) -> _native.BatchingSystem:
    """Makes it, ready to load samples; CannotMeasure where memory, a GPU or the native part is missing."""
    native = _core()
    try:
        devices = list(_devices(spec))
        needed, free = spec.memory(len({node for _, node, _ in devices})), available_memory()
        if free is not None and needed > free:
            raise CannotMeasure(f"{needed / 1e9:.1f} GB of host memory needed, {free / 1e9:.1f} GB free",
                                hint="take a smaller library, or fewer batches in flight")  # fmt: skip
        system: _native.BatchingSystem = native.BatchingSystem(spec, devices, cuda_driver())
    except native.ProbeFailure as failure:
        raise cannot(failure) from None
    return system


def cannot(failure: Exception) -> CannotMeasure:
    """A failure of the native part as one of ours."""
    cause, hint = (*failure.args, "")[:2]
    return CannotMeasure(str(cause), hint=str(hint))


@dataclass(frozen=True, slots=True)
class SystemStatistics:
    """What a system says of its last run. Times in s.

    `stages` are queue (arrival to batch), copy, infer, answer, total, each with p50, p90, p99, p99.9, mean, max over
    its queries, exact to 0.4 %. `sizes` counts batches by size, `bytes` what was moved to devices. `failed` queries
    got an empty answer as the system had failed. `stalled`: how long issuing waited for room in the queues. `copies`
    names each device's way to copy, with the seconds that each way tried took for a full batch.
    """

    stages: Mapping[str, Mapping[str, float]]
    sizes: Mapping[int, int]
    bytes: int
    answered: int
    failed: int
    stalled: float
    copies: tuple[tuple[str, Mapping[str, float]], ...]

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


def _core() -> Any:
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
    native = _core()
    # cuInit reads it, once. Timed copies ask for EAGER, which would load thousands of kernels of a model's library that
    # never run. In a load test no kernel is held, so that one may be loaded at its first use; ours are beforehand.
    os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
    try:
        ordered = sorted(native.Cuda(cuda_driver()).devices, key=lambda gpu: (gpu.pci, gpu.ordinal))
    except native.ProbeFailure as failure:
        raise cannot(failure) from None
    gpu_of = {f"gpu{place}": gpu for place, gpu in enumerate(ordered)}
    for device in devices:
        if device != CPU and device not in gpu_of:
            raise unknown_name("device", device, [CPU, *gpu_of])
    return gpu_of


def _devices(spec: SystemSpec) -> Iterator[tuple[int, int, BatchCall | None]]:
    """Each device's ordinal, the NUMA node of its library, its engine."""
    gpu_of = gpus(spec.devices)
    for device, engine in zip(spec.devices, spec.engines(), strict=True):
        gpu = gpu_of.get(device)
        node = spec.node if spec.node >= 0 or gpu is None else gpu.numa
        ordinal = -1 if gpu is None else gpu.ordinal
        yield ordinal, node, engine if callable(engine) else None
