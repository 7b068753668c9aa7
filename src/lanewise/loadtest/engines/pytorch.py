"""torch as an engine: the models that Lanewise builds, eager, compiled or as CUDA graphs of prepared batch sizes."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from lanewise.errors import CannotMeasure, InputError, LanewiseError, import_extra, unknown_name
from lanewise.loadtest.audits import WORD
from lanewise.loadtest.cache import cache_folder
from lanewise.loadtest.engines.base import (
    CPU,
    WARM,
    Engine,
    EngineOptions,
    about_model,
    fitting,
    scores_classes,
    steps,
)  # fmt: skip
from lanewise.loadtest.engines.torch_device import Run, TorchDevice, device_of
from lanewise.loadtest.models import Model
from lanewise.loadtest.models.torch_model import torch_module
from lanewise.loadtest.spec import Array, SampleSpec, batch_of

MODES = ("eager", "compiled", "graphs", "compiled-graphs")
CPU_MODES, GPU_MODES = ("eager",), ("compiled-graphs", "graphs", "eager")  # without --mode, the first that works
DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
VARIANTS = 1 << 16  # of one function that Dynamo may compile: sizes times GPUs, never reached
OUTPUTS, CLASSES = 0, 1  # which of a run's two results


class BufferKey(NamedTuple):
    """A buffer of batches on the device, and which result is computed of them."""

    address: int
    stride: int
    what: int


@dataclass(frozen=True, slots=True)
class Slot:
    """A batch in flight of one buffer: its samples (largest batch, *shape), its answers in host memory as a tensor and
    as the array that shares its memory, and the event that they are there."""

    samples: Any
    answers: Any
    array: Array
    event: Any


class PyTorch(Engine):
    """See Engine. A batch is padded up to the next of `sizes`, but for `eager` on a CPU.

    On a GPU the engine's thread only queues: samples into the input of the size's graph, its replay, the answers on
    their way to pinned memory of that buffer, an event. The caller waits for the event without the interpreter's
    lock, while the next batch is queued behind. Batches share a graph's input and output; that is right as all of it
    is on one stream, each copy of answers behind its own replay and before the next.

    Compiled, the largest batch and a single sample have code of their own, all sizes between them share one code that
    is open in the batch: three compilations in place of up to twelve.
    """

    library = "torch"
    modes: tuple[str, ...] = MODES

    def __init__(self, model: Model, precision: str = "fp32", options: EngineOptions = EngineOptions()) -> None:  # noqa: B008
        super().__init__()
        if options.mode and options.mode not in self.modes:
            raise unknown_name("mode", options.mode, self.modes)
        self._torch = import_extra("torch", "torch", "the torch engine needs torch")
        self._model, self._precision, self._options = model, precision, options
        self._place: TorchDevice | None = None
        self._entered = ExitStack()
        self._failed: list[str] = []
        self._whole: Run | None = None
        self._runs: dict[int, Run] = {}
        self._slots: dict[BufferKey, Slot] = {}

    @property
    def name(self) -> str:
        """Engine and model."""
        return f"{self.library} {self._model.name}"

    @property
    def spec(self) -> SampleSpec:
        """One sample."""
        return self._model.spec

    @property
    def classifies(self) -> bool:
        """See Engine."""
        return scores_classes(self._model)

    def describe(self) -> dict[str, object]:
        """What runs, and what a service time is of."""
        setup: dict[str, object] = {"engine": self.library, "version": self._version()}
        setup |= about_model(self._model, self._options.seed, self._precision)
        setup |= {"device": self._device, "mode": self.mode, "batch_sizes": list(self.sizes)}
        if self._failed:
            setup["failed_modes"] = list(self._failed)
        if self._device != CPU:
            setup["service_times"] = "samples on the GPU, answers back in host memory"
        return setup | (self._place.describe() if self._place is not None else {})

    def _version(self) -> str:
        return str(self._torch.__version__)

    def infer_at(self, address: int, n: int, stride: int = 0) -> Array:
        """See Engine."""
        return self._answer(BufferKey(address, self._step(stride), OUTPUTS), n)

    def classes_at(self, address: int, n: int, stride: int = 0) -> Array:
        """See Engine."""
        return self._answer(BufferKey(address, self._step(stride), CLASSES), n)

    def _answer(self, key: BufferKey, n: int) -> Array:
        self._check(n)
        slot, device = self._do(self._queue, key, n)
        self._translated(device.wait, slot.event)
        answers: Array = slot.array[:n]
        return answers

    def _queue(self, key: BufferKey, n: int) -> tuple[Slot, Any]:
        """Everything that answers a batch, up to its event."""
        device, slot = self._place, self._slots.get(key)
        assert device is not None
        if slot is None:
            slot = self._slots[key] = self._slot(device, key)
        outputs = self._run(slot.samples[:n])[key.what]
        slot.answers[:n].copy_(outputs[:n], non_blocking=True)
        device.record(slot.event)
        return slot, device

    def _slot(self, device: TorchDevice, key: BufferKey) -> Slot:
        """Made once for a buffer: a tensor over an address takes longer to make than a batch to queue.

        CannotMeasure where torch copies, as it does with memory of another GPU: a copy kept would answer old samples.
        """
        torch, spec = self._torch, self.spec
        whole = device.bytes_at(key.address, self._max_batch, key.stride)
        if whole.data_ptr() != key.address:
            raise CannotMeasure(f"the samples do not lie on {self._device}", hint="see CUDA_VISIBLE_DEVICES")
        samples = whole[:, : spec.bytes].view(getattr(torch, spec.dtype)).unflatten(1, spec.shape)
        classes = key.what == CLASSES
        shape = (self._max_batch,) if classes else (self._max_batch, *self._model.size().output)
        answers = device.answers(shape, torch.int32 if classes else torch.float32)
        return Slot(samples, answers, answers.numpy(), device.event())

    def _run(self, samples: Any) -> Any:
        """Outputs and classes of a batch on the device, and of what pads it."""
        if self._runs:
            return self._runs[fitting(self.sizes, len(samples))](samples)
        assert self._whole is not None
        return self._whole(samples)

    def _infer(self, rows: Array) -> Array:
        outputs = self._run(self._moved(rows))[OUTPUTS]
        answers: Array = outputs[: len(rows)].to(CPU, copy=True).numpy()
        return answers

    def _moved(self, rows: Array) -> Any:
        """On the device; torch takes no memory that may not be written."""
        assert self._place is not None
        return self._torch.from_numpy(rows if rows.flags.writeable else rows.copy()).to(self._place.name)

    def _placed(self, batch: Array) -> tuple[int, object]:
        tensor = self._moved(batch_of(batch, self.spec)).contiguous()
        return tensor.data_ptr(), tensor

    def _checksums(self, rows: Array) -> Array:
        """By the device itself."""
        torch = self._torch
        rows_bytes = self._moved(rows).contiguous().reshape(len(rows), -1).view(torch.uint8)
        size = rows_bytes.shape[1]
        words = torch.nn.functional.pad(rows_bytes, (0, -size % WORD)).view(torch.int64)
        factors = 2 * torch.arange(words.shape[1], device=words.device) + 1
        sums: Array = ((words * factors).sum(dim=1) + size).cpu().numpy()
        return sums.view("<u8")

    def _open(self, index: int | None) -> None:
        """In the mode of the options, else in the first that works."""
        modes = (self._options.mode,) if self._options.mode else self._defaults(index)
        self.notes, self._failed = [], []
        for mode in modes:
            try:
                self.mode = mode
                self._open_mode(mode, index)
                break
            except LanewiseError:
                raise
            except Exception as error:  # compilers fail in many ways, with errors of no common base
                if mode == modes[-1] or isinstance(error, self._torch.OutOfMemoryError):
                    hint = "choose another --mode, or none, which takes the fastest that works"
                    raise self._ours(error) or CannotMeasure(f"{mode} failed: {_reason(error)}", hint=hint) from error
                self.notes.append(f"{mode} failed: {_reason(error)}")
                self._failed.append(mode)
            self._let_go()  # outside the handler, whose traceback holds the model

    def _open_mode(self, mode: str, index: int | None) -> None:
        torch = self._torch
        device = self._place = device_of(torch, index, self._options.threads)
        if index is None and "graphs" in mode:
            raise InputError(f"the mode {mode} needs a GPU", hint="--device cuda, or the mode eager or compiled")
        self._entered.enter_context(torch.inference_mode())
        device.enter(self._entered)
        self._whole = self._with_classes(self._module(device, mode))
        if index is not None or mode != "eager":
            self._prepare(device, self._whole)

    def _defaults(self, index: int | None) -> tuple[str, ...]:
        """Modes without --mode, the fastest first."""
        return CPU_MODES if index is None else GPU_MODES

    def _module(self, device: TorchDevice, mode: str) -> Run:
        """What gives the outputs of samples (n, *shape) on the device."""
        torch = self._torch
        module = torch_module(self._model, self._options.seed)
        module = module.to(device=device.name, dtype=getattr(torch, DTYPES[self._precision]))
        if not self.spec.below:  # images, whose convolutions are fastest so
            module = module.to(memory_format=torch.channels_last)
        if "compiled" not in mode:
            return module  # type: ignore[no-any-return]
        keep_compiled()
        compile_every_size(torch)
        return torch.compile(module, dynamic=False)  # type: ignore[no-any-return]

    def _with_classes(self, run: Run) -> Run:
        """Outputs and classes; without scores of classes the outputs twice."""
        torch, classifies = self._torch, self.classifies

        def whole(samples: Any) -> Any:
            outputs = run(samples)
            return outputs, outputs.argmax(dim=-1).to(torch.int32) if classifies else outputs

        return whole

    def _prepare(self, device: TorchDevice, whole: Run) -> None:
        """Runs, and captures, every batch size, the largest first so that the smaller reuse its memory."""
        torch, spec = self._torch, self.spec
        self.sizes = steps(self._max_batch)
        for size in reversed(self.sizes):
            buffer = torch.zeros((size, *spec.shape), dtype=getattr(torch, spec.dtype), device=device.name)
            if "compiled" in self.mode and 1 < size < self._max_batch:
                torch._dynamo.maybe_mark_dynamic(buffer, 0)
            for _ in range(WARM):
                whole(buffer)
            self._runs[size] = _padded(device.captured(whole, buffer) if "graphs" in self.mode else whole, buffer)

    def _let_go(self) -> None:
        device, self._place, self._whole = self._place, None, None
        self._slots.clear()
        self._runs.clear()
        self.sizes = []
        self._entered.close()
        if device is not None:
            device.let_go()

    def _ours(self, error: Exception) -> CannotMeasure | None:
        if isinstance(error, self._torch.OutOfMemoryError):
            return CannotMeasure(f"{self._device} has too little memory", hint="choose a smaller largest batch")
        if not isinstance(error, RuntimeError) and type(error).__module__.partition(".")[0] != "torch":
            return None
        return CannotMeasure(f"{self.name} failed: {_reason(error)}", hint="try the mode eager, or the CPU")


def keep_compiled() -> None:
    """Lets Inductor and Triton keep what they compile in the user's cache, where the user names no other folder.

    Torch's own choice is a folder in /tmp whose name everybody knows, gone after a restart. Without a private folder
    that choice stands.
    """
    os.environ.setdefault("TORCHINDUCTOR_FX_GRAPH_CACHE", "1")  # the default since torch 2.6
    if "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
        with suppress(CannotMeasure):
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache_folder("kernels"))


def compile_every_size(torch: Any) -> None:
    """Lets Dynamo compile as many sizes as there are, for this thread; should it give up, that is an error.

    It counts by function, and all engines of a process share the code of one. After 8 it would run the rest eagerly
    without a word (pytorch issue 167504). Names before torch 2.6 say cache_size where later ones say recompile.
    """
    config = torch._dynamo.config
    for name in ("recompile", "cache_size"):
        for setting, value in ((f"{name}_limit", VARIANTS), (f"accumulated_{name}_limit", VARIANTS)):
            if hasattr(config, setting):
                setattr(config, setting, value)
    for setting in ("fail_on_recompile_limit_hit", "fail_on_cache_limit_hit"):
        if hasattr(config, setting):
            setattr(config, setting, True)


def _reason(error: Exception) -> str:
    """The line that says why: the first, or what a compiler raised inside."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[1] if lines[0].endswith("raised:") and len(lines) > 1 else lines[0]


def _padded(run: Run, buffer: Any) -> Run:
    """Runs batches at the size of `buffer`; rows beyond the batch have those of an earlier batch."""

    def ran(samples: Any) -> Any:
        buffer[: len(samples)].copy_(samples)
        return run(buffer)

    return ran
