"""A load test put together: engine, dataset and system under test, with a runner of LoadGen that stays open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.errors import CannotMeasure, InputError, LanewiseError, unknown_name
from lanewise.loadtest.batch_interval import intervals
from lanewise.loadtest.loadgen import LoadGenRunner, RunnerSetup, Tick, needs_loadgen
from lanewise.loadtest.system import (
    CPU,
    SYNTHETIC,
    SystemSpec,
    SystemStatistics,
    gpus,
    open_system,
    perfetto,
    statistics,
)

if TYPE_CHECKING:
    from lanewise import _native
    from lanewise.loadtest.datasets import Dataset
    from lanewise.loadtest.engines import Engine, EngineOptions

BRIEF, PLAIN, CLASSES, SUMS = "", "answers", "classes", "checksums"


@dataclass(frozen=True, slots=True)
class BenchAsk:
    """What is tested. `engine` is synthetic, onnxruntime or torch, `model` a name or an ONNX file.

    `system` has devices, batching, copies and library; its engine, bytes of a sample and fill come from the model and
    the dataset. `images` is a folder of labelled images (None: synthetic samples), of which `count` are taken (0: all;
    of synthetic ones the library). `seed` is of synthetic samples. `answer` is what an engine answers: its outputs, a
    class (Top-1), or a checksum of what reached it; empty is the class of a classifier, which is all that its service
    sends back, and the outputs of other models.
    """

    engine: str = SYNTHETIC
    model: str = "small-cnn"
    precision: str = "fp32"
    options: EngineOptions | None = None
    system: SystemSpec = field(default_factory=SystemSpec)
    images: Path | None = None
    count: int = 0
    seed: int = 1
    answer: str = BRIEF


@dataclass(frozen=True, slots=True)
class LoadTestSession:
    """An open load test: `setup` names what runs, with versions, the same each time; `dataset` gives labels."""

    ask: BenchAsk
    runner: LoadGenRunner
    system: _native.BatchingSystem
    engines: tuple[Engine, ...]
    dataset: Dataset | None
    sample_bytes: int
    setup: dict[str, object]

    def statistics(self) -> SystemStatistics:
        """Where the last run's time went."""
        return statistics(self.system)

    def trace(self) -> str:
        """The last run's first batches for Perfetto."""
        return perfetto(self.system, self.ask.system.devices)

    def service_times(self) -> dict[int, float]:
        """Seconds that the engine alone takes for batches of `sizes`, one after the other; stated ones of none."""
        if self.engines:
            return self.engines[0].service_times(self.sizes)
        spec = self.ask.system
        return {size: spec.service_batch + size * spec.service_query for size in self.sizes}

    def batch_intervals(self, sizes: Sequence[int] = ()) -> dict[int, float]:
        """Seconds from one batch of a device to its next, of `sizes` or all, in the system at work; CannotMeasure."""
        return intervals(self.system, self.ask.system, sizes or self.sizes)

    @property
    def steps(self) -> bool:
        """Whether batches between two of `sizes` are filled up to the larger."""
        return bool(self.engines) and bool(self.engines[0].sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Batch sizes that tell how long every other takes: those the engine prepared, else 1, 2, 4 ... the largest."""
        prepared = self.engines[0].sizes if self.engines else ()
        largest = self.ask.system.batch
        return tuple(sorted(prepared or {largest, *(2**i for i in range(largest.bit_length()))}))


@contextmanager
def opened(
    ask: BenchAsk, folder: Path, tick: Tick | None = None, runs: RunnerSetup | None = None
) -> Iterator[LoadTestSession]:
    """A session whose runs keep LoadGen's logs below `folder`; what it holds is let go at the end.

    CannotMeasure, InputError, FormatError or MissingDependency where something is missing, wrong or too small.
    """
    needs_loadgen()
    engines = _engines(ask)
    failures: list[LanewiseError] = []
    try:
        dataset, sample_bytes = _dataset(ask, engines)
        spec = _system(ask, engines, dataset, sample_bytes, failures)
        system = open_system(spec)
        samples = spec.samples or spec.library
        runner_setup = replace(runs or RunnerSetup(), samples=samples, resident=min(spec.library, samples))
        runner = LoadGenRunner(system, folder, runner_setup, _watching(failures, tick))
        yield LoadTestSession(
            replace(ask, system=spec), runner, system, engines, dataset, sample_bytes,
            _setup(ask, engines, dataset, sample_bytes),
        )  # fmt: skip
    except LanewiseError as error:
        if not failures:
            raise
        # The native system passes on the text of an engine's error alone; the first failure has its hint and place.
        own = failures[0]
        logs = f"logs: {folder}" if folder.exists() else ""
        own.hint = "; ".join(text for text in (own.hint, logs) if text)
        if own is error:
            raise
        raise own from None
    finally:
        failures.clear()  # the native system holds this list, and an error's traceback the system: a circle never freed
        for engine in engines:
            engine.close()


def _engines(ask: BenchAsk) -> tuple[Engine, ...]:
    if ask.engine == SYNTHETIC:
        if ask.answer == CLASSES:
            raise InputError("the synthetic engine names no classes", hint="choose onnxruntime or torch for accuracy")
        return ()
    from lanewise.loadtest.engines import ENGINES, open_engine

    if ask.engine not in ENGINES:
        raise unknown_name("engine", ask.engine, [*ENGINES, SYNTHETIC])
    known_gpus = gpus(ask.system.devices)
    engines: list[Engine] = []
    try:
        for device in ask.system.devices:
            location = CPU if device == CPU else f"cuda:{known_gpus[device].ordinal}"
            engines.append(open_engine(ask.engine, ask.model, location, ask.precision, ask.options, ask.system.batch))
            engines[-1].warm(engines[-1].sizes or [1, ask.system.batch])
    except BaseException:
        for engine in engines:
            engine.close()
        raise
    return tuple(engines)


def _dataset(ask: BenchAsk, engines: tuple[Engine, ...]) -> tuple[Dataset | None, int]:
    """The samples, and bytes of one; without an engine the system makes its own."""
    if ask.images is not None:
        from lanewise.loadtest.datasets.images import ImageFolder
        from lanewise.loadtest.spec import agree

        layout = "chw" if engines and engines[0].spec.shape[0] == 3 else "hwc"
        images = ImageFolder(ask.images, ask.count, layout)
        if engines:
            agree(images.spec, engines[0].spec, engines[0].name)
        return images, images.spec.bytes
    if not engines:
        return None, ask.system.sample_bytes
    from lanewise.loadtest.datasets.synthetic import Synthetic

    spec = engines[0].spec
    return Synthetic(spec, ask.count or ask.system.library, ask.seed), spec.bytes


def _system(
    ask: BenchAsk,
    engines: tuple[Engine, ...],
    dataset: Dataset | None,
    sample_bytes: int,
    failures: list[LanewiseError],
) -> SystemSpec:
    """As asked, with what the model and the dataset decide; `failures` receives what they raise while a run goes on."""
    # What arrived on a GPU is read back and summed natively; on a CPU the engine sums what it was given.
    native = ask.answer == SUMS and (not engines or any(device != CPU for device in ask.system.devices))
    samples = len(dataset) if dataset is not None else ask.count or ask.system.library
    spec = replace(
        ask.system, sample_bytes=sample_bytes, samples=samples, library=min(ask.system.library, samples),
        fill=_recording(dataset.sample, failures) if dataset is not None else None, checksum=native,
    )  # fmt: skip
    if not engines:
        return spec
    return replace(spec, engine=tuple(_recording(_answer(engine, ask.answer), failures) for engine in engines))


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


def _watching(failures: list[LanewiseError], tick: Tick | None) -> Tick:
    """A tick that ends a run whose system has failed: LoadGen would go on, and call empty answers VALID."""

    def watching(issued: int, answered: int, late: int) -> None:
        if failures:
            raise failures[0]
        if tick is not None:
            tick(issued, answered, late)

    return watching


def _answer(engine: Engine, answer: str) -> Any:
    """What the native system calls for a batch, of several threads at once: in host memory an array, of a GPU its
    address."""
    from lanewise.loadtest.engines import callback

    answer_kind = answer or (CLASSES if engine.classifies else PLAIN)
    on_host = {PLAIN: callback.answering, CLASSES: callback.naming_class, SUMS: callback.auditing}[answer_kind](engine)
    on_gpu = callback.lying(engine.classes_at if answer_kind == CLASSES else engine.infer_at)

    def respond(batch: Any, samples: Any) -> Any:
        interface = getattr(batch, "__cuda_array_interface__", None)
        return on_host(batch, samples) if interface is None else on_gpu(interface)

    return respond


def _setup(ask: BenchAsk, engines: tuple[Engine, ...], dataset: Dataset | None, sample_bytes: int) -> dict[str, object]:
    setup: dict[str, object] = {"engine": ask.engine, "devices": ", ".join(ask.system.devices)}
    if engines:
        setup |= engines[0].describe()
    else:
        setup["weights"] = "none: no model runs, a device is held for a stated time"
    setup |= dataset.describe() if dataset is not None else {"dataset": "synthetic"}
    spec = ask.system
    wait = units.readable(spec.timeout, "s")
    setup |= {"batch": spec.batch, "time-out": wait, "streams": spec.streams, "library": spec.library}
    if not engines:
        per_batch, per_query = (units.readable(time, "s") for time in (spec.service_batch, spec.service_query))
        setup["service"] = f"{per_batch} a batch + {per_query} a query"
    return {**setup, "sample bytes": sample_bytes}
