"""Optional libraries: opened where they are needed, an error with the command that installs them where they are not."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lanewise.errors import MissingDependency

PACKAGES = {"onnxruntime": "onnxruntime", "onnx": "onnx", "torch": "torch", "PIL": "pillow"}


def need(module: str, for_what: str) -> Any:
    """The module; MissingDependency, with the pip command, where it is absent or does not load."""
    package = PACKAGES[module.partition(".")[0]]
    try:
        return import_module(module)
    except ImportError as error:
        why = "is not installed" if isinstance(error, ModuleNotFoundError) else f"does not load: {error}"
        raise MissingDependency(f"{for_what} needs {package}, which {why}", hint=f"pip install {package}") from error
