"""torch as an engine: the models that Lanewise builds, eager, compiled or as CUDA graphs of fixed batch sizes."""

from __future__ import annotations

from bisect import bisect_left
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.errors import CannotMeasure, InputError, unknown_name
from lanewise.loadtest.checksum import WORD
from lanewise.loadtest.engines.base import Options, checked_sizes, closed_loop, device_index, random_batch
from lanewise.loadtest.models.as_torch import torch_module
from lanewise.loadtest.optional import need
from lanewise.loadtest.spec import batch_of, in_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lanewise.loadtest.models import Model
    from lanewise.loadtest.spec import Array, SampleSpec

MODES = ("eager", "compiled", "graphs", "compiled-graphs")
DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


class PyTorch:
    """See Engine. All modes but eager pad a batch up to the next of `sizes`, which load prepares."""

    def __init__(self, model: Model, precision: str = "fp32", options: Options = Options()) -> None:  # noqa: B008
        if options.mode not in MODES:
            raise unknown_name("mode", options.mode, MODES)
        self._torch = need("torch", "the torch engine")
        self._model, self._precision, self._options = model, precision, options
        self._device, self._max_batch = "cpu", 1
        self._module: Any = None
        self._stream: Any = None
        self._staging: Any = None
        self._runs: dict[int, Callable[[Any], Any]] = {}
        self.sizes: list[int] = []

    @property
    def name(self) -> str:
        """Engine and model."""
        return f"torch {self._model.name}"

    @property
    def spec(self) -> SampleSpec:
        """One sample."""
        return self._model.spec

    def describe(self) -> dict[str, object]:
        """What runs."""
        size, torch = self._model.size(), self._torch
        said: dict[str, object] = {"engine": "torch", "version": torch.__version__, "model": self._model.about}
        said |= {"weights": f"random, seed {self._options.seed}", "parameters": size.parameters}
        said |= {"multiply_adds": size.multiply_adds, "precision": self._precision, "sample": str(self.spec)}
        said |= {"device": self._device, "mode": self._options.mode, "batch_sizes": list(self.sizes)}
        if self._device != "cpu":
            said |= {"gpu": torch.cuda.get_device_name(self._device), "cuda": torch.version.cuda}
            said["tf32"] = bool(torch.backends.cudnn.allow_tf32)
        return said

    def load(self, device: str, max_batch: int) -> None:
        """See Engine; CannotMeasure where torch has no CUDA, no such GPU, or not the memory."""
        index, mode, torch = device_index(device), self._options.mode, self._torch
        checked_sizes([1], max_batch)
        self.close()
        if index is None and "graphs" in mode:
            raise InputError(f"the mode {mode} needs a GPU", hint="--device cuda, or the mode eager or compiled")
        self._refuse_absent(index)
        self._device, self._max_batch = "cpu" if index is None else f"cuda:{index}", max_batch
        self._stream = torch.cuda.Stream(index) if index is not None else None
        if index is None and self._options.threads:
            torch.set_num_threads(self._options.threads)
        self.sizes = [1 << power for power in range(max_batch.bit_length()) if 1 << power < max_batch] + [max_batch]
        shape = (max_batch, *self.spec.shape)
        with self._ready():
            dtype = getattr(torch, self.spec.dtype)
            self._staging = torch.zeros(shape, dtype=dtype, pin_memory=index is not None)
            module = torch_module(self._model, self._options.seed)
            module = module.to(device=self._device, dtype=getattr(torch, DTYPES[self._precision]))
            images = not self.spec.below
            self._module = module.to(memory_format=torch.channels_last) if images else module
            torch.backends.cudnn.benchmark = mode != "eager"
            self._prepare()

    def warm(self, batches: Sequence[int]) -> None:
        """See Engine."""
        for size in checked_sizes(batches, self._max_batch):
            batch = random_batch(self.spec, size)
            for _ in range(3):
                self.infer(batch)

    def infer(self, batch: Array) -> Array:
        """See Engine."""
        with self._ready():
            return self._answers(self._moved(batch), len(batch))

    def infer_at(self, address: int, n: int) -> Array:
        """See Engine."""
        with self._ready():
            return self._answers(self._seen(address, n), n)

    def checksums(self, batch: Array) -> Array:
        """See Engine; computed on the device."""
        torch = self._torch
        with self._ready():
            rows = self._moved(batch).contiguous().reshape(len(batch), -1).view(torch.uint8)
            size = rows.shape[1]
            words = torch.nn.functional.pad(rows, (0, -size % WORD)).view(torch.int64)
            factors = 2 * torch.arange(words.shape[1], device=words.device) + 1
            found: Array = ((words * factors).sum(dim=1) + size).cpu().numpy()
            return found.view(np.uint64)

    def service_times(self, batches: Sequence[int]) -> dict[int, float]:
        """See Engine."""
        sizes = checked_sizes(batches, self._max_batch)
        return closed_loop(self.infer, {size: random_batch(self.spec, size) for size in sizes})

    def close(self) -> None:
        """See Engine."""
        self._runs.clear()
        self._module = self._staging = self._stream = None
        if self._device != "cpu":
            self._torch.cuda.empty_cache()

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """No gradients, this engine's GPU and stream; torch's errors as ours."""
        torch = self._torch
        try:
            with ExitStack() as entered:
                entered.enter_context(torch.inference_mode())
                if self._stream is not None:
                    entered.enter_context(torch.cuda.stream(self._stream))
                yield
        except torch.OutOfMemoryError as error:
            raise CannotMeasure(
                f"{self._device} has too little memory", hint="choose a smaller largest batch"
            ) from error
        except (RuntimeError, torch._dynamo.exc.TorchDynamoException) as error:
            why = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise CannotMeasure(f"{self.name} failed: {why}", hint="try the mode eager, or the CPU") from error

    def _moved(self, batch: Array) -> Any:
        """The batch on the device, through pinned memory where that is a GPU."""
        rows = batch_of(batch, self.spec)
        if self._module is None:
            raise CannotMeasure("the engine is closed", hint="load it again")
        if len(rows) > self._max_batch:
            raise InputError(f"a batch of {len(rows)} is above {self._max_batch}", hint="load for the largest batch")
        held = self._staging[: len(rows)]
        np.copyto(held.numpy(), rows)  # also of read-only memory, which torch does not take as a tensor
        return held.to(self._device, non_blocking=True)

    def _seen(self, address: int, n: int) -> Any:
        """A tensor of n samples where they lie."""
        typestr = np.dtype(self.spec.dtype).str
        if self._device == "cpu":
            return self._torch.from_numpy(in_memory(address, n, self.spec))
        interface = {"shape": (n, *self.spec.shape), "typestr": typestr, "data": (address, False), "version": 3}
        holder = type("Memory", (), {"__cuda_array_interface__": interface})()
        return self._torch.as_tensor(holder, device=self._device)

    def _answers(self, samples: Any, n: int) -> Array:
        if self._options.mode == "eager":
            return self._host(self._module(samples))
        size = self.sizes[bisect_left(self.sizes, n)]
        return self._host(self._runs[size](samples)[:n])

    def _host(self, scores: Any) -> Array:
        found: Array = scores.cpu().numpy()
        return found

    def _prepare(self) -> None:
        """Compiles or captures every batch size, the largest first so that the smaller reuse its memory."""
        mode, torch = self._options.mode, self._torch
        if mode == "eager":
            return
        run = torch.compile(self._module, dynamic=False) if "compiled" in mode else self._module
        pool = None
        for size in reversed(self.sizes):
            held = self._staging[:size].to(self._device).clone()
            for _ in range(3):
                run(held)
            if "graphs" not in mode:
                self._runs[size] = _padded(run, held)
                continue
            torch.cuda.synchronize(self._device)
            graph = torch.cuda.CUDAGraph()
            # Other threads may use the GPU meanwhile; this one's calls alone are captured.
            with torch.cuda.graph(graph, pool=pool, stream=self._stream, capture_error_mode="thread_local"):
                scores = run(held)
            pool = pool or graph.pool()
            self._runs[size] = _replayed(graph, held, scores)

    def _refuse_absent(self, index: int | None) -> None:
        torch = self._torch
        if index is None:
            return
        if not torch.cuda.is_available():
            raise CannotMeasure("torch finds no CUDA here", hint="pip install torch with CUDA, or use --device cpu")
        if index >= torch.cuda.device_count():
            raise CannotMeasure(
                f"there is no cuda:{index}, torch sees {torch.cuda.device_count()} GPUs", hint="count from cuda:0"
            )


def _padded(run: Callable[[Any], Any], held: Any) -> Callable[[Any], Any]:
    """Runs batches of up to `held` rows at its size; rows beyond the batch hold an earlier one's."""

    def ran(samples: Any) -> Any:
        held[: len(samples)].copy_(samples)
        return run(held)

    return ran


def _replayed(graph: Any, held: Any, scores: Any) -> Callable[[Any], Any]:
    """The same by replaying a captured graph from `held` to `scores`."""

    def ran(samples: Any) -> Any:
        held[: len(samples)].copy_(samples)
        graph.replay()
        return scores

    return ran


__all__ = ["MODES", "PyTorch"]
