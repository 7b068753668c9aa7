"""Predicts how long weights take to GPUs: t = start + bytes / the least of what each stage passes of the model.

All stages run at the same time, on other parts of the model. Stages, in bytes of the model a second, for n GPUs with a
process each, of which each takes 1/n (sharded) or all (replicated):

    storage       path from the source to host memory / times the file is read
    read latency  readers x window / latency of a read (Little's law), cold
    CPU copies    what one process gets through, x n if sharded
    links         host memory to the GPUs, all at once
    GPU to GPU    with `spread`, each GPU reads 1/n and passes it to all others: n/(n-1) of what a GPU receives
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lanewise.blocks.software import Spread
from lanewise.errors import InputError
from lanewise.perf.flow import Flow
from lanewise.perf.predict import FlowRate, predict
from lanewise.topology.model import Kind, System
from lanewise.weights.loaders import WeightLoader, drive_latency, weight_loader

_STATED = (0.93, 1.02)  # of a rate or a latency that the user states: measured, or promised by a provider
_SHORT = 0.995  # of its share that a flow must get beside the others to say that they do not disturb each other


class LoadLimit(StrEnum):
    """What a load waits for."""

    STORAGE = "storage"
    LATENCY = "read latency"
    COPIES = "CPU copies"
    LINK = "link to GPU"
    PEERS = "GPU to GPU"
    SHARED = "shared path"
    START = "start"


@dataclass(frozen=True, slots=True)
class LoadStage:
    """What one stage passes of the model in B/s, the path or figure that says so, its sources, and what is in doubt."""

    rate: Spread
    detail: str
    rests_on: tuple[str, ...] = ()
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class ModelLoad:
    """A load of `size` B by one loader: `time` s within `low` to `high`, its `limit`, and its stages."""

    loader: WeightLoader
    readers: int
    warm: bool
    size: float
    time: float
    low: float
    high: float
    limit: LoadLimit
    stages: Mapping[LoadLimit, LoadStage]

    @property
    def rate(self) -> float:
        """Bytes of the model over time, in B/s."""
        return self.size / self.time


@dataclass(frozen=True, slots=True)
class WeightSource:
    """Where weights lie: a drive, volume or host by name, or storage of a stated `rate` (B/s).

    `latency` (s) is that of one read, `read_ahead` (B) what the kernel reads ahead; None for what is usual.
    """

    name: str = ""
    rate: float | None = None
    latency: float | None = None
    read_ahead: float | None = None


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """`size` B from `source` to `targets`: the part of the question that every loader shares."""

    system: System
    size: float
    source: WeightSource
    targets: tuple[str, ...]
    host: str
    replicated: bool = False
    spread: bool = False

    @property
    def gpus(self) -> tuple[str, ...]:
        """The targets that are GPUs; none where the weights end in host memory."""
        return tuple(name for name in self.targets if name != self.host)

    @property
    def memories(self) -> tuple[str, ...]:
        """Where buffers are in host memory: at the NUMA nodes of the GPUs, as ends of flows."""
        nodes = dict.fromkeys(self.system.numa_node(gpu) for gpu in self.gpus)
        return tuple(self.host if node is None else f"{self.host}:{node}" for node in nodes) or (self.host,)

    @property
    def share(self) -> float:
        """The part of the model that each process reads from storage or page cache."""
        return 1.0 if self.replicated and not self.spread else 1 / len(self.targets)


@dataclass(frozen=True, slots=True)
class ModelLoadPrediction:
    """What is loaded whereto, and one ModelLoad for each loader."""

    plan: LoadPlan
    loads: tuple[ModelLoad, ...]


def predict_load(
    system: System,
    size: float,
    source: WeightSource,
    targets: Sequence[str],
    loaders: Sequence[str],
    *,
    warm: bool = False,
    replicated: bool = False,
    spread: bool = False,
    readers: int | None = None,
) -> ModelLoadPrediction:
    """How long `size` B take from `source` to `targets` by each of `loaders`.

    InputError for targets that are no GPUs of one host or for a loader that cannot do it; UnknownName and Unreachable
    as of flows.
    """  # fmt: skip
    plan = LoadPlan(system, size, source, tuple(targets), _host(system, targets), replicated, spread)
    _check(plan, readers)
    loads = tuple(_load(plan, weight_loader(name), warm, readers) for name in loaders)
    return ModelLoadPrediction(plan, loads)


def possible_loaders(names: Sequence[str], source: WeightSource, system: System, warm: bool, gpus: bool) -> list[str]:
    """Those of `names` that can load from there, with `warm` from the page cache; of object stores only by name."""
    chosen = []
    for name in names:
        loader = weight_loader(name)
        straight = loader.to_gpu and not (gpus and _is_drive(system, source))
        if not straight and loader.reader is None and (loader.page_cache or not warm):
            chosen.append(name)
    return chosen


def _check(plan: LoadPlan, readers: int | None) -> None:
    if not 0 < plan.size < math.inf:
        raise InputError(f"a model of {plan.size:g} bytes is nothing to load", hint="write --load 140GB")
    if readers is not None and readers < 1:
        raise InputError(f"--readers is {readers}", hint="write 1 or more")
    if plan.source.latency is not None and not 0 < plan.source.latency < math.inf:
        raise InputError(f"a read of {plan.source.latency:g} s is none", hint="write --read-latency 100us")
    if plan.source.read_ahead is not None and not 0 < plan.source.read_ahead < math.inf:
        raise InputError(f"{plan.source.read_ahead:g} bytes are no read-ahead", hint="write --read-ahead 128KiB")
    if plan.spread and not (plan.replicated and len(plan.gpus) > 1):
        raise InputError("--spread takes several GPUs that all get the whole model", hint="add --replicated")
    if plan.source.name == plan.host:
        hint = "name the drive or volume that holds the file; --warm says that the page cache holds it too"
        raise InputError(f"{plan.host} is where the GPUs are, not where the weights lie", hint=hint)


def _host(system: System, targets: Sequence[str]) -> str:
    """The one host of all targets, which are its GPUs or the host itself."""
    hosts = set()
    if not targets:
        raise InputError("no target", hint="write --to 'gpu[0-7]' or --to host0")
    for name in targets:
        if name in system.hosts:
            hosts.add(name)
            continue
        device = system.device(name)
        if device.kind is not Kind.GPU or device.host is None:
            raise InputError(f"{name} is no GPU of a host", hint="write --to 'gpu[0-7]' or --to host0")
        hosts.add(device.host)
    if len(hosts) != 1 or (len(targets) > 1 and hosts & set(targets)):
        raise InputError(f"'{','.join(targets)}' are not GPUs of one host", hint="predict the load of each host alone")
    return hosts.pop()


def _load(plan: LoadPlan, loader: WeightLoader, warm: bool, readers: int | None) -> ModelLoad:
    if warm and not loader.page_cache:
        raise InputError(f"{loader.name} does not read from the page cache", hint="leave --warm away")
    if loader.to_gpu and not (plan.gpus and _is_drive(plan.system, plan.source)):
        hint = "name a drive, volume or rate with --from, and GPUs with --to"
        raise InputError(f"{loader.name} reads from a drive straight to GPUs", hint=hint)
    count = readers or loader.readers
    stages = _stages(plan, loader, warm, count)
    limit = min(stages, key=lambda each: stages[each].rate.value)
    least = [min(stage.rate[end] for stage in stages.values()) for end in range(3)]
    times = [plan.size / rate for rate in least]
    if loader.start.value > times[0]:
        limit = LoadLimit.START
    return ModelLoad(
        loader, count, warm, plan.size,
        time=loader.start.value + times[0], low=loader.start.low + times[2], high=loader.start.high + times[1],
        limit=limit, stages=stages,
    )  # fmt: skip


def _stages(plan: LoadPlan, loader: WeightLoader, warm: bool, readers: int) -> dict[LoadLimit, LoadStage]:
    stages: dict[LoadLimit, LoadStage] = {}
    if not warm:
        stages[LoadLimit.STORAGE] = _storage(plan, loader)
        stages[LoadLimit.LATENCY] = _readers(plan, loader, readers)
    through_cache = loader.warm_amd if loader.warm_amd is not None and _of_amd(plan) else loader.warm
    process = through_cache if warm else loader.cold or through_cache
    if process is not None:
        detail = f"{len(plan.targets)} processes" if len(plan.targets) > 1 else "one process"
        stages[LoadLimit.COPIES] = LoadStage(_times(process, 1 / plan.share), detail, (loader.source,))
    if plan.gpus and not loader.to_gpu:
        stages[LoadLimit.LINK] = _links(plan)
    if plan.spread:
        stages[LoadLimit.PEERS] = _peers(plan)
    return _together(plan, loader, stages, warm)


def _of_amd(plan: LoadPlan) -> bool:
    """Whether the weights go to GPUs of AMD's."""
    parts = [plan.system.part(gpu) for gpu in plan.gpus]
    return bool(parts) and all(part is not None and part.title.startswith("AMD") for part in parts)


def _storage(plan: LoadPlan, loader: WeightLoader) -> LoadStage:
    """The path from the source: a page cache has the file read once, else every process reads its part."""
    times = 1.0 if loader.page_cache else plan.share * len(plan.targets)
    if plan.source.rate is not None:
        rate = plan.source.rate / times
        return LoadStage(Spread(rate, rate * _STATED[0], rate * _STATED[1]), "stated rate", ())
    ends = plan.gpus if loader.to_gpu else plan.memories
    rates = predict(plan.system, [Flow(plan.source.name, end) for end in ends]).rates
    return _stage(_sum(rates), 1 / times, rates[0])


def _readers(plan: LoadPlan, loader: WeightLoader, readers: int) -> LoadStage:
    """Little's law of reads: what all readers have in flight over what a read takes."""
    count = readers if loader.lockstep else readers / plan.share
    if loader.reader is not None:
        return LoadStage(_times(loader.reader, count), f"{readers} readers", (loader.source,))
    latency, source = _latency(plan)
    window = loader.window
    if loader.read_ahead and plan.source.read_ahead is not None:
        window = _times(window, plan.source.read_ahead / window.value)
    rate = Spread(
        count * window.value / latency.value,
        count * window.low / latency.high,
        readers / plan.share * window.high / latency.low,  # processes in lockstep may still run apart
    )
    detail = f"{window.value / 1024:,.0f} KiB in flight a reader, {latency.value * 1e6:.0f} us a read"
    return LoadStage(rate, detail, (loader.source, source))


def _latency(plan: LoadPlan) -> tuple[Spread, str]:
    if plan.source.latency is not None:
        value = plan.source.latency
        return Spread(value, value * 0.85, value * 1.15), "latency of a read as stated"
    drives = [plan.system.part(name) for name in _drives(plan.system, plan.source)]
    stated = [part.figure("read.latency") for part in drives if part is not None]
    values = [figure.value for figure in stated if figure is not None and isinstance(figure.value, float)]
    if values:
        value = max(values)
        return Spread(value, value * 0.8, value * 1.3), "read.latency of the drive"
    return drive_latency()


def _links(plan: LoadPlan) -> LoadStage:
    """Host memory to the GPUs, all at once."""
    rates = predict(plan.system, [Flow(plan.host, gpu) for gpu in plan.gpus]).rates
    slowest = min(rates, key=lambda rate: rate.rate)
    return _stage((slowest.rate, slowest.low, slowest.high), 1 / plan.share, slowest)


def _peers(plan: LoadPlan) -> LoadStage:
    """Each GPU passes its part to all others: a GPU receives (n-1)/n of the model."""
    flows = [Flow(a, b) for a in plan.gpus for b in plan.gpus if a != b]
    rates = predict(plan.system, flows).rates
    into = {gpu: [rate for rate in rates if rate.flow.dst == gpu] for gpu in plan.gpus}
    slowest = min(into.values(), key=lambda each: _sum(each)[0])
    return _stage(_sum(slowest), len(plan.gpus) / (len(plan.gpus) - 1), slowest[0])


def _together(
    plan: LoadPlan, loader: WeightLoader, stages: dict[LoadLimit, LoadStage], warm: bool
) -> dict[LoadLimit, LoadStage]:
    """With the stage that they share where reads and copies to GPUs at once get less than each alone."""
    if warm or loader.to_gpu or not plan.gpus or not plan.source.name:
        return stages
    rate = min(stage.rate.value for stage in stages.values())
    reads = 1.0 if loader.page_cache else plan.share * len(plan.targets)
    flows = [Flow(plan.source.name, end, cap=rate * reads / len(plan.memories)) for end in plan.memories]
    flows += [Flow(plan.host, gpu, cap=rate * plan.share) for gpu in plan.gpus]
    together = predict(plan.system, flows).rates
    slowed = min(together, key=lambda one: one.rate / one.flow.cap)
    factor = slowed.rate / slowed.flow.cap
    if factor >= _SHORT:
        return stages
    low = min(stage.rate.low for stage in stages.values()) * factor
    return stages | {LoadLimit.SHARED: LoadStage(Spread(rate * factor, low, rate), slowed.limit, slowed.rests_on)}


def _stage(rates: tuple[float, float, float], factor: float, limiting: FlowRate) -> LoadStage:
    return LoadStage(_times(Spread(*rates), factor), limiting.limit, limiting.rests_on, limiting.doubt)


def _sum(rates: Sequence[FlowRate]) -> tuple[float, float, float]:
    return sum(r.rate for r in rates), sum(r.low for r in rates), sum(r.high for r in rates)


def _times(rate: Spread, factor: float) -> Spread:
    return Spread(*(value * factor for value in rate))


def _drives(system: System, source: WeightSource) -> tuple[str, ...]:
    """The drives behind a source; none for a host or a stated rate."""
    if source.name in system.volumes:
        return tuple(system.volumes[source.name].drives)
    known = source.name in system.devices and system.device(source.name).kind in (Kind.SSD, Kind.RAID)
    return (source.name,) if known else ()


def _is_drive(system: System, source: WeightSource) -> bool:
    return source.rate is not None or bool(_drives(system, source))
