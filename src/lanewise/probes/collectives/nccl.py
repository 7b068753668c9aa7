"""NCCL through ctypes: communicators of the GPUs of one process, and its collectives on their streams."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from ctypes import byref, c_char_p, c_int, c_void_p
from typing import NamedTuple

from lanewise._native import GroupCalls
from lanewise.errors import CannotMeasure, MissingDependency

FLOAT_BYTES = 4
_FLOAT, _SUM_OR_ROOT = 7, 0  # ncclFloat32, ncclSum
_CALLS = {
    "ncclGetVersion": (c_void_p,), "ncclCommInitAll": (c_void_p, c_int, c_void_p), "ncclCommDestroy": (c_void_p,),
    "ncclGroupStart": (), "ncclGroupEnd": (),
}  # fmt: skip
# What native code calls; their arguments are those of GroupCalls.
_OPERATIONS = ("ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclSend", "ncclRecv")


class RankBuffers(NamedTuple):
    """Addresses that a rank sends from and receives to, and its stream."""

    send: int
    receive: int
    stream: int


class NcclLibrary:
    """libnccl's functions, typed; each raises CannotMeasure with the library's own words."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)
            for name, arguments in _CALLS.items():
                getattr(self._library, name).argtypes = arguments
            for name in _OPERATIONS:
                getattr(self._library, name)
            for name in ("ncclGetErrorString", "ncclGetLastError"):
                getattr(self._library, name).restype = c_char_p
        except (OSError, AttributeError) as error:
            hint = "pip install nvidia-nccl-cu12 (or cu13), or name the library: LANEWISE_NCCL=/path/libnccl.so.2"
            raise MissingDependency(f"NCCL cannot be used: {error}", hint=hint) from None
        self.path = path

    def __call__(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise self.error(name, code)

    def error(self, name: str, code: int) -> CannotMeasure:
        """What a call that returned `code` is reported as."""
        texts = (self._library.ncclGetErrorString(code), self._library.ncclGetLastError(None))
        words = ": ".join(text.decode(errors="replace").strip() for text in texts if text)
        return CannotMeasure(f"{name}: {words}", hint="run again with NCCL_DEBUG=WARN to see why")

    def address(self, name: str) -> int:
        """Where a function is."""
        return ctypes.cast(getattr(self._library, name), c_void_p).value or 0

    @property
    def version(self) -> str:
        """Such as 2.27.7."""
        code = c_int()
        self("ncclGetVersion", byref(code))
        return f"{code.value // 10_000}.{code.value // 100 % 100}.{code.value % 100}"


class Communicators:
    """One communicator for each GPU, by rank; a context manager that destroys them."""

    def __init__(self, library: NcclLibrary, ordinals: Sequence[int]) -> None:
        self._library = library
        self.count = len(ordinals)
        self._handles = (c_void_p * self.count)()
        library("ncclCommInitAll", self._handles, self.count, (c_int * self.count)(*ordinals))

    def close(self) -> None:
        """Destroy all of them."""
        for handle in self._handles:
            self._library("ncclCommDestroy", handle)

    def operation(self, name: str, buffers: Sequence[RankBuffers], count: int) -> GroupOperation:
        """An operation over `count` floats of all ranks: of the message, or of one rank's part of it."""
        group = GroupOperation(self._library)
        for rank, own in enumerate(buffers):
            self._add(group, name, rank, own, count)
        return group

    def _add(self, group: GroupOperation, name: str, rank: int, own: RankBuffers, count: int) -> None:
        last = (int(self._handles[rank] or 0), own.stream)
        if name == "all_to_all":
            for peer in range(self.count):
                offset = peer * count * FLOAT_BYTES
                group.peer_to_peer("ncclSend", own.send + offset, count, peer, *last)
                group.peer_to_peer("ncclRecv", own.receive + offset, count, peer, *last)
        elif name == "sendrecv":
            group.peer_to_peer("ncclSend", own.send, count, (rank + 1) % self.count, *last)
            group.peer_to_peer("ncclRecv", own.receive, count, (rank - 1) % self.count, *last)
        elif name == "all_gather":
            group.gather("ncclAllGather", own.send, own.receive, count, *last)
        else:
            function = {
                "all_reduce": "ncclAllReduce", "reduce_scatter": "ncclReduceScatter", "broadcast": "ncclBroadcast",
            }[name]  # fmt: skip
            group.rooted(function, own.send, own.receive, count, *last)


class GroupOperation:
    """Calls of several ranks as one group, issued by native code: Python took 3 us between the calls of two ranks.

    (No-op functions in place of NCCL's, CPython 3.11; benchmarks/runs/2026-11-26-two-gpus.)
    """

    def __init__(self, library: NcclLibrary) -> None:
        self._library = library
        self._names = ["ncclGroupStart"]
        self._calls = GroupCalls(library.address("ncclGroupStart"), library.address("ncclGroupEnd"))

    def rooted(self, name: str, send: int, receive: int, count: int, rank: int, stream: int) -> None:
        """Add a call that sums over all ranks, or sends from rank 0."""
        self._calls.add_rooted(self._next(name), send, receive, count, _FLOAT, _SUM_OR_ROOT, rank, stream)

    def gather(self, name: str, send: int, receive: int, count: int, rank: int, stream: int) -> None:
        """Add a call with two buffers alone."""
        self._calls.add_gather(self._next(name), send, receive, count, _FLOAT, rank, stream)

    def peer_to_peer(self, name: str, buffer: int, count: int, peer: int, rank: int, stream: int) -> None:
        """Add a call with one buffer and another rank."""
        self._calls.add_peer(self._next(name), buffer, count, _FLOAT, peer, rank, stream)

    def issue(self, times: int = 1) -> None:
        """Issue the operation so many times; what a call raises comes before what the unfinished group does."""
        at, code = self._calls.issue(times)
        if code:
            raise self._ended((*self._names, "ncclGroupEnd")[at], code)

    def _next(self, name: str) -> int:
        self._names.append(name)
        return self._library.address(name)

    def _ended(self, name: str, code: int) -> CannotMeasure:
        error = self._library.error(name, code)
        if name != "ncclGroupEnd":
            with suppress(CannotMeasure):
                self._library("ncclGroupEnd")
        return error
