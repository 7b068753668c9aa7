"""Files to read, whether this machine's file system and kernel can do what a test needs, and GPUs without hardware."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import fake_cuda
import pytest
from garbage import collect

if sys.platform != "linux":
    pytest.skip("the storage part is for Linux", allow_module_level=True)


@pytest.fixture
def direct(tmp_path: Path) -> Path:
    """A folder in which direct reads work."""
    probe = tmp_path / "probe"
    probe.write_bytes(bytes(4096))
    try:
        os.close(os.open(probe, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("the file system of the temporary folder has no direct reads")
    probe.unlink()
    return tmp_path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file of 1 MiB that nobody writes to."""
    made = tmp_path / "data.bin"
    made.write_bytes(os.urandom(1 << 20))
    return made


@dataclass(frozen=True)
class Gpus:
    """The fake driver's and the fake cuFile's libraries; nothing of either may be left after a test."""

    cuda: Path
    cufile: Path


@pytest.fixture(scope="session")
def libraries() -> Gpus:
    """Both, compiled once."""
    return Gpus(fake_cuda.build(), fake_cuda.build_cufile())


@pytest.fixture
def gpus(libraries: Gpus, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Lanewise opens them instead of the real ones."""
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", str(libraries.cuda))
    monkeypatch.setenv("LANEWISE_CUFILE", str(libraries.cufile))
    yield monkeypatch
    collect()
    assert fake_cuda.live(libraries.cuda) == dict.fromkeys(fake_cuda.KINDS, 0)
    assert ctypes.CDLL(str(libraries.cufile)).fake_cufile_live() == 0
