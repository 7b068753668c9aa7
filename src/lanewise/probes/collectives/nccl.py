"""NCCL through ctypes: communicators of the GPUs of one process, and its collectives on their streams."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from typing import Any, NamedTuple

from lanewise.errors import CannotMeasure, MissingDependency

FLOAT_BYTES = 4
_FLOAT, _SUM, _ROOT = 7, 0, 0  # ncclFloat32, ncclSum
_BUFFERS = (c_void_p, c_void_p, c_size_t, c_int)
_CALLS = {
    "ncclGetVersion": (c_void_p,), "ncclCommInitAll": (c_void_p, c_int, c_void_p), "ncclCommDestroy": (c_void_p,),
    "ncclGroupStart": (), "ncclGroupEnd": (),
    "ncclAllReduce": (*_BUFFERS, c_int, c_void_p, c_void_p),
    "ncclAllGather": (*_BUFFERS, c_void_p, c_void_p),
    "ncclReduceScatter": (*_BUFFERS, c_int, c_void_p, c_void_p),
    "ncclBroadcast": (*_BUFFERS, c_int, c_void_p, c_void_p),
    "ncclSend": (c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclRecv": (c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
}  # fmt: skip


class PreparedCall(NamedTuple):
    """A function of the library with its arguments as C has them."""

    name: str
    function: Callable[..., int]
    arguments: tuple[object, ...]


class RankBuffers(NamedTuple):
    """Addresses that a rank sends from and receives to, and its stream."""

    send: int
    receive: int
    stream: c_void_p


class NcclLibrary:
    """libnccl's functions, typed; each raises CannotMeasure with the library's own words."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)
            for name, arguments in _CALLS.items():
                getattr(self._library, name).argtypes = arguments
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

    def prepared(self, name: str, *arguments: Any) -> PreparedCall:
        """A call whose arguments are converted here, not each time that it is made."""
        types = _CALLS[name]
        converted = (
            value if isinstance(value, kind) else kind(value) for kind, value in zip(types, arguments, strict=True)
        )
        return PreparedCall(name, getattr(self._library, name), tuple(converted))

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
        calls = [call for rank, own in enumerate(buffers) for call in self._of_rank(name, rank, own, count)]
        return GroupOperation(self._library, calls)

    def _of_rank(self, name: str, rank: int, own: RankBuffers, count: int) -> Iterator[PreparedCall]:
        prepared, last = self._library.prepared, (self._handles[rank], own.stream)
        if name == "all_to_all":
            for peer in range(self.count):
                offset = peer * count * FLOAT_BYTES
                yield prepared("ncclSend", own.send + offset, count, _FLOAT, peer, *last)
                yield prepared("ncclRecv", own.receive + offset, count, _FLOAT, peer, *last)
        elif name == "sendrecv":
            yield prepared("ncclSend", own.send, count, _FLOAT, (rank + 1) % self.count, *last)
            yield prepared("ncclRecv", own.receive, count, _FLOAT, (rank - 1) % self.count, *last)
        else:
            function, extra = {
                "all_reduce": ("ncclAllReduce", (_SUM,)), "all_gather": ("ncclAllGather", ()),
                "reduce_scatter": ("ncclReduceScatter", (_SUM,)), "broadcast": ("ncclBroadcast", (_ROOT,)),
            }[name]  # fmt: skip
            yield prepared(function, own.send, own.receive, count, _FLOAT, *extra, *last)


class GroupOperation:
    """Calls of several ranks as one operation, prepared: between them Python spends 3 us, of two ranks, in place of 11.

    (No-op functions in place of NCCL's, CPython 3.11; benchmarks/runs/2026-11-26-two-gpus.)
    """

    def __init__(self, library: NcclLibrary, calls: Sequence[PreparedCall]) -> None:
        self._library = library
        self._calls = (library.prepared("ncclGroupStart"), *calls, library.prepared("ncclGroupEnd"))
        self._bare = tuple((call.function, call.arguments) for call in self._calls)

    def issue(self, times: int = 1) -> None:
        """Issue the operation so many times; what a call raises comes before what the unfinished group does."""
        for _ in range(times):
            for function, arguments in self._bare:
                if code := function(*arguments):
                    raise self._ended(function, code)

    def _ended(self, function: Callable[..., int], code: int) -> CannotMeasure:
        name = next(call.name for call in self._calls if call.function is function)
        error = self._library.error(name, code)
        if name != "ncclGroupEnd":
            with suppress(CannotMeasure):
                self._library("ncclGroupEnd")
        return error
