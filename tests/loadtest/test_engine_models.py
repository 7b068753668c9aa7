"""Models that Lanewise builds: their size by arithmetic, one file for a seed, the same answers from both back ends."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.errors import CannotMeasure, InputError, UnknownName
from lanewise.loadtest.datasets import Synthetic
from lanewise.loadtest.engines import EngineOptions, open_engine
from lanewise.loadtest.engines.base import random_batch
from lanewise.loadtest.models import MODELS, model


def test_resnet50_has_the_parameters_and_the_work_of_v1_5():
    # By hand: convolutions (each with scale and shift) of the stem, of 16 bottlenecks and 4 shortcuts, then the head.
    total = 3 * 64 * 49 + 2 * 64
    inside = 64
    for blocks, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        total += inside * 4 * width + 8 * width
        for _ in range(blocks):
            total += inside * width + 9 * width * width + width * 4 * width + 2 * (width + width + 4 * width)
            inside = 4 * width
    total += 2048 * 1000 + 1000
    size = model("resnet50").size()
    assert size.parameters == total == 25_557_032
    assert size.output == (1000,)
    # v1 does the 1x1 before it at half the side as well: 3.86 G. v1.5 has 4.09 G.
    assert size.multiply_adds == pytest.approx(4.09e9, rel=1e-3)


def test_bert_large_has_the_parameters_of_bert_large():
    # Of BERT-large with a head for spans, 334,094,338, less the 128 rows of positions beyond a sequence of 384.
    assert model("bert-large").size().parameters == 334_094_338 - 128 * 1024
    assert model("bert-large").spec.bytes == 3 * 384 * 4


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_sample_and_an_output(name: str):
    built = model(name)
    assert built.spec.bytes in (150_528, 4_608)
    assert built.size().multiply_adds > 1e7


def test_unknown_models_and_layouts_are_errors():
    with pytest.raises(UnknownName, match="resnet51"):
        model("resnet51")
    with pytest.raises(InputError, match="nhwc"):
        _ = model("resnet50", "nhwc").spec


def test_a_file_is_the_same_for_a_seed_and_another_for_another():
    onnx = pytest.importorskip("onnx", reason="models are written with onnx")
    from lanewise.loadtest.models.onnx_model import onnx_bytes

    small = model("small-cnn")
    one = onnx_bytes(small, seed=3)
    assert one == onnx_bytes(small, seed=3)
    assert one != onnx_bytes(small, seed=4)
    made = onnx.load_from_string(one)
    onnx.checker.check_model(made, full_check=True)
    # Scales are folded into the kernels: 288 channels have one array fewer.
    held = sum(int(np.prod(array.dims)) for array in made.graph.initializer if not array.name.startswith("constant"))
    assert held == small.size().parameters - (32 + 32 + 64 + 128)


def test_a_file_is_written_once_and_whole(tmp_path: Path):
    pytest.importorskip("onnx", reason="models are written with onnx")
    from lanewise.loadtest.models.onnx_model import onnx_file

    path = onnx_file(model("small-cnn"), tmp_path / "models")
    stamp = path.stat().st_mtime_ns
    assert onnx_file(model("small-cnn"), tmp_path / "models") == path
    assert path.stat().st_mtime_ns == stamp
    assert {file.name for file in path.parent.iterdir()} == {path.name, f"{path.stem}.sha256"}
    assert onnx_file(model("small-cnn", "chw"), tmp_path / "models") != path
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotMeasure, match="cannot be written"):
        onnx_file(model("small-cnn"), tmp_path / "file")


def test_a_file_with_another_content_is_written_anew(tmp_path: Path):
    pytest.importorskip("onnx", reason="models are written with onnx")
    from lanewise.loadtest.models.onnx_model import onnx_bytes, onnx_file

    path = onnx_file(model("small-cnn"), tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    assert onnx_file(model("small-cnn"), tmp_path).read_bytes() == onnx_bytes(model("small-cnn"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where models are kept, in a cache of the user that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "shared"))  # none is looked for there
    (tmp_path / "shared").mkdir()
    return tmp_path / "lanewise" / "models"


def test_models_are_kept_where_only_their_user_may_write(cache: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("onnx", reason="models are written with onnx")
    from lanewise.loadtest.cache import cache_folder
    from lanewise.loadtest.models.onnx_model import onnx_file

    assert onnx_file(model("small-cnn")).parent == cache
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (cache, cache.parent)] == [0o700, 0o700]
    assert not list((cache.parents[1] / "shared").iterdir())
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(cache.parents[1] / "home"))
    assert cache_folder("models") == cache.parents[1] / "home" / ".cache" / "lanewise" / "models"


def _by_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700, parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)


def _open_to_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)


def _link(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.parent.mkdir(mode=0o700)
    folder.symlink_to(folder.parents[1] / "shared")


@pytest.mark.parametrize("plant", [_by_another_user, _open_to_all, _link])
def test_a_cache_that_others_may_write_to_is_refused(plant: Any, cache: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("onnx", reason="models are written with onnx")
    from lanewise.loadtest.models.onnx_model import onnx_file

    plant(cache, monkeypatch)
    with pytest.raises(CannotMeasure, match="only you may write to") as caught:
        onnx_file(model("small-cnn"))
    assert "chmod 700" in caught.value.hint
    assert not list((cache.parents[1] / "shared").iterdir())


@pytest.mark.parametrize("name", ["small-cnn", "bert"])
def test_torch_and_onnxruntime_give_the_same_scores(name: str, tmp_path: Path):
    for library in ("onnxruntime", "onnx", "torch"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    options = EngineOptions(folder=tmp_path)
    one = open_engine("onnxruntime", name, options=options, max_batch=2)
    other = open_engine("torch", name, options=options, max_batch=2)
    batch = random_batch(one.spec, 2)
    assert np.allclose(one.infer(batch), other.infer(batch), rtol=1e-3, atol=1e-4)


def test_both_layouts_of_an_image_give_the_same_scores(tmp_path: Path):
    for library in ("onnxruntime", "onnx"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    rows = open_engine("onnxruntime", "small-cnn", options=EngineOptions(folder=tmp_path))
    planes = open_engine("onnxruntime", "small-cnn", options=EngineOptions(folder=tmp_path, layout="chw"))
    image = np.frombuffer(Synthetic(rows.spec, 1).sample(0), np.uint8).reshape(1, 224, 224, 3)
    scores = rows.infer(image)
    assert np.allclose(scores, planes.infer(np.ascontiguousarray(image.transpose(0, 3, 1, 2))), atol=1e-5)
    assert scores.std() > 0.1
