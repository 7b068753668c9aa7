"""Which mode the torch engine runs a model in, and what it keeps of a compilation; the GPU is a CPU with its rules."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lanewise.errors import CannotMeasure
from lanewise.loadtest import session
from lanewise.loadtest.engines import EngineOptions, pytorch
from lanewise.loadtest.engines.pytorch import PyTorch, keep_compiled
from lanewise.loadtest.engines.torch_device import Cpu
from lanewise.loadtest.models import model
from lanewise.options.loadtest import LoadTestOptions

CACHE, GRAPHS = "TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_FX_GRAPH_CACHE"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache that is empty, and an environment that names no other."""
    for name in (CACHE, GRAPHS):
        monkeypatch.setenv(name, "")  # so that it is put back, whatever the engine sets
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


class Failing(Cpu):
    """A GPU that captures no graphs if told so."""

    failure: Exception | None = None

    def enter(self, entered: ExitStack) -> None:
        """Nothing of the process is changed."""

    def captured(self, run: Callable[[Any], Any], buffer: Any) -> Callable[[Any], Any]:
        if self.failure is not None:
            raise self.failure
        return run


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was given to torch.compile, which hands it back, or raises the last of it if that is an error."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    calls: list[Any] = []

    def fake(module: Any, **options: Any) -> Any:
        if calls and isinstance(calls[-1], Exception):
            raise calls[-1]
        calls.append(options)
        return module

    monkeypatch.setattr(torch, "compile", fake)
    monkeypatch.setattr(Failing, "failure", None)
    monkeypatch.setattr(pytorch, "device_of", lambda torch, index, threads: Failing(torch, threads))
    return calls


def opened(mode: str = "", max_batch: int = 4) -> PyTorch:
    """The engine on the GPU."""
    engine = PyTorch(model("small-cnn"), options=EngineOptions(mode=mode))
    engine.load("cuda:0", max_batch)
    return engine


def test_a_gpu_runs_compiled_graphs_if_they_can_be_had(compiled: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    marked: list[int] = []
    monkeypatch.setattr(torch._dynamo, "maybe_mark_dynamic", lambda tensor, dim: marked.append(len(tensor)))
    engine = opened()
    assert (engine.mode, engine.notes, engine.describe()["mode"]) == ("compiled-graphs", [], "compiled-graphs")
    assert "failed_modes" not in engine.describe()
    assert compiled == [{"dynamic": False}]
    assert marked == [2]  # of 4, 2 and 1: the code between the largest batch and a single sample is open in the batch
    engine.close()


def test_what_cannot_be_compiled_runs_as_graphs_with_the_reason(compiled: list[Any]) -> None:
    compiled.append(RuntimeError("backend='inductor' raised:\nRuntimeError: Failed to find C compiler.\nmore"))
    engine = opened()
    assert (engine.mode, engine.describe()["failed_modes"]) == ("graphs", ["compiled-graphs"])
    assert engine.notes == ["compiled-graphs failed: RuntimeError: Failed to find C compiler."]
    assert engine.sizes == [1, 2, 4]
    engine.close()


def test_without_graphs_it_is_eager(compiled: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failing, "failure", RuntimeError("operation not permitted when stream is capturing"))
    engine = opened()
    assert (engine.mode, engine.describe()["failed_modes"]) == ("eager", ["compiled-graphs", "graphs"])
    engine.close()


def test_too_little_memory_is_no_reason_for_a_slower_mode(compiled: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(Failing, "failure", torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(CannotMeasure, match="too little memory"):
        opened()


@pytest.mark.parametrize("error", [RuntimeError("no Triton"), FileNotFoundError(2, "no gcc"), ValueError("no idea")])
def test_a_mode_that_is_asked_for_runs_or_is_an_error(compiled: list[Any], error: Exception) -> None:
    compiled.append(error)
    with pytest.raises(CannotMeasure, match=r"no (Triton|gcc|idea)") as raised:
        opened("compiled-graphs")
    assert raised.value.hint
    graphs = opened("graphs")
    assert (graphs.mode, graphs.notes) == ("graphs", [])
    graphs.close()


def test_compiled_code_is_kept_in_a_folder_that_nobody_else_may_write_to(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_compiled()
    folder = cache / "lanewise" / "kernels"
    assert os.environ[CACHE] == str(folder)
    assert os.environ[GRAPHS] == "1"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    monkeypatch.setenv(CACHE, "/their/own")
    monkeypatch.setenv(GRAPHS, "0")
    keep_compiled()
    assert (os.environ[CACHE], os.environ[GRAPHS]) == ("/their/own", "0")


def test_a_cache_that_others_write_to_is_not_used(cache: Path) -> None:
    (cache / "lanewise" / "kernels").mkdir(parents=True)
    (cache / "lanewise" / "kernels").chmod(0o777)
    keep_compiled()
    assert CACHE not in os.environ


class ModeEngine:
    """An engine that comes to a mode of its own unless it is given one."""

    name, sizes = "torch small", (1,)

    def __init__(self, options: EngineOptions) -> None:
        self.mode = options.mode or "graphs"
        self.notes = [] if options.mode else ["compiled-graphs failed: no compiler"]

    def warm(self, sizes: Sequence[int]) -> None:
        """Nothing."""


def test_engines_of_a_kind_run_in_one_mode_and_the_reason_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    said: list[str] = []

    def fake(name: str, model: str, target: str, precision: str, options: EngineOptions, batch: int) -> ModeEngine:
        given.append(options.mode)
        return ModeEngine(options)

    gpus = {"gpu0": type("Gpu", (), {"ordinal": 1}), "gpu1": type("Gpu", (), {"ordinal": 0})}
    monkeypatch.setattr(session, "gpus", lambda devices: gpus)
    monkeypatch.setattr(session, "open_engine", fake)
    session.open_engines(LoadTestOptions(("gpu0", "gpu1", "cpu"), engine="torch"), said.append)
    assert given == ["", "graphs", ""]
    assert said[0] == "note: torch small runs on gpu0 in mode graphs: compiled-graphs failed: no compiler"
    assert len(said) == 2
