"""Loads of real files measured: what lies where, that wrong data is noticed, GPUs without GPUs, hostile headers."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_cuda
import pytest
from hypothesis import given
from hypothesis import strategies as st

if sys.platform != "linux":
    pytest.skip("loads are measured on Linux", allow_module_level=True)

import lanewise
from lanewise.errors import CannotMeasure, InputError
from lanewise.options.measure_load import MeasureLoadOptions
from lanewise.probes.load.header import StoredTensor, tensors_of
from lanewise.probes.load.layout import PAGE, layout
from lanewise.probes.load.probe import _LoadRows
from lanewise.probes.load.session import LoadSession
from lanewise.probes.storage.files import open_files

IO = 64 << 10


def entry(start: int, end: int, **other: Any) -> dict[str, Any]:
    return {"dtype": "U8", "shape": [end - start], "data_offsets": [start, end], **other}


def written(path: Path, header: Any, data: bytes) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Three tensors of 300,001 random bytes, none of which begins at a page."""
    size = 300_001
    header = {f"layer.{i}": entry(i * size, (i + 1) * size) for i in range(3)}
    return written(tmp_path / "w.safetensors", header | {"__metadata__": {"format": "pt"}}, os.urandom(3 * size))


def measure(path: Path, to: str, *modes: str, **how: Any) -> dict[str, dict[str, Any]]:
    """The samples of one run: value and facts by scenario and metric."""
    rows: dict[str, dict[str, Any]] = {}
    options = {"io": IO, "readers": 2, "depth": 2, "runs": 1, **how}
    for sample in lanewise.measure_load(path, to, modes=modes, **options):
        rows.setdefault(sample.scenario, {})[sample.metric] = sample
    return rows


def test_every_mode_loads_to_host_memory_and_compares_all_of_it(weights):
    rows = measure(weights, "host0", "cached", "buffered", "bounce", "direct")
    assert list(rows) == ["load cached", "load buffered", "load bounce", "load direct"]
    for row in rows.values():
        assert row["total"].how["data"].startswith("verified")
        assert row["total"].value == pytest.approx(900_003 / row["makespan"].value)
        assert row["total"].how["tensors"] == "3"
    assert set(rows["load bounce"]) == {"total", "makespan", "reads_alone", "copies_alone", "of_slower_stage"}
    assert rows["load direct"]["total"].how["engine"].endswith("straight to where data stays")


def test_what_was_loaded_wrong_is_noticed(weights):
    """The file changes in its last tensor after it was loaded: the comparison names the file and the place."""
    options = MeasureLoadOptions((str(weights),), io=IO, readers=2, depth=2)
    with open_files(options.files, 8) as files:
        plan = layout([tensors_of(files[0].buffered, str(weights))], 1, IO, replicated=False)
        with closing(LoadSession(options, "cached", files, plan, lambda _: None)) as session:
            session.load("once")
            session.verify()
            with weights.open("r+b") as file:
                file.seek(-1, os.SEEK_END)
                last = file.read(1)
                file.seek(-1, os.SEEK_END)
                file.write(bytes([last[0] ^ 1]))
            with pytest.raises(CannotMeasure, match=r"w\.safetensors: a second reading at offset"):
                session.verify()


def test_two_gpus_get_a_part_each_or_everything(weights, monkeypatch):
    library = fake_cuda.build()
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", str(library))
    parts = measure(weights, "gpu0,gpu1", "cached", "bounce")["load cached"]
    copies = measure(weights, "gpu0,gpu1", "cached", replicated=True)["load cached"]
    assert [each["total"].how["tensors"] for each in (parts, copies)] == ["3", "6"]
    assert parts["total"].flow == "w.safetensors->gpu0, w.safetensors->gpu1"
    assert parts["total"].how["data"].startswith("verified")
    assert set(parts) == {"total", "makespan", "reads_alone", "copies_alone", "of_slower_stage"}
    gc.collect()
    assert fake_cuda.live(library) == dict.fromkeys(fake_cuda.KINDS, 0)


def test_the_safetensors_library_is_measured_cold_and_warm(weights):
    pytest.importorskip("safetensors", reason="the safetensors package is not installed")
    assert list(measure(weights, "host0", "safetensors")) == ["load safetensors cold", "load safetensors warm"]


@given(
    st.lists(st.lists(st.integers(1, 3 * IO), min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(1, 3),
    st.booleans(),
)
def test_each_tensor_lies_whole_on_its_targets_and_nothing_overlaps(sizes, targets, replicated):
    files = [list(laid(each)) for each in sizes]
    plan = layout(files, targets, IO, replicated)
    places: dict[int, list[tuple[int, int]]] = {target: [] for target in range(targets)}
    loaded: dict[tuple[int, int], set[int]] = {}
    for file, offset, count, target, at in plan.chunks:
        assert (offset % PAGE, at % PAGE) == (0, 0)
        assert 0 < count <= IO
        places[target].append((at, at + -(-count // PAGE) * PAGE))
        loaded.setdefault((target, file), set()).update(range(offset // PAGE, -(-(offset + count) // PAGE)))
    for target, spans in places.items():
        spans.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
        assert not spans or spans[-1][1] <= plan.sizes[target]
        for file, name in plan.names[target]:
            tensor = next(each for each in files[file] if each.name == name)
            assert set(range(tensor.start // PAGE, -(-tensor.end // PAGE))) <= loaded[target, file]
    assert sum(map(len, plan.names)) == sum(map(len, files)) * (targets if replicated else 1)


def laid(sizes: Sequence[int]) -> Iterator[StoredTensor]:
    at = 123
    for number, size in enumerate(sizes):
        yield StoredTensor(str(number), at, at + size)
        at += size


HOSTILE = {
    "an empty file": b"",
    "no header": (1 << 40).to_bytes(8, "little"),
    "no JSON": (4).to_bytes(8, "little") + b"{{{{",
    "no text": (4).to_bytes(8, "little") + b"\xff\xfe\xfd\xfc",
    "a deep nest": (200_000).to_bytes(8, "little") + b"[" * 200_000,
}
ENTRIES: dict[str, tuple[Any, int]] = {
    "a list": ([], 0),
    "no tensor": ({}, 0),
    "a tensor of no data": ({"a": entry(0, 0)}, 0),
    "a number for a tensor": ({"a": 1}, 8),
    "an unknown dtype": ({"a": entry(0, 8, dtype="U7")}, 8),
    "a dtype that is a list": ({"a": entry(0, 8, dtype=["U8"])}, 8),
    "negative offsets": ({"a": entry(-8, 0)}, 8),
    "offsets that run backwards": ({"a": {"dtype": "U8", "shape": [8], "data_offsets": [8, 0]}}, 8),
    "three offsets": ({"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8, 8]}}, 8),
    "truth as a size": ({"a": {"dtype": "U8", "shape": [True], "data_offsets": [0, 1]}}, 1),
    "huge shapes": ({"a": entry(0, 8, shape=[1 << 61] * 50_000)}, 8),
    "bytes beyond the end": ({"a": entry(0, 9)}, 8),
    "bytes left over": ({"a": entry(0, 8)}, 9),
    "a hole": ({"a": entry(0, 4), "b": entry(8, 12)}, 12),
    "an overlap": ({"a": entry(0, 8), "b": entry(4, 12)}, 12),
    "a shape that does not fit": ({"a": entry(0, 8, shape=[7])}, 8),
    "a name twice": (b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{}}', 4),
}


@pytest.mark.parametrize("case", [*HOSTILE, *ENTRIES])
def test_a_hostile_file_is_one_error_that_names_it(case, tmp_path):
    path = tmp_path / "bad.safetensors"
    if case in HOSTILE:
        path.write_bytes(HOSTILE[case])
    else:
        header, size = ENTRIES[case]
        written(path, header, bytes(size))
    with pytest.raises(InputError) as raised:
        list(lanewise.measure_load(path))
    assert "bad.safetensors" in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ({"to": "disk0"}, "no memory to load into"),
        ({"to": "gpu0,gpu0"}, "does not name each GPU once"),
        ({"to": "gpu0,host0"}, "not to both"),
        ({"to": ""}, "does not name"),
        ({"modes": ("fast",)}, "unknown mode"),
        ({"io": 5000}, "no multiple of 4 KiB"),
        ({"replicated": True}, "several GPUs"),
        ({"readers": 20_000}, "not possible"),
    ],
)
def test_options_that_fit_nothing(how, cause, weights):
    with pytest.raises(InputError, match=cause):
        list(lanewise.measure_load(weights, **how))


def test_a_library_that_is_not_installed_is_an_error_only_by_name(weights, monkeypatch):
    monkeypatch.setattr("lanewise.probes.load.libraries.find_spec", lambda _: None)
    with pytest.raises(CannotMeasure, match="runai-model-streamer is not installed"):
        measure(weights, "host0", "runai-streamer")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        list(lanewise.measure_load(tmp_path))


def test_without_a_driver_a_load_to_gpus_is_one_error_not_a_row_a_mode(weights, monkeypatch):
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", "libnone.so")
    with pytest.raises(CannotMeasure, match="CUDA driver cannot be opened"):
        list(lanewise.measure_load(weights, "gpu0"))


def test_a_file_system_without_direct_reads_leaves_those_modes_out_unless_they_are_named(weights, monkeypatch):
    def refuse(file: Any) -> int:
        raise CannotMeasure("its file system has no direct reads (O_DIRECT)")

    monkeypatch.setattr("lanewise.probes.storage.files.StorageFile.open_direct", refuse)
    monkeypatch.setattr("lanewise.probes.load.probe._possible", lambda _: ("direct", "cached"))
    rows = measure(weights, "host0")
    assert (rows["load direct"]["total"].value, "O_DIRECT" in rows["load direct"]["total"].note) == (None, True)
    assert rows["load cached"]["total"].how["data"] == "verified through the page cache"
    with pytest.raises(CannotMeasure, match="O_DIRECT"):
        measure(weights, "host0", "direct")


@pytest.mark.parametrize(("mode", "state"), [("direct", ""), ("safetensors", " cold")])
def test_a_predicted_load_is_the_row_that_is_measured(mode, state):
    prediction = lanewise.predict_load("h200-pair", "15 GB", "2 GB/s", "gpu[0-1]", [mode], readers=4)
    options = MeasureLoadOptions(("a", "b"), to=("gpu0", "gpu1"), readers=8)
    files: Any = [SimpleNamespace(drives=(), name=name) for name in ("a", "b")]
    plan: Any = SimpleNamespace(data=15e9, names=[["x"]])
    samples = _LoadRows(options, mode, files, plan).of_load(7.0, {}, state)
    predicted = lanewise.as_measured_run((), rows=lanewise.load_rows(prediction))
    pairs = lanewise.compare(predicted, lanewise.as_measured_run(samples)).pairs
    assert [pair.left.metric for pair in pairs] == ["total", "makespan"]
