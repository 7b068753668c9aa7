"""Engines that run a model for a load test, behind one small interface; libraries are looked up when one is opened."""

from __future__ import annotations

from pathlib import Path

from lanewise.errors import InputError, UnknownName, unknown_name
from lanewise.loadtest.engines.base import Engine, EngineOptions
from lanewise.loadtest.engines.ort import OnnxRuntime
from lanewise.loadtest.engines.pytorch import PyTorch
from lanewise.loadtest.engines.tensorrt import TensorRt
from lanewise.loadtest.models import MODELS, Model, model

ENGINES = ("onnxruntime", "torch", "tensorrt")
PRECISIONS = ("fp32", "fp16", "bf16")


def open_engine(
    name: str,
    source: str,
    device: str = "cpu",
    precision: str = "fp32",
    options: EngineOptions | None = None,
    max_batch: int = 32,
) -> Engine:
    """The engine of that name, loaded: `source` is a name of MODELS or an ONNX file, `device` cpu or cuda:N.

    InputError for what does not go together, FormatError for a file that is no such model, MissingDependency for a
    library that is not installed, CannotMeasure where the device refuses.
    """
    engine_options = options or EngineOptions()
    if name not in ENGINES:
        raise unknown_name("engine", name, ENGINES)
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    model_source = _source(source, engine_options.layout)
    engine: Engine
    if name == "onnxruntime":
        engine = OnnxRuntime(model_source, precision, engine_options)
    elif isinstance(model_source, Path):
        raise InputError(f"the {name} engine does not read ONNX files", hint="use the onnxruntime engine")
    else:
        engine = (TensorRt if name == "tensorrt" else PyTorch)(model_source, precision, engine_options)
    engine.load(device, max_batch)
    return engine


def _source(source: str, layout: str) -> Model | Path:
    """A path if it looks like one, else a model by its name."""
    if source not in MODELS and (source.endswith((".onnx", ".ort")) or Path(source).exists()):
        return Path(source)
    try:
        return model(source, layout)
    except UnknownName as error:
        error.hint = f"{error.hint}; or name an .onnx file"
        raise


__all__ = ["ENGINES", "PRECISIONS", "Engine", "EngineOptions", "open_engine"]
