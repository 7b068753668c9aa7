"""Builds the CUDA driver without GPUs (tests/cuda/fake_driver), for tests of whatever opens a CUDA driver.

`build()` gives the library's path: pass it as `library`, or set LANEWISE_CUDA_DRIVER to it. What it pretends is set by
the environment variables that world.hpp lists.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent / "cuda" / "fake_driver"
NATIVE = Path(__file__).parents[1] / "native"
KINDS = ("contexts", "memory", "streams", "events", "modules", "peers")
VARIANTS = ("13", "12", "no batch")  # how it has cuMemcpyBatchAsync: as CUDA 13, as 12.8, not at all


def build(variant: str = "13") -> Path:
    """The library, compiled once for each state of the sources; LookupError without a C++ compiler."""
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        raise LookupError("no C++ compiler for the driver without GPUs")
    sources = sorted(SOURCES.glob("*.cpp"))
    state = hashlib.sha256(variant.encode())
    for file in (*sources, SOURCES / "world.hpp", NATIVE / "cuda" / "api.hpp", NATIVE / "cuda" / "pattern.hpp"):
        state.update(file.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"lanewise-fake-cuda-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / f"libfakecuda-{state.hexdigest()[:16]}.so"
    if not library.exists():
        parts = [str(file) for file in sources if variant != "no batch" or file.stem != "batch"]
        options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", f"-I{NATIVE}"]
        options += ["-DFAKE_CUDA_12"] if variant == "12" else []
        half = library.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, *options, *parts, "-o", str(half)], check=True)
        half.replace(library)  # at once: others may build it too
    return library


def live(library: Path) -> dict[str, int]:
    """What the driver has handed out and not got back, by kind."""
    fake = ctypes.CDLL(str(library))
    return {kind: fake.fake_cuda_live(kind.encode()) for kind in KINDS}


def calls(library: Path, name: str) -> int:
    """How often that function was called since the last cuInit."""
    return int(ctypes.CDLL(str(library)).fake_cuda_calls(name.encode()))
