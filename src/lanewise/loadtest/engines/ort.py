"""onnxruntime as an engine: models that Lanewise builds, or any ONNX file of one input and a fixed sample."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.errors import CannotMeasure, FormatError, InputError, Location, import_extra
from lanewise.loadtest.audits import checksums
from lanewise.loadtest.cache import cache_folder
from lanewise.loadtest.engines.base import (
    CPU,
    Engine,
    EngineOptions,
    about_model,
    classes_of,
    device_index,
    fitting,
    scores_classes,
    steps,
)  # fmt: skip
from lanewise.loadtest.models import Model
from lanewise.loadtest.models.onnx_file import ModelSpec, model_spec, with_pixels
from lanewise.loadtest.models.onnx_model import onnx_file
from lanewise.loadtest.spec import Array, SampleSpec, batch_of, in_memory

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}
GPU_PROVIDERS = ("tensorrt", "cuda")  # without --mode, the first that works


class OnnxRuntime(Engine):
    """See Engine; `source` is a model of Lanewise's or the path of an ONNX file.

    On a GPU a batch is padded up to the next of `sizes`: each new size is prepared anew, convolution by convolution.
    """

    def __init__(self, source: Model | Path, precision: str = "fp32", options: EngineOptions = EngineOptions()) -> None:  # noqa: B008
        super().__init__()
        self._ort = import_extra("onnxruntime", "loadtest", "the onnxruntime engine needs onnxruntime")
        self._options, self._precision = options, precision
        self._quiet = self._ort.RunOptions()
        self._quiet.log_severity_level = 4  # what goes wrong in a run is raised as well
        self._model = source if isinstance(source, Model) else None
        if isinstance(source, Model):
            self._path = onnx_file(source, options.folder, options.seed, precision)
        else:
            self._path = _readable(source)
            if precision != "fp32" and options.mode != "tensorrt":
                raise InputError(
                    f"an ONNX file is run in its own precision, not in {precision}", hint="convert the file first"
                )
        pixels = options.image and self._model is None
        self._content: bytes | None = with_pixels(self._path, options.layout) if pixels else None
        self.mode = "cpu"
        self._session: Any = self._start(["CPUExecutionProvider"])
        self._model_spec: ModelSpec = model_spec(self._session, options.output, self._path)
        self._held: dict[int, Any] = {}
        self._failed: list[str] = []

    @property
    def name(self) -> str:
        """Engine and model."""
        return f"onnxruntime {self._model.name if self._model else self._path.name}"

    @property
    def spec(self) -> SampleSpec:
        """One sample."""
        return self._model.spec if self._model else self._model_spec.spec

    @property
    def classifies(self) -> bool:
        """See Engine."""
        return scores_classes(self._model)

    def describe(self) -> dict[str, object]:
        """What runs."""
        setup: dict[str, object] = {"engine": "onnxruntime", "version": self._ort.__version__}
        if self._model:
            setup |= about_model(self._model, self._options.seed, self._precision)
        else:
            digest = hashlib.sha256(self._path.read_bytes()).hexdigest()
            setup |= {"model": self._path.name, "weights": "file", "sha256": digest, "precision": "the file's"}
            setup |= {"normalised": "in the graph"} if self._content else {}
        setup |= {"sample": str(self.spec), "device": self._device, "provider": PROVIDERS[self.mode]}
        if self._failed:
            setup["failed_providers"] = list(self._failed)
        return setup | {"threads": self._options.threads or "one a core", "batch_sizes": list(self.sizes)}

    def infer_at(self, address: int, n: int, stride: int = 0) -> Array:
        """See Engine."""
        self._check(n)
        return self._do(self._infer_at, address, n, self._step(stride))

    def classes_at(self, address: int, n: int, stride: int = 0) -> Array:
        """See Engine."""
        return classes_of(self.infer_at(address, n, stride))

    def _open(self, index: int | None) -> None:
        """With the provider of the options, else with the first that works; without any on a GPU it is an error."""
        providers = (self._options.mode,) if self._options.mode else ("cpu",) if index is None else GPU_PROVIDERS
        self.notes, self._failed = [], []
        for provider in providers:
            try:
                self.mode = provider
                self._open_provider(provider, index)
                break
            except CannotMeasure as error:
                if provider == providers[-1]:
                    raise
                self.notes.append(f"{provider} failed: {error.cause}")
                self._failed.append(provider)

    def _open_provider(self, provider: str, index: int | None) -> None:
        if provider not in PROVIDERS:
            raise InputError(f"there is no provider '{provider}'", hint=f"choose one of {', '.join(PROVIDERS)}")
        if (provider == "cpu") != (index is None):
            raise InputError(f"the provider {provider} does not run on {self._device}", hint="--device cpu or cuda:N")
        self._refuse_absent(provider)
        self.sizes = self._prepared(index)
        self._session = None  # before the new one, so that not both are in memory
        self._session = self._start(self._provider_options(provider, index))
        if PROVIDERS[provider] not in self._session.get_providers():
            raise CannotMeasure(
                f"onnxruntime lists {PROVIDERS[provider]} but could not start it here and fell back to the CPU",
                hint="its message stands above; mostly CUDA or cuDNN is missing or of another version",
            )

    def _by_caller(self, index: int | None) -> bool:
        return index is None

    def _prepared(self, index: int | None) -> list[int]:
        """Batch sizes that are prepared; none on a CPU, where every size is. A file of a fixed batch takes as long for
        all up to the next multiple of it; on a GPU it has to be the largest batch, the size of a device queue's buffer.
        """
        fixed = self._model_spec.fixed
        if fixed is None:
            return [] if index is None else steps(self._max_batch)
        if index is not None and fixed != self._max_batch:
            hint = f"take {fixed} as the largest batch, or export it with an open batch size"
            raise CannotMeasure(f"this file takes batches of {fixed} alone, not up to {self._max_batch}", hint=hint)
        return [*range(fixed, self._max_batch, fixed), self._max_batch]

    def _size(self, n: int) -> int:
        """How many samples a run of `n` takes."""
        return self._model_spec.fixed or fitting(self.sizes, n)

    def _infer(self, rows: Array) -> Array:
        """In one piece, in pieces of a fixed batch; the last one is padded."""
        most = self._model_spec.fixed or len(rows)
        pieces = [rows[first : first + most] for first in range(0, len(rows), most)]
        outputs = [self._run(_padded(piece, self._size(len(piece))))[: len(piece)] for piece in pieces]
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs)

    def _infer_at(self, address: int, n: int, stride: int) -> Array:
        if self._device == CPU:
            return self._infer(in_memory(address, n, self.spec, stride))
        if stride != self.spec.bytes:
            raise CannotMeasure(
                f"onnxruntime reads samples in a row; these of {self.spec.bytes} B lie {stride} B apart on the GPU",
                hint="take samples of a multiple of 16 bytes, or the torch engine",
            )
        size, binding = self._size(n), self._session.io_binding()
        place = (self._model_spec.input, "cuda", device_index(self._device) or 0)
        # Read in place: its padding follows it in the device queue's buffer, samples of an earlier batch.
        binding.bind_input(*place, np.dtype(self.spec.dtype), [size, *self.spec.shape], address)
        return self._bound(binding, size)[:n]

    def _checksums(self, rows: Array) -> Array:
        """From a GPU the batch is read back."""
        return checksums(rows if self._device == CPU else self._on_device(rows).numpy())

    def _placed(self, batch: Array) -> tuple[int, object]:
        rows = batch_of(batch, self.spec)
        value = self._ort.OrtValue.ortvalue_from_numpy(rows, "cuda", device_index(self._device) or 0)
        return value.data_ptr(), value

    def _let_go(self) -> None:
        self._session, self.sizes = None, []
        self._held.clear()

    def _run(self, rows: Array) -> Array:
        if self._device != CPU:
            binding = self._session.io_binding()
            binding.bind_ortvalue_input(self._model_spec.input, self._on_device(rows))
            return self._bound(binding, len(rows))
        (outputs,) = self._session.run([self._model_spec.output], {self._model_spec.input: rows}, self._quiet)
        return self._answers(outputs, len(rows))

    def _bound(self, binding: Any, n: int) -> Array:
        binding.bind_output(self._model_spec.output, CPU)
        binding.synchronize_inputs()
        self._session.run_with_iobinding(binding, self._quiet)
        (outputs,) = binding.copy_outputs_to_cpu()
        return self._answers(outputs, n)

    def _on_device(self, rows: Array) -> Any:
        """The batch in the device's memory, in a buffer that is kept for its size."""
        value = self._held.get(len(rows))
        if value is None:
            index = device_index(self._device) or 0
            value = self._held[len(rows)] = self._ort.OrtValue.ortvalue_from_numpy(rows, "cuda", index)
        else:
            value.update_inplace(np.ascontiguousarray(rows))
        return value

    def _answers(self, outputs: Any, n: int) -> Array:
        if np.ndim(outputs) == 0 or len(outputs) != n:
            raise CannotMeasure(
                f"the output '{self._model_spec.output}' has the shape {list(np.shape(outputs))} for {n} samples",
                hint="choose an output that has one row for each sample",
            )
        return np.asarray(outputs)

    def _ours(self, error: Exception) -> CannotMeasure:
        """Whatever it was: onnxruntime's errors share no base."""
        return CannotMeasure(f"{self.name} failed: {_reason(error)}", hint="try a smaller batch, or the CPU provider")

    def _refuse_absent(self, provider: str) -> None:
        available = self._ort.get_available_providers()
        if PROVIDERS[provider] not in available:
            raise CannotMeasure(
                f"this onnxruntime has no {PROVIDERS[provider]}, only {', '.join(available)}",
                hint="pip install onnxruntime-gpu (in place of onnxruntime), or use the CPU",
            )

    def _provider_options(self, provider: str, index: int | None) -> list[Any]:
        """Providers in onnxruntime's words, the wanted one first."""
        if provider == "cpu":
            return [PROVIDERS["cpu"]]
        own = {"device_id": str(index or 0)}
        # By default each convolution of each new size tries every algorithm while a query waits.
        cuda = (PROVIDERS["cuda"], own | {"cudnn_conv_algo_search": "HEURISTIC"})
        if provider == "cuda":
            return [cuda, PROVIDERS["cpu"]]
        shape = "x".join(map(str, self.spec.shape))
        sizes = {"min": 1, "opt": self._max_batch, "max": self._max_batch}
        profiles = {f"trt_profile_{what}_shapes": f"{self._model_spec.input}:{n}x{shape}" for what, n in sizes.items()}
        options = own | {"trt_fp16_enable": str(self._precision == "fp16")} | self._kept_engines()
        options |= profiles if self._model_spec.fixed is None else {}
        return [(PROVIDERS["tensorrt"], options), cuda, PROVIDERS["cpu"]]

    def _kept_engines(self) -> dict[str, str]:
        """Where TensorRT keeps the engine it built, which takes minutes: a folder for this model, precision and batch.

        onnxruntime's own names of engines tell neither weights nor the largest batch apart.
        """
        content = self._content or self._path.read_bytes()
        key = f"{hashlib.sha256(content).hexdigest()[:32]}-{self._precision}-{self._max_batch}"
        folder = cache_folder("tensorrt") / key
        folder.mkdir(mode=0o700, exist_ok=True)
        return {
            "trt_engine_cache_enable": "True", "trt_engine_cache_path": str(folder),
            "trt_timing_cache_enable": "True", "trt_timing_cache_path": str(folder),
        }  # fmt: skip

    def _start(self, providers: list[Any]) -> Any:
        chosen = self._ort.SessionOptions()
        chosen.intra_op_num_threads = self._options.threads
        chosen.log_severity_level = 3
        try:
            return self._ort.InferenceSession(self._content or str(self._path), chosen, providers=providers)
        except Exception as error:
            if self._model or len(providers) > 1:
                raise self._ours(error) from error
            hint = "name an ONNX file that onnxruntime reads; python -m onnx.checker or netron shows what is wrong"
            raise FormatError(
                f"onnxruntime refuses it: {_reason(error)}", location=Location(str(self._path)), hint=hint
            ) from (error)


def _padded(rows: Array, size: int) -> Array:
    """Rows up to `size`, with copies of the last one behind."""
    return rows if len(rows) == size else np.concatenate([rows, np.repeat(rows[-1:], size - len(rows), axis=0)])


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
            f"the model cannot be read: {why}", location=Location(str(path)), hint="name an .onnx file"
        ) from error
