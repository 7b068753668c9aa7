"""Audits: a cache is caught, a changed byte is caught, an honest run passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lanewise.errors import CannotMeasure, Contradiction
from lanewise.loadtest.audits import as_answers, checksum, checksums, payload, same_sample
from lanewise.loadtest.datasets import Synthetic
from lanewise.loadtest.load_run import OFFLINE, LoadGenResult, LoadSpec
from lanewise.loadtest.spec import SampleSpec


def run(qps: float, load: LoadSpec | None = None, ended_early: bool = False) -> LoadGenResult:
    return LoadGenResult(load or LoadSpec(), True, (), 1000, 10.0, qps, {}, 0, ended_early=ended_early)


def by_definition(sample: bytes) -> int:
    """The checksum in whole numbers of Python."""
    padded = sample + bytes(-len(sample) % 8)
    words = [int.from_bytes(padded[at : at + 8], "little") for at in range(0, len(padded), 8)]
    return (len(sample) + sum(word * (2 * i + 1) for i, word in enumerate(words))) % 2**64


@given(st.binary(min_size=1, max_size=200))
def test_a_checksum_is_what_its_definition_says(sample: bytes):
    assert checksum(sample) == by_definition(sample)


@given(st.binary(min_size=1, max_size=100), st.data())
def test_one_changed_byte_changes_it(sample: bytes, data: st.DataObject):
    at = data.draw(st.integers(0, len(sample) - 1))
    flipped = sample[at] ^ data.draw(st.integers(1, 255))
    assert checksum(sample[:at] + bytes([flipped]) + sample[at + 1 :]) != checksum(sample)


@given(st.binary(min_size=16, max_size=16))
def test_exchanged_words_change_it(sample: bytes):
    one, other = sample[:8], sample[8:]
    assume(one != other)
    assume((int.from_bytes(one, "little") - int.from_bytes(other, "little")) % 2**63)
    assert checksum(other + one) != checksum(sample)


def test_zeros_at_the_end_count():
    assert checksum(bytes(8)) != checksum(bytes(9))


@given(st.sampled_from(["uint8", "int32", "float32", "int64"]), st.integers(1, 5), st.integers(1, 9))
def test_a_batch_is_summed_row_by_row_whatever_its_type(dtype: str, n: int, size: int):
    batch = np.random.default_rng(1).integers(0, 100, (n, size)).astype(dtype)
    assert checksums(batch).tolist() == [by_definition(row.tobytes()) for row in batch]


@pytest.mark.parametrize(("same", "passed"), [(1100.0, True), (1101.0, False), (400.0, True), (5000.0, False)])
def test_one_sample_repeated_may_be_ten_percent_faster(same: float, passed: bool):
    audit = same_sample(run(1000.0), run(same))
    assert audit.passed is passed
    assert audit.figures["ratio"] == same / 1000
    assert ("cache" in audit.cause) is not passed


def test_runs_that_differ_or_did_not_end_are_not_compared():
    with pytest.raises(Contradiction, match="Server and one of Offline"):
        same_sample(run(1000.0), run(1000.0, LoadSpec(scenario=OFFLINE)))
    with pytest.raises(Contradiction):
        same_sample(run(1000.0), run(1000.0, replace(LoadSpec(), coalesce=True)))
    for one, other in ((run(0.0), run(1.0)), (run(1.0), run(1.0, ended_early=True))):
        with pytest.raises(CannotMeasure, match="did not end"):
            same_sample(one, other)


def test_samples_that_arrive_as_they_were_pass_and_a_changed_one_is_named():
    dataset = Synthetic(SampleSpec((100,), "uint8"), 20)
    batch = np.stack([np.frombuffer(dataset.sample(index), np.uint8) for index in range(20)]).copy()
    given_answers = {index: row.tobytes() for index, row in enumerate(as_answers(checksums(batch)))}
    assert payload(given_answers, dataset).passed
    batch[7, 99] ^= 1
    given_answers = {index: row.tobytes() for index, row in enumerate(as_answers(checksums(batch)))}
    audit = payload(given_answers, dataset)
    assert not audit.passed
    assert audit.cause == "1 of 20 samples arrived changed: 7"
    assert audit.figures == {"checked": 20.0, "wrong": 1.0}


def test_answers_of_other_samples_or_lengths_are_wrong_and_none_is_no_audit():
    dataset = Synthetic(SampleSpec((100,), "uint8"), 2)
    good = checksum(dataset.sample(0)).to_bytes(8, "little")
    audit = payload({0: good, 1: good, 2: good, 3: good[:4]}, dataset)
    assert audit.figures == {"checked": 4.0, "wrong": 3.0}
    with pytest.raises(CannotMeasure, match="no answer"):
        payload({}, dataset)


def test_an_empty_answer_is_no_answer_and_no_changed_sample():
    dataset = Synthetic(SampleSpec((100,), "uint8"), 2)
    good = checksum(dataset.sample(0)).to_bytes(8, "little")
    audit = payload({0: good, 1: b""}, dataset)
    assert not audit.passed
    assert audit.cause == "1 samples arrived unchanged; 1 were not answered"
    assert audit.figures == {"checked": 1.0, "wrong": 0.0, "unanswered": 1.0}
    assert payload({0: good[:4], 1: b""}, dataset).cause == "1 of 1 samples arrived changed: 0; 1 were not answered"
