"""A CUDA driver without GPUs for every test here; each must give back all that it took."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import fake_cuda
import pytest
from garbage import collect

if sys.platform != "linux":
    pytest.skip("the CUDA part is for Linux", allow_module_level=True)

from lanewise import _native

Open = Callable[..., _native.Cuda]


@pytest.fixture(scope="session")
def library() -> Path:
    """The driver as CUDA 13 has it."""
    return fake_cuda.build()


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the fake driver from outside."""
    for name in [name for name in os.environ if name.startswith("FAKE_CUDA_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def cuda(library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the driver with settings: cuda(GPUS=2, NO_PEER='0:1'). At the end nothing of it may be left."""

    def opened(**settings: object) -> _native.Cuda:
        for name, value in settings.items():
            monkeypatch.setenv(f"FAKE_CUDA_{name}", str(value))
        return _native.Cuda(str(library))

    yield opened
    collect()
    assert fake_cuda.live(library) == dict.fromkeys(fake_cuda.KINDS, 0)
