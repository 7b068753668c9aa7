"""What collectives need of the CUDA driver: memory, streams, events and copies of several GPUs, through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

from lanewise.errors import CannotMeasure, MissingDependency

_NON_BLOCKING = 1  # a stream that does not wait for the default one
_OUT_OF_MEMORY = 2
_OF_THIS_THREAD = 1  # what other threads call does not end a capture, as nccl-tests -G has it
_CALLS = {
    "cuInit": (c_uint,), "cuDeviceGet": (c_void_p, c_int), "cuGetErrorString": (c_int, c_void_p),
    "cuDevicePrimaryCtxRetain": (c_void_p, c_int), "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxPushCurrent_v2": (c_void_p,), "cuCtxPopCurrent_v2": (c_void_p,), "cuMemGetInfo_v2": (c_void_p, c_void_p),
    "cuMemAlloc_v2": (c_void_p, c_size_t), "cuMemFree_v2": (c_uint64,), "cuStreamCreate": (c_void_p, c_uint),
    "cuStreamSynchronize": (c_void_p,), "cuStreamDestroy_v2": (c_void_p,), "cuEventCreate": (c_void_p, c_uint),
    "cuEventRecord": (c_void_p, c_void_p), "cuEventElapsedTime": (c_void_p, c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,), "cuMemsetD8Async": (c_uint64, ctypes.c_ubyte, c_size_t, c_void_p),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuStreamBeginCapture_v2": (c_void_p, c_int), "cuStreamEndCapture": (c_void_p, c_void_p),
    "cuGraphInstantiateWithFlags": (c_void_p, c_void_p, c_uint64), "cuGraphDestroy": (c_void_p,),
    "cuGraphLaunch": (c_void_p, c_void_p), "cuGraphExecDestroy": (c_void_p,),
}  # fmt: skip


class CudaDriver:
    """The driver's functions, typed; each raises CannotMeasure with the driver's own words."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)
            for name, arguments in _CALLS.items():
                getattr(self._library, name).argtypes = arguments
        except (OSError, AttributeError) as error:
            hint = "install NVIDIA's driver 520 or later; see lanewise doctor"
            raise MissingDependency(f"the CUDA driver cannot be used: {error}", hint=hint) from None
        self("cuInit", 0)

    def __call__(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            text = c_char_p()
            self._library.cuGetErrorString(code, byref(text))
            words = text.value.decode(errors="replace") if text.value else f"error {code}"
            hint = "take smaller sizes" if code == _OUT_OF_MEMORY else "look at dmesg and nvidia-smi"
            raise CannotMeasure(f"{name}: {words}", hint=hint)


class RankDevice:
    """One GPU of a collective: its context, a stream, two events and two buffers of `size` bytes."""

    def __init__(self, driver: CudaDriver, ordinal: int) -> None:
        self._driver = driver
        self._device, self._context = c_int(), c_void_p()
        self._first, self._last, self.stream = c_void_p(), c_void_p(), c_void_p()
        self._memory: list[int] = []
        driver("cuDeviceGet", byref(self._device), ordinal)
        driver("cuDevicePrimaryCtxRetain", byref(self._context), self._device)
        with self.current():
            driver("cuStreamCreate", byref(self.stream), _NON_BLOCKING)
            driver("cuEventCreate", byref(self._first), 0)
            driver("cuEventCreate", byref(self._last), 0)

    @contextmanager
    def current(self) -> Iterator[None]:
        """The GPU's context as that of this thread."""
        self._driver("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._driver("cuCtxPopCurrent_v2", byref(c_void_p()))

    @property
    def stream_handle(self) -> int:
        """The handle of the stream, as a library that works on it takes it."""
        return self.stream.value or 0

    def free_memory(self) -> int:
        """Free memory of the GPU in bytes."""
        free, total = c_size_t(), c_size_t()
        with self.current():
            self._driver("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value

    def allocate(self, size: int) -> int:
        """The address of new memory; `close` frees it."""
        address = c_uint64()
        with self.current():
            self._driver("cuMemAlloc_v2", byref(address), size)
        self._memory.append(address.value)
        return address.value

    def write(self, address: int, host: int, size: int) -> None:
        """Copy from host memory, and wait."""
        self._copy("cuMemcpyHtoDAsync_v2", address, host, size)

    def read(self, host: int, address: int, size: int) -> None:
        """Copy to host memory, and wait."""
        self._copy("cuMemcpyDtoHAsync_v2", host, address, size)

    def copy(self, to: int, source: int, size: int) -> None:
        """Copy within the GPU, and wait."""
        self._copy("cuMemcpyDtoDAsync_v2", to, source, size)

    def clear(self, address: int, size: int) -> None:
        """Set every bit, and wait."""
        with self.current():
            self._driver("cuMemsetD8Async", address, 0xFF, size, self.stream)
            self._driver("cuStreamSynchronize", self.stream)

    def start(self) -> None:
        """Note the time on the stream."""
        with self.current():
            self._driver("cuEventRecord", self._first, self.stream)

    def stop(self) -> None:
        """Note the time on the stream again."""
        with self.current():
            self._driver("cuEventRecord", self._last, self.stream)

    def begin_capture(self) -> None:
        """From here on the stream's work goes into a graph."""
        with self.current():
            self._driver("cuStreamBeginCapture_v2", self.stream, _OF_THIS_THREAD)

    def end_capture(self) -> c_void_p:
        """What the stream was given since, for `instantiate` and `destroy_captured`."""
        graph = c_void_p()
        with self.current():
            self._driver("cuStreamEndCapture", self.stream, byref(graph))
        return graph

    def instantiate(self, graph: c_void_p) -> c_void_p:
        """A captured graph ready to launch, for `launch` and `destroy_graph`.

        The driver refuses it while another stream of the thread captures (two H200, driver 580).
        """
        executable = c_void_p()
        with self.current():
            self._driver("cuGraphInstantiateWithFlags", byref(executable), graph, 0)
        return executable

    def abandon_capture(self) -> None:
        """End a capture of which nothing is wanted; a stream that captures nothing is left alone."""
        graph = c_void_p()
        with self.current(), suppress(CannotMeasure):
            self._driver("cuStreamEndCapture", self.stream, byref(graph))
            if graph:
                self._driver("cuGraphDestroy", graph)

    def launch(self, executable: c_void_p) -> None:
        """All that the graph holds, by one call."""
        with self.current():
            self._driver("cuGraphLaunch", executable, self.stream)

    def destroy_captured(self, graph: c_void_p) -> None:
        """Give a captured graph back."""
        with self.current():
            self._driver("cuGraphDestroy", graph)

    def destroy_graph(self, executable: c_void_p) -> None:
        """Give a graph back."""
        with self.current():
            self._driver("cuGraphExecDestroy", executable)

    def wait(self) -> None:
        """Until all that the stream was given has ended."""
        with self.current():
            self._driver("cuStreamSynchronize", self.stream)

    def seconds(self) -> float:
        """From `start` to `stop`."""
        milliseconds = c_float()
        with self.current():
            self._driver("cuEventElapsedTime", byref(milliseconds), self._first, self._last)
        return milliseconds.value / 1e3

    def close(self) -> None:
        """Give everything back."""
        with self.current():
            for address in self._memory:
                self._driver("cuMemFree_v2", address)
            self._driver("cuEventDestroy_v2", self._first)
            self._driver("cuEventDestroy_v2", self._last)
            self._driver("cuStreamDestroy_v2", self.stream)
        self._driver("cuDevicePrimaryCtxRelease_v2", self._device)

    def _copy(self, name: str, to: int, source: int, size: int) -> None:
        with self.current():
            self._driver(name, to, source, size, self.stream)
            self._driver("cuStreamSynchronize", self.stream)
