"""Top-1 from LoadGen's log, up to a run of images whose answers are known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import CannotMeasure, FormatError, InputError, UnknownName
from lanewise.loadtest.audits import ACCURACY_LOG, answers, named_class, top1


def written(folder: Path, given: list[tuple[int, bytes]]) -> Path:
    """A log in LoadGen's form."""
    log = folder / ACCURACY_LOG
    lines = [
        json.dumps({"seq_id": i, "qsl_idx": index, "data": data.hex().upper()}) for i, (index, data) in enumerate(given)
    ]
    log.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return log


@given(st.lists(st.integers(0, 999), min_size=1, max_size=30), st.data())
def test_every_form_of_answer_names_the_same_class(classes: list[int], data: st.DataObject):
    labels = [data.draw(st.one_of(st.just(named), st.integers(0, 999))) for named in classes]
    right = sum(one == other for one, other in zip(classes, labels, strict=True))
    forms = {
        "int32": [np.int32(one).tobytes() for one in classes],
        "int64": [np.int64(one).tobytes() for one in classes],
        "float32": [np.eye(1, 1000, one, np.float32).tobytes() for one in classes],
    }
    for kind, given_answers in forms.items():
        found = top1(dict(enumerate(given_answers)), labels.__getitem__, len(labels), kind)
        assert (found.correct, found.counted) == (right, len(labels))
        assert found.top1 == right / len(labels)


def test_an_answer_that_is_no_number_is_wrong():
    assert named_class(np.full(3, np.nan, np.float32).tobytes(), "float32") == -1


def test_the_first_answer_of_a_sample_counts(tmp_path: Path):
    log = written(tmp_path, [(0, b"\1\0\0\0"), (0, b"\2\0\0\0"), (1, b"\3\0\0\0")])
    assert answers(log) == {0: b"\1\0\0\0", 1: b"\3\0\0\0"}


def test_logs_that_are_none_are_named(tmp_path: Path):
    log = tmp_path / ACCURACY_LOG
    with pytest.raises(InputError, match=r"mlperf_log_accuracy\.json: cannot be read"):
        answers(log)
    for text in (
        "",
        '[\n{"seq_id":0,"qsl_idx":1,"data":"00"},',
        '[{"qsl_idx":1,"data":"0g"}]',
        '[{"data":""}]',
        "[1]",
        "7",
    ):
        log.write_text(text)
        with pytest.raises(FormatError, match="not LoadGen's accuracy log"):
            answers(log)


def test_answers_that_do_not_fit_are_errors():
    with pytest.raises(UnknownName, match="uint7"):
        named_class(b"1234", "uint7")
    for data in (b"", b"123"):
        with pytest.raises(FormatError, match="is not of int32"):
            named_class(data, "int32")
    with pytest.raises(FormatError, match="no sample 3 in a dataset of 3"):
        top1({3: b"\0\0\0\0"}, lambda _: 0, 3, "int32")
    with pytest.raises(CannotMeasure, match="with a label"):
        top1({0: b"\0\0\0\0"}, lambda _: None, 3, "int32")


def test_images_through_a_model_give_the_top1_that_is_known(tmp_path: Path):
    images = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    for library in ("onnxruntime", "onnx"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    from loadtest.onnx_files import colours

    from lanewise.loadtest.datasets import ImageFolder
    from lanewise.loadtest.engines import open_engine
    from lanewise.loadtest.engines.callback import CLASSES, OUTPUTS, batch_call

    # The model names the strongest colour; one of the six images lies in the wrong folder.
    for name, colour in (("0/a", (250, 9, 9)), ("0/b", (90, 1, 80)), ("1/c", (0, 8, 0)), ("1/wrong", (9, 0, 0)),
                         ("2/d", (0, 1, 2)), ("2/e", (200, 201, 202))):  # fmt: skip
        path = tmp_path / "images" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        images.new("RGB", (240, 240), colour).save(path)
    dataset = ImageFolder(tmp_path / "images")
    engine = open_engine("onnxruntime", str(colours(tmp_path / "colours.onnx")))
    batch = np.stack([np.frombuffer(dataset.sample(index), np.uint8) for index in range(6)])
    for callback, kind in ((batch_call(engine, OUTPUTS), "float32"), (batch_call(engine, CLASSES), "int32")):
        rows = callback(batch, np.arange(6))
        log = written(tmp_path, [(index, rows[index].tobytes()) for index in range(6)])
        found = top1(answers(log), dataset.label, len(dataset), kind)
        assert (found.correct, found.counted, found.of) == (5, 6, 6)
