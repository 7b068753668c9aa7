"""What engines share: a thread of their own that does all their work, what is checked before, and service times."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lanewise.errors import CannotMeasure, InputError, LanewiseError
from lanewise.loadtest.engines.base import checked_sizes, closed_loop, device_index, random_batch
from lanewise.loadtest.spec import batch_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lanewise.loadtest.models import Model
    from lanewise.loadtest.spec import Array, SampleSpec

CPU = "cpu"
WARM = 3  # runs of a batch size before it counts as prepared


class InlineExecutor:
    """Does what is submitted at once, one piece of work after another, in the thread of whoever asks."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """The work's result or error, there already."""
        future: Future[Any] = Future()
        with self._turn:
            try:
                future.set_result(work(*arguments))
            except Exception as error:
                future.set_exception(error)
        return future

    def shutdown(self) -> None:
        """Nothing: there is no thread to end."""


class SingleThreadEngine(ABC):
    """An engine all of whose work is done by one thread, whoever asks for it; see Engine.

    Much of what libraries prepare belongs to the thread that ran it: cuDNN's plans for a convolution, Dynamo's
    settings, inference mode, the current stream, handles of cuBLAS, pools of OpenMP. A load test has new threads in
    every run; they would prepare it all anew in the middle of a measurement. One thread is also what keeps batches in
    order, without a lock. To hand a batch over takes tens of us, while the device works on the batch before.
    Where nothing belongs to a thread and the caller's is the device, as of onnxruntime on a CPU, `_by_caller` says so.
    """

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._device, self._max_batch = CPU, 1
        self._worker: ThreadPoolExecutor | InlineExecutor | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """Engine and model."""

    @property
    @abstractmethod
    def spec(self) -> SampleSpec:
        """One sample."""

    @property
    @abstractmethod
    def classifies(self) -> bool:
        """See Engine."""

    def load(self, device: str, max_batch: int) -> None:
        """See Engine; InputError for what does not go together, CannotMeasure where the device refuses."""
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
        """See Engine."""
        for size in checked_sizes(batches, self._max_batch):
            batch = random_batch(self.spec, size)
            for _ in range(WARM):
                self.infer(batch)

    def infer(self, batch: Array) -> Array:
        """See Engine."""
        return self._array(self._infer, self._rows(batch))

    def checksums(self, batch: Array) -> Array:
        """See Engine."""
        return self._array(self._checksums, self._rows(batch))

    @abstractmethod
    def infer_at(self, address: int, n: int, stride: int = 0) -> Array:
        """See Engine."""

    @abstractmethod
    def classes_at(self, address: int, n: int, stride: int = 0) -> Array:
        """See Engine."""

    def service_times(self, batches: Sequence[int]) -> dict[int, float]:
        """See Engine; on a CPU the batch is an array that is handed over as it is."""
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
        """See Engine; what is under way ends first."""
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

    def _do(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """What `work` returns, done by the engine's thread."""
        if self._worker is None:
            raise CannotMeasure("the engine is closed", hint="load it again")
        return self._worker.submit(self._translated, work, *arguments).result()

    def _array(self, work: Callable[..., Array], *arguments: Any) -> Array:
        outputs: Array = self._do(work, *arguments)
        return outputs

    def _translated(self, work: Callable[..., Any], *arguments: Any) -> Any:
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
        """Bytes from a sample to the next; InputError where samples would overlap or their numbers lie astride."""
        import numpy as np

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
