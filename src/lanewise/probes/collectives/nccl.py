"""NCCL through ctypes: communicators of the GPUs of one process, and its collectives on their streams."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p

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
            texts = (self._library.ncclGetErrorString(code), self._library.ncclGetLastError(None))
            words = ": ".join(text.decode(errors="replace").strip() for text in texts if text)
            raise CannotMeasure(f"{name}: {words}", hint="run again with NCCL_DEBUG=WARN to see why")

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

    @contextmanager
    def group(self) -> Iterator[None]:
        """Calls of several ranks as one operation; what a call raises comes before what the unfinished group does."""
        self._library("ncclGroupStart")
        try:
            yield
        except BaseException:
            with suppress(CannotMeasure):
                self._library("ncclGroupEnd")
            raise
        self._library("ncclGroupEnd")

    def issue(self, operation: str, rank: int, send: int, receive: int, count: int, stream: c_void_p) -> None:
        """One rank's part of an operation over `count` floats: of the message, or of one rank's part of it."""
        handle = self._handles[rank]
        if operation == "all_to_all":
            for peer in range(self.count):
                offset = peer * count * FLOAT_BYTES
                self._library("ncclSend", send + offset, count, _FLOAT, peer, handle, stream)
                self._library("ncclRecv", receive + offset, count, _FLOAT, peer, handle, stream)
        elif operation == "sendrecv":
            after, before = (rank + 1) % self.count, (rank - 1) % self.count
            self._library("ncclSend", send, count, _FLOAT, after, handle, stream)
            self._library("ncclRecv", receive, count, _FLOAT, before, handle, stream)
        else:
            name, extra = {
                "all_reduce": ("ncclAllReduce", (_SUM,)), "all_gather": ("ncclAllGather", ()),
                "reduce_scatter": ("ncclReduceScatter", (_SUM,)), "broadcast": ("ncclBroadcast", (_ROOT,)),
            }[operation]  # fmt: skip
            self._library(name, send, receive, count, _FLOAT, *extra, handle, stream)
