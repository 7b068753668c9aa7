"""A load test put together: what is tested is what was asked for, and all of it is let go."""

from __future__ import annotations

import sys
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from loadtest.needs import models

from lanewise.installed import loadgen_missing

if sys.platform != "linux":
    pytest.skip("load tests are for Linux", allow_module_level=True)
if missing := loadgen_missing():
    pytest.skip(f"built without LoadGen: {missing}", allow_module_level=True)

from lanewise import _native
from lanewise.errors import Contradiction, InputError, UnknownName
from lanewise.loadtest import session as session_module
from lanewise.loadtest.audits import ACCURACY_LOG, answers, checksum
from lanewise.loadtest.datasets import NativeSamples
from lanewise.loadtest.engines import open_engine
from lanewise.loadtest.engines.callback import CHECKSUMS, CLASSES
from lanewise.loadtest.load_run import OFFLINE, LoadSpec
from lanewise.loadtest.session import LoadTestSession, LocalSession, open_session
from lanewise.options.loadtest import LoadTestOptions

SYNTHETIC = LoadTestOptions(
    engine="synthetic", library=20, batch=4, sample_bytes=96, timeout=0.0005, service=(0.0, 2e-5)
)
EVERY = LoadSpec(OFFLINE, 100.0, 0.1, 10, accuracy=True)


def answered(session: LoadTestSession) -> dict[int, bytes]:
    """The answer to each sample of an accuracy run."""
    folder = session.runner.run(EVERY).folder
    assert folder is not None
    return answers(folder / ACCURACY_LOG)


def onnx(path: Path, **more: Any) -> LoadTestOptions:
    return replace(SYNTHETIC, engine="onnxruntime", model=str(path), threads=1, **more)


def test_the_synthetic_engine_answers_the_crc_of_samples_that_can_be_made_again(tmp_path: Path):
    with open_session(SYNTHETIC, tmp_path, answer=CHECKSUMS) as session:
        given = answered(session)
        statistics = session.statistics()
    samples = NativeSamples(20, 96)
    assert given == {i: zlib.crc32(samples.sample(i)).to_bytes(4, "little") for i in range(20)}
    assert statistics.answered == 20
    assert statistics.bytes == 20 * 96
    assert max(statistics.sizes) <= 4


def test_native_samples_are_the_systems_own_and_end_where_they_end():
    samples = NativeSamples(2, 96)
    assert samples.sample(1) == _native.synthetic_sample(1, 96)
    assert (len(samples), samples.spec.bytes, samples.label(0)) == (2, 96, None)
    with pytest.raises(InputError, match="no sample 2 of 2"):
        samples.sample(2)


def test_a_data_set_larger_than_memory_is_sent_whole_in_an_accuracy_run(tmp_path: Path):
    with open_session(SYNTHETIC, tmp_path, answer=CHECKSUMS, samples=50) as session:
        assert session.runner.setup.samples == 50
        assert session.runner.setup.resident == 20
        assert sorted(answered(session)) == list(range(50))


def test_service_times_of_the_synthetic_engine_are_its_law(tmp_path: Path):
    with open_session(replace(SYNTHETIC, batch=6, service=(0.001, 2e-5)), tmp_path) as session:
        assert isinstance(session, LocalSession)
        assert session.service_times() == pytest.approx({n: 0.001 + n * 2e-5 for n in (1, 2, 4, 6)})


@models
def test_answers_of_a_model_are_those_it_gives_to_the_same_samples(tmp_path: Path):
    from loadtest.onnx_files import colours

    path = colours(tmp_path / "m.onnx")
    with open_session(onnx(path), tmp_path / "logs") as session:
        given, dataset = answered(session), session.dataset
        assert dataset is not None
        alone = open_engine("onnxruntime", str(path))
        for index, answer in given.items():
            expected = alone.infer(np.frombuffer(dataset.sample(index), np.uint8)[None, :])[0]
            assert np.frombuffer(answer, np.float32) == pytest.approx(expected)
        assert session.setup["sha256"]
        assert session.setup["batch"] == 4
    assert sorted(given) == list(range(20))


@models
@pytest.mark.parametrize("answer", [CLASSES, CHECKSUMS])
def test_a_model_answers_its_class_or_the_checksum_of_what_it_got(tmp_path: Path, answer: str):
    from loadtest.onnx_files import colours

    with open_session(onnx(colours(tmp_path / "m.onnx")), tmp_path / "logs", answer=answer) as session:
        given, dataset = answered(session), session.dataset
    assert dataset is not None
    for index, said in given.items():
        pixels = np.frombuffer(dataset.sample(index), np.uint8).reshape(-1, 3)
        expected = pixels.mean(axis=0).argmax() if answer == CLASSES else checksum(dataset.sample(index))
        assert int.from_bytes(said, "little") == expected


@models
def test_every_engine_is_closed_whatever_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from loadtest.onnx_files import colours

    from lanewise.loadtest.engines.ort import OnnxRuntime

    closed = []
    monkeypatch.setattr(OnnxRuntime, "close", lambda own: closed.append(own))
    options = onnx(colours(tmp_path / "m.onnx"))
    two = replace(options, devices=("cpu", "cpu"))
    with pytest.raises(KeyboardInterrupt), open_session(two, tmp_path / "logs"):
        raise KeyboardInterrupt
    assert len(closed) == 2
    with pytest.raises(InputError), open_session(replace(options, images=tmp_path / "none"), tmp_path / "logs"):
        pass
    assert len(closed) == 3


def test_what_does_not_go_together_is_refused(tmp_path: Path):
    with pytest.raises(InputError), open_session(SYNTHETIC, tmp_path, answer=CLASSES):
        pass
    with pytest.raises(InputError, match="--devices"), open_session(replace(SYNTHETIC, devices=()), tmp_path):
        pass
    with pytest.raises(UnknownName):
        replace(SYNTHETIC, engine="tensorflow")


@models
def test_images_for_a_model_of_other_samples_are_refused(tmp_path: Path):
    pytest.importorskip("PIL", reason="pillow is not installed")
    from loadtest.onnx_files import means
    from PIL import Image

    (tmp_path / "images" / "a").mkdir(parents=True)
    Image.new("RGB", (300, 300)).save(tmp_path / "images" / "a" / "1.png")
    ask = onnx(means(tmp_path / "m.onnx"), images=tmp_path / "images")
    with pytest.raises(Contradiction), open_session(ask, tmp_path / "logs"):
        pass


def test_an_engine_is_opened_on_the_gpu_that_cuda_counts_so_and_warmed_at_every_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    known = {"gpu0": SimpleNamespace(ordinal=3), "gpu1": SimpleNamespace(ordinal=1)}
    monkeypatch.setattr(session_module, "gpus", lambda devices: known)
    asked: list[tuple[str, list[int]]] = []

    def open_one(name: str, source: str, device: str, *_: Any) -> Any:
        sizes = [] if device == "cpu" else [1, 2, 4]
        return SimpleNamespace(sizes=sizes, mode="", notes=[], warm=lambda batches: asked.append((device, batches)))

    monkeypatch.setattr(session_module, "open_engine", open_one)
    session_module.open_engines(replace(SYNTHETIC, engine="torch", devices=("gpu0", "cpu", "gpu1")))
    assert asked == [("cuda:3", [1, 2, 4]), ("cpu", [1, 4]), ("cuda:1", [1, 2, 4])]
