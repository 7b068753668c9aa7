"""Native code that issues a group of NCCL's calls, with functions of Python in their place."""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_int, c_size_t, c_void_p
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

if sys.platform != "linux":
    pytest.skip("the CUDA part is for Linux", allow_module_level=True)

from lanewise._native import GroupCalls

PLAIN = ctypes.CFUNCTYPE(c_int)
ROOTED = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p)
GATHER = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_int, c_void_p, c_void_p)
PEER = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p)
ADDRESSES = st.integers(1, 2**64 - 1)
COUNTS, NUMBERS = st.integers(0, 2**64 - 1), st.integers(-(2**31), 2**31 - 1)
CALLS = st.one_of(
    st.tuples(st.just("rooted"), ADDRESSES, ADDRESSES, COUNTS, NUMBERS, NUMBERS, ADDRESSES, ADDRESSES),
    st.tuples(st.just("gather"), ADDRESSES, ADDRESSES, COUNTS, NUMBERS, ADDRESSES, ADDRESSES),
    st.tuples(st.just("peer"), ADDRESSES, COUNTS, NUMBERS, NUMBERS, ADDRESSES, ADDRESSES),
)


class Library:
    """Functions that note their arguments; call `failing` of all that are made gives code 5."""

    def __init__(self, failing: int | None = None) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self._failing = failing
        kinds = {"start": PLAIN, "end": PLAIN, "rooted": ROOTED, "gather": GATHER, "peer": PEER}
        self._functions = {name: kind(self._noting(name)) for name, kind in kinds.items()}

    def _noting(self, name: str) -> Any:
        def called(*arguments: Any) -> int:
            self.seen.append((name, *arguments))
            return 5 if len(self.seen) - 1 == self._failing else 0

        return called

    def address(self, name: str) -> int:
        return ctypes.cast(self._functions[name], c_void_p).value or 0

    def group(self, calls: list[tuple[Any, ...]]) -> GroupCalls:
        group = GroupCalls(self.address("start"), self.address("end"))
        for name, *arguments in calls:
            getattr(group, f"add_{name}")(self.address(name), *arguments)
        return group


@given(st.lists(CALLS, max_size=5), st.integers(0, 3))
def test_every_call_arrives_with_its_arguments_in_order_as_often_as_asked(
    calls: list[tuple[Any, ...]], times: int
) -> None:
    library = Library()
    assert library.group(calls).issue(times) == (0, 0)
    assert library.seen == [("start",), *calls, ("end",)] * times


@given(st.lists(CALLS, min_size=1, max_size=4), st.data())
def test_the_first_that_fails_is_told_and_none_is_made_after_it(
    calls: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    length = len(calls) + 2
    failing = data.draw(st.integers(0, 2 * length - 1))
    library = Library(failing)
    assert library.group(calls).issue(2) == (failing % length, 5)
    assert len(library.seen) == failing + 1
