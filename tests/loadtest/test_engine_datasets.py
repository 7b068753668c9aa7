"""Datasets: the same bytes for a seed and an index, images as ImageNet's, broken ones named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import Contradiction, FormatError, InputError
from lanewise.loadtest.datasets import ImageFolder, Synthetic
from lanewise.loadtest.models import model
from lanewise.loadtest.spec import SampleSpec, agree, batch_of


@given(st.integers(0, 2**32), st.integers(0, 99), st.integers(1, 40))
def test_a_synthetic_sample_depends_on_seed_and_index_alone(seed: int, index: int, size: int):
    spec = SampleSpec((size, 3), "uint8")
    one, other = Synthetic(spec, 100, seed), Synthetic(spec, index + 1, seed)
    assert one.sample(index) == other.sample(index)
    assert len(one.sample(index)) == spec.bytes == 3 * size


def test_synthetic_samples_differ_and_know_their_end():
    made = Synthetic(SampleSpec((32,), "uint8"), 50)
    assert len({made.sample(index) for index in range(50)}) == 50
    assert made.label(0) is None
    for index in (-1, 50):
        with pytest.raises(InputError, match=f"no sample {index} of 50"):
            made.sample(index)
    with pytest.raises(InputError, match="holds nothing"):
        Synthetic(made.spec, 0)


def test_synthetic_tokens_are_words_of_the_vocabulary():
    spec = model("bert").spec
    tokens = np.frombuffer(Synthetic(spec, 1).sample(0), np.int32).reshape(spec.shape)
    assert (tokens >= 0).all()
    assert (tokens.max(axis=1) < spec.below).all()
    floats = np.frombuffer(Synthetic(SampleSpec((500,), "float32"), 1).sample(0), np.float32)
    assert 0 <= floats.min() < floats.max() < 1


def test_a_batch_is_a_view_of_its_bytes_and_of_nothing_else():
    spec = SampleSpec((2, 3), "int32")
    raw = np.arange(48, dtype=np.uint8).reshape(2, 24)
    assert np.shares_memory(batch_of(raw, spec), raw)
    assert batch_of(raw, spec).tobytes() == raw.tobytes()
    for wrong in (raw[:, :20], raw.astype(np.int64), raw.reshape(-1)):
        with pytest.raises(Contradiction):
            batch_of(wrong, spec)
    with pytest.raises(Contradiction, match="takes samples of"):
        agree(SampleSpec((3, 2), "uint8"), SampleSpec((2, 3), "uint8"), "it")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes: cats (a red and a green image), dogs (a blue, wide and grey one)."""
    images = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    for name, size, colour in (
        ("cats/a.png", (300, 400), (255, 0, 0)),
        ("cats/b.png", (224, 224), (0, 255, 0)),
        ("dogs/c.PNG", (1000, 10), (0, 0, 255)),
        ("dogs/d.png", (256, 256), (7, 7, 7)),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        images.new("RGB", size, colour).save(path)
    (tmp_path / "dogs" / "notes.txt").write_text("no image")
    return tmp_path


def test_folders_are_classes_in_order(folder: Path):
    dataset = ImageFolder(folder)
    assert [dataset.label(index) for index in range(len(dataset))] == [0, 0, 1, 1]
    assert dataset.file(2).name == "c.PNG"
    for index, colour in enumerate([(255, 0, 0), (0, 255, 0), (0, 0, 255), (7, 7, 7)]):
        sample = np.frombuffer(dataset.sample(index), np.uint8).reshape(-1, 3)
        assert len(sample) == 224 * 224
        assert (sample == colour).all()


def test_planes_hold_what_rows_hold(folder: Path):
    rows = np.frombuffer(ImageFolder(folder).sample(0), np.uint8).reshape(224, 224, 3)
    planes = np.frombuffer(ImageFolder(folder, layout="chw").sample(0), np.uint8).reshape(3, 224, 224)
    assert np.array_equal(rows.transpose(2, 0, 1), planes)


def test_the_centre_is_cut_out(tmp_path: Path):
    images = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    # 256 rows of 512 columns, white in the 224x224 in the middle: nothing is resized, and white alone is left.
    pixels = np.zeros((256, 512, 3), np.uint8)
    pixels[16:240, 144:368] = 255
    (tmp_path / "x").mkdir()
    images.fromarray(pixels).save(tmp_path / "x" / "a.png")
    assert set(ImageFolder(tmp_path).sample(0)) == {255}


def test_grey_and_transparent_images_become_colours(tmp_path: Path):
    images = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    (tmp_path / "x").mkdir()
    images.new("L", (230, 230), 9).save(tmp_path / "x" / "a.png")
    images.new("RGBA", (230, 230), (9, 9, 9, 128)).save(tmp_path / "x" / "b.png")
    dataset = ImageFolder(tmp_path)
    assert set(dataset.sample(0)) == set(dataset.sample(1)) == {9}


def test_a_list_gives_order_and_labels(folder: Path):
    (folder / "val_map.txt").write_text("dogs/d.png 65\n\ncats/a.png 970\n")
    dataset = ImageFolder(folder)
    assert [(dataset.file(i).name, dataset.label(i)) for i in range(2)] == [("d.png", 65), ("a.png", 970)]
    assert len(ImageFolder(folder, limit=1)) == 1
    with pytest.raises(InputError, match="2 images, not 3"):
        ImageFolder(folder, limit=3)


def test_a_list_that_names_nothing_or_no_class_is_an_error_with_its_line(folder: Path):
    listed = folder / "val_map.txt"
    listed.write_text("cats/a.png 1\ncats/b.png\n")
    with pytest.raises(FormatError, match=r"val_map\.txt:2: 'cats/b\.png' is no file and class"):
        ImageFolder(folder)
    listed.write_text("cats/gone.png 1\n")
    with pytest.raises(InputError, match=r"val_map\.txt:1: there is no image .*gone\.png"):
        ImageFolder(folder)


@pytest.mark.parametrize("keep", [0, 20, 60])
def test_a_broken_image_is_named(folder: Path, keep: int):
    broken = folder / "cats" / "b.png"
    broken.write_bytes(broken.read_bytes()[:keep])
    dataset = ImageFolder(folder)
    assert dataset.sample(0)
    with pytest.raises(FormatError, match=r"cats/b\.png: not an image that can be read") as raised:
        dataset.sample(1)
    assert raised.value.hint


def test_folders_without_images_are_errors(tmp_path: Path):
    pytest.importorskip("PIL.Image", reason="pillow is not installed")
    for path, words in ((tmp_path / "gone", "no such folder"), (tmp_path, "no images")):
        with pytest.raises(InputError, match=words):
            ImageFolder(path)
