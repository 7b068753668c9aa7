"""A short round of fuzzing with the same inputs each time; `make fuzz` goes on with others."""

from __future__ import annotations

import contextlib
import io

import pytest
from bounded import outcome

from fuzz.fuzzer import failure, fuzz, inputs
from fuzz.targets import CORPUS, TARGETS, corpus
from lanewise.catalog import builtin

MESSAGES = {"peers", "nodes", "frontends"}  # what is valid changes with the version of the protocol
ROUNDS = {"results": 1500, "dumps": 700, "tars": 400, "captures": 150, "yaml": 250, "runs": 600}
ROUNDS |= {"pages": 100, "checks": 250, "logs": 600, "posts": 400, "peers": 3000, "nodes": 3000, "frontends": 1000}


@pytest.fixture(scope="module", autouse=True)
def catalog_read():
    """The catalogue is there before children start, which would each read it again."""
    builtin()


@pytest.mark.parametrize("family", TARGETS)
def test_no_input_leaves_with_another_error_than_ours(family):
    def printed() -> str:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = fuzz([family], 0, ROUNDS[family])
        return f"exit code {code}\n{said.getvalue()}"

    assert outcome(printed, mebibytes=2048) == f"exit code 0\n{family}: {ROUNDS[family]} inputs\n"


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_input_of_the_corpus_is_read_or_refused(path):
    assert failure(path.parent.name, path.read_bytes()) == ""


@pytest.mark.parametrize("family", TARGETS)
def test_the_corpus_of_a_family_has_a_valid_input_and_near_valid_ones(family):
    paths = list((CORPUS / family).glob("*"))
    valid = [path for path in paths if path.name.startswith("valid-")]
    assert valid
    assert len(paths) - len(valid) >= 3
    for path in [] if family in MESSAGES else valid:
        assert not isinstance(_result(family, path.read_bytes()), Exception), path.name


@pytest.mark.parametrize("family", ["yaml", "logs"])
def test_every_file_of_a_family_goes_to_its_own_reader(family):
    for data in TARGETS[family].seeds():
        assert not isinstance(_result(family, data), Exception), data[:80]


def test_a_seed_makes_the_same_inputs_and_another_seed_others():
    def first(seed: int) -> list[bytes]:
        source = inputs("results", seed)
        return [next(source) for _ in range(len(corpus("results")) + 40)]  # first the corpus itself

    assert first(1) == first(1)
    assert first(1) != first(2)


def test_a_reader_that_fails_is_noticed(monkeypatch):
    from dataclasses import replace

    broken = replace(TARGETS["results"], read=lambda data: dict[bytes, object]()[data])
    monkeypatch.setitem(TARGETS, "results", broken)
    assert "KeyError" in failure("results", b"x")


@pytest.mark.parametrize("family", TARGETS)
def test_every_family_has_inputs_that_it_reads(family):
    assert any(not isinstance(_result(family, data), Exception) for data in corpus(family))


def _result(family: str, data: bytes) -> object:
    from lanewise.errors import LanewiseError

    try:
        return TARGETS[family].read(data)
    except LanewiseError as error:
        return error
