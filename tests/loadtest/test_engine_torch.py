"""The torch engine on the CPU; its CUDA graphs are run by benchmarks on GPU machines."""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.errors import CannotMeasure, InputError, UnknownName
from lanewise.loadtest.audits import checksums
from lanewise.loadtest.engines import EngineOptions, open_engine
from lanewise.loadtest.engines.base import random_batch

torch = pytest.importorskip("torch", reason="torch is not installed")


def test_a_sample_is_answered_alike_alone_in_a_batch_and_where_it_lies():
    engine = open_engine("torch", "small-cnn", max_batch=4)
    batch = random_batch(engine.spec, 4)
    together = engine.infer(batch)
    assert together.shape == (4, 1000)
    assert np.allclose(engine.infer(batch[1:2])[0], together[1], atol=1e-5)
    assert np.allclose(engine.infer_at(batch.ctypes.data, 4), together)
    batch.setflags(write=False)
    assert np.array_equal(engine.infer(batch), together)
    assert np.array_equal(engine.checksums(batch), checksums(batch))


def test_checksums_of_torch_are_those_of_numpy_for_sequences_too():
    engine = open_engine("torch", "bert", max_batch=2)
    batch = random_batch(engine.spec, 2)
    assert np.array_equal(engine.checksums(batch), checksums(batch))


def test_half_precisions_are_close_to_single():
    single = open_engine("torch", "small-cnn", max_batch=2)
    batch = random_batch(single.spec, 2)
    half = open_engine("torch", "small-cnn", precision="bf16", max_batch=2)
    assert np.allclose(single.infer(batch), half.infer(batch), atol=0.2)
    assert half.describe()["precision"] == "bf16"


def test_what_needs_a_gpu_says_so():
    with pytest.raises(InputError, match="needs a GPU"):
        open_engine("torch", "small-cnn", options=EngineOptions(mode="graphs"))
    with pytest.raises(UnknownName, match="mode"):
        open_engine("torch", "small-cnn", options=EngineOptions(mode="fast"))
    if not torch.cuda.is_available():
        with pytest.raises(CannotMeasure, match="no CUDA"):
            open_engine("torch", "small-cnn", device="cuda")


def test_too_large_a_batch_and_a_closed_engine_are_errors():
    engine = open_engine("torch", "small-cnn", max_batch=2)
    with pytest.raises(InputError, match="above 2"):
        engine.infer(random_batch(engine.spec, 3))
    engine.close()
    with pytest.raises(CannotMeasure, match="closed"):
        engine.infer(random_batch(engine.spec, 1))


def test_each_engine_compiles_its_largest_batch_one_sample_and_all_between_together(monkeypatch: pytest.MonkeyPatch):
    from torch._dynamo.utils import counters

    compiled = torch.compile
    monkeypatch.setattr(torch, "compile", lambda module, dynamic: compiled(module, dynamic=dynamic, backend="eager"))
    counters.clear()
    engines = [open_engine("torch", "small-cnn", options=EngineOptions(mode="compiled"), max_batch=9) for _ in range(2)]
    assert engines[0].sizes == [1, 2, 4, 8, 9]
    assert counters["stats"]["unique_graphs"] == 2 * 3
    batch = random_batch(engines[0].spec, 3)
    scores = open_engine("torch", "small-cnn", max_batch=3).infer(batch)
    for engine in engines:
        assert np.allclose(engine.infer(batch), scores, atol=1e-4)
        engine.close()


def test_beyond_the_limit_compiling_is_an_error(monkeypatch: pytest.MonkeyPatch):
    from lanewise.loadtest.engines import pytorch

    compiled = torch.compile
    monkeypatch.setattr(torch, "compile", lambda module, dynamic: compiled(module, dynamic=dynamic, backend="eager"))
    monkeypatch.setattr(pytorch, "VARIANTS", 2)
    with pytest.raises(CannotMeasure, match="limit"):
        open_engine("torch", "small-cnn", options=EngineOptions(mode="compiled"), max_batch=8)
