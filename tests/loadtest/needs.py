"""What a test of models needs; `make dev` installs it, so that CI skips none of them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

_PACKAGES = {"onnxruntime": "onnxruntime", "onnx": "onnx", "PIL": "pillow"}
_ABSENT = [package for module, package in _PACKAGES.items() if find_spec(module) is None]
models = pytest.mark.skipif(bool(_ABSENT), reason=f"pip install {' '.join(_ABSENT)}")
