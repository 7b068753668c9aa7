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
from collections.abc import Sequence
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "cuda" / "fake_driver"
NATIVE = Path(__file__).parents[1] / "native"
KINDS = ("contexts", "memory", "streams", "events", "modules", "peers", "graphs")
VARIANTS = ("13", "12", "no batch")  # how it has cuMemcpyBatchAsync: as CUDA 13, as 12.8, not at all


def build(variant: str = "13") -> Path:
    """The library, compiled once for each state of the sources; the test is skipped without a C++ compiler."""
    sources = sorted(SOURCES.glob("*.cpp"))
    state = hashlib.sha256()
    for file in (*sources, SOURCES / "world.hpp", NATIVE / "cuda" / "api.hpp", NATIVE / "cuda" / "pattern.hpp"):
        state.update(file.read_bytes())
    stem = _folder() / state.hexdigest()[:16]
    batch = str(SOURCES / "batch.cpp")
    common = _compiled(
        stem.with_suffix(".o"), ["-c", "-x", "c++", "-"], [file for file in sources if str(file) != batch]
    )
    how = {"13": [batch], "12": ["-DFAKE_CUDA_12", batch], "no batch": []}[variant]
    return _compiled(Path(f"{stem}-{VARIANTS.index(variant)}.so"), ["-shared", str(common), *how])


def build_cufile() -> Path:
    """The cuFile without GPUs (tests/storage/fake_cufile.cpp), compiled once for each state of its source."""
    source = Path(__file__).parent / "storage" / "fake_cufile.cpp"
    name = f"cufile-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}.so"
    return _compiled(_folder() / name, ["-shared", str(source)])


def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"lanewise-fake-cuda-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _compiled(target: Path, arguments: list[str], together: Sequence[Path] = ()) -> Path:
    """The compiler's output, of files read `together` as one; moved there at once, as others may build it too."""
    if not target.exists():
        compiler = os.environ.get("CXX") or shutil.which("c++")
        if compiler is None:
            pytest.skip("no C++ compiler for the driver without GPUs")
        half = target.with_suffix(f".{os.getpid()}{target.suffix}")
        options = ["-std=c++20", "-O1", "-fPIC", "-pthread", f"-I{NATIVE}"]
        text = "".join(f'#include "{file}"\n' for file in together)
        subprocess.run([compiler, *options, *arguments, "-o", str(half)], check=True, input=text, text=True)
        half.replace(target)
    return target


def build_nccl() -> Path:
    """The NCCL over this driver (tests/cuda/fake_nccl.cpp), compiled once for each state of its source."""
    source = SOURCES.parent / "fake_nccl.cpp"
    folder = build().parent
    state = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    return _compiled(folder / f"nccl-{state}.so", ["-shared", str(source), "-ldl"])


def live(library: Path) -> dict[str, int]:
    """What the driver has handed out and not got back, by kind."""
    fake = ctypes.CDLL(str(library))
    return {kind: fake.fake_cuda_live(kind.encode()) for kind in KINDS}


def calls(library: Path, name: str) -> int:
    """How often that function was called since the last cuInit."""
    return int(ctypes.CDLL(str(library)).fake_cuda_calls(name.encode()))
