"""The CUDA driver by ctypes, for experiments with calls that Lanewise itself has no use for. Needs no CUDA to build.

LANEWISE_CUDA_DRIVER names another library, as the driver without GPUs that the tests have.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

REGISTER_PORTABLE_MAPPED, ALLOC_PORTABLE_MAPPED, ALLOC_WRITE_COMBINED = 3, 3, 4
NON_BLOCKING = 1
HOST_NUMA, DEVICE, READ_WRITE, PINNED = 3, 1, 3, 1


class Unavailable(Exception):
    """The driver lacks the call, or refuses it."""


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = (("type", c_int), ("id", c_int))


class CopyAttributes(ctypes.Structure):
    """CUmemcpyAttributes."""

    _fields_ = (("order", c_int), ("source", Location), ("destination", Location), ("flags", c_uint))


class AllocationProperties(ctypes.Structure):
    """CUmemAllocationProp; the rest of it stays zero."""

    _fields_ = (("type", c_int), ("handle_types", c_int), ("location", Location), ("rest", c_uint64 * 2))


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", Location), ("flags", c_int))


class Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = (
        *((f"{end}_{name}", kind) for end in ("source", "destination")
          for name, kind in (("x", c_size_t), ("y", c_size_t), ("type", c_uint), ("host", c_void_p),
                             ("device", c_uint64), ("array", c_void_p), ("pitch", c_size_t))),
        ("width", c_size_t), ("height", c_size_t),
    )  # fmt: skip


class Driver:
    """GPU 0 with its primary context current."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ.get("LANEWISE_CUDA_DRIVER", "libcuda.so.1"))
        self.libc = ctypes.CDLL(None)
        self.libc.memcmp.argtypes = (c_void_p, c_void_p, c_size_t)
        self.device, self.context = c_int(), c_void_p()
        self("cuInit", c_uint(0))
        self("cuDeviceGet", byref(self.device), c_int(0))
        self("cuDevicePrimaryCtxRetain", byref(self.context), self.device)
        self("cuCtxPushCurrent_v2", self.context)

    def __call__(self, name: str, *arguments: Any) -> None:
        try:
            call = getattr(self.library, name)
        except AttributeError:
            raise Unavailable(f"the driver has no {name}") from None
        if (result := call(*arguments)) != 0:
            raise Unavailable(f"{name} returned {result}")

    def stream(self) -> c_void_p:
        """A new stream, not tied to the default one."""
        stream = c_void_p()
        self("cuStreamCreate", byref(stream), c_uint(NON_BLOCKING))
        return stream

    def event(self) -> c_void_p:
        """A new event with time stamps."""
        event = c_void_p()
        self("cuEventCreate", byref(event), c_uint(0))
        return event

    def gpu_memory(self, size: int) -> int:
        """The address of `size` bytes on the GPU."""
        at = c_uint64()
        self("cuMemAlloc_v2", byref(at), c_size_t(size))
        return at.value

    def host_memory(self, size: int, kind: str) -> int:
        """The address of `size` bytes of pinned host memory of that kind, every page touched."""
        if kind in ("registered huge pages", "registered 4 KiB pages"):
            at = self._registered(size, huge="huge" in kind)
        elif kind in ("cuMemHostAlloc", "write-combined"):
            address = c_void_p()
            flags = ALLOC_PORTABLE_MAPPED | (ALLOC_WRITE_COMBINED if kind == "write-combined" else 0)
            self("cuMemHostAlloc", byref(address), c_size_t(size), c_uint(flags))
            at = address.value or 0
        else:
            at = self._created(size)
        ctypes.memset(at, 0, size)
        return at

    def _registered(self, size: int, huge: bool) -> int:
        # Never unmapped before the process ends: the address is all that is kept.
        self.libc.mmap.restype = c_void_p
        self.libc.mmap.argtypes = (c_void_p, c_size_t, c_int, c_int, c_int, ctypes.c_long)
        around = self.libc.mmap(None, size + (2 << 20), mmap.PROT_READ | mmap.PROT_WRITE,
                                mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)  # fmt: skip
        at = int(-(-around // (2 << 20)) * (2 << 20))
        advice = 14 if huge else 15  # MADV_HUGEPAGE, MADV_NOHUGEPAGE
        self.libc.madvise(c_void_p(at), c_size_t(size), c_int(advice))
        ctypes.memset(at, 0, size)
        self("cuMemHostRegister_v2", c_void_p(at), c_size_t(size), c_uint(REGISTER_PORTABLE_MAPPED))
        return at

    def _created(self, size: int) -> int:
        properties = AllocationProperties(PINNED, 0, Location(HOST_NUMA, 0))
        granularity, at, handle = c_size_t(), c_uint64(), c_uint64()
        self("cuMemGetAllocationGranularity", byref(granularity), byref(properties), c_int(1))
        whole = c_size_t(-(-size // granularity.value) * granularity.value)
        self("cuMemAddressReserve", byref(at), whole, c_size_t(0), c_uint64(0), c_uint64(0))
        self("cuMemCreate", byref(handle), whole, byref(properties), c_uint64(0))
        self("cuMemMap", at, whole, c_size_t(0), handle, c_uint64(0))
        access = (Access * 2)(Access(Location(DEVICE, 0), READ_WRITE), Access(Location(HOST_NUMA, 0), READ_WRITE))
        self("cuMemSetAccess", at, whole, access, c_size_t(2))
        return at.value

    def function(self, image: bytes, name: str) -> c_void_p:
        """A kernel of a PTX image."""
        module, function = c_void_p(), c_void_p()
        self("cuModuleLoadDataEx", byref(module), ctypes.c_char_p(image), c_uint(0), None, None)
        self("cuModuleGetFunction", byref(function), module, ctypes.c_char_p(name.encode()))
        return function

    def launch(self, function: c_void_p, blocks: int, threads: int, stream: c_void_p, values: Sequence[int]) -> None:
        """Launches a kernel whose parameters are all 64-bit."""
        words = [c_uint64(value) for value in values]
        pointers = (c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
        one, none = c_uint(1), c_uint(0)
        self("cuLaunchKernel", function, c_uint(blocks), one, one, c_uint(threads), one, one, none, stream, pointers,
             None)  # fmt: skip

    def batch(self, to: Any, of: Any, sizes: Any, first: int, count: int, stream: c_void_p, flags: int,
              order: int) -> None:  # fmt: skip
        """One cuMemcpyBatchAsync of `count` copies from the `first` on of these arrays."""
        attributes, start = CopyAttributes(order=order, flags=flags), c_size_t(0)
        offset = 8 * first
        common = (byref(to, offset), byref(of, offset), byref(sizes, offset), c_size_t(count), byref(attributes),
                  byref(start), c_size_t(1))  # fmt: skip
        if hasattr(self.library, "cuMemcpyBatchAsync_v2"):
            self("cuMemcpyBatchAsync_v2", *common, stream)
        else:
            failed = c_size_t()
            self("cuMemcpyBatchAsync", *common, byref(failed), stream)
