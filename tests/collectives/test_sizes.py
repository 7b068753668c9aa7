"""Sizes and words of `lanewise.predict_collective`."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.collectives.sizes import sizes_of
from lanewise.errors import FormatError, UnknownName


def test_sizes_are_powers_of_two_or_a_list() -> None:
    assert sizes_of("1KiB:8KiB") == (1024, 2048, 4096, 8192)
    assert sizes_of("1MiB, 3 GB") == (2**20, 3e9)
    assert len(sizes_of("8B:8GiB")) == 31
    assert sizes_of("8:8G") == sizes_of("8B:8GiB")
    assert sizes_of("1k,64M") == (1024, 2**26)
    assert sizes_of("1000B:5000B") == (1000, 2000, 4000)
    for text, cause in (("8GiB:8B", "run backwards"), ("0", "no message size")):
        with pytest.raises(FormatError, match=cause):
            sizes_of(text)
    with pytest.raises(FormatError, match="has 129 sizes"):
        sizes_of(",".join(["1MiB"] * 129))


def test_words_of_the_function() -> None:
    with pytest.raises(UnknownName, match="unknown launch 'mpi'"):
        lanewise.predict_collective("h200-pair", launch="mpi")
    with pytest.raises(UnknownName, match="unknown algorithm 'ring'"):
        lanewise.predict_collective("h200-pair", algorithm="ring")
