"""A load test put together: engine, dataset and system under test, with a runner of LoadGen that stays open."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lanewise import _native, units
from lanewise.dispatch.host import available_memory
from lanewise.errors import CannotMeasure, InputError, LanewiseError
from lanewise.installed import cuda_driver
from lanewise.loadtest.datasets import Dataset, ImageFolder, Synthetic
from lanewise.loadtest.engines import Engine, EngineOptions, open_engine
from lanewise.loadtest.engines.callback import BRIEF, CHECKSUMS, CLASSES, BatchCall, batch_call
from lanewise.loadtest.load_run import LoadGenResult
from lanewise.loadtest.loadgen import LoadGenRunner, RunnerSetup, Tick, needs_loadgen
from lanewise.loadtest.prediction import intervals
from lanewise.loadtest.spec import agree
from lanewise.loadtest.system import SystemStatistics, cannot, gpus, native_part, perfetto, statistics
from lanewise.options.loadtest import CPU, SYNTHETIC, BatchingOptions, LoadOptions, LoadTestOptions, ModelOptions

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class LoadTestSession(ABC):
    """An open load test: `options`, with size and samples of the library as resolved; `setup` names what runs,
    with versions, the same each time; `dataset` gives labels; `checksum`: answers to audits are CRC-32 sums."""

    options: LoadTestOptions
    runner: LoadGenRunner
    dataset: Dataset | None
    checksum: bool
    setup: dict[str, object]

    @abstractmethod
    def statistics(self) -> SystemStatistics:
        """Where the last run's time went."""

    @abstractmethod
    def trace(self) -> str:
        """The last run's first batches, or queries, for Perfetto."""

    @abstractmethod
    def offline_rate(self) -> float:
        """Samples/s without any bound, timed now for a moment; CannotMeasure."""

    @property
    @abstractmethod
    def devices(self) -> tuple[str, ...]:
        """The devices by name."""

    def setup_of(self, run: LoadGenResult | None, statistics: SystemStatistics) -> dict[str, object]:
        """The setup with facts of a run: how samples were copied, and over nodes the SUT name given to LoadGen."""
        setup = {**self.setup, **statistics.about_copies(self.devices)}
        name = run.settings.get("sut_name") if run is not None else None
        return {**setup, "SUT name": name} if name and "division" in setup else setup


@dataclass(frozen=True, slots=True)
class LocalSession(LoadTestSession):
    """A load test of this machine's devices."""

    system: _native.BatchingSystem
    engines: tuple[Engine, ...]

    def statistics(self) -> SystemStatistics:
        """See LoadTestSession."""
        return statistics(self.system)

    def trace(self) -> str:
        """See LoadTestSession."""
        return perfetto(self.system, self.options.devices)

    def offline_rate(self) -> float:
        """See LoadTestSession."""
        largest = self.options.batch
        return len(self.options.devices) * largest / self.batch_intervals([largest])[largest]

    @property
    def devices(self) -> tuple[str, ...]:
        """See LoadTestSession."""
        return self.options.devices

    def service_times(self) -> dict[int, float]:
        """Seconds that the engine alone takes for batches of `sizes`, one after the other; stated ones of none."""
        if self.engines:
            return self.engines[0].service_times(self.sizes)
        per_batch, per_query = self.options.service
        return {size: per_batch + size * per_query for size in self.sizes}

    def batch_intervals(self, sizes: Sequence[int] = ()) -> dict[int, float]:
        """Seconds from one batch of a device to its next, of `sizes` or all, in the system at work; CannotMeasure."""
        return intervals(self.system, self.options, sizes or self.sizes)

    @property
    def steps(self) -> bool:
        """Whether batches between two of `sizes` are filled up to the larger."""
        return bool(self.engines) and bool(self.engines[0].sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Batch sizes that tell how long every other takes: those the engine prepared, else 1, 2, 4 ... the largest."""
        prepared = self.engines[0].sizes if self.engines else ()
        largest = self.options.batch
        return tuple(sorted(prepared or {largest, *(2**i for i in range(largest.bit_length()))}))


@contextmanager
def open_session(
    options: LoadTestOptions, folder: Path, *, answer: str = BRIEF, samples: int = 0, trace: int = 0,
    tick: Tick | None = None, runner_setup: RunnerSetup | None = None, say: Say = lambda _: None,
    warn: Say = lambda _: None,
) -> Iterator[LoadTestSession]:  # fmt: skip
    """A session whose runs keep LoadGen's logs below `folder`, with this machine's devices or the nodes of `options`;
    what it holds is let go at the end.

    `samples` are in the data set (0: all images, of synthetic ones the library); the first `trace` batches of a run are
    kept. CannotMeasure, InputError, FormatError or MissingDependency where something is missing, wrong or too small.
    """
    needs_loadgen()
    if isinstance(options, LoadOptions) and options.nodes:
        from lanewise.loadtest.frontend_session import open_frontend_session

        with open_frontend_session(
            options, folder, answer=answer, samples=samples, trace=trace, tick=tick, say=say, warn=warn,
            runner_setup=runner_setup or RunnerSetup(),
        ) as network:  # fmt: skip
            yield network
        return
    options = replace(options, engine=options.engine or first_engine(options.devices, warn))
    say("loading")
    if options.engine == SYNTHETIC and answer == CLASSES:
        raise InputError("the synthetic engine names no classes", hint="choose onnxruntime or torch for accuracy")
    engines = open_engines(options, warn) if options.engine != SYNTHETIC else ()
    with _first_failure(folder) as failures, ExitStack() as stack:
        for engine in engines:
            stack.callback(engine.close)
        dataset = _dataset(options, samples, engines)
        count = len(dataset) if dataset is not None else samples or options.library
        options = replace(
            options, library=min(options.library, count),
            sample_bytes=options.sample_bytes if dataset is None else dataset.spec.bytes,
        )  # fmt: skip
        checksum = answer == CHECKSUMS and sums_natively(options, engines)
        system = open_system(
            options, [_recording(batch_call(engine, answer), failures) for engine in engines], samples=count,
            fill=None if dataset is None else _recording(dataset.sample, failures), checksum=checksum, trace=trace,
        )  # fmt: skip
        runner_setup = replace(runner_setup or RunnerSetup(), samples=count, resident=options.library)
        runner = LoadGenRunner(system, folder, runner_setup, tick)
        setup = _setup(options, engines, dataset)
        yield LocalSession(options, runner, dataset, checksum, setup, system, engines)


@contextmanager
def _first_failure(folder: Path) -> Iterator[list[LanewiseError]]:
    """Raises the first of the failures that the block notes in place of its own error: the native system passes on the
    text of an engine's error alone, the first failure has its hint and place, and gets that of the logs."""
    failures: list[LanewiseError] = []
    try:
        yield failures
    except LanewiseError:
        if not failures:
            raise
        first = failures[0]
        logs = f"logs: {folder}" if folder.exists() else ""
        first.hint = "; ".join(text for text in (first.hint, logs) if text)
        raise first from None
    finally:
        failures.clear()  # the native system holds this list, and an error's traceback the system: a circle never freed


def first_engine(devices: Sequence[str], warn: Say = lambda _: None) -> str:
    """The first installed engine: torch before onnxruntime on GPUs, after it on a CPU; else synthetic."""
    from importlib.util import find_spec

    order = ("onnxruntime", "torch") if devices[0] == CPU else ("torch", "onnxruntime")
    for name in order:
        if find_spec(name) is not None:
            return name
    extra = {"torch": "torch", "onnxruntime": "loadtest"}[order[0]]
    # Its rate is easily taken for that of a model.
    warn(
        "note: neither onnxruntime nor torch is installed: the synthetic engine measures path and queueing with the "
        f"service time that --service states; no model runs\nhint: pip install 'lanewise[{extra}]'"
    )
    return SYNTHETIC


def open_engines(options: ModelOptions, warn: Say = lambda _: None) -> tuple[Engine, ...]:
    """An engine for each device; those of a kind, CPU or GPU, run in the mode that the first of them came to."""
    known_gpus = gpus(options.devices)
    threads = options.threads or max(1, (os.cpu_count() or 2) - 1)  # the generator needs a core
    modes = dict.fromkeys((True, False), options.mode)
    engines: list[Engine] = []
    try:
        for device in options.devices:
            target = CPU if device == CPU else f"cuda:{known_gpus[device].ordinal}"
            engine_options = EngineOptions(threads=threads, mode=modes[device == CPU])
            engine = open_engine(
                options.engine, options.model, target, options.precision, engine_options, options.batch
            )
            engines.append(engine)
            modes[device == CPU] = engine.mode
            for note in engine.notes:
                warn(f"note: {engine.name} runs on {device} in mode {engine.mode}: {note}")
            engine.warm(engine.sizes or [1, options.batch])
    except BaseException:
        for engine in engines:
            engine.close()
        raise
    return tuple(engines)


def sums_natively(options: BatchingOptions, engines: Sequence[Engine]) -> bool:
    """Whether checksums are CRC-32 sums of what was read back: on a GPU; on a CPU the engine sums what it was given."""
    return not engines or any(device != CPU for device in options.devices)


def _dataset(options: LoadTestOptions, samples: int, engines: tuple[Engine, ...]) -> Dataset | None:
    """The samples; None without an engine, whose system makes its own."""
    if options.images is not None:
        layout = "chw" if engines and engines[0].spec.shape[0] == 3 else "hwc"
        images = ImageFolder(options.images, samples, layout)
        if engines:
            agree(images.spec, engines[0].spec, engines[0].name)
        return images
    if not engines:
        return None
    return Synthetic(engines[0].spec, samples or options.library)


def open_system(
    options: BatchingOptions, engines: Sequence[BatchCall] = (), *, samples: int = 0,
    fill: Callable[[int], Any] | None = None, checksum: bool = False, trace: int = 0,
    slots: _native.SlotMemory | None = None,
) -> _native.BatchingSystem:  # fmt: skip
    """The native system, ready to load samples; CannotMeasure where memory, a GPU or the native part is missing.

    `engines` has one for each device; without, they are synthetic. `samples` are in the data set (0: as many as the
    library), and `fill` gives a sample's bytes (None: synthetic). `checksum` answers each query with the CRC-32
    (zlib's, little endian) of what arrived on the device. The first `trace` batches of a run are kept. With `slots`,
    sample i is the content of slot i of them.
    """
    if engines and len(engines) != len(options.devices):
        raise InputError(f"{len(engines)} engines for {len(options.devices)} devices", hint="give each its own")
    native = native_part()
    try:
        gpu_of = gpus(options.devices)
        devices = []
        for device, engine in zip_longest(options.devices, engines):
            gpu = gpu_of.get(device)
            ordinal, node = (-1, -1) if gpu is None else (gpu.ordinal, gpu.numa)
            devices.append((ordinal, options.node if options.node >= 0 else node, engine))
        _check_memory(options, len({node for _, node, _ in devices}))
        system: _native.BatchingSystem = native.BatchingSystem(
            options, devices, samples or options.library, fill, checksum, trace, cuda_driver(), slots
        )
    except native.ProbeFailure as failure:
        raise cannot(failure) from None
    return system


def _check_memory(options: BatchingOptions, nodes: int) -> None:
    """CannotMeasure where host memory is short: a library on each of `nodes`, buffers, queues."""
    stride = -(-options.sample_bytes // 16) * 16
    of_device = options.batch * options.streams * stride + options.most_waiting * 24
    needed, free = options.library * stride * nodes + len(options.devices) * of_device, available_memory()
    if free is not None and needed > free:
        raise CannotMeasure(f"{needed / 1e9:.1f} GB of host memory needed, {free / 1e9:.1f} GB free",
                            hint="take a smaller library, or fewer batches in flight")  # fmt: skip


def _recording(call: Callable[..., Any], failures: list[LanewiseError]) -> Callable[..., Any]:
    """The same call; what it raises is also appended to `failures`, as the native system passes on its text alone."""

    def wrapped(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except LanewiseError as error:
            failures.append(error)
            raise
        except Exception as error:  # an engine's library may raise anything
            cause = f"the system under test failed: {type(error).__name__}: {error}"
            failures.append(CannotMeasure(cause, hint="try a smaller batch, or another engine"))
            raise

    return wrapped


def _setup(options: LoadTestOptions, engines: tuple[Engine, ...], dataset: Dataset | None) -> dict[str, object]:
    setup = about_engine(options, engines)
    setup |= dataset.describe() if dataset is not None else {"dataset": "synthetic"}
    setup |= {**about_batches(options), "library": options.library, **about_service(options, engines)}
    return {**setup, "sample bytes": options.sample_bytes}


def about_engine(options: ModelOptions, engines: Sequence[Engine]) -> dict[str, object]:
    """Engine, devices, model and versions."""
    setup: dict[str, object] = {"engine": options.engine, "devices": ", ".join(options.devices)}
    weights = {"weights": "none: no model runs, a device is held for a stated time"}
    return {**setup, **(engines[0].describe() if engines else weights)}


def about_batches(options: BatchingOptions) -> dict[str, object]:
    """How batches are formed."""
    return {
        "batch": options.batch,
        "time-out": units.readable(options.timeout, "s"),
        "streams": options.streams,
    }


def about_service(options: BatchingOptions, engines: Sequence[Engine]) -> dict[str, object]:
    """The synthetic engine's stated times."""
    per_batch, per_query = (units.readable(time, "s") for time in options.service)
    return {} if engines else {"service": f"{per_batch} a batch + {per_query} a query"}
