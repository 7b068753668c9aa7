"""The onnxruntime engine: answers, files of the user's, what it refuses."""

from __future__ import annotations

import ctypes
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed, which writes the models")

from loadtest.onnx_files import colours, floats, means, write  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

from lanewise.errors import CannotMeasure, Contradiction, FormatError, InputError, UnknownName  # noqa: E402
from lanewise.loadtest.audits import checksums  # noqa: E402
from lanewise.loadtest.engines import EngineOptions, open_engine  # noqa: E402
from lanewise.loadtest.engines.base import Engine, random_batch  # noqa: E402
from lanewise.loadtest.engines.callback import CHECKSUMS, CLASSES, OUTPUTS, batch_call  # noqa: E402
from lanewise.loadtest.engines.ort import OnnxRuntime  # noqa: E402


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = tmp_path_factory.mktemp("models")
    return open_engine("onnxruntime", "small-cnn", options=EngineOptions(folder=folder, threads=1), max_batch=4)


def some(n: int) -> np.ndarray:
    """n images of floats in rows of bytes."""
    drawn = np.random.default_rng(n).random((n, 3, 8, 8), np.float32)
    return drawn.reshape(n, -1).view(np.uint8)


def test_a_sample_is_answered_alike_alone_and_in_any_batch(small: Engine):
    batch = random_batch(small.spec, 4)
    together = small.infer(batch)
    assert together.shape == (4, 1000)
    for index in range(4):
        assert np.allclose(small.infer(batch[index : index + 1])[0], together[index], atol=1e-5)


def test_samples_are_read_where_they_lie(small: Engine):
    batch = random_batch(small.spec, 3)
    assert np.array_equal(small.infer_at(batch.ctypes.data, 3), small.infer(batch))
    assert np.array_equal(small.checksums(batch), checksums(batch))


def test_it_says_that_the_weights_are_random_and_of_which_seed(small: Engine):
    said = small.describe()
    assert said["weights"] == "random, seed 1"
    assert said["version"] == ort.__version__
    assert said["provider"] == "CPUExecutionProvider"
    assert small.name == "onnxruntime small-cnn"


def test_service_times_are_of_the_batches_asked_for(small: Engine):
    small.warm([1, 2])
    times = small.service_times([2, 1])
    assert list(times) == [1, 2]
    assert all(0 < taken < 60 for taken in times.values())
    with pytest.raises(InputError, match="outside 1 to 4"):
        small.service_times([5])


def test_a_file_says_what_a_sample_is(tmp_path: Path):
    engine = open_engine("onnxruntime", str(means(tmp_path / "means.onnx")))
    assert str(engine.spec) == "float32[3, 8, 8], 768 B"
    batch = some(5)
    assert np.allclose(engine.infer(batch), batch.view(np.float32).reshape(5, 3, 64).mean(axis=2), atol=1e-6)
    assert engine.describe()["weights"] == "file"
    assert len(str(engine.describe()["sha256"])) == 64


def test_another_output_may_answer(tmp_path: Path):
    file = str(means(tmp_path / "means.onnx"))
    engine = open_engine("onnxruntime", file, options=EngineOptions(output="class"))
    largest = some(6).view(np.float32).reshape(6, 3, 64).mean(axis=2).argmax(axis=1)
    assert engine.infer(some(6)).ravel().tolist() == largest.tolist()
    with pytest.raises(UnknownName, match="unknown output 'clas'") as raised:
        open_engine("onnxruntime", file, options=EngineOptions(output="clas"))
    assert "class" in raised.value.hint


def test_a_file_of_a_fixed_batch_takes_any_number_of_samples(tmp_path: Path):
    free = open_engine("onnxruntime", str(means(tmp_path / "free.onnx")))
    fixed = open_engine("onnxruntime", str(means(tmp_path / "fixed.onnx", batch=4)))
    for n in (1, 4, 6):
        assert np.allclose(fixed.infer(some(n)), free.infer(some(n)))
        assert np.allclose(fixed.infer_at(some(n).ctypes.data, n), free.infer(some(n)))
    assert (free.sizes, fixed.sizes) == ([], [4, 8, 12, 16, 20, 24, 28, 32])
    assert open_engine("onnxruntime", str(tmp_path / "fixed.onnx"), max_batch=6).sizes == [4, 6]


@pytest.mark.parametrize("layout", ["hwc", "chw"])
def test_an_image_model_takes_pixels_and_normalises_them_inside(tmp_path: Path, layout: str):
    engine = open_engine(
        "onnxruntime", str(means(tmp_path / "means.onnx")), options=EngineOptions(image=True, layout=layout)
    )
    pixels = np.random.default_rng(1).integers(0, 256, (2, 8, 8, 3), np.uint8)
    expected = (pixels.mean(axis=(1, 2)) - (123.675, 116.28, 103.53)) / (58.395, 57.12, 57.375)
    sent = pixels if layout == "hwc" else np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
    assert engine.spec.bytes == 192
    assert np.allclose(engine.infer(sent), expected, atol=1e-4)


def test_a_model_of_bytes_is_not_given_pixels_twice(tmp_path: Path):
    with pytest.raises(InputError, match="does not take normalised images"):
        open_engine("onnxruntime", str(colours(tmp_path / "colours.onnx")), options=EngineOptions(image=True))


@pytest.mark.parametrize("content", [b"", b"no model", bytes(1000)])
def test_a_wrong_file_is_named(tmp_path: Path, content: bytes):
    path = tmp_path / "wrong.onnx"
    path.write_bytes(content)
    with pytest.raises((FormatError, InputError)) as raised:
        open_engine("onnxruntime", str(path))
    assert str(path) in str(raised.value)
    assert raised.value.hint
    with pytest.raises(FormatError, match=r"wrong\.onnx"):
        open_engine("onnxruntime", str(path), options=EngineOptions(image=True))


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"absent\.onnx: the model cannot be read: No such file"):
        open_engine("onnxruntime", str(tmp_path / "absent.onnx"))
    with pytest.raises(UnknownName) as raised:
        open_engine("onnxruntime", "resnet5")
    assert "resnet50" in raised.value.hint


def test_open_sizes_several_inputs_and_texts_are_refused(tmp_path: Path):
    relu = [helper.make_node("Relu", ["x"], ["y"])]
    wide = write(tmp_path / "wide.onnx", relu, [floats("x", "n", 3, "w")], [floats("y", "n", 3, "w")])
    with pytest.raises(InputError, match=r"'x' has the shape \['n', 3, 'w'\]"):
        open_engine("onnxruntime", str(wide))
    flat = write(tmp_path / "flat.onnx", relu, [floats("x", "n")], [floats("y", "n")])
    with pytest.raises(InputError, match=r"sizes beside the first"):
        open_engine("onnxruntime", str(flat))
    add = [helper.make_node("Add", ["a", "b"], ["y"])]
    two = write(tmp_path / "two.onnx", add, [floats("a", "n", 3), floats("b", "n", 3)], [floats("y", "n", 3)])
    with pytest.raises(InputError, match=r"2 inputs \(a, b\)"):
        open_engine("onnxruntime", str(two))
    text = helper.make_tensor_value_info("x", TensorProto.STRING, ["n", 3])
    same = helper.make_tensor_value_info("y", TensorProto.STRING, ["n", 3])
    words = write(tmp_path / "words.onnx", [helper.make_node("Identity", ["x"], ["y"])], [text], [same])
    with pytest.raises(InputError, match="numbers are needed"):
        open_engine("onnxruntime", str(words))


def test_an_output_without_a_row_for_each_sample_is_refused(tmp_path: Path):
    node = helper.make_node("ReduceMean", ["x"], ["y"], axes=[0], keepdims=1)
    path = write(tmp_path / "mean.onnx", [node], [floats("x", "n", 3)], [floats("y", 1, 3)])
    engine = open_engine("onnxruntime", str(path))
    with pytest.raises(CannotMeasure, match=r"the shape \[1, 3\] for 2 samples"):
        engine.infer(np.zeros((2, 12), np.uint8))


def test_a_provider_that_is_absent_is_named():
    if "CUDAExecutionProvider" in ort.get_available_providers():
        pytest.skip("this onnxruntime has the CUDA provider")
    with pytest.raises(CannotMeasure, match="no CUDAExecutionProvider"):
        open_engine("onnxruntime", "small-cnn", device="cuda")
    with pytest.raises(CannotMeasure, match="no TensorrtExecutionProvider"):
        open_engine("onnxruntime", "small-cnn", device="cuda:0", options=EngineOptions(mode="tensorrt"))


def test_what_does_not_go_together_is_refused(tmp_path: Path):
    file = str(means(tmp_path / "means.onnx"))
    for wrong in (
        {"device": "gpu"},
        {"device": "cpu:1"},
        {"device": "cuda:x"},
        {"options": EngineOptions(mode="cuda")},
        {"options": EngineOptions(mode="openvino")},
        {"precision": "fp16"},
        {"precision": "int4"},
        {"max_batch": 0},
    ):
        with pytest.raises(InputError) as raised:
            open_engine("onnxruntime", file, **wrong)
        assert raised.value.hint
    with pytest.raises(InputError, match="not written in bf16"):
        open_engine("onnxruntime", "small-cnn", precision="bf16")
    with pytest.raises(UnknownName, match="engine"):
        open_engine("tensorflow", "small-cnn")
    with pytest.raises(InputError, match="does not read ONNX"):
        open_engine("torch", file)


def test_a_batch_of_another_size_is_refused(small: Engine):
    with pytest.raises(Contradiction, match="does not hold samples"):
        small.infer(np.zeros((1, 5), np.uint8))


def test_a_closed_engine_says_so(tmp_path: Path):
    engine = open_engine("onnxruntime", str(means(tmp_path / "means.onnx")))
    engine.close()
    with pytest.raises(CannotMeasure, match="closed"):
        engine.infer(some(1))


def test_callbacks_give_a_row_of_bytes_for_each_sample(small: Engine):
    batch, indices = random_batch(small.spec, 3), np.arange(3)
    scores = small.infer(batch)
    assert batch_call(small, OUTPUTS)(batch, indices).shape == (3, 4000)
    assert np.array_equal(batch_call(small, OUTPUTS)(batch, indices).view(np.float32), scores)
    assert np.array_equal(batch_call(small, CLASSES)(batch, indices).view("<i4").ravel(), scores.argmax(axis=1))
    assert np.array_equal(batch_call(small, CHECKSUMS)(batch, indices).view("<u8").ravel(), checksums(batch))


def test_half_precision_is_close_to_single(small: Engine, tmp_path: Path):
    half = open_engine("onnxruntime", "small-cnn", precision="fp16", options=EngineOptions(folder=tmp_path))
    batch = random_batch(small.spec, 2)
    assert np.allclose(half.infer(batch), small.infer(batch), atol=0.05)


bindings: list[tuple[str, int, list[int]]] = []  # what sessions on a GPU were bound to


class OnGpu:
    """A session whose bindings name a GPU, run by the CPU's where the address is host memory."""

    def __init__(self, session: Any, bound: list[tuple[str, int, list[int]]], providers: list[str]) -> None:
        self.session, self.bound, self.providers = session, bound, providers

    def get_providers(self) -> list[str]:
        return self.providers

    def io_binding(self) -> OnGpu:
        return self

    def bind_input(self, name: str, kind: str, index: int, dtype: np.dtype, shape: list[int], address: int) -> None:
        self.bound.append((kind, index, shape))
        held = (ctypes.c_uint8 * (int(np.prod(shape)) * dtype.itemsize)).from_address(address)
        self.given = {name: np.frombuffer(memoryview(held), dtype).reshape(shape)}

    def bind_output(self, name: str, kind: str) -> None:
        self.asked = [name]

    def synchronize_inputs(self) -> None:
        pass

    def run_with_iobinding(self, binding: OnGpu, options: object) -> None:
        self.made = self.session.run(self.asked, self.given)

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        return self.made


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The GPU providers that start, in place of what this onnxruntime has."""
    names = ["CUDAExecutionProvider"]
    monkeypatch.setattr(OnnxRuntime, "_refuse_absent", lambda own, provider: None)
    return names


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, offered: list[str]) -> list[Any]:
    """The providers that sessions on a GPU were asked for; a session has those of them that start."""
    requests: list[Any] = []
    start = OnnxRuntime._start

    def started(own: OnnxRuntime, providers: list[Any]) -> object:
        if providers == ["CPUExecutionProvider"]:
            return start(own, providers)
        requests.append(providers)
        names = [each if isinstance(each, str) else each[0] for each in providers]
        present = [name for name in names if name in (*offered, "CPUExecutionProvider")]
        return OnGpu(start(own, ["CPUExecutionProvider"]), bindings, present)

    bindings.clear()
    monkeypatch.setattr(OnnxRuntime, "_start", started)
    return requests


@pytest.fixture
def on_gpu(asked: list[Any]) -> list[tuple[str, int, list[int]]]:
    """What an engine binds that was opened on a GPU."""
    return bindings


def test_on_a_gpu_tensorrt_comes_before_cuda_and_keeps_its_engine_by_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[Any], offered: list[str]
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    offered.append("TensorrtExecutionProvider")
    folders = set()
    for name, batch in (("one", 8), ("same", 8), ("same", 4)):
        path = means(tmp_path / f"{name}.onnx")
        engine = open_engine("onnxruntime", str(path), "cuda:1", max_batch=batch)
        assert (engine.mode, engine.notes) == ("tensorrt", [])
        assert engine.describe()["provider"] == "TensorrtExecutionProvider"
        (provider, options), (fallback, _), _ = asked[-1]
        assert (provider, fallback) == ("TensorrtExecutionProvider", "CUDAExecutionProvider")
        assert options["trt_profile_max_shapes"] == f"images:{batch}x3x8x8"
        assert (options["device_id"], options["trt_engine_cache_enable"]) == ("1", "True")
        folders.add(options["trt_engine_cache_path"])
    assert len(folders) == 2  # by content and largest batch, not by name
    for folder in folders:
        assert Path(folder).parent == tmp_path / "cache" / "lanewise" / "tensorrt"
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_without_tensorrt_it_is_cuda_with_the_reason_and_a_named_provider_never_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[Any], offered: list[str]
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = str(means(tmp_path / "means.onnx"))
    engine = open_engine("onnxruntime", file, "cuda:1")
    assert (engine.mode, engine.describe()["failed_providers"]) == ("cuda", ["tensorrt"])
    assert engine.notes[0].startswith("tensorrt failed: onnxruntime lists TensorrtExecutionProvider but could not")
    with pytest.raises(CannotMeasure, match="lists TensorrtExecutionProvider"):
        open_engine("onnxruntime", file, "cuda:1", options=EngineOptions(mode="tensorrt"))
    asked.clear()
    assert open_engine("onnxruntime", file, "cuda:1", options=EngineOptions(mode="cuda")).notes == []
    cuda = {"device_id": "1", "cudnn_conv_algo_search": "HEURISTIC"}
    assert asked == [[("CUDAExecutionProvider", cuda), "CPUExecutionProvider"]]
    offered.clear()
    with pytest.raises(CannotMeasure, match="lists CUDAExecutionProvider"):
        open_engine("onnxruntime", file, "cuda:1")


def test_on_a_gpu_samples_are_read_in_place_and_padded_by_what_lies_behind(
    tmp_path: Path, on_gpu: list[tuple[str, int, list[int]]]
):
    engine = open_engine("onnxruntime", str(means(tmp_path / "means.onnx")), "cuda:1", max_batch=20)
    rows = some(20)
    expected = rows.view(np.float32).reshape(20, 3, 64).mean(axis=2)
    for n in (1, 3, 13, 20):
        assert np.allclose(engine.infer_at(rows.ctypes.data, n), expected[:n], atol=1e-6)
    assert engine.classes_at(rows.ctypes.data, 7).tolist() == expected[:7].argmax(axis=1).tolist()
    assert on_gpu == [("cuda", 1, [size, 3, 8, 8]) for size in (1, 4, 15, 20, 8)]
    assert engine.describe()["batch_sizes"] == [1, 2, 4, 8, 9, 12, 15, 18, 20]
    with pytest.raises(CannotMeasure, match="768 B lie 784 B apart"):
        engine.infer_at(rows.ctypes.data, 2, 784)


def test_on_a_gpu_a_fixed_batch_is_the_largest_batch(tmp_path: Path, on_gpu: list[tuple[str, int, list[int]]]):
    file = str(means(tmp_path / "fixed.onnx", batch=4))
    engine = open_engine("onnxruntime", file, "cuda:1", max_batch=4)
    assert engine.infer_at(some(4).ctypes.data, 2).shape == (2, 3)
    assert on_gpu == [("cuda", 1, [4, 3, 8, 8])]
    with pytest.raises(CannotMeasure, match="batches of 4 alone, not up to 8") as refused:
        open_engine("onnxruntime", file, "cuda:1", max_batch=8)
    assert "take 4" in refused.value.hint
