"""Top-1 from LoadGen's accuracy log, and audits: that no cache answered, and that every sample arrived unchanged.

The checksum of a sample is made of wrapping 64-bit sums and products alone, so that a GPU computes it as easily.
A sample is padded with zeros to words of 8 bytes (little-endian) w0, w1, ...; its checksum is
bytes + sum of w_i * (2 i + 1), modulo 2^64. As every factor is odd, a change of one word always changes the sum;
exchanging words i and j changes it unless 2 (i - j) (w_i - w_j) is a multiple of 2^64. It finds errors, not forgeries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import CannotMeasure, Contradiction, FormatError, InputError, Location, unknown_name
from lanewise.loadtest.datasets import Dataset
from lanewise.loadtest.load_run import LoadGenResult
from lanewise.loadtest.spec import Array

ACCURACY_LOG = "mlperf_log_accuracy.json"
ANSWERS = ("int32", "int64", "float32")
SAME_SAMPLE, PAYLOAD = "same-sample", "payload"
FASTER = 0.10  # what MLPerf's compliance test TEST04 allows
SHOWN = 5
WORD = 8  # bytes of a checksum


@dataclass(frozen=True, slots=True)
class Audit:
    """Whether an audit passed, why, and the figures that say so."""

    name: str
    passed: bool
    cause: str
    figures: Mapping[str, float] = field(default_factory=dict)


def same_sample(various: LoadGenResult, same: LoadGenResult) -> Audit:
    """TEST04's idea: a run that sends one sample again and again may not be over 10 % faster than one that sends all.

    Contradiction for runs that differ in more than the samples, CannotMeasure for one that did not end.
    """
    load, same_load = various.load, same.load
    if (load.scenario, load.coalesce, load.samples) != (same_load.scenario, same_load.coalesce, same_load.samples):
        raise Contradiction(
            f"a run of {load.scenario} and one of {same_load.scenario} cannot be compared",
            hint="run both in the same scenario, with the same coalescing and samples a query",
        )
    for run, which in ((various, "all samples"), (same, "one sample")):
        if run.ended_early or run.qps <= 0:
            raise CannotMeasure(f"the run with {which} did not end", hint="choose a lower target and repeat both runs")
    ratio = same.qps / various.qps
    passed = ratio <= 1 + FASTER
    cause = (
        f"one sample repeated: {same.qps:.6g} queries/s, all samples: {various.qps:.6g} ({ratio - 1:+.1%}, "
        f"allowed {FASTER:+.0%})"
    )
    if not passed:
        cause += "; something remembers samples or answers, or the data never leaves a cache"
    return Audit(SAME_SAMPLE, passed, cause, {"various": various.qps, "same": same.qps, "ratio": ratio})


def checksum(sample: bytes) -> int:
    """The checksum of one sample, 0 to 2^64 - 1."""
    return int(checksums(np.frombuffer(sample, np.uint8)[None, :])[0])


def checksums(samples: Array) -> NDArray[np.uint64]:
    """The checksum of each row of a batch (n, ...) of any numpy type."""
    rows = np.ascontiguousarray(samples).reshape(len(samples), -1).view(np.uint8)
    size = rows.shape[1]
    if size % WORD:
        rows = np.pad(rows, ((0, 0), (0, -size % WORD)))
    words = rows.view("<u8")
    factors = 2 * np.arange(words.shape[1], dtype=np.uint64) + np.uint64(1)
    sums: NDArray[np.uint64] = (words * factors).sum(axis=1, dtype=np.uint64) + np.uint64(size)
    return sums


def summed(sample: bytes) -> bytes:
    """A sample's checksum as an engine answers it: 8 bytes, little-endian."""
    return checksum(sample).to_bytes(WORD, "little")


def payload(answer_of: Mapping[int, bytes], dataset: Dataset, of: Callable[[bytes], bytes] = summed) -> Audit:
    """Whether answers that are checksums of what the engine received are the dataset's; `of` sums a sample.

    An empty answer is none: its sample is not answered, and nothing is known of it. CannotMeasure without any answer.
    """
    if not answer_of:
        raise CannotMeasure("no answer to check", hint="run the payload audit in accuracy mode")
    answered = {index: data for index, data in answer_of.items() if data}
    wrong = sorted(index for index, data in answered.items() if not _right(index, data, dataset, of))
    figures = {"checked": float(len(answered)), "wrong": float(len(wrong))}
    causes = [f"{len(answered)} samples arrived unchanged"]
    if wrong:
        named = ", ".join(map(str, wrong[:SHOWN])) + (", ..." if len(wrong) > SHOWN else "")
        causes = [f"{len(wrong)} of {len(answered)} samples arrived changed: {named}"]
    if unanswered := len(answer_of) - len(answered):
        figures["unanswered"] = float(unanswered)
        causes.append(f"{unanswered} were not answered")
    return Audit(PAYLOAD, not wrong and not unanswered, "; ".join(causes), figures)


def as_answers(sums: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Checksums of a batch as its answers, (n, 8) bytes, as `payload` reads them."""
    return np.ascontiguousarray(sums, "<u8").view(np.uint8).reshape(len(sums), WORD)


def _right(index: int, data: bytes, dataset: Dataset, of: Callable[[bytes], bytes]) -> bool:
    return 0 <= index < len(dataset) and data == of(dataset.sample(index))


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


def top1(answer_of: dict[int, bytes], labels: Callable[[int], int | None], of: int, kind: str = "float32") -> Accuracy:
    """Counts the answers of samples 0 to `of` - 1; CannotMeasure where no answered sample has a label."""
    correct = counted = 0
    for index, data in answer_of.items():
        if not 0 <= index < of:
            raise FormatError(f"there is no sample {index} in a dataset of {of}", hint="name the dataset of that run")
        label = labels(index)
        if label is not None:
            counted += 1
            correct += named_class(data, kind) == label
    if not counted:
        raise CannotMeasure("no answer belongs to a sample with a label", hint="use a folder of images with classes")
    return Accuracy(correct, counted, of)
