"""onnxruntime as an engine: models that Lanewise builds, or any ONNX file of one input and a fixed sample."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.errors import CannotMeasure, FormatError, InputError, Place
from lanewise.loadtest.checksum import checksums
from lanewise.loadtest.engines.base import Options, checked_sizes, closed_loop, device_index, random_batch
from lanewise.loadtest.engines.onnx_spec import Described, described
from lanewise.loadtest.models import Model
from lanewise.loadtest.models.as_onnx import onnx_file
from lanewise.loadtest.models.pixels import with_pixels
from lanewise.loadtest.optional import need
from lanewise.loadtest.spec import batch_of, in_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.loadtest.spec import Array, SampleSpec

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}


class OnnxRuntime:
    """See Engine; `source` is a model of Lanewise's or the path of an ONNX file."""

    def __init__(self, source: Model | Path, precision: str = "fp32", options: Options = Options()) -> None:  # noqa: B008
        self._ort = need("onnxruntime", "the onnxruntime engine")
        self._options, self._precision = options, precision
        self._quiet = self._ort.RunOptions()
        self._quiet.log_severity_level = 4  # what goes wrong in a run is raised as well
        self._model = source if isinstance(source, Model) else None
        if isinstance(source, Model):
            self._path = onnx_file(source, options.folder, options.seed, precision)
        else:
            self._path = _readable(source)
            if precision != "fp32" and options.provider != "tensorrt":
                raise InputError(
                    f"an ONNX file is run in its own precision, not in {precision}", hint="convert the file first"
                )
        pixels = options.image and self._model is None
        self._content: bytes | None = with_pixels(self._path, options.layout) if pixels else None
        self._device, self._provider = "cpu", "cpu"
        self._session: Any = self._start(["CPUExecutionProvider"])
        self._said: Described = described(self._session, options.output, self._path)
        self._max_batch = 1
        self._held: dict[int, Any] = {}

    @property
    def name(self) -> str:
        """Engine and model."""
        return f"onnxruntime {self._model.name if self._model else self._path.name}"

    @property
    def spec(self) -> SampleSpec:
        """One sample."""
        return self._model.spec if self._model else self._said.spec

    def describe(self) -> dict[str, object]:
        """What runs."""
        said: dict[str, object] = {"engine": "onnxruntime", "version": self._ort.__version__}
        if self._model:
            size = self._model.size()
            said |= {"model": self._model.about, "weights": f"random, seed {self._options.seed}"}
            said |= {"parameters": size.parameters, "multiply_adds": size.multiply_adds, "precision": self._precision}
        else:
            digest = hashlib.sha256(self._path.read_bytes()).hexdigest()
            said |= {"model": self._path.name, "weights": "file", "sha256": digest, "precision": "the file's"}
            said |= {"normalised": "in the graph"} if self._content else {}
        said |= {"sample": str(self.spec), "device": self._device, "provider": PROVIDERS[self._provider]}
        return said | {"threads": self._options.threads or "one a core"}

    def load(self, device: str, max_batch: int) -> None:
        """See Engine; CannotMeasure where the provider is absent or the device does not take the model."""
        index = device_index(device)
        provider = self._options.provider or ("cpu" if index is None else "cuda")
        if provider not in PROVIDERS:
            raise InputError(f"there is no provider '{provider}'", hint=f"choose one of {', '.join(PROVIDERS)}")
        if (provider == "cpu") != (index is None):
            raise InputError(f"the provider {provider} does not run on {device}", hint="--device cpu or cuda:N")
        checked_sizes([1], max_batch)
        self._max_batch = max_batch
        self._refuse_absent(provider)
        self._device, self._provider = device, provider
        self._held.clear()
        self._session = None  # before the new one, so that not both are in memory
        self._session = self._start(self._asked(provider, index))
        if PROVIDERS[provider] not in self._session.get_providers():
            raise CannotMeasure(
                f"onnxruntime lists {PROVIDERS[provider]} but could not start it here and fell back to the CPU",
                hint="its message stands above; mostly CUDA or cuDNN is missing or of another version",
            )

    def warm(self, batches: Sequence[int]) -> None:
        """See Engine."""
        for size in checked_sizes(batches, self._max_batch):
            batch = random_batch(self.spec, size)
            for _ in range(3):
                self.infer(batch)

    def infer(self, batch: Array) -> Array:
        """See Engine."""
        rows = batch_of(batch, self.spec)
        fixed = self._said.fixed
        if fixed is None or len(rows) == fixed:
            return self._run(rows)
        # A file of a fixed batch: pieces of that many, the last one padded with its last sample.
        made = []
        for first in range(0, len(rows), fixed):
            piece = rows[first : first + fixed]
            padded = np.concatenate([piece, np.repeat(piece[-1:], fixed - len(piece), axis=0)])
            made.append(self._run(padded)[: len(piece)])
        return np.concatenate(made)

    def infer_at(self, address: int, n: int) -> Array:
        """See Engine."""
        if self._said.fixed not in (None, n):
            raise CannotMeasure(
                f"this file takes batches of {self._said.fixed} alone, not {n}", hint="export it with a free batch size"
            )
        if self._device == "cpu":
            return self._run(in_memory(address, n, self.spec))
        binding = self._session.io_binding()
        place = (self._said.input, "cuda", device_index(self._device) or 0)
        binding.bind_input(*place, np.dtype(self.spec.dtype), [n, *self.spec.shape], address)
        return self._bound(binding)

    def checksums(self, batch: Array) -> Array:
        """See Engine; from a GPU the batch is read back."""
        rows = batch_of(batch, self.spec)
        return checksums(rows if self._device == "cpu" else self._on_device(rows).numpy())

    def service_times(self, batches: Sequence[int]) -> dict[int, float]:
        """See Engine."""
        sizes = checked_sizes(batches, self._max_batch)
        return closed_loop(self.infer, {size: random_batch(self.spec, size) for size in sizes})

    def close(self) -> None:
        """See Engine."""
        self._session = None
        self._held.clear()

    def _run(self, rows: Array) -> Array:
        if self._session is None:
            raise CannotMeasure("the engine is closed", hint="load it again")
        if self._device != "cpu":
            binding = self._session.io_binding()
            binding.bind_ortvalue_input(self._said.input, self._on_device(rows))
            return self._bound(binding)
        try:
            (made,) = self._session.run([self._said.output], {self._said.input: rows}, self._quiet)
        except Exception as error:  # onnxruntime's errors share no base
            raise self._failed(error) from error
        return self._answers(made, len(rows))

    def _bound(self, binding: Any) -> Array:
        try:
            binding.bind_output(self._said.output, "cpu")
            binding.synchronize_inputs()
            self._session.run_with_iobinding(binding, self._quiet)
            (made,) = binding.copy_outputs_to_cpu()
        except Exception as error:
            raise self._failed(error) from error
        return self._answers(made, len(made))

    def _on_device(self, rows: Array) -> Any:
        """The batch in the device's memory, in a buffer that is kept for its size."""
        held = self._held.get(len(rows))
        if held is None:
            index = device_index(self._device) or 0
            held = self._held[len(rows)] = self._ort.OrtValue.ortvalue_from_numpy(rows, "cuda", index)
        else:
            held.update_inplace(np.ascontiguousarray(rows))
        return held

    def _answers(self, made: Any, n: int) -> Array:
        if np.ndim(made) == 0 or len(made) != n:
            raise CannotMeasure(
                f"the output '{self._said.output}' has the shape {list(np.shape(made))} for {n} samples",
                hint="choose an output that has one row for each sample",
            )
        return np.asarray(made)

    def _failed(self, error: Exception) -> CannotMeasure:
        return CannotMeasure(f"{self.name} failed: {_reason(error)}", hint="try a smaller batch, or the CPU provider")

    def _refuse_absent(self, provider: str) -> None:
        here = self._ort.get_available_providers()
        if PROVIDERS[provider] not in here:
            raise CannotMeasure(
                f"this onnxruntime has no {PROVIDERS[provider]}, only {', '.join(here)}",
                hint="pip install onnxruntime-gpu (in place of onnxruntime), or use the CPU",
            )

    def _asked(self, provider: str, index: int | None) -> list[Any]:
        """Providers in onnxruntime's words, the wanted one first."""
        cuda = ("CUDAExecutionProvider", {"device_id": str(index or 0)})
        if provider != "tensorrt":
            return [PROVIDERS["cpu"]] if provider == "cpu" else [cuda, PROVIDERS["cpu"]]
        shape = "x".join(map(str, self.spec.shape))
        sizes = {"min": 1, "opt": self._max_batch, "max": self._max_batch}
        given = {f"trt_profile_{what}_shapes": f"{self._said.input}:{n}x{shape}" for what, n in sizes.items()}
        given |= {"device_id": str(index or 0), "trt_fp16_enable": str(self._precision == "fp16")}
        return [(PROVIDERS["tensorrt"], given if self._said.fixed is None else {}), cuda, PROVIDERS["cpu"]]

    def _start(self, providers: list[Any]) -> Any:
        chosen = self._ort.SessionOptions()
        chosen.intra_op_num_threads = self._options.threads
        chosen.log_severity_level = 3
        try:
            return self._ort.InferenceSession(self._content or str(self._path), chosen, providers=providers)
        except Exception as error:
            if self._model or len(providers) > 1:
                raise self._failed(error) from error
            hint = "name an ONNX file that onnxruntime reads; python -m onnx.checker or netron shows what is wrong"
            raise FormatError(
                f"onnxruntime refuses it: {_reason(error)}", place=Place(str(self._path)), hint=hint
            ) from (error)


def _reason(error: Exception) -> str:
    """What onnxruntime said, without its prefix and beyond the first line."""
    return str(error).split("\n")[0].rpartition(" : ")[2].strip() or type(error).__name__


def _readable(path: Path) -> Path:
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"the model cannot be read: {why}", place=Place(str(path)), hint="name an .onnx file"
        ) from error


__all__ = ["PROVIDERS", "OnnxRuntime"]
