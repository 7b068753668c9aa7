"""The GPUs of one process as the ranks of NCCL: buffers, one call of an operation at a time or many, data compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import c_void_p
from dataclasses import dataclass
from types import TracebackType

from lanewise import units
from lanewise.errors import CannotMeasure
from lanewise.probes.collectives.data import PERIOD, RankData
from lanewise.probes.collectives.driver import CudaDriver, RankDevice
from lanewise.probes.collectives.nccl import FLOAT_BYTES, Communicators, GroupOperation, NcclLibrary, RankBuffers

IN_PLACE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
_PARTS = ("all_gather", "reduce_scatter", "all_to_all")  # NCCL counts the part of one rank


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """An operation over `count` floats, as NCCL counts them; `size` is the message in bytes as nccl-tests counts it."""

    operation: str
    in_place: bool
    count: int
    size: int


class CollectiveSession:
    """Ranks with buffers for messages of up to `most` bytes; a context manager that gives everything back.

    With `graphs` the calls of a sample are captured in a CUDA graph a rank, and launched together.
    """

    def __init__(
        self, driver: CudaDriver, library: NcclLibrary, ordinals: Sequence[int], most: int, graphs: bool = False
    ) -> None:
        self._graphs = graphs
        self._stack = ExitStack()
        self._data = RankData(len(ordinals))
        self._size = max(most, FLOAT_BYTES)
        with ExitStack() as stack:
            self._devices: list[RankDevice] = []
            for ordinal in ordinals:
                self._devices.append(RankDevice(driver, ordinal))
                stack.callback(self._devices[-1].close)
            self._check_memory()
            self._send = [device.allocate(self._size) for device in self._devices]
            self._receive = [device.allocate(self._size) for device in self._devices]
            self._communicators = Communicators(library, ordinals)
            stack.callback(self._communicators.close)
            self._stack = stack.pop_all()

    def __enter__(self) -> CollectiveSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def call(self, operation: str, size: int, in_place: bool) -> CollectiveCall | None:
        """The call that moves a message of `size` bytes, rounded down to what divides; None if that is nothing."""
        parts = len(self._devices) if operation in _PARTS else 1
        count = size // FLOAT_BYTES // parts
        return CollectiveCall(operation, in_place, count, count * parts * FLOAT_BYTES) if count else None

    def wrong(self, call: CollectiveCall) -> list[int]:
        """How many floats of each rank differ from what they must be after one call, whole messages compared."""
        if self._graphs:
            self._operation(call).issue()  # NCCL connects the ranks at the first call, which is not for a graph
            self._wait()
        for rank, device in enumerate(self._devices):
            device.clear(self._receive[rank], self._size)
            self._fill(rank, self._buffers(call, rank)[0], self._sent(call))
        with self._issued(call, 1) as issue:
            issue()
            self._wait()
        return [self._differing(call, rank) for rank in range(len(self._devices))]

    def seconds(self, call: CollectiveCall, iterations: int) -> float:
        """Seconds of one call, the mean of `iterations`, of the rank that took longest."""
        with self._issued(call, iterations) as issue:
            for device in self._devices:
                device.start()
            issue()
            for device in self._devices:
                device.stop()
            self._wait()
        return max(device.seconds() for device in self._devices) / iterations

    def _wait(self) -> None:
        for device in self._devices:
            device.wait()

    @contextmanager
    def _issued(self, call: CollectiveCall, iterations: int) -> Iterator[Callable[[], None]]:
        """What issues that many calls on the streams of all ranks: one by one, or by a graph each."""

        operation = self._operation(call)

        def one_by_one() -> None:
            operation.issue(iterations)

        if not self._graphs:
            yield one_by_one
            return
        with ExitStack() as graphs:
            executables = []
            for device, graph in self._captured(one_by_one, graphs):
                executables.append((device, device.instantiate(graph)))
                graphs.callback(device.destroy_graph, executables[-1][1])

            def launch() -> None:
                for device, executable in executables:
                    device.launch(executable)

            yield launch

    def _captured(self, issue: Callable[[], None], graphs: ExitStack) -> list[tuple[RankDevice, c_void_p]]:
        """What is issued, as a graph of each device that `graphs` gives back; all captures have ended."""
        captured: list[tuple[RankDevice, c_void_p]] = []
        try:
            for device in self._devices:
                device.begin_capture()
            issue()
            for device in self._devices:
                captured.append((device, device.end_capture()))
                graphs.callback(device.destroy_captured, captured[-1][1])
        except BaseException:
            for device in self._devices[len(captured) :]:
                device.abandon_capture()
            raise
        return captured

    def _check_memory(self) -> None:
        for rank, device in enumerate(self._devices):
            free = device.free_memory()
            if 2 * self._size > free:
                needed, available = (units.show(amount, "GiB", 3) for amount in (2 * self._size, free))
                cause = f"rank {rank} needs {needed} for two buffers, and {available} are free"
                raise CannotMeasure(cause, hint="take smaller sizes (--sizes), or free memory of that GPU")

    def _sent(self, call: CollectiveCall) -> int:
        """Floats that a rank sends from."""
        return call.count * (len(self._devices) if call.operation in ("reduce_scatter", "all_to_all") else 1)

    def _buffers(self, call: CollectiveCall, rank: int) -> tuple[int, int]:
        """Addresses that a rank sends from and receives to; in place they are of one buffer."""
        send, receive = self._send[rank], self._receive[rank]
        part = rank * call.count * FLOAT_BYTES
        if not call.in_place:
            return send, receive
        if call.operation == "all_gather":
            return receive + part, receive
        return (receive, receive + part) if call.operation == "reduce_scatter" else (receive, receive)

    def _operation(self, call: CollectiveCall) -> GroupOperation:
        buffers = [
            RankBuffers(*self._buffers(call, rank), device.stream_handle) for rank, device in enumerate(self._devices)
        ]
        return self._communicators.operation(call.operation, buffers, call.count)

    def _fill(self, rank: int, address: int, count: int) -> None:
        """The rank's data: one period from the host, then copies of all that is there."""
        device, data = self._devices[rank], self._data.of_rank[rank]
        done = min(count, PERIOD)
        device.write(address, data.ctypes.data, done * FLOAT_BYTES)
        while done < count:
            more = min(done, count - done)
            device.copy(address + done * FLOAT_BYTES, address, more * FLOAT_BYTES)
            done += more

    def _differing(self, call: CollectiveCall, rank: int) -> int:
        import numpy as np

        _, receive = self._buffers(call, rank)
        host = np.empty(min(PERIOD, self._size // FLOAT_BYTES), dtype=np.float32)
        wrong = 0
        for piece in self._data.expected(call.operation, rank, call.count):
            for at in range(0, piece.count, len(host)):
                length = min(len(host), piece.count - at)
                address = receive + (piece.start + at) * FLOAT_BYTES
                self._devices[rank].read(host.ctypes.data, address, length * FLOAT_BYTES)
                first = (piece.phase + at) % PERIOD
                head = min(length, PERIOD - first)
                wrong += int(np.count_nonzero(host[:head] != piece.pattern[first : first + head]))
                wrong += int(np.count_nonzero(host[head:length] != piece.pattern[: length - head]))
        return wrong
