"""TensorRT as an engine: a plan built from the ONNX model that Lanewise writes, run on torch's stream and memory."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from lanewise.errors import CannotMeasure, InputError, MissingDependency, import_optional
from lanewise.loadtest.cache import cache_folder, write_cached
from lanewise.loadtest.engines.base import EngineOptions
from lanewise.loadtest.engines.pytorch import PyTorch
from lanewise.loadtest.engines.torch_device import Run, TorchDevice
from lanewise.loadtest.models import Model, model
from lanewise.loadtest.models.onnx_model import FLOATS, INPUT, OUTPUT, onnx_bytes

LEAST_VERSION = 10  # the first with strongly typed networks, which keep the precision of the file
REQUIREMENT = f"'tensorrt>={LEAST_VERSION}'"


class TensorRt(PyTorch):
    """See PyTorch, whose sizes, stream, graphs and pinned answers serve here too. It has not run on a GPU yet.

    Each batch size has an execution context of its own, as a CUDA graph holds on to the memory of the context that it
    was captured from. The plan takes batches of 1 up to the largest, for which it is tuned.
    """

    library, modes = "tensorrt", ("graphs", "eager")

    def __init__(self, model: Model, precision: str = "fp32", options: EngineOptions = EngineOptions()) -> None:  # noqa: B008
        self._trt = import_optional("tensorrt", REQUIREMENT, "the tensorrt engine needs tensorrt")
        if int(self._version().partition(".")[0]) < LEAST_VERSION:
            cause = f"the tensorrt engine needs tensorrt {LEAST_VERSION} or later, this is {self._version()}"
            raise MissingDependency(cause, hint=f"pip install {REQUIREMENT}")
        super().__init__(model, precision, options)
        if precision not in FLOATS:
            raise InputError(f"ONNX models are not written in {precision}", hint=f"choose {' or '.join(FLOATS)}")
        self._logger = self._trt.Logger(self._trt.Logger.ERROR)

    def _version(self) -> str:
        return str(self._trt.__version__)

    def _open(self, index: int | None) -> None:
        if index is None:
            raise InputError("the tensorrt engine runs on GPUs alone", hint="--devices gpu0, or the engine onnxruntime")
        super()._open(index)

    def _defaults(self, index: int | None) -> tuple[str, ...]:
        return self.modes

    def _module(self, device: TorchDevice, mode: str) -> Run:
        torch, spec = self._torch, self.spec
        planes = not spec.below and spec.shape[-1] == 3  # TensorRT transposes no bytes
        source = model(self._model.name, "chw") if planes else self._model
        engine = self._engine(onnx_bytes(source, self._options.seed, self._precision), source.spec.shape, device)
        shape = self._model.size().output
        contexts: dict[int, tuple[Any, Any]] = {}

        def run(samples: Any) -> Any:
            n = len(samples)
            if n not in contexts:
                context = self._context(engine, (n, *source.spec.shape))
                contexts[n] = (context, torch.empty((n, *shape), dtype=torch.float32, device=device.name))
            context, outputs = contexts[n]
            given = samples.permute(0, 3, 1, 2).contiguous() if planes else samples
            bound = context.set_tensor_address(INPUT, given.data_ptr())
            bound &= context.set_tensor_address(OUTPUT, outputs.data_ptr())
            if not (bound and context.execute_async_v3(device.stream())):
                raise CannotMeasure(f"{self.name} failed on a batch of {n}", hint="its message stands above")
            return outputs

        return run

    def _context(self, engine: Any, shape: tuple[int, ...]) -> Any:
        """An execution context for one batch size."""
        context = engine.create_execution_context()
        if context is None or not context.set_input_shape(INPUT, shape):
            raise CannotMeasure(
                f"{self.name} cannot run a batch of {shape[0]}", hint="take a smaller --batch: each size needs memory"
            )
        return context

    def _engine(self, content: bytes, shape: tuple[int, ...], device: TorchDevice) -> Any:
        """The plan as an engine: a kept one, which belongs to this GPU and version alone, else a new one."""
        about = f"{self._version()} {device.describe().get('gpu', device.name)} {self._max_batch}"
        key = hashlib.sha256(content + about.encode()).hexdigest()
        path = cache_folder("tensorrt") / f"{self._model.name}-{key[:32]}.plan"
        engine = self._deserialized(path)
        if engine is None:
            write_cached(path, self._plan(content, shape))
            engine = self._deserialized(path)
        if engine is None:
            raise CannotMeasure(f"{self.name}: TensorRT does not load the plan it built", hint=f"remove {path}")
        return engine

    def _deserialized(self, path: Path) -> Any:
        """The engine of a plan file; None where there is none or it is refused."""
        try:
            plan = path.read_bytes()
        except FileNotFoundError:
            return None
        self._runtime = self._trt.Runtime(self._logger)
        return self._runtime.deserialize_cuda_engine(plan)

    def _plan(self, content: bytes, shape: tuple[int, ...]) -> bytes:
        trt = self._trt
        builder = trt.Builder(self._logger)
        typed = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
        network = builder.create_network(0 if typed is None else 1 << int(typed))
        parser = trt.OnnxParser(network, self._logger)
        if not parser.parse(content):
            why = parser.get_error(0).desc() if parser.num_errors else "its parser gives no reason"
            raise CannotMeasure(f"TensorRT refuses the model: {why}", hint="use the engine torch or onnxruntime")
        profile, config = builder.create_optimization_profile(), builder.create_builder_config()
        profile.set_shape(INPUT, (1, *shape), (self._max_batch, *shape), (self._max_batch, *shape))
        config.add_optimization_profile(profile)
        plan = builder.build_serialized_network(network, config)
        if plan is None:
            raise CannotMeasure("TensorRT builds no plan for the model", hint="its message stands above")
        return bytes(plan)
