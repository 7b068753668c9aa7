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
from lanewise.loadtest.system import CPU, SYNTHETIC, SystemSpec, SystemStatistics, account, gpus, open_system, perfetto

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
    """An open load test: `about` says what runs in words and versions, the same each time; `dataset` gives labels."""

    ask: BenchAsk
    runner: LoadGenRunner
    system: _native.BatchingSystem
    engines: tuple[Engine, ...]
    dataset: Dataset | None
    sample_bytes: int
    about: dict[str, object]

    def account(self) -> SystemStatistics:
        """Where the last run's time went."""
        return account(self.system)

    def trace(self) -> str:
        """The last run's first batches for Perfetto."""
        return perfetto(self.system, self.ask.system.devices)

    def service_times(self) -> dict[int, float]:
        """Seconds that the engine alone takes for batches of `sizes`, one after the other; stated ones of none."""
        if self.engines:
            return self.engines[0].service_times(self.sizes)
        asked = self.ask.system
        return {size: asked.service_batch + size * asked.service_query for size in self.sizes}

    def busy_times(self, sizes: Sequence[int] = ()) -> dict[int, float]:
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
    """A bench whose runs keep LoadGen's logs below `folder`; what it holds is let go at the end.

    CannotMeasure, InputError, FormatError or MissingDependency where something is missing, wrong or too small.
    """
    needs_loadgen()
    engines = _engines(ask)
    failed: list[LanewiseError] = []
    try:
        dataset, sample_bytes = _dataset(ask, engines)
        asked = _system(ask, engines, dataset, sample_bytes, failed)
        system = open_system(asked)
        samples = asked.samples or asked.library
        setup = replace(runs or RunnerSetup(), samples=samples, resident=min(asked.library, samples))
        runner = LoadGenRunner(system, folder, setup, _watching(failed, tick))
        kept = replace(ask, system=asked)
        yield LoadTestSession(
            kept, runner, system, engines, dataset, sample_bytes, _about(ask, engines, dataset, sample_bytes)
        )
    except LanewiseError as error:
        if not failed:
            raise
        # What a sample or an engine said reaches the native system as text alone; it was told better where it happened.
        own = failed[0]
        logs = f"logs: {folder}" if folder.exists() else ""
        own.hint = "; ".join(text for text in (own.hint, logs) if text)
        if own is error:
            raise
        raise own from None
    finally:
        failed.clear()  # the native system holds this list, and an error's traceback the system: a circle never freed
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
    known = gpus(ask.system.devices)
    made: list[Engine] = []
    try:
        for device in ask.system.devices:
            where = CPU if device == CPU else f"cuda:{known[device].ordinal}"
            made.append(open_engine(ask.engine, ask.model, where, ask.precision, ask.options, ask.system.batch))
            made[-1].warm(made[-1].sizes or [1, ask.system.batch])
    except BaseException:
        for engine in made:
            engine.close()
        raise
    return tuple(made)


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
    failed: list[LanewiseError],
) -> SystemSpec:
    """As asked, with what the model and the dataset decide; `failed` is given what they raise while a run goes on."""
    # What arrived on a GPU is read back and summed natively; on a CPU the engine sums what it was given.
    native = ask.answer == SUMS and (not engines or any(device != CPU for device in ask.system.devices))
    samples = len(dataset) if dataset is not None else ask.count or ask.system.library
    asked = replace(
        ask.system, sample_bytes=sample_bytes, samples=samples, library=min(ask.system.library, samples),
        fill=_kept(dataset.sample, failed) if dataset is not None else None, checksum=native,
    )  # fmt: skip
    if not engines:
        return asked
    return replace(asked, engine=tuple(_kept(_called(engine, ask.answer), failed) for engine in engines))


def _kept(call: Callable[..., Any], failed: list[LanewiseError]) -> Callable[..., Any]:
    """The same call; what it raises is kept in `failed` on its way through the native system."""

    def kept(*given: Any) -> Any:
        try:
            return call(*given)
        except LanewiseError as error:
            failed.append(error)
            raise
        except Exception as error:  # an engine's library may raise anything
            cause = f"the system under test failed: {type(error).__name__}: {error}"
            failed.append(CannotMeasure(cause, hint="try a smaller batch, or another engine"))
            raise

    return kept


def _watching(failed: list[LanewiseError], tick: Tick | None) -> Tick:
    """A tick that ends a run whose system has failed: LoadGen would go on, and call empty answers VALID."""

    def told(issued: int, answered: int, late: int) -> None:
        if failed:
            raise failed[0]
        if tick is not None:
            tick(issued, answered, late)

    return told


def _called(engine: Engine, answer: str) -> Any:
    """What the native system calls for a batch, of several threads at once: in host memory an array, of a GPU its
    address."""
    from lanewise.loadtest.engines import callback

    what = answer or (CLASSES if engine.classifies else PLAIN)
    on_host = {PLAIN: callback.answering, CLASSES: callback.naming_class, SUMS: callback.auditing}[what](engine)
    on_gpu = callback.lying(engine.classes_at if what == CLASSES else engine.infer_at)

    def called(batch: Any, samples: Any) -> Any:
        held = getattr(batch, "__cuda_array_interface__", None)
        return on_host(batch, samples) if held is None else on_gpu(held)

    return called


def _about(ask: BenchAsk, engines: tuple[Engine, ...], dataset: Dataset | None, sample_bytes: int) -> dict[str, object]:
    told: dict[str, object] = {"engine": ask.engine, "devices": ", ".join(ask.system.devices)}
    if engines:
        told |= engines[0].describe()
    else:
        told["weights"] = "none: no model runs, a device is held for a stated time"
    told |= dataset.describe() if dataset is not None else {"dataset": "synthetic"}
    asked = ask.system
    wait = units.readable(asked.timeout, "s")
    told |= {"batch": asked.batch, "time-out": wait, "streams": asked.streams, "library": asked.library}
    if not engines:
        each, every = (units.readable(time, "s") for time in (asked.service_batch, asked.service_query))
        told["service"] = f"{each} a batch + {every} a query"
    return {**told, "sample bytes": sample_bytes}
