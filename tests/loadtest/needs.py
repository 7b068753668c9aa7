"""What tests of load tests need; `make dev` installs it, so that CI skips none of them."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from lanewise.installed import loadgen_missing

_PACKAGES = {"onnxruntime": "onnxruntime", "onnx": "onnx", "PIL": "pillow"}
_ABSENT = [package for module, package in _PACKAGES.items() if find_spec(module) is None]
models = pytest.mark.skipif(bool(_ABSENT), reason=f"pip install {' '.join(_ABSENT)}")

_MISSING = loadgen_missing() if sys.platform == "linux" else "load tests are for Linux"
loadgen = pytest.mark.skipif(bool(_MISSING), reason=f"no load tests here: {_MISSING}")
