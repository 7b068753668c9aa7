"""What an engine is: it takes a batch of samples and gives an answer for each; all its work is done by one thread."""

from __future__ import annotations

import statistics
import threading
import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lanewise.errors import CannotMeasure, InputError, LanewiseError
from lanewise.loadtest.datasets import Synthetic
from lanewise.loadtest.models import Model
from lanewise.loadtest.spec import Array, SampleSpec, batch_of

T = TypeVar("T")

CPU = "cpu"
WARM = 3  # runs of a batch size before it counts as prepared
# A service time is the median of runs until there are LEAST of them that took SECONDS together, MOST at most.
LEAST, MOST, SECONDS = 7, 200, 0.5
SMALL = 8  # prepared batch sizes are powers of two up to here, and so many steps to the largest


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How an engine runs; each engine refuses what it does not know.

    `threads` are onnxruntime's inside an operator (0 is one a core), `output` which output answers (empty is the
    first). `mode` is torch's (eager, compiled, graphs, compiled-graphs) or onnxruntime's provider (cpu, cuda,
    tensorrt); empty is the first that works on the device. `layout` and `seed` are of models that Lanewise builds, kept
    in `folder`. `image`: a file that takes normalised float images (n, 3, height, width) is
    given uint8 pixels in `layout`, normalised inside.
    """

    threads: int = 0
    output: str = ""
    mode: str = ""
    layout: str = "hwc"
    seed: int = 1
    image: bool = False
    folder: Path | None = None


class InlineExecutor:
    """Does what is submitted at once, one piece of work after another, in the thread of whoever asks."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """The work's result or error, there already."""
        future: Future[T] = Future()
        with self._turn:
            try:
                future.set_result(work(*arguments))
            except Exception as error:
                future.set_exception(error)
        return future

    def shutdown(self) -> None:
        """Nothing: there is no thread to end."""


class Engine(ABC):
    """Runs a model on one device. Any number of threads may call it at once; all its work is done by one thread.

    `sizes` are the batch sizes that are prepared, ascending: a batch is padded to the next, and takes as long. Empty
    where every batch runs as it is.

    Much of what libraries prepare belongs to the thread that ran it: cuDNN's plans for a convolution, Dynamo's
    settings, inference mode, the current stream, handles of cuBLAS, pools of OpenMP. A load test has new threads in
    every run; they would prepare it all anew in the middle of a measurement. One thread is also what keeps batches in
    order, without a lock. To hand a batch over takes tens of us, while the device works on the batch before.
    Where nothing belongs to a thread and the caller's is the device, as of onnxruntime on a CPU, `_by_caller` says so.
    `mode` is how the model runs, and `notes` say which faster modes failed before it, and why.
    """

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.mode, self.notes = "", list[str]()
        self._device, self._max_batch = CPU, 1
        self._worker: ThreadPoolExecutor | InlineExecutor | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """Engine and model: `onnxruntime small-cnn`."""

    @property
    @abstractmethod
    def spec(self) -> SampleSpec:
        """One sample."""

    @property
    @abstractmethod
    def classifies(self) -> bool:
        """Whether an output is known to be scores of classes, the largest of which is the answer."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """What runs: engine, model, weights (random or file), precision, device, provider or mode, versions."""

    def load(self, device: str, max_batch: int) -> None:
        """Brings the model onto `cpu`, `cuda` or `cuda:N` (CUDA's own numbers), for batches up to `max_batch`.

        InputError for what does not go together, CannotMeasure where the device refuses.
        """
        index = device_index(device)
        checked_sizes([1], max_batch)
        self._stop()
        self._device, self._max_batch = CPU if index is None else f"cuda:{index}", max_batch
        by_caller = self._by_caller(index)
        self._worker = InlineExecutor() if by_caller else ThreadPoolExecutor(1, thread_name_prefix="engine")
        try:
            self._do(self._open, index)
        except BaseException:
            self._stop()
            raise

    def warm(self, batches: Sequence[int]) -> None:
        """Runs each batch size a few times, so that nothing is prepared in a measured run."""
        for size in checked_sizes(batches, self._max_batch):
            batch = random_batch(self.spec, size)
            for _ in range(WARM):
                self.infer(batch)

    def infer(self, batch: Array) -> Array:
        """Answers (n, ...) in host memory of samples in host memory: (n, bytes) of uint8 or (n, *shape)."""
        return self._do(self._infer, self._rows(batch))

    def checksums(self, batch: Array) -> Array:
        """The checksum (uint64) of each sample, of what reached the device; see lanewise.loadtest.audits."""
        return self._do(self._checksums, self._rows(batch))

    @abstractmethod
    def infer_at(self, address: int, n: int, stride: int = 0) -> Array:
        """The same of n samples `stride` bytes apart (0: in a row) in the memory of the engine's device, complete
        before the call; valid until the next call with that address.

        There is room for the largest batch: what follows the n samples may be read, and gets no answer.
        """

    @abstractmethod
    def classes_at(self, address: int, n: int, stride: int = 0) -> Array:
        """As infer_at, of each sample the class alone (n, of int32)."""

    def service_times(self, batches: Sequence[int]) -> dict[int, float]:
        """Seconds by batch size, one after another, as a device queue has it: the samples are in the memory of the
        device, and the answers, classes where `classifies`, are back in host memory at the end."""
        sizes = checked_sizes(batches, self._max_batch)
        whole = random_batch(self.spec, max(sizes, default=1))
        if self._device == CPU:
            return closed_loop(self.infer, {size: whole[:size] for size in sizes})
        answer = self.classes_at if self.classifies else self.infer_at
        address, owner = self._do(self._placed, whole)
        try:
            return closed_loop(lambda n: answer(address, n), {size: size for size in sizes})
        finally:
            del owner  # the memory at `address`

    def close(self) -> None:
        """Lets the model and the device's memory go; what is under way ends first."""
        self._stop()

    def _stop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.submit(self._let_go).result()
            worker.shutdown()

    def _by_caller(self, index: int | None) -> bool:
        """Whether whoever asks does the work, one after another: a sleeping thread may take longer to wake than it."""
        return False

    # What follows is each engine's own, and called by its thread.

    @abstractmethod
    def _open(self, index: int | None) -> None:
        """Brings the model onto the GPU of that ordinal, or the CPU (None)."""

    @abstractmethod
    def _infer(self, rows: Array) -> Array:
        """Answers of samples (n, *shape) in host memory."""

    @abstractmethod
    def _checksums(self, rows: Array) -> Array:
        """Their checksums, of what reached the device."""

    @abstractmethod
    def _placed(self, batch: Array) -> tuple[int, object]:
        """The address of a batch (n, bytes) brought to the device, and what holds that memory."""

    @abstractmethod
    def _let_go(self) -> None:
        """Frees everything."""

    @abstractmethod
    def _ours(self, error: Exception) -> CannotMeasure | None:
        """What the library raised as an error of ours; None if it is no failure of the library."""

    # Helpers.

    def _do(self, work: Callable[..., T], *arguments: Any) -> T:
        """What `work` returns, done by the engine's thread."""
        if self._worker is None:
            raise CannotMeasure("the engine is closed", hint="load it again")
        return self._worker.submit(lambda: self._translated(work, *arguments)).result()

    def _translated(self, work: Callable[..., T], *arguments: Any) -> T:
        """The same by this thread; errors of the library as ours."""
        try:
            return work(*arguments)
        except LanewiseError:
            raise
        except Exception as error:
            ours = self._ours(error)
            if ours is None:
                raise
            raise ours from error

    def _rows(self, batch: Array) -> Array:
        self._check(len(batch))
        return batch_of(batch, self.spec)

    def _check(self, n: int) -> None:
        if n > self._max_batch:
            raise InputError(f"a batch of {n} is above {self._max_batch}", hint="load for the largest batch")

    def _step(self, stride: int) -> int:
        """Bytes from a sample to the next; InputError where samples would overlap or their numbers be misaligned."""
        step, item = stride or self.spec.bytes, np.dtype(self.spec.dtype).itemsize
        if step < self.spec.bytes or step % item:
            raise InputError(f"samples of {self.spec} cannot lie {step} B apart", hint="round a sample up to 16 bytes")
        return step


def about_model(model: Model, seed: int, precision: str) -> dict[str, object]:
    """What an engine says of a model that Lanewise builds."""
    size = model.size()
    setup: dict[str, object] = {"model": model.about, "weights": f"random, seed {seed}", "parameters": size.parameters}
    return setup | {"multiply_adds": size.multiply_adds, "precision": precision, "sample": str(model.spec)}


def scores_classes(model: Model | None) -> bool:
    """Whether a model of ours has one score a class for each sample; of a file that is not known."""
    return model is not None and len(model.size().output) == 1


def steps(largest: int) -> list[int]:
    """1, 2, 4, 8, then every eighth of `largest`: 64 gives 1 2 4 8 16 24 ... 64, 128 gives 1 2 4 8 16 32 48 ... 128.

    Powers of two alone would pad 33 to 64, at nearly twice the cost. Where an eighth is more than 8, powers of two go
    on until there: a batch is padded to less than twice itself, and by less than an eighth of the largest.
    """
    step = -(-largest // SMALL)
    powers = [1 << power for power in range(max(SMALL, step).bit_length())]
    eighths = [size for size in range(step, largest, step) if size > SMALL]
    return sorted({size for size in (*powers, *eighths) if size < largest} | {largest})


def fitting(sizes: Sequence[int], n: int) -> int:
    """The smallest of the prepared `sizes` (ascending) that holds `n` samples; `n` itself where none are prepared."""
    return sizes[bisect_left(sizes, n)] if sizes else n


def closed_loop(
    infer: Callable[[T], object],
    batches: Mapping[int, T],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, float]:
    """The median seconds of `infer` for each batch, each run as soon as the one before has ended; the first two runs
    are not counted."""
    medians = {}
    for size, batch in sorted(batches.items()):
        for _ in range(2):
            infer(batch)
        durations: list[float] = []
        while len(durations) < LEAST or (sum(durations) < SECONDS and len(durations) < MOST):
            start = clock()
            infer(batch)
            durations.append(clock() - start)
        medians[size] = statistics.median(durations)
    return medians


def checked_sizes(batches: Sequence[int], max_batch: int) -> list[int]:
    """The batch sizes in order, each once; InputError outside 1 to `max_batch`."""
    for size in batches:
        if not 1 <= size <= max_batch:
            raise InputError(
                f"a batch of {size} is outside 1 to {max_batch}", hint="load the engine for the largest batch"
            )
    return sorted(set(batches))


def random_batch(spec: SampleSpec, n: int) -> Array:
    """n samples of the synthetic dataset."""
    dataset = Synthetic(spec, n)
    return np.stack([np.frombuffer(dataset.sample(index), np.uint8) for index in range(n)])


def classes_of(outputs: Array) -> Array:
    """Scores (n, classes) as the class of the largest, or the model's own integer where it answers one: (n), int32."""
    outputs = outputs.reshape(len(outputs), -1)
    own = outputs.shape[1] == 1 and outputs.dtype.kind in "iu"
    return np.ascontiguousarray(outputs[:, 0] if own else outputs.argmax(axis=1), np.int32)


def device_index(device: str) -> int | None:
    """The number of `cuda` or `cuda:N`, None for `cpu`; InputError for anything else."""
    kind, _, index = device.partition(":")
    if device == "cpu":
        return None
    if kind == "cuda" and (device == "cuda" or index.isdecimal()):
        return int(index or 0)
    raise InputError(f"there is no device '{device}' for an engine", hint="cpu, cuda or cuda:0, cuda:1, ...")
