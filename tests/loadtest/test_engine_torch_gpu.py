"""The torch engine's way on a GPU, shown on a CPU by a device that keeps a GPU's rules and notes what is queued."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec

import fake_cuda
import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("the system under test is for Linux", allow_module_level=True)

from lanewise import _native
from lanewise.errors import CannotMeasure, LanewiseError
from lanewise.loadtest import session
from lanewise.loadtest.engines import EngineOptions, pytorch
from lanewise.loadtest.engines.callback import BRIEF, CLASSES, OUTPUTS, batch_call
from lanewise.loadtest.engines.pytorch import PyTorch
from lanewise.loadtest.engines.torch_device import Cpu, Cuda
from lanewise.loadtest.models import Model, model
from lanewise.loadtest.models.ops import Dense
from lanewise.loadtest.spec import SampleSpec
from lanewise.options.loadtest import BatchingOptions

torch = pytest.importorskip("torch", reason="torch is not installed")

STRIDE = 32  # of samples of 27 bytes in the native system's buffers


class Colours:
    """A network of three channels: 27 bytes a sample, which is no multiple of 16."""

    spec = SampleSpec((3, 3, 3), "uint8")

    def run(self, ops: Any, samples: Any) -> Any:
        return ops.dense("head", ops.mean_pool(ops.pixels(samples, "chw")), Dense(3, 5))


class Tokens:
    """A network over integers that answers scores a token, so that it is no classifier."""

    spec = SampleSpec((3, 4), "int32", (7, 2, 2))

    def run(self, ops: Any, samples: Any) -> Any:
        return ops.dense("span", ops.embed("tokens", ops.row(samples, 0), 7, 6), Dense(6, 2))


class Gpu(Cpu):
    """No GPU, but its rules: a graph has its own input and outputs, answers are only there once their event is."""

    def __init__(self) -> None:
        super().__init__(torch, 0)
        self.log: list[tuple[str, int]] = []
        self.open = threading.Event()  # shut, events do not come
        self.open.set()

    def note(self, what: str) -> None:
        self.log.append((what, threading.get_ident()))

    def captured(self, run: Callable[[Any], Any], held: Any) -> Callable[[Any], Any]:
        made = tuple(each.clone() for each in run(held))
        self.note(f"capture {len(held)}")

        def replayed(given: Any) -> Any:
            assert given is held
            self.note(f"replay {len(held)}")
            for into, each in zip(made, run(held), strict=True):
                into.copy_(each)
            return made

        return replayed

    def record(self, event: Any) -> None:
        self.note("record")

    def wait(self, event: Any) -> None:
        self.note("wait")
        assert self.open.wait(10)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """What any torch engine opens on any GPU, by default as graphs: compilers have their own tests."""
    made = Gpu()
    monkeypatch.setattr(pytorch, "GPU_MODES", ("graphs",))
    monkeypatch.setattr(pytorch, "device_of", lambda of, index, threads: Cpu(of, threads) if index is None else made)
    return made


@pytest.fixture
def opened(gpu: Gpu) -> Iterator[Callable[..., PyTorch]]:
    """Opens an engine on it."""
    engines = []

    def of(network: Any, max_batch: int = 20, **options: Any) -> PyTorch:
        engines.append(PyTorch(Model("small", "a small network", network), "fp32", EngineOptions(**options)))
        engines[-1].load("cuda:0", max_batch)
        gpu.log.clear()
        return engines[-1]

    yield of
    for engine in engines:
        engine.close()


def some(spec: SampleSpec, n: int, stride: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """n samples `stride` bytes apart among bytes of other values, and the same in rows."""
    drawn = np.random.default_rng(seed)
    memory = drawn.integers(0, 256, n * stride, np.uint8)
    rows = memory.reshape(n, stride)[:, : spec.bytes]
    if spec.below:
        rows[:] = drawn.integers(0, 2, (n, *spec.shape)).astype(spec.dtype).reshape(n, -1).view(np.uint8)
    return memory, rows.copy()


@pytest.mark.parametrize(("network", "stride"), [(Colours(), 27), (Colours(), STRIDE), (Tokens(), 48), (Tokens(), 64)])
@pytest.mark.parametrize("mode", ["", "eager", "graphs"])
def test_samples_are_answered_where_they_lie_whatever_their_distance_and_number(
    opened: Callable[..., PyTorch], network: Any, stride: int, mode: str
) -> None:
    engine = opened(network, mode=mode)
    alone = PyTorch(Model("small", "a small network", network))
    alone.load("cpu", 20)
    memory, rows = some(network.spec, 20, stride)
    expected = alone.infer(rows)
    for n in (1, 3, 8, 13, 20):
        assert np.allclose(engine.infer_at(memory.ctypes.data, n, stride), expected[:n], atol=1e-5)
        assert np.allclose(engine.infer(rows[:n]), expected[:n], atol=1e-5)
        assert np.allclose(alone.infer_at(memory.ctypes.data, n, stride), expected[:n], atol=1e-5)
    if engine.classifies:
        assert engine.classes_at(memory.ctypes.data, 7, stride).tolist() == expected[:7].argmax(axis=1).tolist()
    assert engine.sizes == [1, 2, 4, 8, 9, 12, 15, 18, 20]
    assert alone.sizes == []


def test_a_batch_is_queued_by_one_thread_and_waited_for_by_who_asked(opened: Callable[..., PyTorch], gpu: Gpu) -> None:
    engine = opened(Colours())
    memory, _ = some(engine.spec, 20, STRIDE)
    for n in (5, 20, 10):
        engine.classes_at(memory.ctypes.data, n, STRIDE)
    assert [what for what, _ in gpu.log] == [
        "replay 8", "record", "wait", "replay 20", "record", "wait", "replay 12", "record", "wait",
    ]  # fmt: skip
    queued = {thread for what, thread in gpu.log if what != "wait"}
    assert len(queued) == 1
    assert {thread for what, thread in gpu.log if what == "wait"} == {threading.get_ident()}
    assert queued != {threading.get_ident()}


def test_the_next_batch_is_queued_while_one_is_waited_for(opened: Callable[..., PyTorch], gpu: Gpu) -> None:
    engine = opened(Colours())
    (one, first), (other, second) = (some(engine.spec, 20, STRIDE, seed) for seed in (1, 2))
    gpu.open.clear()
    with ThreadPoolExecutor(2) as lanes:
        answers = [lanes.submit(engine.infer_at, memory.ctypes.data, 20, STRIDE) for memory in (one, other)]
        while [what for what, _ in gpu.log].count("wait") < 2:
            assert not any(answer.done() for answer in answers)
        gpu.open.set()
        found = [answer.result() for answer in answers]
    assert [what for what, _ in gpu.log if what != "wait"] == ["replay 20", "record"] * 2
    # Both went through one graph; each answer lies in memory of its own.
    for made, rows in zip(found, (first, second), strict=True):
        assert np.allclose(made, engine.infer(rows), atol=1e-5)


def test_a_buffers_tensors_are_made_once(
    opened: Callable[..., PyTorch], gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = opened(Colours())
    made: list[int] = []
    whole = gpu.bytes_at

    def bytes_at(address: int, *shape: int) -> object:
        made.append(address)
        return whole(address, *shape)

    monkeypatch.setattr(gpu, "bytes_at", bytes_at)
    memory, _ = some(engine.spec, 20, STRIDE)
    for n in range(1, 20):
        engine.classes_at(memory.ctypes.data, n, STRIDE)
    assert made == [memory.ctypes.data]


def test_samples_on_another_gpu_are_an_error(
    opened: Callable[..., PyTorch], gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = opened(Colours())
    where = gpu.bytes_at
    monkeypatch.setattr(gpu, "bytes_at", lambda *asked: where(*asked).clone())  # as torch does, without a word
    memory, _ = some(engine.spec, 20, STRIDE)
    with pytest.raises(CannotMeasure, match="do not lie on cuda:0"):
        engine.classes_at(memory.ctypes.data, 20, STRIDE)


def test_every_size_is_captured_before_a_run_and_said(gpu: Gpu) -> None:
    engine = PyTorch(model("small-cnn"))
    engine.load("cuda:0", 3)
    assert [what for what, _ in gpu.log] == ["capture 3", "capture 2", "capture 1"]
    said = engine.describe()
    assert (said["mode"], said["batch_sizes"]) == ("graphs", [1, 2, 3])
    assert "samples on the GPU" in str(said["service_times"])
    assert sorted(engine.service_times([1, 3])) == [1, 3]
    engine.close()


def test_a_failure_while_waiting_is_told_as_ours(
    opened: Callable[..., PyTorch], gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = opened(Colours())

    def fails(event: Any) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")

    monkeypatch.setattr(gpu, "wait", fails)
    memory, _ = some(engine.spec, 1, STRIDE)
    with pytest.raises(CannotMeasure, match=r"illegal memory access was encountered$"):
        engine.classes_at(memory.ctypes.data, 1, STRIDE)


def test_what_a_gpu_asks_of_torch_is_there_and_takes_these_arguments() -> None:
    names = ("is_available", "device_count", "device", "Stream", "stream", "Event", "synchronize", "CUDAGraph", "graph",
             "get_device_properties", "empty_cache")  # fmt: skip
    cuda = SimpleNamespace(**{name: create_autospec(getattr(torch.cuda, name)) for name in names})
    cuda.is_available.return_value, cuda.device_count.return_value = True, 2
    cuda.device.side_effect = cuda.stream.side_effect = cuda.graph.side_effect = lambda *_, **__: nullcontext()
    cuda.get_device_properties.return_value = SimpleNamespace(
        name="H200", pci_domain_id=0, pci_bus_id=0x1B, pci_device_id=0
    )
    backends = SimpleNamespace(cudnn=SimpleNamespace(benchmark=False, allow_tf32=True))
    device = Cuda(SimpleNamespace(cuda=cuda, backends=backends, version=torch.version), 1)
    with ExitStack() as entered:
        device.enter(entered)
        replayed = device.captured(lambda held: [held], "held")
        assert replayed("held") == ["held"]
        event = device.event()
        device.record(event)
    device.wait(event)
    said = device.describe()
    device.let_go()
    stream = cuda.Stream.return_value
    cuda.graph.assert_called_once_with(
        cuda.CUDAGraph.return_value, pool=None, stream=stream, capture_error_mode="thread_local"
    )
    cuda.Event.assert_called_once_with(blocking=True)
    event.record.assert_called_once_with(stream)
    event.synchronize.assert_called_once_with()
    cuda.CUDAGraph.return_value.replay.assert_called_once_with()
    assert backends.cudnn.benchmark
    assert said["pci"] == "0000:1b:00.0"
    with pytest.raises(CannotMeasure, match="no cuda:2, torch sees 2"):
        Cuda(SimpleNamespace(cuda=cuda), 2)


@pytest.mark.parametrize("answer", [BRIEF, OUTPUTS, CLASSES])
@pytest.mark.parametrize("streams", [1, 3])
def test_lanes_of_the_native_system_get_the_answers_of_their_own_samples(
    opened: Callable[..., PyTorch], monkeypatch: pytest.MonkeyPatch, answer: str, streams: int
) -> None:
    engine = opened(Colours(), 8)
    failed: list[LanewiseError] = []
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", str(fake_cuda.build()))
    called = session._recording(batch_call(engine, answer), failed)
    ask = BatchingOptions(("gpu0",), batch=8, streams=streams, sample_bytes=27, library=24)
    system = session.open_system(ask, [called])
    system.load(list(range(24)))
    found = _native.replay(system, np.arange(200) * 5e-5, np.arange(200, dtype=np.uint64) * 7 % 24, keep=True)
    assert not failed, failed[0].__cause__
    samples = [np.frombuffer(_native.synthetic_sample(index, 27), np.uint8) for index in range(24)]
    expected = np.concatenate([engine.infer(np.stack(samples[first : first + 8])) for first in range(0, 24, 8)])
    for place, given in enumerate(found["data"]):
        scores = expected[place * 7 % 24]
        if answer == OUTPUTS:
            assert np.allclose(np.frombuffer(given, np.float32), scores, atol=1e-5)
        else:
            assert given == int(scores.argmax()).to_bytes(4, "little")
