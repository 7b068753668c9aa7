"""Top-1 from LoadGen's accuracy log: which class each answer names, and how many are the labels."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lanewise.errors import CannotMeasure, FormatError, InputError, Location, unknown_name

ACCURACY_LOG = "mlperf_log_accuracy.json"
ANSWERS = ("int32", "int64", "float32")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """`correct` answers of `counted` samples that have a label; `of` samples are in the dataset."""

    correct: int
    counted: int
    of: int

    @property
    def top1(self) -> float:
        """The share that is correct, 0 to 1."""
        return self.correct / self.counted


def answers(log: Path) -> dict[int, bytes]:
    """LoadGen's answers by sample, the first of each; FormatError for a log that is none or was cut off."""
    location = Location(str(log))
    try:
        entries = json.loads(log.read_text(encoding="utf-8"))
        answer_of: dict[int, bytes] = {}
        for entry in entries:
            answer_of.setdefault(int(entry["qsl_idx"]), bytes.fromhex(entry["data"]))
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"cannot be read: {why}", location=location, hint="run in accuracy mode to have one"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"not LoadGen's accuracy log: {error}",
            location=location,
            hint="a run that was cut off leaves half a log: repeat it",
        ) from error
    return answer_of


def named_class(data: bytes, kind: str) -> int:
    """The class an answer of that numpy type names: its only value, or the place of the largest; FormatError if empty
    or not whole."""
    if kind not in ANSWERS:
        raise unknown_name("type of answer", kind, ANSWERS)
    item = np.dtype(kind).itemsize
    if not data or len(data) % item:
        raise FormatError(
            f"an answer of {len(data)} bytes is not of {kind}", hint="name the type that the model answers"
        )
    values = np.frombuffer(data, np.dtype(kind).newbyteorder("<"))
    if np.isnan(values).any():
        return -1  # no class: such an answer is wrong
    return int(values[0]) if len(values) == 1 else int(values.argmax())


def top1(
    answer_of: dict[int, bytes], labels: Callable[[int], int | None], of: int, kind: str = "float32", offset: int = 0
) -> Accuracy:
    """Counts the answers of samples 0 to `of` - 1; `offset` is taken off a class (1 where class 0 is the background).

    CannotMeasure where no answered sample has a label.
    """
    correct = counted = 0
    for index, data in answer_of.items():
        if not 0 <= index < of:
            raise FormatError(f"there is no sample {index} in a dataset of {of}", hint="name the dataset of that run")
        label = labels(index)
        if label is not None:
            counted += 1
            correct += named_class(data, kind) - offset == label
    if not counted:
        raise CannotMeasure("no answer belongs to a sample with a label", hint="use a folder of images with classes")
    return Accuracy(correct, counted, of)
