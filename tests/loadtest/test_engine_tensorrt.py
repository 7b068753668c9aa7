"""The tensorrt engine over a TensorRT that runs on the CPU: what it builds, keeps, answers and refuses."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed, which writes the models")

from loadtest import fake_tensorrt  # noqa: E402

from lanewise.errors import CannotMeasure, InputError, LanewiseError, MissingDependency, UnknownName  # noqa: E402
from lanewise.loadtest.engines import EngineOptions, open_engine, pytorch  # noqa: E402
from lanewise.loadtest.engines.base import Engine, random_batch  # noqa: E402
from lanewise.loadtest.engines.torch_device import Cpu  # noqa: E402


class QueuedCpu(Cpu):
    """A CPU that names a stream."""

    def enter(self, entered: ExitStack) -> None:
        """Nothing of the process is changed."""

    def stream(self) -> int:
        return 7


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of plans, with the TensorRT of these tests in place."""
    monkeypatch.setitem(sys.modules, "tensorrt", fake_tensorrt)
    monkeypatch.setattr(pytorch, "device_of", lambda torch, index, threads: QueuedCpu(torch, threads))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fake_tensorrt.built.clear()
    fake_tensorrt.streams.clear()
    yield tmp_path / "lanewise" / "tensorrt"
    fake_tensorrt.refuse = ""


def opened(max_batch: int = 4, **more: Any) -> Engine:
    """The engine on a GPU."""
    return open_engine("tensorrt", "small-cnn", "cuda:0", max_batch=max_batch, **more)


@pytest.mark.parametrize("layout", ["hwc", "chw"])
@pytest.mark.parametrize("mode", ["", "eager"])
def test_it_answers_as_onnxruntime_does_to_batches_of_any_size(layout: str, mode: str, tmp_path: Path) -> None:
    engine = opened(options=EngineOptions(layout=layout, mode=mode))
    alone = open_engine("onnxruntime", "small-cnn", options=EngineOptions(layout=layout, folder=tmp_path, threads=1))
    batch = random_batch(engine.spec, 4)
    expected = alone.infer(batch)
    for n in (1, 3, 4):
        assert np.allclose(engine.infer(batch[:n]), expected[:n], atol=1e-5)
        assert np.allclose(engine.infer_at(batch.ctypes.data, n), expected[:n], atol=1e-5)
    assert engine.classes_at(batch.ctypes.data, 4).tolist() == expected.argmax(axis=1).tolist()
    assert set(fake_tensorrt.streams) == {7}
    said = engine.describe()
    assert (engine.name, said["engine"], said["version"]) == ("tensorrt small-cnn", "tensorrt", "10.13.0")
    assert (said["mode"], said["batch_sizes"]) == (mode or "graphs", [1, 2, 4])
    engine.close()


def test_a_plan_is_built_once_for_each_largest_batch_and_version(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for batch in (4, 4, 2):
        opened(batch).close()
    assert fake_tensorrt.built == [(4, 3, 224, 224), (2, 3, 224, 224)]
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    monkeypatch.setattr(fake_tensorrt, "__version__", "10.14.0")
    opened(4).close()
    assert len(fake_tensorrt.built) == 3
    for path in cache.glob("*.plan"):
        path.write_bytes(b"damaged")
    opened(4).close()
    assert len(fake_tensorrt.built) == 4


@pytest.mark.parametrize(
    ("step", "message"),
    [("parse", "no converter for Transpose"), ("build", "builds no plan"), ("execute", "failed on a batch of 4")],
)
def test_what_tensorrt_refuses_is_an_error(step: str, message: str) -> None:
    fake_tensorrt.refuse = step
    with pytest.raises(CannotMeasure, match=message) as raised:
        opened()
    assert raised.value.hint


def test_what_does_not_go_together_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[tuple[type[LanewiseError], str, dict[str, Any]]] = [
        (InputError, "GPUs alone", {"device": "cpu"}),
        (InputError, "GPUs alone", {"device": "cpu", "options": EngineOptions(mode="eager")}),
        (UnknownName, "mode", {"options": EngineOptions(mode="compiled")}),
        (InputError, "bf16", {"precision": "bf16"}),
    ]
    for kind, message, arguments in refused:
        with pytest.raises(kind, match=message):
            open_engine("tensorrt", "small-cnn", **({"device": "cuda:0"} | arguments))
    monkeypatch.setattr(fake_tensorrt, "__version__", "8.6.1")
    with pytest.raises(MissingDependency, match="10 or later, this is 8"):
        opened()
